"""A text of paragraphs that scrolls, and knows how much of it was never on the screen."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from whisper_tui.present.spans import BLANK, HunkPlace, Line, Paragraph, Role, Span
from whisper_tui.tui.lines import ROLE_CLASSES, drawn, wrap

Paragraphs = tuple[Paragraph, ...]


class SeenRows:
    """Counts among the rows that matter those that were never shown. Another text or width begins anew."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._seen = bytearray()
        self._text: Hashable = None
        self.missing = 0
        """Rows that matter and have not been on the screen."""

    def of(self, rows: list[int], text: Hashable) -> None:
        """The rows that matter are these now, in ascending order; what was seen of the same `text` stays seen."""
        if text != self._text or len(rows) != len(self._rows):
            self._seen = bytearray(len(rows))
            self.missing = len(rows)
            self._text = text
        self._rows = rows

    def show(self, first: int, count: int) -> None:
        """So many rows from the first one are on the screen."""
        if not self.missing:
            return
        start, end = bisect_left(self._rows, first), bisect_left(self._rows, first + count)
        self.missing -= self._seen.count(0, start, end)
        self._seen[start:end] = b"\x01" * (end - start)


TWO_COLUMNS = 104
"""Least width for two columns of text."""

LEAST_BESIDE = 40
"""Columns that the second text gets at least."""


class TextRow(NamedTuple):
    """A row on the screen, of one column or of two."""

    line: Line = ()
    card: bool = False
    """True if it has a background of its own."""
    decides: bool = False
    beside: Line | None = None
    """The row of the second column."""
    place: HunkPlace | None = None


def _broken(paragraphs: Paragraphs, width: int) -> list[TextRow]:
    found: list[TextRow] = []
    for p in paragraphs:
        rows = (p.margin + p.spans,) if 0 < p.columns <= width else wrap(p, max(20, width))
        found += (TextRow(row, p.card, p.decides, place=None if n else p.place) for n, row in enumerate(rows))
    return found


class Position(NamedTuple):
    """The file and the hunk of a difference that a person looks at, and how many there are."""

    file: int
    files: int
    hunk: int
    """0: the file has no hunks."""
    hunks: int
    """Hunks of this file."""


class HunkPlaces:
    """The files and hunks among the rows of a difference, and the one that a person looks at."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, HunkPlace]] = []
        self._at: list[int] = []
        """The numbers of these rows."""
        self._hunks: Counter[int] = Counter()
        """Hunks of each file."""
        self._chosen: tuple[HunkPlace, int] | None = None
        """The place that keys went to, and the first row on the screen then."""

    def of(self, rows: Sequence[TextRow]) -> None:
        """These are the rows now; a place that keys went to stays the current one."""
        self._rows = [(at, row.place) for at, row in enumerate(rows) if row.place is not None and not row.place.listed]
        self._at = [at for at, _ in self._rows]
        self._hunks = Counter(place.file for _, place in self._rows if place.hunk)

    def forget(self) -> None:
        """Let the rows on the screen say which place is the current one."""
        self._chosen = None

    def choose(self, place: HunkPlace, top: int) -> None:
        """Make a place the current one, for as long as `top` is the first row on the screen."""
        self._chosen = (place, top)

    def at(self, top: int) -> HunkPlace | None:
        """Return the current place while `top` is the first row on the screen. None: there is no difference."""
        if not self._rows:
            return None
        if (chosen := self._chosen_at(top)) is not None:
            return chosen
        return self._with_hunk(self._rows[max(0, bisect_right(self._at, top + 1) - 1)][1])

    def position(self, top: int) -> Position | None:
        """Return the current place and how many there are. None: there is no difference."""
        here = self.at(top)
        if here is None:
            return None
        return Position(here.file, self._rows[-1][1].file, here.hunk, self._hunks[here.file])

    def step(self, top: int, direction: int, *, files: bool) -> tuple[int, HunkPlace] | None:
        """Return the next or the previous file or hunk with its row. None: there is no further one."""
        here, chosen = self.at(top), self._chosen_at(top)
        if here is None:
            return None
        if files:
            wanted = [(row, place) for row, place in self._rows if place == (here.file + direction, 0, False)]
            return (wanted[0][0], self._with_hunk(wanted[0][1])) if wanted else None
        hunks = [(row, place) for row, place in self._rows if place.hunk]
        if chosen is not None:
            # Where all of it is on the screen, rows cannot tell which hunk comes next.
            further = [each for each in hunks if (each[1] > chosen if direction > 0 else each[1] < chosen)]
        else:
            further = [each for each in hunks if (each[0] > top + 1 if direction > 0 else each[0] < top)]
        return None if not further else further[0] if direction > 0 else further[-1]

    def _chosen_at(self, top: int) -> HunkPlace | None:
        chosen = self._chosen
        known = chosen is not None and chosen[1] == top and chosen[0].hunk <= self._hunks[chosen[0].file]
        return chosen[0] if chosen is not None and known else None

    def _with_hunk(self, place: HunkPlace) -> HunkPlace:
        """Return the first hunk of a file for its heading."""
        return place._replace(hunk=1) if not place.hunk and self._hunks[place.file] else place


def without(paragraphs: Paragraphs, part: Paragraphs) -> Paragraphs:
    """Return paragraphs without a part of them, which lies somewhere in one piece."""
    for at in range(len(paragraphs) - len(part) + 1):
        if part and paragraphs[at : at + len(part)] == part:
            return paragraphs[:at] + paragraphs[at + len(part) :]
    return paragraphs


class ParagraphsView(ScrollView, can_focus=True):
    """Paragraphs, broken into rows of the width there is; in two columns where it is wide."""

    COMPONENT_CLASSES = ROLE_CLASSES | {"role--card"}
    ALLOW_SELECT = False

    @dataclass
    class Hidden(Message):
        """So many rows are above and below what is on the screen, of so many in all."""

        above: int
        below: int
        rows: int
        unseen: int
        """Rows of what decides that have not been on the screen at all."""
        position: Position | None = None
        """The file and the hunk of a difference that the person looks at. None: there is no difference."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.resized: Callable[[], object] = lambda: None
        """Called after a resize, for whoever lays out text for its width."""
        self._paragraphs: Paragraphs = ()
        self._aside: Paragraphs = ()
        self._spare: Paragraphs = ()
        self._spare_below = False
        self._fills = False
        self._rows: list[TextRow] = []
        self._rows_before: list[TextRow] = []
        """The rows of the text before this one."""
        self._split: int | None = None
        """The width of the first of two columns."""
        self._fitted_to = Size()
        self._told: tuple[int, int, int, int, Position | None] = (0, 0, 0, 0, None)
        self._seen = SeenRows()
        self._places = HunkPlaces()

    def show(
        self,
        paragraphs: Paragraphs,
        *,
        from_top: bool,
        aside: Paragraphs = (),
        spare: Paragraphs = (),
        spare_below: bool = False,
    ) -> None:
        """Show other text; `from_top` when it is about another call.

        `aside` is the part of it that has a column of its own where it is wide. `spare` fills what is left over, if
        all of it fits; `spare_below`: only below the text, which needs all of the width.
        """
        if from_top:
            self.scroll_to(y=0, animate=False, immediate=True)
            self._seen = SeenRows()
            self._places.forget()
        shown = (self._paragraphs, self._aside, self._spare, self._spare_below)
        if (paragraphs, aside, spare, spare_below) != shown or from_top:
            self._rows_before = self._rows
            self._paragraphs, self._aside, self._spare = paragraphs, aside, spare
            self._spare_below = spare_below
            self._break()
            self.refresh()
        self.call_after_refresh(self._tell)

    def set_fills(self, fills: bool) -> None:
        """Show the spare text where there is room for it, or never."""
        if fills != self._fills:
            self._fills = fills
            self._break()
            self.refresh()
            self.call_after_refresh(self._tell)

    def show_further(self) -> None:
        """Scroll so far that the rows that the last text had not are on the screen, at the bottom if it is long."""
        before, now = self._rows_before, self._rows
        first = next((at for at, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), len(before))
        if first < len(now) and first + 1 >= self.scroll_offset.y + self.scrollable_content_region.height:
            self.call_after_refresh(self.scroll_to, y=max(0, first - 1), animate=False, immediate=True)

    @property
    def columns(self) -> int:
        """The columns of a row of text, also when a scroll bar appears."""
        return max(20, self.content_region.width - self.styles.scrollbar_size_vertical - 1)

    @property
    def unseen(self) -> int:
        """Rows of what decides that have not been on the screen since this text was shown, at this width."""
        self._look()
        return self._seen.missing

    def page(self, direction: int) -> None:
        """Scroll by what fits on the screen, save one row that stays for the eye."""
        by = max(1, self.scrollable_content_region.height - 1)
        self.scroll_to(y=self.scroll_offset.y + direction * by, animate=False, immediate=True)

    def jump_to(self, roles: Collection[Role]) -> bool:
        """Scroll to the next row below the first shown one that has text in a role. Returns False if none has any."""
        wanted = [
            at
            for at, row in enumerate(self._rows)
            if any(span.role in roles for span in (*row.line, *(row.beside or ())))
        ]
        if not wanted:
            return False
        below = [at for at in wanted if at > self.scroll_offset.y]
        reachable = below and self.scroll_offset.y < self.max_scroll_y
        self.scroll_to(y=below[0] if reachable else wanted[0], animate=False, immediate=True)
        return True

    def go_to_place(self, direction: int, *, files: bool) -> bool:
        """Scroll to the next or the previous hunk, or file, of a difference. Returns False if there is none."""
        found = self._places.step(self.scroll_offset.y, direction, files=files)
        if found is None:
            return False
        row, place = found
        # One row above a hunk stays for the eye: it tells how many lines are folded.
        self.scroll_to(y=row if files else max(0, row - 1), animate=False, immediate=True)
        self._places.choose(place, self.scroll_offset.y)
        self.refresh()
        self._tell()
        return True

    @property
    def place(self) -> HunkPlace | None:
        """The file and the hunk of a difference that the person looks at."""
        return self._places.at(self.scroll_offset.y)

    def on_resize(self) -> None:
        """Break the text anew for another width."""
        size = self.scrollable_content_region.size
        if size.width != self._fitted_to.width or (self._spare and size != self._fitted_to):
            self._break()
            # Rows may have been drawn in the new size before this message came.
            self.refresh()
        self.call_after_refresh(self._tell)
        self.call_after_refresh(self.resized)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scrolling changes how much is hidden; what was on the screen has been seen."""
        self._seen.show(round(old_value), self.scrollable_content_region.height)
        super().watch_scroll_y(old_value, new_value)
        self._tell()

    def _break(self) -> None:
        self._fitted_to = self.scrollable_content_region.size
        width = max(20, self._fitted_to.width - 1)
        wide = width >= TWO_COLUMNS and (self._aside or (self._spare and self._fills and not self._spare_below))
        self._split, self._rows = (
            self._in_columns(width) if wide else (None, self._with_spare([], self._paragraphs, width))
        )
        deciding = [at for at, row in enumerate(self._rows) if row.decides]
        self._places.of(self._rows)
        text = tuple(paragraph for paragraph in self._paragraphs if paragraph.decides)
        self._seen.of(deciding, (width, self._split, text))
        if len(self._rows) != self.virtual_size.height:
            self.virtual_size = Size(0, len(self._rows))

    def _in_columns(self, width: int) -> tuple[int, list[TextRow]]:
        """The width of the first column and the rows: half of the width, or more if that spares breaking its rows."""
        first = without(self._paragraphs, self._aside)
        longest = max((sum(len(span.text) for span in (*p.margin, *p.spans, *p.right)) for p in first), default=0)
        widest = min(max(width // 2, longest + 1), width - LEAST_BESIDE)
        wide = self._rows_beside(first, width, widest)
        # One long sentence in the first column is no reason to break every line of a script in the second one.
        half = self._rows_beside(first, width, width // 2) if widest > width // 2 else wide
        return (width // 2, half) if len(half) < len(wide) else (widest, wide)

    def _rows_beside(self, first: Paragraphs, width: int, split: int) -> list[TextRow]:
        left = _broken(first, split)
        # A column begins without the blank row that parts its text from the one above it.
        right = self._with_spare(
            left, self._aside[1:] if self._aside[:1] == (BLANK,) else self._aside, width - split - 1
        )
        rows = zip_longest(left, right, fillvalue=TextRow())
        return [TextRow(one.line, one.card, one.decides or two.decides, two.line, one.place) for one, two in rows]

    def _with_spare(self, beside: list[TextRow], paragraphs: Paragraphs, width: int) -> list[TextRow]:
        """The rows of a column, with the spare text if that leaves nothing off the screen."""
        rows = _broken(paragraphs, width)
        spare = _broken(self._spare if rows else self._spare[1:], width) if self._fills else []
        fits = max(len(beside), len(rows) + len(spare)) <= self._fitted_to.height
        return rows + spare if fits else rows

    def _look(self) -> None:
        if self.is_mounted and self.display:
            self._seen.show(self.scroll_offset.y, self.scrollable_content_region.height)

    def _tell(self) -> None:
        if self.scrollable_content_region.width != self._fitted_to.width:
            # A scroll bar has come or gone since the text was broken, and no message says so.
            self._break()
            self.refresh()
        self._look()
        above = min(self.scroll_offset.y, len(self._rows))
        below = max(0, len(self._rows) - above - self.scrollable_content_region.height)
        position = self._places.position(self.scroll_offset.y)
        if (told := (above, below, len(self._rows), self._seen.missing, position)) != self._told:
            self._told = told
            self.post_message(self.Hidden(*told))

    def render_line(self, y: int) -> Strip:
        """One row of the text."""
        row = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        found = self._rows[row] if row < len(self._rows) else TextRow()
        if found.place is not None and self._is_current(found.place):
            found = found._replace(line=_pointed_at(found.line))
        ground = self.get_component_rich_style("role--card", partial=True) if found.card else None
        if found.beside is None or self._split is None:
            return drawn(self, found.line, width, ground=ground)
        first = drawn(self, found.line, self._split, ground=ground)
        return Strip.join([first, drawn(self, (Span("│", "frame"), *found.beside), width - self._split)])

    def _is_current(self, place: HunkPlace) -> bool:
        position = self._places.position(self.scroll_offset.y)
        if position is None or (position.files == 1 and position.hunks <= 1):
            return False
        here = (position.file, 0 if place.listed else position.hunk)
        return here == (place.file, place.hunk)


def _pointed_at(line: Line) -> Line:
    """Return a row with a sign in its first column, which is blank."""
    first, *rest = line
    return (Span("▸", "running", first.ground), first._replace(text=first.text[1:]), *rest)
