"""What a person changed about a command, line by line: taken away, added, and what stayed between."""

import json
import re
import shlex
from collections.abc import Iterator
from difflib import SequenceMatcher

from whisper_tui.model.command import Argv, Command, CommandSpec, Shell
from whisper_tui.tui.spans import Line, Paragraph, Role, Span, said
from whisper_tui.tui.words import limit

_PIECES = re.compile(r"\w+|\s+|.", re.DOTALL)
MINUS = "\u2212"
LONGEST_COMPARED = 4000
"""Characters of a line that are compared piece by piece; longer ones are shown as changed altogether."""


def change_paragraphs(asked: CommandSpec, runs: CommandSpec) -> tuple[Paragraph, ...]:
    """Lines of a shell's text, or words of an argv, one a row; then the directory and the timeout if they differ."""
    found = list(_changes(_lines(asked.command), _lines(runs.command)))
    for name, before, after in (
        ("Directory", asked.cwd, runs.cwd),
        ("Timeout", _timeout(asked), _timeout(runs)),
    ):
        if before != after:
            found += _changes([f"{name}  {before}"], [f"{name}  {after}"])
    return tuple(found)


def _lines(command: Command) -> list[str]:
    if isinstance(command, Argv):
        return [shlex.quote(word) for word in command.words()]
    if isinstance(command, Shell):
        return command.text.split("\n")
    return [command.tool, *json.dumps(command.arguments, ensure_ascii=False, indent=2).split("\n")]


def _timeout(spec: CommandSpec) -> str:
    return "none" if spec.timeout_s is None else limit(spec.timeout_s)


def _changes(before: list[str], after: list[str]) -> Iterator[Paragraph]:
    for kind, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        old, new = before[start:end], after[new_start:new_end]
        if kind == "equal":
            yield from (_row(" ", said(line, "command", whole=True), "frame") for line in old)
            continue
        pairs = min(len(old), len(new))
        for one, other in zip(old[:pairs], new[:pairs], strict=True):
            removed, added = _differences(one, other)
            yield _row(MINUS, removed, "bad")
            yield _row("+", added, "good")
        yield from (_row(MINUS, said(line, "marked", whole=True), "bad") for line in old[pairs:])
        yield from (_row("+", said(line, "marked", whole=True), "good") for line in new[pairs:])


def _differences(before: str, after: str) -> tuple[Line, Line]:
    """Both lines, with the pieces that the other does not have marked."""
    if max(len(before), len(after)) > LONGEST_COMPARED:
        return said(before, "marked", whole=True), said(after, "marked", whole=True)
    old, new = _PIECES.findall(before), _PIECES.findall(after)
    removed: list[Span] = []
    added: list[Span] = []
    for kind, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        role: Role = "command" if kind == "equal" else "marked"
        removed += said("".join(old[start:end]), role, whole=True)
        added += said("".join(new[new_start:new_end]), role, whole=True)
    return tuple(removed), tuple(added)


def _row(sign: str, line: Line, role: Role) -> Paragraph:
    return Paragraph(
        line, (Span(f" {sign} ", role), Span("│ ", "frame")), (Span("   "), Span("┆ ", "frame")), at_words=False
    )
