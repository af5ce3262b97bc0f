"""The difference that an edit makes to a file: its rows, with the words that differ, and the same as paragraphs."""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from whisper_tui.model.call import FileEdits
from whisper_tui.model.edits import DeleteFile, EditedFile, FileVersions, WriteFile
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, Line, Paragraph, Role, Span, said

MOST_LINES = 20_000
"""Lines of both contents together that are compared for the screen."""

MOST_ROWS = 2_000
"""Rows of one difference."""

CONTEXT = 3
"""Unchanged lines around a change."""

LONGEST_LINE = 2_000
"""Characters of a line that are compared with those of another one."""


class DiffRow(NamedTuple):
    """One row of a difference: a line on each side, or the length of a stretch that is folded."""

    kind: Literal["same", "changed", "folded"]
    old: Line = ()
    new: Line = ()
    old_number: int | None = None
    """The line of the old content, from 1. None: there is none on this side."""
    new_number: int | None = None
    hidden: int = 0
    """Lines that are folded."""


def diff_rows(versions: FileVersions) -> tuple[DiffRow, ...]:
    """Compare two contents line by line, and the words of lines that have changed. Takes long for long contents."""
    before, after = _lines(versions.old), _lines(versions.new)
    if len(before) + len(after) > MOST_LINES:
        return ()
    rows: list[DiffRow] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=len(before) + len(after) > MOST_LINES // 10)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        hidden = group[0][3] - (_last_number(rows))
        if hidden > 0:
            rows.append(DiffRow("folded", hidden=hidden))
        for kind, low, high, new_low, new_high in group:
            if kind == "equal":
                pairs = zip(range(low, high), range(new_low, new_high), strict=True)
                rows += [DiffRow("same", _text(before[a]), _text(after[b]), a + 1, b + 1) for a, b in pairs]
            else:
                rows += _changed(before[low:high], after[new_low:new_high], low, new_low)
        if len(rows) > MOST_ROWS:
            break
    rest = len(after) - _last_number(rows)
    return (*rows, DiffRow("folded", hidden=rest)) if rest > 0 and rows else tuple(rows)


def _last_number(rows: Sequence[DiffRow]) -> int:
    return next((row.new_number for row in reversed(rows) if row.new_number is not None), 0)


def _lines(text: str | None) -> list[str]:
    """Return lines with their ends, so that a missing one, and those of Windows, are differences that show."""
    if not text:
        return []
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _text(line: str, role: Role = "command") -> Line:
    ending = "" if line.endswith("\n") else " ⏎ missing"
    bare = line.removesuffix("\n")
    carriage = bare.endswith("\r")
    spans = said(bare.removesuffix("\r").replace("\t", "    "), role, whole=True)
    return (*spans, *((Span("␍", "hidden"),) if carriage else ()), *((Span(ending, "hidden"),) if ending else ()))


def _changed(old: Sequence[str], new: Sequence[str], old_at: int, new_at: int) -> list[DiffRow]:
    rows = []
    for at in range(max(len(old), len(new))):
        one, other = (old[at] if at < len(old) else None), (new[at] if at < len(new) else None)
        before, after = _compared(one, other)
        rows.append(
            DiffRow(
                "changed",
                before,
                after,
                old_at + at + 1 if one is not None else None,
                new_at + at + 1 if other is not None else None,
            )
        )
    return rows


_WORD = re.compile(r"\w+|\s+|[^\w\s]")


def _compared(old: str | None, new: str | None) -> tuple[Line, Line]:
    """Return two lines with the words that differ marked; without, where they have little in common."""
    if old is None or new is None or max(len(old), len(new)) > LONGEST_LINE:
        return (_text(old, "bad") if old is not None else ()), (_text(new, "good") if new is not None else ())
    before, after = _WORD.findall(old.rstrip("\r\n")), _WORD.findall(new.rstrip("\r\n"))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < 0.4:
        return _text(old, "bad"), _text(new, "good")
    left: list[Span] = []
    right: list[Span] = []
    for kind, low, high, new_low, new_high in matcher.get_opcodes():
        same = kind == "equal"
        left += _piece("".join(before[low:high]), "bad" if same else "removed")
        right += _piece("".join(after[new_low:new_high]), "good" if same else "added")
    return (*left, *_ending(old)), (*right, *_ending(new))


def _piece(text: str, role: Role) -> Line:
    return said(text.replace("\t", "    "), role, whole=True)


def _ending(line: str) -> Line:
    return _text("\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else "")


def diff_paragraphs(versions: FileVersions, rows: Sequence[DiffRow]) -> tuple[Paragraph, ...]:
    """Return a difference as one column: removed lines before added ones."""
    if versions.not_shown:
        return (_note(f"not shown: {versions.not_shown}"),)
    if not rows:
        same = (versions.old or "") == (versions.new or "")
        return (_note("no line changes" if same else f"more than {MOST_LINES:,} lines, too many to compare here"),)
    digits = len(str(max((row.old_number or row.new_number or 0) for row in rows)))
    found: list[Paragraph] = []
    waiting: list[DiffRow] = []
    for row in rows:
        if row.kind == "changed":
            waiting.append(row)
            continue
        found += _block(waiting, digits)
        waiting = []
        if row.kind == "folded":
            found.append(_note(f"⋯ {count(row.hidden, 'line')}"))
        else:
            found.append(_line(f"{row.new_number:>{digits}} ", " ", row.new, "muted"))
    found += _block(waiting, digits)
    return tuple(found)


def _block(rows: Sequence[DiffRow], digits: int) -> Iterator[Paragraph]:
    for row in rows:
        if row.old_number is not None:
            yield _line(f"{row.old_number:>{digits}} ", "−", row.old, "bad")
    for row in rows:
        if row.new_number is not None:
            yield _line(f"{row.new_number:>{digits}} ", "+", row.new, "good")


def _line(number: str, sign: str, spans: Line, role: Role) -> Paragraph:
    margin: Line = (Span(f" {number}", "muted"), Span(f"{sign} ", role))
    hanging: Line = (Span(" " * (len(number) + 1)), Span("┆ ", "frame"))
    return Paragraph(spans, margin, hanging, card=True, at_words=False, decides=True)


def _note(text: str) -> Paragraph:
    return Paragraph(said(text, "muted"), (Span("   "),))


def edit_paragraphs(
    shown: Sequence[tuple[FileVersions, Sequence[DiffRow]]], recorded: Sequence[EditedFile]
) -> tuple[Paragraph, ...]:
    """Return the differences of all files of an edit. `recorded`: the files as they were when the edit was judged."""
    known = {file.real: file for file in recorded}
    found: list[Paragraph] = []
    for versions, rows in shown:
        file = versions.file
        found += [BLANK, Paragraph((Span("Difference  ", "label"), *_name(file)), margin=(Span(" "),))]
        before = known.get(file.real)
        if before is not None and before.before != file.before:
            said_so = "The file has changed since the edit was judged: an approval would be asked again."
            found.append(Paragraph((Span(said_so, "risk"),), margin=(Span(" "),), decides=True))
        found += diff_paragraphs(versions, rows)
    return tuple(found)


def result_of(shown: Sequence[FileVersions], edits: FileEdits) -> FileEdits | None:
    """Return an edit as the contents that it leaves, for people who want to change them. None: they are not known."""
    changes: list[WriteFile | DeleteFile] = []
    for versions in shown:
        if versions.not_shown or versions.file.problem or versions.file.moved_from:
            return None
        path = versions.file.path
        changes.append(DeleteFile(path=path) if versions.new is None else WriteFile(path=path, content=versions.new))
    return edits.model_copy(update={"changes": tuple(changes)}) if changes else None


def _name(file: EditedFile) -> Line:
    moved: Line = (*said(file.moved_from.rpartition("/")[2]), Span(" → ", "muted")) if file.moved_from else ()
    return (*moved, *said(file.inside or file.real, "strong" if file.inside else "risk"))
