"""Whose rules a file holds, by its name and its first look."""

from typing import Literal

from whisper_tui.policy.imports.carried import Carried
from whisper_tui.policy.imports.claude import claude_rules
from whisper_tui.policy.imports.codex import codex_rules
from whisper_tui.policy.imports.gemini import gemini_rules
from whisper_tui.policy.imports.lists import holds_lists, listed_rules

Format = Literal["claude", "codex", "gemini", "lists"]

_READERS = {"claude": claude_rules, "codex": codex_rules, "gemini": gemini_rules, "lists": listed_rules}


def import_rules(name: str, text: str, kind: Format | None = None) -> Carried:
    """The rules of a file. Raises `ValueError` if it cannot be read, or is of no known kind."""
    chosen = kind or _kind(name, text)
    if chosen is None:
        raise ValueError(
            "its name ends in none of .json (Claude Code, tool lists), .rules (Codex) and .toml (Gemini CLI)"
        )
    return _READERS[chosen](text)


def _kind(name: str, text: str) -> Format | None:
    if name.endswith(".json"):
        return "lists" if holds_lists(text) else "claude"
    if name.endswith(".rules"):
        return "codex"
    return "gemini" if name.endswith(".toml") else None
