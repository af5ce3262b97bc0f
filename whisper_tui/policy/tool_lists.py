"""The lists `excludeTools` and `coreTools` of other agents' settings, read as rules in their own syntax."""

import re
import shlex
from collections.abc import Iterable

from whisper_tui.policy.rules import Rule

_ENTRY = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?:\((.*)\))?\s*", re.DOTALL)

ALIASES = {"ShellTool": "run_shell_command", "ReadFileTool": "read_file"}
"""Class names by which the same settings call the same tools."""


def denials(entries: Iterable[str], problems: list[str]) -> tuple[Rule, ...]:
    """What `excludeTools` denies: `tool` all of it, `tool(words)` every command that begins with these words."""
    rules = []
    for entry in entries:
        read = _read("excludeTools", entry, problems)
        if read is not None:
            tool, words = read
            said = f"{entry.strip()} is in excludeTools"
            rules.append(_rule("excludeTools", entry, tool, words, said))
    return tuple(rules)


def allowances(entries: Iterable[str], problems: list[str]) -> tuple[Rule, ...]:
    """What `coreTools` lets run without asking: `tool(words)`. A tool alone is offered, and asked as ever."""
    rules = []
    for entry in entries:
        read = _read("coreTools", entry, problems)
        if read is not None and read[1]:
            tool, words = read
            rules.append(_rule("coreTools", entry, tool, words, f"{entry.strip()} is in coreTools"))
    return tuple(rules)


def _rule(kind: str, entry: str, tool: str, words: tuple[str, ...], said: str) -> Rule:
    name = f"{kind}: {entry.strip()}"
    if words:
        return Rule(name=name, tool=tool, prefix=words, justification=said)
    return Rule(name=name, tool=tool, anything=True, justification=said)


def _read(kind: str, entry: str, problems: list[str]) -> tuple[str, tuple[str, ...]] | None:
    """The tool and the words of an entry. None: it says something else, which is noted."""
    matched = _ENTRY.fullmatch(entry)
    try:
        words = tuple(shlex.split(matched[2] or "")) if matched else ()
    except ValueError:
        matched = None
    if matched is None or (matched[2] is not None and not words):
        problems.append(f"{kind}: {entry!r} is neither a tool nor a tool with a command, like run_shell_command(rm)")
        return None
    return ALIASES.get(matched[1], matched[1]), words
