"""A view of one stream that may be far larger than memory, and what all views of output share (decision 3)."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from whisper_tui.model.run import Stream
from whisper_tui.tui.output.stream_reader import CHUNK, KEPT, ReadOutput, Row, StreamReader, Window

DRAWN = 2 * CHUNK
"""The bytes of a row that are drawn: its last ones, because those are the present state of a progress bar."""


class ShownRow(NamedTuple):
    """A row on the screen."""

    stream: Stream
    row: Row
    data: bytes
    """The part of it that is drawn."""
    grows: bool
    """True if the row may still grow."""


Measure = Callable[[ShownRow], int]
"""Returns the number of screen lines of a row, at least one."""


def one_line(_: ShownRow) -> int:
    """The measure of rows that are not wrapped."""
    return 1


class ScrolledOutput(ABC):
    """A scroll position in output. Moving up stops following; reaching the end starts it again."""

    top: Any
    """The place of the first row on the screen, as the view counts places."""

    def __init__(self, height: int, measure: Measure) -> None:
        self._lock = asyncio.Lock()
        self.height = height
        self.measure = measure
        self.following = True
        """True while the view keeps the end of growing output on the screen."""
        self.skip = 0
        """Lines of the first row above the screen."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of output so far."""

    @property
    @abstractmethod
    def ended(self) -> bool:
        """True once the output can no longer grow."""

    @property
    @abstractmethod
    def complete(self) -> bool:
        """True once polling can no longer change the view."""

    @property
    @abstractmethod
    def dropped_before_top(self) -> bool:
        """True if bytes directly before the screen were dropped."""

    @property
    @abstractmethod
    def extent(self) -> tuple[int, int]:
        """Return the bytes before the top of the screen, and those before its end."""

    @property
    @abstractmethod
    def place(self) -> dict[Stream, int]:
        """Return the offset of the top of the screen in each stream."""

    @abstractmethod
    def shown(self) -> list[ShownRow]:
        """Return the rows on the screen."""

    @abstractmethod
    def before(self, stream: Stream) -> bytes:
        """Return some bytes before the screen, which may have switched a colour on."""

    @abstractmethod
    async def poll(self) -> bool:
        """Read new output. Return True if the screen may have changed."""

    async def resize(self, height: int) -> None:
        """Show another number of lines, or measure the rows anew; the end stays at the bottom while following."""
        async with self._lock:
            self.height = max(1, height)
            if self.following:
                await self._show_end()
            else:
                await self._settle(self.top, self.skip)

    async def scroll(self, count: int) -> None:
        """Move down by a number of lines, or up if it is negative."""
        async with self._lock:
            if count < 0:
                self.following = False
                up = max(0, -count - self.skip)
                place = await self._lines_up(self.top, up) if up else (self.top, self.skip + count)
                await self._settle(*place)
                return
            before = (self.top, self.skip)
            await self._settle(*await self._lines_down(self.top, self.skip + count))
            if (self.top, self.skip) == before:
                await self._cross_hole()

    @abstractmethod
    async def to_start(self) -> None:
        """Show the beginning."""

    @abstractmethod
    async def to_end(self) -> None:
        """Show the end, and follow it."""

    async def hold(self) -> None:
        """Stop following."""
        async with self._lock:
            self.following = False

    async def to_fraction(self, fraction: float) -> None:
        """Go to a fraction of the output, from 0 to 1."""
        if fraction <= 0:
            return await self.to_start()
        if fraction >= 1:
            return await self.to_end()
        async with self._lock:
            self.following = False
            await self._settle(await self._at_fraction(fraction), 0)

    @abstractmethod
    async def to_offset(self, stream: Stream, offset: int) -> ShownRow | None:
        """Stop following, with the row of a byte as far up as the end allows. Return that row."""

    @abstractmethod
    async def _at_fraction(self, fraction: float) -> Any:
        """Return the place at a fraction of the output."""

    @abstractmethod
    async def _show_end(self) -> None:
        """Show the last screen."""

    @abstractmethod
    async def _lines_up(self, place: Any, count: int) -> tuple[Any, int]:
        """Return the place so many lines above another, or the first available one, and its lines above the screen."""

    @abstractmethod
    async def _lines_down(self, place: Any, count: int) -> tuple[Any, int]:
        """Return the place of the line so many lines below the start of a row, and the lines above that line."""

    @abstractmethod
    async def _settle(self, top: Any, skip: int) -> None:
        """Show from a place; where less than a screen is left, show the last screen and follow."""

    async def _cross_hole(self) -> None:
        """Go on behind a part of the output that was dropped, where scrolling down has come to its edge."""
        return  # The index of a merged view leads over it.


class OutputView(ScrolledOutput):
    """A view of one stream. It holds a small window of the stream and reads only what it shows.

    It is not a merged view with one stream: a merged view can show only what the time index has, which lags behind
    a flood, while this one skips to the end of it, and needs no index for a run that has none.
    """

    def __init__(
        self,
        read: ReadOutput,
        height: int = 1,
        *,
        stream: Stream = "out",
        measure: Measure = one_line,
        empty: Window | None = None,
    ) -> None:
        super().__init__(height, measure)
        self._reader = StreamReader(read, empty or Window())
        self._stream: Stream = stream
        self.top: int = 0
        """The offset of the first row on the screen."""

    @property
    def window(self) -> Window:
        """The part of the stream in memory."""
        return self._reader.window

    @property
    def size(self) -> int:
        """Bytes of the stream so far."""
        return self._reader.size

    @property
    def ended(self) -> bool:
        """True once the stream can no longer grow."""
        return self._reader.ended

    @property
    def complete(self) -> bool:
        """True once polling can no longer change the view."""
        return self.ended and (self.window.end >= self.size or not self.following)

    @property
    def dropped_before_top(self) -> bool:
        """True if bytes directly before the screen were dropped."""
        return self.window.first and self.top == self.window.start > 0

    @property
    def extent(self) -> tuple[int, int]:
        """Return the bytes before the top of the screen, and those before its end."""
        rows = self.rows()
        return self.top, rows[-1].end if rows else 0

    @property
    def place(self) -> dict[Stream, int]:
        """Return the offset of the top of the screen."""
        return {self._stream: self.top}

    def rows(self) -> list[Row]:
        """Return the rows on the screen, from the window alone; fewer than `height` in a short stream."""
        return [shown.row for shown in self.shown()]

    def shown(self) -> list[ShownRow]:
        """Return the rows on the screen with their drawn bytes."""
        found: list[ShownRow] = []
        at, lines = self.top, -self.skip
        while lines < self.height and at < self.window.end:
            shown = self._shown(Row(at, self.window.row_end(at) or self.window.end))
            found.append(shown)
            lines += self.measure(shown)
            at = shown.row.end
        return found

    def before(self, stream: Stream) -> bytes:
        """Return some bytes before the screen."""
        return self.window.slice(max(self.window.start, self.top - CHUNK), self.top)

    def _shown(self, row: Row) -> ShownRow:
        data = self.window.slice(max(row.start, row.end - DRAWN), row.end)
        return ShownRow(self._stream, row, data, row.end == self.window.end)

    async def poll(self) -> bool:
        """Read new output. Return True if the screen may have changed."""
        async with self._lock:
            before = (self.size, self.ended, self.top, self.skip, self.window.end)
            if self.following:
                await self._reader.read_on(following=True)
                await self._show_end()
            else:
                await self._reader.look()
                await self._fill()
            self._trim()
            return before != (self.size, self.ended, self.top, self.skip, self.window.end)

    async def to_start(self) -> None:
        """Show the beginning."""
        async with self._lock:
            self.following = False
            await self._settle(await self._reader.load_head(), 0)

    async def to_end(self) -> None:
        """Show the end, and follow it."""
        async with self._lock:
            self.following = True
            await self._reader.load_tail()
            await self._show_end()
            self._trim()

    async def to_offset(self, stream: Stream, offset: int) -> ShownRow | None:
        """Stop following, with the row of a byte as far up as the end allows. Return that row."""
        async with self._lock:
            start = await self._row_holding(offset)
            row = await self._reader.row_at(start)
            found = self._shown(row) if row is not None else None
            await self._settle(start, 0)
            # Settling on the last screen starts following, but a match must stay in view while output grows.
            self.following = False
            return found

    async def _at_fraction(self, fraction: float) -> int:
        return await self._row_holding(int(self.size * fraction))

    async def _cross_hole(self) -> None:
        # The window ends at a hole, because bytes were dropped after it; scrolling on continues behind the hole.
        if self.window.end < self.size and (start := await self._reader.cross_to_tail()) is not None:
            await self._settle(start, 0)

    async def _row_holding(self, offset: int) -> int:
        self.following = False
        found = await self._reader.go_to(offset)
        row = await self._reader.row_above(found + 1)
        return row.start if row is not None else found

    async def _show_end(self) -> None:
        self.top, self.skip = await self._lines_up(self.window.end, self.height)

    async def _lines_up(self, place: int, count: int) -> tuple[int, int]:
        at = place
        while count > 0:
            row = await self._reader.row_above(at, following=self.following)
            if row is None:
                return at, 0
            at = row.start
            count -= self.measure(self._shown(row))
        return at, -count

    async def _lines_down(self, place: int, count: int) -> tuple[int, int]:
        at = place
        while (row := await self._reader.row_at(at)) is not None:
            lines = self.measure(self._shown(row))
            if count < lines or row.end >= self.window.end:
                return at, min(count, lines - 1)
            at, count = row.end, count - lines
        return at, 0

    async def _settle(self, top: int, skip: int) -> None:
        self.top, self.skip = top, skip
        await self._fill()
        shown = self.shown()
        spare = self.height + self.skip - sum(map(self.measure, shown))
        last = bool(shown) and shown[-1].row.end >= self.size
        at_end = self.window.end >= self.size and (spare > 0 or (spare == 0 and last and (top, skip) != (0, 0)))
        self.following = self.following or at_end
        if spare > 0:
            await self._show_end()
        self._trim()

    async def _fill(self) -> None:
        """Read until the window reaches below the screen."""
        while self._wants_more() and await self._reader.read_on():
            pass

    def _wants_more(self) -> bool:
        if self.window.end >= self.size:
            return False
        shown = self.shown()
        lines = sum(map(self.measure, shown)) - self.skip
        return lines < self.height or shown[-1].row.end >= self.window.end

    def _trim(self) -> None:
        if len(self.window.data) > KEPT:
            self._reader.trim(self.top, self.extent[1] or self.window.end)
