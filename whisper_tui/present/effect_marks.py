"""The effects of a command as marks, names, bars and chips, for the card; `effects_text` has them as sentences."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from whisper_tui.model.effects import FileEffect, HostEffect, Removal
from whisper_tui.present.effects_text import FEW, GIT_KNOWS, MOVED, name_below
from whisper_tui.present.quantities import count, size
from whisper_tui.present.spans import Line, Role, Span, said
from whisper_tui.present.tool_text import MINUS

NEW, CHANGED, DELETED, MOVES = Span("+ ", "good"), Span("~ ", "edited"), Span(f"{MINUS} ", "bad"), Span("→ ", "edited")
ABSENT = Span("· ", "muted")
"""The mark of a file; red is for what is lost."""
LONGEST_BAR = 10
"""Squares of a bar; a longer one keeps its proportion."""
_CONTENT = frozenset({"writes", "appends to", "edits", "touches"})
"""The actions that change the content of a file, or could."""


class MarkedFile(NamedTuple):
    """One row of the list of files."""

    line: Line
    """The mark, the name, and what is unusual about it."""
    amount: Line = ()
    """How much of it changes, for the right edge."""


def bar(added: int, removed: int) -> Line:
    """Return the numbers of added and removed lines, and squares in the same proportion."""
    if not added and not removed:
        return ()
    squares = min(LONGEST_BAR, added + removed)
    good = round(squares * added / (added + removed))
    # Neither of the two may look like nothing.
    good = min(max(good, bool(added)), squares - bool(removed)) if squares > 1 else good
    parts: tuple[tuple[Role, str, int], ...] = (("good", f"+{added:,}", added), ("bad", f"{MINUS}{removed:,}", removed))
    numbers = (Span(f"{text} ", role) for role, text, number in parts if number)
    squared: Line = (Span("■" * good, "good"), Span("■" * (squares - good), "bad"))
    return (*numbers, *(each for each in squared if each.text))


def removal_row(removal: Removal, directory: str) -> MarkedFile:
    """Return what is deleted, how much of it, and what git knows about it."""
    missing = tuple(_names(removal.missing, directory))
    if not removal.paths:
        return MarkedFile((ABSENT, *missing, _note("not there")))
    alone = removal.files == 1 and len(removal.paths) == 1 and removal.complete
    more = "" if removal.complete else "more than "
    amount = size(removal.bytes) if alone else f"{more}{count(removal.files, 'file')}, {size(removal.bytes)}"
    line: list[Span] = [DELETED, *_names(removal.paths, directory)]
    for name, words in GIT_KNOWS:
        # What git cannot bring back is lost.
        role: Role = "muted" if name == "restorable" else "risk"
        line += [Span(f"  {number:,} {words}", role)] if (number := getattr(removal, name)) else []
    line += [Span("  outside", "risk")] if removal.outside else []
    line += said(f"  {removal.no_git}") if removal.no_git else ()
    line += (_note("not there: "), *missing) if missing else ()
    return MarkedFile(tuple(line), (Span(f"  {amount}", "bad"),))


def file_row(file: FileEffect, directory: str, later: Collection[str] = ()) -> MarkedFile:
    """Return the mark and the name of a file that changes, how it changes, and what is unusual about it.

    `later`: the paths of files that decide what runs later.
    """
    name = said(name_below(file.path, directory), "strong")
    match file.action:
        case "moves":
            line: Line = (MOVES, *name, Span(" → ", "muted"), *said(name_below(file.detail, directory), "strong"))
        case "links":
            line = (NEW, *name, Span(" → ", "muted"), *said(file.detail, "strong"))
        case "makes directory":
            line = (NEW, *name, Span("/"))
        case "removes directory":
            line = (DELETED, *name, Span("/"))
        case "fills":
            named = f", {file.detail}" if file.detail else ""
            where = "and all below it" if file.detail == MOVED else f"files below it{named}"
            line = (_mark(file), *name, *said(f"  {where}", "muted"))
        case "changes mode of" | "changes owner of":
            what = "mode" if file.action == "changes mode of" else "owner"
            below = ", and of all below it" if file.below else ""
            line = (CHANGED, *name, *said(f"  {what} {file.detail}".rstrip() + below, "muted"))
        case _:
            line = (_mark(file), *name)
    runs_later = not {file.path, file.real}.isdisjoint(later)
    return MarkedFile((*line, *_unusual(file, directory, runs_later=runs_later)), _amount(file))


def _mark(file: FileEffect) -> Span:
    return NEW if file.before == "absent" else CHANGED


def _amount(file: FileEffect) -> Line:
    """Return how much of a file changes: its lines if they are known, else its size now."""
    if file.diff is not None and (lines := bar(file.diff.added, file.diff.removed)):
        return (Span("  "), *lines)
    known = file.before == "file" and file.action in _CONTENT and file.size is not None
    return (_note(size(file.size)),) if known and file.size is not None else ()


def _unusual(file: FileEffect, directory: str, *, runs_later: bool) -> Iterator[Span]:
    existed = file.before == "file" and file.action in _CONTENT
    if file.action == "touches" and file.before != "absent":
        yield _note("its time only")
    if file.action == "appends to" and file.before != "absent":
        yield _note("at its end")
    if existed and file.diff is not None and not file.diff.added and not file.diff.removed:
        yield _note("same content")
    elif existed and file.diff is None and file.no_diff:
        yield from said(f"  {'' if file.no_diff == 'not computed' else 'no diff: '}{file.no_diff}", "muted")
    if file.action == "links" and file.before == "file":
        yield Span("  replaces a file", "risk")
    if file.before == "special":
        yield _note("no regular file")
    if file.through_link:
        yield from (_note("really "), *said(name_below(file.real, directory), "strong"))
    if file.outside:
        yield Span("  outside", "risk")
    if runs_later:
        yield Span("  runs later", "risk")
    if file.only_if:
        yield from said(f"  if {file.only_if}", "muted")


def host_chip(host: HostEffect) -> Line:
    """Return a machine as a chip, with the program that talks to it and where its name comes from."""
    # A chip does not break.
    chip = (Span("\u00a0→\u00a0", "word"), *said(host.host or "an unknown machine", "word"), Span("\u00a0", "word"))
    facts = (host.program, host.source, "" if host.elsewhere else "this machine")
    return (*chip, *said(f" {', '.join(filter(None, facts))}", "muted"))


def _names(paths: Sequence[str], directory: str) -> Iterator[Span]:
    for number, path in enumerate(paths[:FEW]):
        yield from ((Span(", ", "muted"),) if number else ())
        yield from said(name_below(path, directory), "strong")
    if len(paths) > FEW:
        yield Span(f" and {len(paths) - FEW:,} more", "muted")


def _note(text: str) -> Span:
    return Span(f"  {text}", "muted")
