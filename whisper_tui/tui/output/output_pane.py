"""A pane of output: one stream or both, live or scrolled, as text or as bytes, with search."""

import asyncio
from collections.abc import Awaitable
from itertools import zip_longest

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import Stream
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import time_with_milliseconds
from whisper_tui.present.spans import Line, Span
from whisper_tui.present.words import error_text
from whisper_tui.tui.lines import ROLE_CLASSES, Scrolled, base_style, drawn, width_of
from whisper_tui.tui.output.ansi import pen_after
from whisper_tui.tui.output.merged_view import MergedView
from whisper_tui.tui.output.output_bars import bar, title_line
from whisper_tui.tui.output.output_search import Finder, Match, Needle
from whisper_tui.tui.output.output_view import OutputView, ScrolledOutput, ShownRow
from whisper_tui.tui.output.painter import Painter, Pens, looks_binary
from whisper_tui.tui.output.stream_reader import ByteWindow, ReadOutput, TimeIndex

SIDEWAYS = 8
"""Columns of a horizontal scroll step."""
NO_TIME = " " * 12
HEADS_KEPT = 200
"""Row margins in the cache; with timestamps, each row has its own."""
NO_LINE: tuple[Strip, Line] = (Strip([]), ())


class RowsPane(Scrolled):
    """A title line, and below it the rows of one or both streams with a scroll bar."""

    COMPONENT_CLASSES = ROLE_CLASSES | {"role--thumb", "role--focused", "role--match", "role--match-now"}

    def __init__(self, title: str, pens: Pens, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.title = title
        self.view: ScrolledOutput | None = None
        self.finder: Finder | None = None
        """The search in the pane, if any."""
        self.beside = ""
        """A note in the title about a hidden stream."""
        self.left = 0
        """The horizontal scroll offset in columns."""
        self.wraps = False
        self.stamps = False
        """True if each row has a timestamp."""
        self._painter = Painter(pens)
        self._heads: dict[tuple[Line, int], Strip] = {}
        self._role_styles: dict[tuple[tuple[str, ...], bool], Style] = {}
        self._reads: dict[Stream, ReadOutput] = {}
        self._index: TimeIndex | None = None
        self._problem = ""
        self._search_problem = ""
        self._lines: list[tuple[Strip, Line]] = []
        self._thumb: range | None = None
        self._drawn_rows: list[ShownRow] = []
        self._busy = False

    def show(self, reads: dict[Stream, ReadOutput], index: TimeIndex | None = None) -> None:
        """Show other streams from their end; empty for no output."""
        self._reads, self._index = reads, index
        self.left = 0
        self._problem = ""
        self._open()

    def make_view(self, height: int) -> ScrolledOutput | None:
        """Return a view at the end of the streams; None without output."""
        raise NotImplementedError

    async def grown(self, view: ScrolledOutput) -> None:
        """React to new output."""

    def _open(self) -> None:
        self.view = self.make_view(max(1, self.size.height - 1))
        self._painter.forget()
        self._lines, self._thumb, self._drawn_rows = [], None, []
        self.refresh()

    @property
    def silent(self) -> bool:
        """True if there is nothing to show."""
        return self.view is None or (not self.view.size and not self._problem)

    @property
    def failed(self) -> bool:
        """True if the output cannot be read."""
        return bool(self._problem)

    @property
    def strips(self) -> list[Strip]:
        """The lines on the screen."""
        return [strip for strip, _ in self._lines]

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams in this pane."""
        return tuple(self._reads)

    def recolour(self, pens: Pens) -> None:
        """Redraw with other colours."""
        self._painter.pens = pens
        self._painter.forget()
        self._draw_rows()
        self.refresh()

    async def set_style(self, *, wraps: bool, stamps: bool) -> None:
        """Switch wrapping and timestamps."""
        if (wraps, stamps) != (self.wraps, self.stamps):
            self.wraps, self.stamps = wraps, stamps
            self.left = 0
            await self.on_resize()

    async def tick(self) -> None:
        """Poll for new output; a tick during a read is skipped."""
        view = self.view
        if view is None or self._busy or self._problem:
            return
        # A pane that is hidden and shown again within one frame gets no Resize, but its view may be new.
        width = self._text_width if self.wraps else None
        if self.display and self.size and (view.height, self._painter.width) != (max(1, self.size.height - 1), width):
            await self.on_resize()
        if view.complete and self.finder is None:
            return
        self._busy = True
        try:
            if await view.poll() and view is self.view:
                await self.grown(view)
                self._draw_rows()
            elif self.finder is not None:
                self.refresh()
        except WhisperError as error:
            self._fail(error)
        finally:
            self._busy = False

    async def move(self, to: str, amount: float = 0) -> None:
        """Move by `rows`, to the `start`, the `end` or a `fraction`, or `hold` still."""
        view = self.view
        if view is None or self._problem:
            return
        try:
            match to:
                case "rows":
                    await view.scroll(int(amount))
                case "start":
                    await view.to_start()
                case "end":
                    await view.to_end()
                case "fraction":
                    await view.to_fraction(amount)
                case _:
                    await view.hold()
        except WhisperError as error:
            self._fail(error)
        else:
            self._draw_rows()

    def redraw(self) -> None:
        """Redraw after the time index has grown."""
        self._draw_rows()

    def _fail(self, error: WhisperError) -> None:
        self._problem = error_text(error)
        self.refresh()

    def action_sideways(self, direction: int) -> None:
        """Scroll horizontally."""
        longest = max((strip.cell_length for strip in self.strips), default=0)
        furthest = max(0, longest - self._text_width)
        self.left = max(0, min(furthest, self.left + direction * SIDEWAYS))
        self.refresh()

    async def on_resize(self) -> None:
        """Fit the rows to the pane."""
        width = self._text_width if self.wraps else None
        if width != self._painter.width:
            self._painter.width = width
            self._painter.forget()
        if self.view is not None and not self._problem:
            try:
                await self.view.resize(max(1, self.size.height - 1))
            except WhisperError as error:
                self._fail(error)
        self._draw_rows()
        self.refresh()

    @property
    def _text_width(self) -> int:
        return max(1, self.size.width - 2 - (len(NO_TIME) + 1 if self.stamps else 0))

    def _draw_rows(self) -> None:
        """Draw the rows on the screen into strips, through the painter's cache."""
        view = self.view
        if view is None:
            self.refresh()
            return
        self._painter.base = base_style(self)
        self._painter.found = (
            self.get_component_rich_style("role--match"),
            self.get_component_rich_style("role--match-now"),
        )
        rows = view.shown()
        pens = {stream: pen_after(view.before(stream)) for stream in self._reads}
        lines: list[tuple[Strip, Line]] = []
        for shown, strips in self._painter.paint(rows, pens):
            margin = self._margin(shown)
            lines += [(strip, margin if number == 0 else ()) for number, strip in enumerate(strips)]
        self._drawn_rows = rows
        thumb = bar(view, view.extent, max(1, self.size.height - 1))
        self._put(lines[view.skip : view.skip + view.height], thumb)

    def _put(self, lines: list[tuple[Strip, Line]], thumb: range | None) -> None:
        """Put lines and thumb on the screen."""
        # Only changed regions are refreshed: a log that grows quickly would otherwise redraw the whole pane 40 times a
        # second.
        changed = {y for y, (old, new) in enumerate(zip_longest(self._lines, lines)) if old != new}
        changed |= set(self._thumb or ()) ^ set(thumb or ())
        self._lines, self._thumb = lines, thumb
        if lines:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in (0, *(y + 1 for y in changed))))
        else:
            self.refresh()

    def _margin(self, shown: ShownRow) -> Line:
        """The margin of a row: a mark for stderr in a merged pane, and the timestamp."""
        mark = (Span("▌", "bad"),) if len(self._reads) == 2 and shown.stream == "err" else (Span(" "),)
        if not self.stamps or self._index is None:
            return mark
        at = self._index.time(shown.stream, shown.row.start)
        return (*mark, Span(f"{time_with_milliseconds(at) if at is not None else NO_TIME} ", "muted"))

    def notify_style_update(self) -> None:
        """Redraw after a change of styles."""
        super().notify_style_update()
        self._heads.clear()
        self._role_styles.clear()
        self._painter.forget()
        if self.is_mounted:
            self._draw_rows()

    def get_component_rich_style(self, *names: str, partial: bool = False, default: Style | None = None) -> Style:
        """Return a component style from a cache that lasts until styles change; Textual's lasts for one frame."""
        style = self._role_styles.get((names, partial))
        if style is None:
            style = super().get_component_rich_style(*names, partial=partial, default=default)
            self._role_styles[names, partial] = style
        return style

    def render_line(self, y: int) -> Strip:
        """Draw the title or a row."""
        width = self.size.width
        if y == 0:
            words = title_line(
                self._full_title,
                self.view,
                width,
                beside=self.beside or self._collapsed_words,
                finder=self.finder,
                problem=self._search_problem,
            )
            focused = self.get_component_rich_style("role--focused") if self.has_focus else None
            return drawn(self, words, width, focused)
        if (nothing := self._words()) and y == 1:
            return drawn(self, (Span("  "), nothing), width)
        text, margin = self._lines[y - 1] if y <= len(self._lines) else NO_LINE
        room = self._text_width
        hidden_right = text.cell_length > self.left + room
        if self.left or hidden_right:
            text = text.crop(self.left, self.left + room)
        edge: Line = (Span("◂", "muted"), *margin[1:]) if self.left else margin
        spare = room - text.cell_length
        blank = [Segment(" " * spare, base_style(self))] if spare else []
        head = self._head(edge, width - 1 - room)
        return Strip([*head, *text, *blank, self._bar(y - 1, hidden_right)], width)

    def _head(self, edge: Line, width: int) -> Strip:
        """The drawn margin of a row, cached because most rows have the same."""
        head = self._heads.get((edge, width))
        if head is None:
            if len(self._heads) >= HEADS_KEPT:
                self._heads.clear()
            blank = Span(" " * (width - width_of(edge)))
            head = self._heads[edge, width] = drawn(self, (*edge, blank), width)
        return head

    def _bar(self, y: int, hidden_right: bool) -> Segment:
        if self._thumb is None:
            style = base_style(self) + self.get_component_rich_style("role--muted", partial=True)
        else:
            style = self.get_component_rich_style("role--thumb")
        in_thumb = self._thumb is not None and y in self._thumb
        return Segment("█" if in_thumb else "▸" if hidden_right else " ", style)

    @property
    def _full_title(self) -> str:
        kind = ", bytes" if self._painter.as_bytes else ""
        return visible(self.title + kind)

    def _words(self) -> Span | None:
        """The note in place of output; None if there is output."""
        if self._problem:
            return Span(f"The output cannot be read: {self._problem}", "bad")
        if self.view is None or self.view.size:
            return None
        return Span("(no output)" if self.view.ended else "(no output yet)", "muted")

    @property
    def _collapsed_words(self) -> str:
        """The note in the title of a pane that has no room below it."""
        words = self._words() if self.size.height == 1 else None
        return f" {words.text}" if words is not None else ""


LOOKED_AT = 4096
"""Bytes at the start of a stream that are checked for binary data."""


class OutputPane(RowsPane):
    """Rows that can be searched; binary output is shown as hex."""

    def __init__(self, title: str, pens: Pens, *, id: str | None = None) -> None:
        super().__init__(title, pens, id=id)
        self._sniffed = False
        self._has_room = asyncio.Event()
        self._from_start = False

    def show(self, reads: dict[Stream, ReadOutput], index: TimeIndex | None = None) -> None:
        """Show other streams from their end; empty for no output."""
        self._sniffed = False
        self._painter.as_bytes = False
        super().show(reads, index)
        self.find(None)

    def make_view(self, height: int) -> ScrolledOutput | None:
        """Return a view at the end of the streams."""
        if len(self._reads) == 2 and self._index is not None:
            return MergedView(self._reads, self._index, height, measure=self._painter.height)
        for stream, read in self._reads.items():
            empty = ByteWindow() if self._painter.as_bytes else None
            return OutputView(read, height, stream=stream, measure=self._painter.height, empty=empty)
        return None

    @property
    def covers_both(self) -> bool:
        """True once both streams can be shown in one text, in order."""
        return isinstance(self.view, MergedView) and self.view.covers_both

    async def continue_from(self, before: "OutputPane") -> None:
        """Go on in the place of a pane of one stream: at its row, with its search."""
        if not isinstance(self.view, MergedView) or before.view is None:
            return
        self.wraps, self.stamps, self.left = before.wraps, before.stamps, before.left
        self._painter.width = before._painter.width
        try:
            await self.view.continue_from(before.view)
        except WhisperError as error:
            self._fail(error)
        if before.finder is not None:
            self.find(before.finder.needle)
            if self.finder is not None:
                self.finder.standing = self._painter.standing = before.finder.standing
                self.finder.rank = before.finder.rank
                before.find(None)
        self._draw_rows()

    async def go_to_place(self, before: "OutputPane") -> None:
        """Show the rows of this stream that follow the top of a merged pane, or the end if that one follows it."""
        if self.view is None or before.view is None:
            return
        if before.view.following:
            await self.move("end")
            return
        for stream in self._reads:
            try:
                await self.view.to_offset(stream, before.view.place[stream])
            except WhisperError as error:
                self._fail(error)
        self._draw_rows()

    @property
    def as_bytes(self) -> bool:
        """True while output is shown as bytes."""
        return self._painter.as_bytes

    def visible_text(self) -> str:
        """Return the rows on the screen in full, without colours."""
        return "".join(f"{self._painter.text(shown)}\n" for shown in self._drawn_rows)

    def toggle_bytes(self) -> None:
        """Switch one stream between bytes and text."""
        self._sniffed = True
        self._painter.as_bytes = not self._painter.as_bytes and len(self._reads) == 1
        self._open()

    async def grown(self, view: ScrolledOutput) -> None:
        """Switch binary output to bytes once its start is known."""
        if self._sniffed or not view.size or len(self._reads) != 1:
            return
        self._sniffed = True
        ((_, read),) = self._reads.items()
        if looks_binary((await read(0, LOOKED_AT)).data):
            self.toggle_bytes()
            if self.view is not None:
                await self.view.poll()

    async def on_resize(self) -> None:
        """Fit the rows to the pane, and release searches that waited for its first size."""
        await super().on_resize()
        if self.size:
            self._has_room.set()

    def find(self, needle: Needle | None) -> None:
        """Start a search, which counts in the background; None ends it."""
        self.workers.cancel_group(self, "count")
        self._search_problem = ""
        self._from_start = not self._has_room.is_set()
        self.finder = Finder(self._reads, needle, self._index) if needle is not None and self._reads else None
        self._painter.needle, self._painter.standing = needle, None
        self._painter.forget()
        if self.finder is not None:
            self.run_worker(self._count(self.finder), group="count")
        if self.is_mounted:
            self._draw_rows()

    async def _count(self, finder: Finder) -> None:
        try:
            await finder.count()
        except WhisperError as error:
            self._search_problem = error_text(error)
        self.refresh()

    async def go_to_match(self, direction: int) -> bool:
        """Show the next or the previous match. Return False if there is none.

        A search starts at the scroll position, or at the start of output that was never on the screen.
        """
        finder, view = self.finder, self.view
        if finder is None or view is None:
            return False
        place = dict.fromkeys(self._reads, 0) if self._from_start else view.place
        return await self._show(finder.go(direction, place), view)

    async def go_to_first_match(self) -> bool:
        """Show the first match. Return False if there is none."""
        finder, view = self.finder, self.view
        return finder is not None and view is not None and await self._show(finder.first(), view)

    async def _show(self, finding: Awaitable[Match | None], view: ScrolledOutput) -> bool:
        try:
            match = await finding
            await self._has_room.wait()
            if match is None or view is not self.view:
                return False
            self._painter.standing = match
            self._painter.forget()
            shown = await view.to_offset(match.stream, match.offset)
            if shown is not None:
                await self._bring_up(view, shown, self._painter.column(shown, match.offset))
        except WhisperError as error:
            self._search_problem = error_text(error)
            return False
        self._draw_rows()
        return True

    async def _bring_up(self, view: ScrolledOutput, shown: ShownRow, column: int) -> None:
        """Scroll so that a column of the top row comes into the upper third of the pane."""
        line = column // self._text_width if self.wraps else 0
        if not self.wraps:
            self.left = 0 if column < self._text_width - SIDEWAYS else column - self._text_width // 2
        rows = view.shown()
        if rows and rows[0].row == shown.row and view.skip == 0:
            await view.scroll(line - view.height // 3)
        await view.hold()
