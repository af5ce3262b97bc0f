"""A view of one stream that may be far larger than memory, and the interface of all views of output (decision 3)."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

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


class ScrolledOutput(Protocol):
    """A scroll position in output. Moving up stops following; reaching the end starts it again."""

    height: int
    measure: Measure
    following: bool
    """True while the view keeps the end of growing output on the screen."""
    skip: int
    """Lines of the first row above the screen."""

    @property
    def size(self) -> int:
        """Bytes of output so far."""
        ...

    @property
    def ended(self) -> bool:
        """True once the output can no longer grow."""
        ...

    @property
    def complete(self) -> bool:
        """True once polling can no longer change the view."""
        ...

    @property
    def dropped_before_top(self) -> bool:
        """True if bytes directly before the screen were dropped."""
        ...

    @property
    def extent(self) -> tuple[int, int]:
        """Return the bytes before the top of the screen, and those before its end."""
        ...

    @property
    def place(self) -> dict[Stream, int]:
        """Return the offset of the top of the screen in each stream."""
        ...

    def shown(self) -> list[ShownRow]:
        """Return the rows on the screen."""
        ...

    def before(self, stream: Stream) -> bytes:
        """Return some bytes before the screen, which may have switched a colour on."""
        ...

    async def poll(self) -> bool:
        """Read new output. Return True if the screen may have changed."""
        ...

    async def resize(self, height: int) -> None:
        """Show another number of lines, or measure the rows anew."""
        ...

    async def scroll(self, count: int) -> None:
        """Move down by a number of lines, or up if it is negative."""
        ...

    async def to_start(self) -> None:
        """Show the beginning."""
        ...

    async def to_end(self) -> None:
        """Show the end, and follow it."""
        ...

    async def hold(self) -> None:
        """Stop following."""
        ...

    async def to_fraction(self, fraction: float) -> None:
        """Go to a fraction of the output, from 0 to 1."""
        ...

    async def to_offset(self, stream: Stream, offset: int) -> ShownRow | None:
        """Stop following, with the row of a byte as far up as the end allows. Return that row."""
        ...


class OutputView:
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
        self._reader = StreamReader(read, empty or Window())
        self._lock = asyncio.Lock()
        self._stream: Stream = stream
        self.height = height
        self.measure = measure
        self.following = True
        self.skip = 0
        self.top = 0
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

    async def resize(self, height: int) -> None:
        """Show another number of lines; the end stays at the bottom while following."""
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
            if (self.top, self.skip) == before and self.window.end < self.size:
                # The window ends at a hole, because bytes were dropped after it; scrolling on continues behind the
                # hole.
                start = await self._reader.cross_to_tail()
                if start is not None:
                    await self._settle(start, 0)

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

    async def hold(self) -> None:
        """Stop following."""
        async with self._lock:
            self.following = False

    async def to_fraction(self, fraction: float) -> None:
        """Go to a fraction of the stream, from 0 to 1."""
        if fraction <= 0:
            return await self.to_start()
        if fraction >= 1:
            return await self.to_end()
        async with self._lock:
            await self._settle(await self._row_holding(int(self.size * fraction)), 0)

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

    async def _row_holding(self, offset: int) -> int:
        self.following = False
        found = await self._reader.go_to(offset)
        row = await self._reader.row_above(found + 1)
        return row.start if row is not None else found

    async def _show_end(self) -> None:
        self.top, self.skip = await self._lines_up(self.window.end, self.height)

    async def _lines_up(self, offset: int, count: int) -> tuple[int, int]:
        """The row `count` lines above `offset`, or the first available one, and its lines above the screen."""
        at = offset
        while count > 0:
            row = await self._reader.row_above(at, following=self.following)
            if row is None:
                return at, 0
            at = row.start
            count -= self.measure(self._shown(row))
        return at, -count

    async def _lines_down(self, offset: int, count: int) -> tuple[int, int]:
        """The row of the line `count` lines below the start of a row, and the lines above that line."""
        at = offset
        while (row := await self._reader.row_at(at)) is not None:
            lines = self.measure(self._shown(row))
            if count < lines or row.end >= self.window.end:
                return at, min(count, lines - 1)
            at, count = row.end, count - lines
        return at, 0

    async def _settle(self, top: int, skip: int) -> None:
        """Show from a row; where less than a screen is left, show the last screen and follow."""
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
