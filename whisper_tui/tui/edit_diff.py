"""The diff of an edit on the card: asked for, compared and coloured beside the keys, and laid out for a width."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise, takewhile, zip_longest
from pathlib import PurePosixPath
from typing import NamedTuple

from rich.syntax import Syntax

from whisper_tui.model.call import CommandSpec, FileEdits, FileVersions, WriteFile
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.secrets import masked
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import Verdict
from whisper_tui.present.command_text import MOST_CHARACTERS, command_paragraphs
from whisper_tui.present.diff_text import DiffRow, FileDiff, Side, file_diffs, folded_words, result_of
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, Ground, HunkPlace, Line, Paragraph, Role, Span, said
from whisper_tui.present.tool_text import MINUS, ChangedFile, edit_line, short_path
from whisper_tui.present.words import error_text
from whisper_tui.tui.asked_facts import AskedFacts
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.lines import fitted, rows_of

SIDE_BY_SIDE = 100
"""Least columns for both versions side by side."""
FRESH_S = 2.0
"""Seconds after which the files of a waiting edit are read again: they change while it waits."""
MOST_TO_MAKE_S = 60.0
"""Seconds in which the files of an edit that was left to its agent are looked at again, until they are as approved."""
SHORT = 200
"""Rows of a difference up to which it is laid out for another width at once, and not beside the keys."""
MOST_COLOURED = 6000
"""Characters of one side of a file whose syntax is coloured. A grammar may take long for a text made for that."""
TAB = 4

SIGNS: dict[Ground, Span] = {"added": Span("+ ", "good"), "removed": Span(f"{MINUS} ", "bad")}
PARTS: dict[Ground, Ground] = {"added": "added-part", "removed": "removed-part"}

Colours = dict[int, tuple[tuple[int, int, Role], ...]]
"""The parts of a line that have a role, by the number of the line."""


class ColouredDiff(NamedTuple):
    """The difference of a file with the roles of its text."""

    diff: FileDiff
    old: Colours
    new: Colours


def coloured_diffs(
    versions: Sequence[FileVersions], root: str, verdict: Verdict | None = None, *, mask: bool
) -> tuple[ColouredDiff, ...]:
    """Return the differences of an edit; `mask`: without the secrets in them. It takes a while, so use a thread.

    `verdict`: the one that stands above them.
    """
    shown = [_masked(each) for each in versions] if mask else versions
    return tuple(
        ColouredDiff(diff, _colours(diff, "old"), _colours(diff, "new")) for diff in file_diffs(shown, root, verdict)
    )


def _masked(versions: FileVersions) -> FileVersions:
    texts = {"old": versions.old and masked(versions.old), "new": versions.new and masked(versions.new)}
    return versions.model_copy(update=texts)


_ROLES: tuple[tuple[str, Role], ...] = (
    ("Token.Keyword", "keyword"),
    ("Token.Operator.Word", "keyword"),
    ("Token.Literal.String", "string"),
    ("Token.Comment", "comment"),
    ("Token.Literal.Number", "number"),
    ("Token.Name.Function", "name"),
    ("Token.Name.Class", "name"),
    ("Token.Name.Tag", "name"),
    ("Token.Name.Decorator", "name"),
)
"""The roles of tokens, by the beginning of their names."""


def _colours(diff: FileDiff, side: str) -> Colours:
    sides: list[Side] = [each for row in diff.rows if (each := getattr(row, side)) is not None]
    text = "".join(f"{each.text}\n" for each in sides)
    if not text.strip() or len(text) > MOST_COLOURED or any(each.before or each.after for each in sides):
        return {}
    lexer = Syntax("", Syntax.guess_lexer(PurePosixPath(diff.file.path).name), tab_size=TAB).lexer
    if lexer is None:
        return {}
    found: dict[int, list[tuple[int, int, Role]]] = {}
    # A lexer strips leading line feeds and adds one unless it is told not to, and all numbers would be off.
    lexer.stripnl = lexer.stripall = lexer.ensurenl = False
    line = column = 0
    for kind, value in lexer.get_tokens(text):
        role = next((role for name, role in _ROLES if str(kind).startswith(name)), None)
        for number, part in enumerate(value.split("\n")):
            line, column = (line + 1, 0) if number else (line, column)
            if role is not None and part and line < len(sides):
                found.setdefault(sides[line].number, []).append((column, column + len(part), role))
            column += len(part)
    return {number: tuple(parts) for number, parts in found.items()}


def laid_out(
    diffs: Sequence[ColouredDiff], width: int, *, listed: bool = True, named: bool = False
) -> tuple[Paragraph, ...]:
    """Return the files of an edit and their differences as rows of a width, side by side if there is room.

    `listed`: a list of the files stands above the differences of several. `named`: what is above has their number, or
    the name of the only one.
    """
    found: list[Paragraph] = []
    if listed and len(diffs) > 1:
        found += () if named else (_row((Span(f" {count(len(diffs), 'file')}", "label"),)),)
        for number, each in enumerate(diffs, 1):
            found.append(_row((Span("  • ", "muted"), *each.diff.title), HunkPlace(number, listed=True)))
        found.append(BLANK)
    for number, each in enumerate(diffs, 1):
        found += (BLANK,) if number > 1 else ()
        heading = _row(each.diff.title, HunkPlace(number))
        rows = [replace(heading, margin=(Span(" ▌", "file"), Span(" ")))]
        for fact in each.diff.facts:
            rows.append(Paragraph(fact, margin=(Span("   "),), at_words=False, decides=True))
        if named and len(diffs) == 1 and len(rows) > 1:
            rows = [replace(rows[1], place=HunkPlace(number)), *rows[2:]]
        found += rows
        found += _rows(each, number, width)
    return tuple(found)


def _row(line: Line, place: HunkPlace | None = None) -> Paragraph:
    return Paragraph(line, at_words=False, decides=True, place=place)


def _rows(each: ColouredDiff, file: int, width: int) -> Iterator[Paragraph]:
    """Yield the rows of a file, each of its hunks as a place."""
    digits = _digits(each.diff.rows)
    one_sided = all(row.old is None or row.new is None for row in each.diff.rows)
    beside = width >= SIDE_BY_SIDE and not one_sided
    hunk = 0
    for left_out, rows in groupby(each.diff.rows, key=lambda row: bool(row.folded or row.hidden)):
        if left_out:
            yield from (_row(_fold(row, digits)) for row in rows)
            continue
        hunk += 1
        lay_out = _beside if beside else _unified
        lines = lay_out(each, rows, digits, width)
        for number, line in enumerate(lines):
            place = None if number else HunkPlace(file, hunk)
            yield Paragraph(line, at_words=False, decides=True, place=place, columns=width)


def _beside(each: ColouredDiff, rows: Iterable[DiffRow], digits: int, width: int) -> Iterator[Line]:
    left = (width - 1) // 2
    for row in rows:
        one = _cell(row.old, each.old, "removed" if row.changed else "", digits, left)
        other = _cell(row.new, each.new, "added" if row.changed else "", digits, width - left - 1)
        empty: tuple[Line, Line] = ((Span(" " * left),), (Span(" " * (width - left - 1)),))
        for first, second in zip_longest(one, other):
            yield (*(first or empty[0]), Span("│", "frame"), *(second or empty[1]))


def _unified(each: ColouredDiff, rows: Iterable[DiffRow], digits: int, width: int) -> Iterator[Line]:
    for side, ground in _one_below_the_other(rows):
        yield from _cell(side, each.old if ground == "removed" else each.new, ground, digits, width)


def _one_below_the_other(rows: Iterable[DiffRow]) -> Iterator[tuple[Side | None, Ground]]:
    """Yield the lines of both versions, the removed lines of a change above the added ones."""
    pending: list[Side | None] = []
    for row in rows:
        if not row.changed:
            yield from ((side, "added") for side in pending)
            pending = []
            yield row.new, ""
        else:
            yield row.old, "removed"
            pending.append(row.new)
    yield from ((side, "added") for side in pending)


def flowing_rows(rows: Sequence[DiffRow], margin: Line) -> Iterator[Paragraph]:
    """Yield the rows of a difference as paragraphs of any width, with a margin before their numbers."""
    digits = _digits(rows)
    for is_left_out, some in groupby(rows, key=lambda row: bool(row.folded or row.hidden)):
        if is_left_out:
            yield from (Paragraph((*margin, *_fold(row, digits))) for row in some)
            continue
        for side, ground in _one_below_the_other(some):
            if side is not None:
                line = _paragraph(side, (), ground, digits)
                yield replace(line, margin=(*margin, *line.margin), hanging=(*margin, *(line.hanging or ())))


def _digits(rows: Sequence[DiffRow]) -> int:
    numbers = [side.number for row in rows for side in (row.old, row.new) if side is not None]
    return len(str(max(numbers, default=0)))


def _fold(row: DiffRow, digits: int) -> Line:
    return (Span(" " * (digits + 2)), *folded_words(row))


def _cell(side: Side | None, colours: Colours, ground: Ground, digits: int, width: int) -> list[Line]:
    """Return the line of one version as rows of exactly the width, with its number and a sign."""
    if side is None:
        return []
    rows = rows_of(_paragraph(side, colours.get(side.number, ()), ground, digits), width)
    return [_filled(line, ground, width) for line in rows]


def _paragraph(side: Side, colours: tuple[tuple[int, int, Role], ...], ground: Ground, digits: int) -> Paragraph:
    sign = SIGNS.get(ground, Span("  "))._replace(ground=ground)
    margin = (Span(f" {side.number:>{digits}} ", "muted", ground), sign)
    hanging = (Span(f" {' ' * digits} ", "muted", ground), Span("┆ ", "frame", ground))
    text = (*_gap(side.before), *_text(side, colours, ground), *_gap(side.after))
    note = (Span("  "), Span(f"⟨{side.note}⟩", "hidden")) if side.note else ()
    return Paragraph((*text, *note), margin, hanging, at_words=False)


def _filled(line: Line, ground: Ground, width: int) -> Line:
    *kept, last = fitted((*line, Span("")), width)
    return (*kept, last._replace(ground=ground) if not last.text.strip() else last)


def _gap(left_out: int) -> Line:
    return (Span(f" … {left_out:,} characters not shown … ", "risk"),) if left_out else ()


def _text(side: Side, colours: tuple[tuple[int, int, Role], ...], ground: Ground) -> Iterator[Span]:
    """Yield the text of a line in pieces, each in its role, the part that differs on a ground of its own."""
    coloured = [(start, end) for start, end, _ in colours]
    cuts = {0, len(side.text), *(at for part in (*side.marked, *coloured) for at in part)}
    ordered = sorted(at for at in cuts if at <= len(side.text))
    for low, high in pairwise(ordered):
        role: Role = next((role for start, end, role in colours if start <= low < end), "command")
        marked = any(start <= low < end for start, end in side.marked)
        part = PARTS.get(ground, ground) if marked else ground
        for number, piece in enumerate(side.text[low:high].split("\t")):
            if number:
                # A tab that was changed into blanks, or the other way round, must not look the same.
                yield Span("→" + " " * (TAB - 1), "muted", part)
            yield from (span._replace(ground=part) for span in said(piece, role, whole=True))


Version = tuple[str, str, bool]
"""The id of a call, what a person sees of it, and whether secrets are masked."""


class Difference(NamedTuple):
    """The difference of an edit, as the card shows it."""

    record: CallRecord
    drawn: CallRecord
    """The call as it is shown: with its secrets masked, if they are to be."""
    versions: tuple[FileVersions, ...] = ()
    diffs: tuple[ColouredDiff, ...] = ()
    problem: str = ""
    """Why the files are not known, as a sentence. Empty: they are."""

    @property
    def is_short(self) -> bool:
        """True if it is laid out quickly enough to be done where keys are read."""
        asked = self.record.spec.command.changes if isinstance(self.record.spec.command, FileEdits) else ()
        return sum(len(each.diff.rows) for each in self.diffs) + len(asked) <= SHORT

    def rows(self, width: int) -> tuple[Paragraph, ...]:
        """Return the difference for a width."""
        problem = Paragraph(said(self.problem, "risk"), margin=(Span(" ? ", "risk"),), decides=True)
        rows = (problem,) if self.problem else laid_out(self.diffs, width, named=True)
        whole = self.problem or any(map(_is_partly_hidden, self.versions, self.diffs))
        asked = _as_asked(self.drawn) if whole else ()
        return (*_stale(self.record, self.versions), *rows, *asked)


class EditFacts(AskedFacts):
    """Asks for the contents of the files of the edit on the screen, and compares them beside the keys."""

    def __init__(self, cockpit: CockpitContext, changed: Callable[[], object]) -> None:
        super().__init__(cockpit, changed)
        self._version: Version | None = None
        self._difference: Difference | None = None
        self._width = 0
        """The columns that there are."""
        self._rows: tuple[int, tuple[Paragraph, ...]] = (0, ())
        """The difference as it is laid out, and for how many columns."""
        self._digest: tuple[CallRecord, str] | None = None

    def paragraphs(self, record: CallRecord, drawn: CallRecord, width: int) -> tuple[Paragraph, ...]:
        """Return the difference of an edit for a width; `drawn` is the call as it is shown. Empty: it is no edit."""
        if not isinstance(record.spec.command, FileEdits):
            return ()
        self._width = width
        version = self._version_of(record, mask=drawn is not record)
        self._look(record, drawn, version)
        if self._difference is not None and self._rows[0] != width and self._difference.is_short:
            self._rows = (width, self._difference.rows(width))
        if self._version != version or self._is_too_wide():
            words = Span("Reading the files …", "waiting")
            return (Paragraph((words,), margin=(Span(" "),), decides=True),)
        return self._rows[1]

    def is_missing(self, record: CallRecord) -> bool:
        """True if the difference of an edit that waits is not on the screen yet."""
        missing = self._version != self._version_of(record, mask=False) or self._is_too_wide()
        return isinstance(record.state, Waiting) and missing

    def contents(self, record: CallRecord) -> tuple[FileVersions, ...] | None:
        """Return the contents of the files as they are on the screen. None: they are not known."""
        found = self._difference
        known = found is not None and not found.problem and self._version == self._version_of(record, mask=False)
        return found.versions if found is not None and known else None

    def _version_of(self, record: CallRecord, *, mask: bool) -> Version:
        # The digest of a call with megabytes takes long, and the card is drawn again every second.
        if self._digest is None or self._digest[0] is not record:
            seen = record.seen_digest() if isinstance(record.state, Waiting) else record.state.kind
            self._digest = (record, f"{seen} {record.reverted_by is not None}")
        return record.id, self._digest[1], mask

    def _look(self, record: CallRecord, drawn: CallRecord, version: Version) -> None:
        fresh = not self._may_change(record) or self._cockpit.clock() - self._asked_at < FRESH_S
        if self.asking or (self._version == version and fresh and self._is_laid_out()):
            return
        self.asking = True
        self._cockpit.screen.run_worker(self._ask(record, drawn, version), name="edit-diff")

    def _is_laid_out(self) -> bool:
        return self._difference is None or self._difference.is_short or self._rows[0] == self._width

    def _is_too_wide(self) -> bool:
        """True if a long difference is laid out for more columns than there are: to wrap it would hold up keys."""
        return self._rows[0] > self._width

    def _may_change(self, record: CallRecord) -> bool:
        """True if the files have to be looked at again: the edit waits, or its agent has yet to make it."""
        if isinstance(record.state, Ended):
            just_left = self._cockpit.clock() - record.state.at < MOST_TO_MAKE_S
            versions = self._difference.versions if self._difference is not None else ()
            return just_left and any(each.now == "as_before" for each in versions)
        return isinstance(record.state, Waiting)

    async def _ask(self, record: CallRecord, drawn: CallRecord, version: Version) -> None:
        before, width = self._difference, self._width
        found = Difference(record, drawn)
        session = self._cockpit.board.sessions.get(record.call.session_id)
        root = session.root if session is not None else record.spec.cwd
        rows = self._rows
        try:
            versions = await self._cockpit.supervision.file_versions(record.id)
            known = before is not None and version == self._version and versions == before.versions

            def prepare() -> tuple[Difference, tuple[int, tuple[Paragraph, ...]]]:
                compared = before.diffs if before and known else None
                diffs = compared or coloured_diffs(versions, root, record.verdict, mask=version[2])
                made = found._replace(versions=versions, diffs=diffs)
                return made, rows if known and rows[0] == width else (width, made.rows(width))

            # Without the interpreter's lock held for long: comparing, colouring and laying out go in small steps.
            found, rows = await asyncio.to_thread(prepare)
        except WhisperError as error:
            found = found._replace(problem=error_text(error))
            rows = (width, found.rows(width))
        finally:
            self._answered()
        same = version == self._version and rows == self._rows
        self._version, self._difference, self._rows = version, found, rows
        if isinstance(record.state, Ended) and self._may_change(record):
            # An ended call is not drawn again by itself.
            self._cockpit.screen.set_timer(FRESH_S, self._draw)
        if not same:
            self._draw()


class EditedResult:
    """The contents that an edit would leave, one of which a person changes; shown as differences, like on the card."""

    def __init__(self, record: CallRecord, versions: Sequence[FileVersions], file: int) -> None:
        """`file` is its place among the files of the edit. Raises `Refused` if nobody can change its content."""
        spec = record.call.spec
        if not isinstance(spec.command, FileEdits):
            raise Refused(f"call {record.id} edits no files")
        self.spec = spec.model_copy(update={"command": result_of(versions, spec.command)})
        """The edit, with the contents of all its files."""
        self.file = file
        self._versions = versions
        self._root = spec.cwd
        self.name = visible(short_path(versions[file].file.path, spec.cwd))
        """The file that is changed, for people."""
        content = versions[file].new
        if content is None:
            raise Refused(f"the edit deletes {self.name}, so there is no content to edit", hint=_ANOTHER)
        if len(content) > MOST_CHARACTERS:
            raise Refused(f"the file {self.name} is too long to edit here", hint="Deny the edit and say what to do")
        lines = zip((versions[file].old or "").split("\n"), content.split("\n"), strict=False)
        shared = takewhile(lambda pair: pair[0] == pair[1], lines)
        self.first_changed = sum(1 for _ in shared)
        """The number of the first line that the agent changes, from 0 on."""
        of = f"file {file + 1} of {len(versions)} of" if len(versions) > 1 else "the result of"
        self.title = f"Edit {of} call {record.id}: {self.name}"

    def problem(self, spec: CommandSpec | None) -> str:
        """Return the sentence that says why a result cannot be approved. Empty: it can."""
        if spec is None or _contents(spec) != [each.old for each in self._versions]:
            return ""
        return "This leaves every file as it is: deny the edit instead."

    def changed(self, asked: CommandSpec, spec: CommandSpec | None, width: int) -> tuple[Paragraph, ...]:
        """Return the difference between the agent's result and the person's."""
        title = _heading("Your changes to the agent's result", "label")
        if spec is None or spec == asked:
            return (title, _row((Span("   none yet", "muted"),)))
        before, after = (_contents(each)[self.file] for each in (asked, spec))
        return (title, *self._rows(before, after, width))

    def written(self, spec: CommandSpec, width: int) -> tuple[Paragraph, ...]:
        """Return the difference that will be made to the file, and the other files of the edit."""
        same = spec == self.spec
        words = "Will be made: as asked" if same else "Will be made: edited"
        rows = self._rows(self._versions[self.file].old, _contents(spec)[self.file], width)
        others = [each.file for number, each in enumerate(self._versions) if number != self.file]
        found = (_heading(words, "label" if same else "edited"), *rows)
        if not others:
            return found
        files = [ChangedFile(file.action, file.path, "", file.added, file.removed) for file in others]
        return (
            *found,
            BLANK,
            _heading("The other files, as the agent asked for them", "label"),
            *(_row((Span("  • ", "muted"), *edit_line([file], self._root))) for file in files),
        )

    def _rows(self, old: str | None, new: str | None, width: int) -> Iterator[Paragraph]:
        versions = FileVersions(file=self._versions[self.file].file, old=old, new=new)
        (each,) = coloured_diffs((versions,), self._root, mask=False)
        yield from _rows(each, 1, width)
        if not each.diff.rows:
            yield _row((Span("   no line changes", "muted"),))


_ANOTHER = "Go to a file that stays, and press the key again"


def _contents(spec: CommandSpec) -> list[str | None]:
    """Return the contents that an edit leaves. None: the file is deleted."""
    changes = spec.command.changes if isinstance(spec.command, FileEdits) else ()
    return [change.content if isinstance(change, WriteFile) else None for change in changes]


def _heading(words: str, role: Role) -> Paragraph:
    return Paragraph((Span(words, role),), margin=(Span(" "),))


def _is_partly_hidden(versions: FileVersions, coloured: ColouredDiff) -> bool:
    """True if the difference does not show all that the edit does."""
    hidden = any(row.hidden for row in coloured.diff.rows)
    return bool(hidden or versions.not_shown or versions.file.problem or versions.file.unread)


def _as_asked(record: CallRecord) -> Iterator[Paragraph]:
    """Yield the changes as the agent asked for them, for nobody may approve what is not shown (decision 23)."""
    yield BLANK
    yield Paragraph((Span("As the agent asked for it", "label"),), margin=(Span(" "),), decides=True)
    yield from (replace(each, decides=True) for each in command_paragraphs(record.spec.command, ()))


def _stale(record: CallRecord, versions: Sequence[FileVersions]) -> Iterator[Paragraph]:
    """Yield a row if a file is no longer as it was when the call was judged."""
    judged = {file.path: file.before for file in record.resolved.edits} if record.resolved is not None else {}
    stale = [each.file.path for each in versions if each.file.before != judged.get(each.file.path, each.file.before)]
    if stale and not isinstance(record.state, Ended):
        names = ", ".join(stale[:3])
        words = f"The file has changed since the edit was judged: {names}. If you approve, you are asked again."
        yield Paragraph(said(words, "risk"), margin=(Span(" ! ", "risk"),), decides=True)
