"""The difference of two texts or of two commands, in rows; and the facts about an edited file in words."""

import re
import shlex
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from whisper_tui.model.call import (
    Argv,
    Command,
    CommandSpec,
    DeleteFile,
    EditedFile,
    FileEdits,
    FileState,
    FileVersions,
    PatchFile,
    Shell,
    WriteFile,
)
from whisper_tui.model.changed_blocks import CONTEXT, Block, changed_blocks, lines_of, trimmed
from whisper_tui.model.errors import Refused
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import Verdict
from whisper_tui.present.command_text import whole_text
from whisper_tui.present.quantities import count, limit, size
from whisper_tui.present.spans import Line, Paragraph, Role, Span, said
from whisper_tui.present.tool_text import MINUS, ChangedFile, edit_line, short_path, unusual_facts

MOST_CHANGED = 4000
"""Rows with changes that are shown of one edit."""
LONGEST_LINE = 1200
"""Characters of a line beyond which only its part with the change is shown."""
LONGEST_CHANGE = 4000
"""Characters of a change within one line that are shown."""
LONGEST_PAIRED = 400
"""Characters of a line beyond which it is not compared word by word."""
_PIECES = re.compile(r"\w+|\s+|.", re.DOTALL)
# SequenceMatcher takes quadratic time, and the comparison runs again at every typed character.
LONGEST_COMPARED = 4000
"""Most characters of a line that is compared word by word; longer lines are marked as a whole."""
ALIKE = 0.45
"""Share of common text from which two lines count as one that was changed."""


class Side(NamedTuple):
    """A line of one version."""

    number: int
    text: str
    """Without its end."""
    marked: tuple[tuple[int, int], ...] = ()
    """The parts that the other version has not."""
    note: str = ""
    """A word for an unusual end of the line. Empty: it ends as usual."""
    before: int = 0
    """Characters that are left out before the text, because the line is very long."""
    after: int = 0


class DiffRow(NamedTuple):
    """A line of both versions, or of one; or lines that are left out."""

    old: Side | None = None
    new: Side | None = None
    changed: bool = False
    folded: int = 0
    """Unchanged lines that are left out here."""
    hidden: int = 0
    """Rows with changes that are not shown, because there are too many."""


class FileDiff(NamedTuple):
    """One file of an edit: its heading and the rows of its difference."""

    file: EditedFile
    title: Line
    facts: tuple[Line, ...]
    rows: tuple[DiffRow, ...] = ()


def file_diffs(versions: Sequence[FileVersions], root: str, verdict: Verdict | None = None) -> tuple[FileDiff, ...]:
    """Return the differences of the files of an edit. It may take a while: never call it where keys are read.

    `verdict`: the one that stands above them.
    """
    left = MOST_CHANGED
    found: list[FileDiff] = []
    for each in versions:
        rows = _rows(each, left) if not each.not_shown else ()
        left = max(0, left - sum(row.changed for row in rows))
        found.append(FileDiff(each.file, _title(each.file, root), tuple(_facts(each, rows, verdict)), rows))
    return tuple(found)


def _title(file: EditedFile, root: str) -> Line:
    return edit_line([ChangedFile(file.action, file.path, file.moved_from, file.added, file.removed)], root)


def _facts(versions: FileVersions, rows: tuple[DiffRow, ...], verdict: Verdict | None) -> Iterator[Line]:
    """Yield the facts about a file: first the usual ones on one line, then each unusual one."""
    file = versions.file
    usual = ["new file"] if file.size is None else [size(file.size)]
    usual += [f"mode {file.mode:o}"] if file.mode is not None else []
    usual += ["CRLF line ends"] if versions.new and _ends_with_crlf(versions.new) else []
    yield (*said(short_path(file.real, "")), Span(f"  {' · '.join(usual)}", "muted"))
    if versions.now:
        yield _NOW[versions.now]
    not_shown = (f"not shown: {versions.not_shown}",) if versions.not_shown else ()
    yield from (said(words, "risk") for words in (*unusual_facts(file.model_dump(), verdict), *not_shown))
    if not rows and not versions.not_shown and not file.problem:
        yield (Span("its content stays as it is" if file.action == "moves" else "no line changes", "muted"),)


_NOW: dict[FileState, Line] = {
    "as_approved": (Span("now as it was approved", "good"),),
    "as_before": (Span("now as before the edit: its agent has not made it, or it was undone", "waiting"),),
    "differs": (Span("now other than approved: changed since, or not made as approved", "risk"),),
}


def _ends_with_crlf(text: str) -> bool:
    return "\r\n" in text[:100_000]


def _rows(versions: FileVersions, most: int) -> tuple[DiffRow, ...]:
    old, new = (lines_of(text or "") for text in (versions.old, versions.new))
    blocks = changed_blocks(old, new)
    usual_end = "\r\n" if versions.new and _ends_with_crlf(versions.new) else "\n"
    found: list[DiffRow] = []
    at = shown = 0
    for number, (low, high, new_low, _) in enumerate(blocks):
        found += _unchanged(old, at, low, new_low, usual_end, first=number == 0)
        room = max(0, most - shown)
        changed = list(_changed(old, new, blocks[number], usual_end, room))
        found += changed
        shown += len(changed)
        at = high
        if shown >= most:
            rest = sum(max(b[1] - b[0], b[3] - b[2]) for b in blocks[number:]) - len(changed)
            return (*found, DiffRow(hidden=rest)) if rest > 0 else tuple(found)
    if blocks:
        after = min(CONTEXT, len(old) - at)
        offset = blocks[-1][3] - blocks[-1][1]
        found += [_same(old, at + n, at + n + offset, usual_end) for n in range(after)]
        if (rest := len(old) - at - after) > 0:
            found.append(DiffRow(folded=rest))
    return tuple(found)


def _unchanged(old: list[str], start: int, end: int, new_end: int, usual_end: str, *, first: bool) -> Iterator[DiffRow]:
    """Yield the lines before a change; those far from it and from the one before are left out."""
    before = 0 if first else min(CONTEXT, end - start)
    after = min(CONTEXT, end - start - before)
    offset = new_end - end
    yield from (_same(old, at, at + offset, usual_end) for at in range(start, start + before))
    if (rest := end - start - before - after) > 0:
        yield DiffRow(folded=rest)
    yield from (_same(old, at, at + offset, usual_end) for at in range(end - after, end))


def _same(old: list[str], at: int, new_at: int, usual_end: str) -> DiffRow:
    side = _side(at, old[at], (), usual_end)
    return DiffRow(side, side._replace(number=new_at + 1))


def _changed(old: list[str], new: list[str], block: Block, usual_end: str, most: int) -> Iterator[DiffRow]:
    low, high, new_low, new_high = block
    for number in range(min(most, max(high - low, new_high - new_low))):
        before = old[low + number] if low + number < high else None
        after = new[new_low + number] if new_low + number < new_high else None
        marks: tuple[Marks, Marks] = ((), ())
        if before is not None and after is not None:
            marks = _marks(_text(before), _text(after))
        one = _side(low + number, before, marks[0], usual_end) if before is not None else None
        other = _side(new_low + number, after, marks[1], usual_end) if after is not None else None
        yield DiffRow(one, other, changed=True)


Marks = tuple[tuple[int, int], ...]


def _text(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _side(at: int, line: str, marked: Marks, usual_end: str) -> Side:
    note = "" if line.endswith("\n") else "no line feed at the end"
    if note == "" and (line.endswith("\r\n") != (usual_end == "\r\n")):
        note = "CRLF" if line.endswith("\r\n") else "LF only"
    return _window(Side(at + 1, _text(line), marked, note))


def _window(side: Side) -> Side:
    """Return a very long line without the parts far from its change, which are counted."""
    text, marked = side.text, side.marked
    if len(text) <= LONGEST_LINE:
        return side
    start, end = (marked[0][0], marked[-1][1]) if marked else (0, min(len(text), LONGEST_CHANGE))
    low, high = max(0, start - 100), min(len(text), max(end, start) + 100)
    if end - start > LONGEST_CHANGE:
        high = start + LONGEST_CHANGE
    moved = tuple((a - low, min(b, high) - low) for a, b in marked if a < high)
    return side._replace(text=text[low:high], marked=moved, before=low, after=len(text) - high)


def _marks(old: str, new: str) -> tuple[Marks, Marks]:
    """Return the parts of two lines that differ; nothing if the lines have little in common."""
    if len(old) > LONGEST_PAIRED or len(new) > LONGEST_PAIRED:
        start, end, _, new_end = trimmed(old, new, (0, len(old), 0, len(new)))
        return ((start, end),), ((start, new_end),)
    one, other = _PIECES.findall(old), _PIECES.findall(new)
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.ratio() < ALIKE:
        return (), ()
    marks: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for kind, low, high, new_low, new_high in matcher.get_opcodes():
        if kind != "equal":
            marks[0].append(_span(one, low, high))
            marks[1].append(_span(other, new_low, new_high))
    return tuple(m for m in marks[0] if m[0] < m[1]), tuple(m for m in marks[1] if m[0] < m[1])


def _span(pieces: list[str], low: int, high: int) -> tuple[int, int]:
    start = sum(map(len, pieces[:low]))
    return start, start + sum(map(len, pieces[low:high]))


_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def unified_rows(text: str, most: int) -> tuple[DiffRow, ...]:
    """Return the rows of a unified diff of one file, without its two header lines; at most so many of its lines."""
    found: list[DiffRow] = []
    old: list[str] = []
    new: list[str] = []
    at = new_at = 0
    usual_end = "\r\n" if _ends_with_crlf(text) else "\n"

    def end_change() -> None:
        nonlocal at, new_at
        rows = _changed(old, new, (0, len(old), 0, len(new)), usual_end, len(old) + len(new))
        found.extend(_moved(row, at, new_at) for row in rows)
        at, new_at = at + len(old), new_at + len(new)
        old.clear()
        new.clear()

    lines = lines_of(text)
    for line, following in zip(lines[:most], [*lines[1:], ""], strict=False):
        words = line[1:].removesuffix("\n") if following.startswith("\\") else line[1:]
        if hunk := _HUNK.match(line):
            end_change()
            # An empty side is named by the line before it.
            first = int(hunk[1]) - (hunk[2] != "0")
            found += [DiffRow(folded=first - at)] if first > at else []
            at, new_at = first, int(hunk[3]) - (hunk[4] != "0")
        elif line.startswith("-"):
            old.append(words)
        elif line.startswith("+"):
            new.append(words)
        elif line.startswith(" "):
            end_change()
            found.append(_moved(_same([words], 0, 0, usual_end), at, new_at))
            at, new_at = at + 1, new_at + 1
    end_change()
    return tuple(found)


def _moved(row: DiffRow, by: int, new_by: int) -> DiffRow:
    """Return a row with the numbers of its lines further down."""
    old = row.old and row.old._replace(number=row.old.number + by)
    return row._replace(old=old, new=row.new and row.new._replace(number=row.new.number + new_by))


def folded_words(row: DiffRow) -> Line:
    """Return the words for lines that are left out."""
    if row.hidden:
        words = f"{count(row.hidden, 'changed line')} more: too many to be shown"
        return (Span(f"… {words}; `whisper-tui show --json` prints the whole edit", "risk"),)
    return (Span(f"⋯ {count(row.folded, 'line')}", "hunk"),)


def result_of(shown: Sequence[FileVersions], edits: FileEdits) -> FileEdits:
    """Return an edit as the contents that it leaves, in the order of its files, for people who want to change one.

    Raises `Refused` with the reason why nobody can: for all files the agent's tool is given contents then.
    """
    if not edits.takes_result:
        raise Refused("this agent takes no other result", hint=_DENY)
    changes: list[WriteFile | DeleteFile] = []
    is_patch = any(isinstance(change, PatchFile | DeleteFile) for change in edits.changes)
    for versions in shown:
        file, name = versions.file, visible(versions.file.path)
        if problem := versions.not_shown or file.problem or file.unread:
            raise Refused(f"the content of {name} is not known: {problem}", hint=_DENY)
        if file.moved_from:
            raise Refused(
                f"the edit moves {name}, which would lose its permission bits with another result", hint=_DENY
            )
        if is_patch and "\r" in f"{versions.old}{versions.new}":
            raise Refused(f"the file {name} has line ends of Windows, which the agent's patch cannot keep", hint=_DENY)
        changes.append(
            DeleteFile(path=file.path) if versions.new is None else WriteFile(path=file.path, content=versions.new)
        )
    return edits.model_copy(update={"changes": tuple(changes)})


_DENY = "Approve the edit as it is, or deny it and say what to do"


THIS_MACHINE = "this machine"


def change_paragraphs(asked: CommandSpec, runs: CommandSpec) -> tuple[Paragraph, ...]:
    """Return the differences by line of shell text or by argument, then those of the directory and the timeout."""
    found = list(_line_changes(_command_lines(asked.command), _command_lines(runs.command)))
    for name, before, after in (
        ("Place", asked.place or THIS_MACHINE, runs.place or THIS_MACHINE),
        ("Directory", asked.cwd, runs.cwd),
        ("Timeout", _timeout(asked), _timeout(runs)),
    ):
        if before != after:
            found += _line_changes([f"{name}  {before}"], [f"{name}  {after}"])
    return tuple(found)


def _command_lines(command: Command) -> list[str]:
    if isinstance(command, Argv):
        return [shlex.quote(word) for word in command.words()]
    if isinstance(command, Shell):
        return command.text.split("\n")
    return [command.tool, *whole_text(command).split("\n")]


def _timeout(spec: CommandSpec) -> str:
    return "none" if spec.timeout_s is None else limit(spec.timeout_s)


def _line_changes(before: list[str], after: list[str]) -> Iterator[Paragraph]:
    # With autojunk, words that occur often in a long text count as noise and are shown as changed.
    for kind, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        old, new = before[start:end], after[new_start:new_end]
        if kind == "equal":
            yield from (_change_row(" ", said(line, "command", whole=True), "frame") for line in old)
            continue
        pairs = min(len(old), len(new))
        for one, other in zip(old[:pairs], new[:pairs], strict=True):
            removed, added = _differences(one, other)
            yield _change_row(MINUS, removed, "bad")
            yield _change_row("+", added, "good")
        yield from (_change_row(MINUS, said(line, "marked", whole=True), "bad") for line in old[pairs:])
        yield from (_change_row("+", said(line, "marked", whole=True), "good") for line in new[pairs:])


def _differences(before: str, after: str) -> tuple[Line, Line]:
    """Return both lines; pieces that only one of them has are marked."""
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


def _change_row(sign: str, line: Line, role: Role) -> Paragraph:
    return Paragraph(
        line, (Span(f" {sign} ", role), Span("│ ", "frame")), (Span("   "), Span("┆ ", "frame")), at_words=False
    )
