"""Whose rules a file holds, by its name and its first look."""

from typing import Literal

from whisper_tui.policy.imports.carried import Carried
from whisper_tui.policy.imports.claude import claude_rules
from whisper_tui.policy.imports.codex import codex_rules
from whisper_tui.policy.imports.gemini import gemini_rules

Format = Literal["claude", "codex", "gemini"]

_READERS = {"claude": claude_rules, "codex": codex_rules, "gemini": gemini_rules}


def import_rules(name: str, text: str, kind: Format | None = None) -> Carried:
    """The rules of a file. Raises `ValueError` if it cannot be read, or is of no known kind."""
    chosen = kind or _kind(name)
    if chosen is None:
        raise ValueError("its name ends in none of .json (Claude Code), .rules (Codex) and .toml (Gemini CLI)")
    return _READERS[chosen](text)


def _kind(name: str) -> Format | None:
    if name.endswith(".json"):
        return "claude"
    if name.endswith(".rules"):
        return "codex"
    return "gemini" if name.endswith(".toml") else None
