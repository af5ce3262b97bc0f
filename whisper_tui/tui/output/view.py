"""A place in a stream that may be far larger than memory: the rows on the screen, and the ways to move."""

import asyncio
from collections.abc import Awaitable, Callable

from whisper_tui.model.run import OutputChunk
from whisper_tui.tui.output.rows import CHUNK, SPAN, Row, Window

READ = 64 * 1024
"""Bytes asked for at once."""
KEPT = 256 * 1024
"""Bytes held around what is shown, where the rows are not longer than that."""
MOST_READ_BACK = 2 * SPAN
"""Bytes from the end in which the last screen is looked for; beyond that it may be shown shorter."""

ReadOutput = Callable[[int, int], Awaitable[OutputChunk]]
"""Reads one stream: offset and limit, as `Supervision.read_output`."""


class OutputView:
    """Shows `height` rows of one stream. It holds a small window of the stream and reads only what it shows."""

    def __init__(self, read: ReadOutput, height: int = 1) -> None:
        self._read = read
        self._lock = asyncio.Lock()
        self._head_end: int | None = None
        self.height = height
        self.window = Window()
        self.size = 0
        """Bytes of the whole stream so far."""
        self.ended = False
        """Whether the stream can no longer grow."""
        self.following = True
        """Whether the end is kept on the screen as the stream grows."""
        self.top = 0
        """Where the first row on the screen begins."""

    @property
    def complete(self) -> bool:
        """Whether nothing can change any more."""
        return self.ended and (self.window.end >= self.size or not self.following)

    @property
    def dropped_before_top(self) -> bool:
        """Whether bytes directly before the first row on the screen were not kept."""
        return self.window.first and self.top == self.window.start > 0

    def rows(self) -> list[Row]:
        """The rows on the screen, from the window alone; fewer than `height` where the stream is shorter."""
        rows: list[Row] = []
        at = self.top
        while len(rows) < self.height and at < self.window.end:
            end = self.window.row_end(at) or self.window.end
            rows.append(Row(at, end))
            at = end
        return rows

    async def poll(self) -> bool:
        """Look for growth. Whether anything may have to be drawn again."""
        async with self._lock:
            before = (self.size, self.ended, self.top, self.window.end)
            if self.following:
                await self._read_on()
                self.top = await self._rows_up(self.window.end, self.height)
            else:
                self._note(await self._read(self.size, 0))
                while self._wants_more() and await self._read_on():
                    pass
            self._trim()
            return before != (self.size, self.ended, self.top, self.window.end)

    async def resize(self, height: int) -> None:
        """Show another number of rows; the end stays at the bottom while following."""
        async with self._lock:
            self.height = max(1, height)
            if self.following:
                self.top = await self._rows_up(self.window.end, self.height)
            else:
                await self._settle(self.top)

    async def scroll(self, count: int) -> None:
        """Move down by so many rows, or up. Following stops on the way up and begins again at the end."""
        async with self._lock:
            if count < 0:
                self.following = False
                self.top = await self._rows_up(self.top, -count)
                await self._settle(self.top)
                return
            before = self.top
            await self._settle(await self._rows_down(self.top, count))
            if self.top == before and self.window.end < self.size:
                await self._cross_to_tail()

    async def to_start(self) -> None:
        """Show the beginning."""
        async with self._lock:
            self.following = False
            chunk = await self._read(0, READ)
            self._note(chunk)
            self.window = Window(chunk.data, chunk.start, True)
            await self._settle(chunk.start)

    async def to_end(self) -> None:
        """Show the end, and follow it."""
        async with self._lock:
            self.following = True
            await self._load_tail()
            self.top = await self._rows_up(self.window.end, self.height)
            self._trim()

    async def hold(self) -> None:
        """Stay where it is while the stream grows."""
        async with self._lock:
            self.following = False

    async def to_fraction(self, fraction: float) -> None:
        """Show the row at that part of the stream, from 0 to 1."""
        if fraction <= 0:
            return await self.to_start()
        if fraction >= 1:
            return await self.to_end()
        async with self._lock:
            self.following = False
            offset = int(self.size * fraction)
            data, start = await self._span(max(0, offset - READ), min(self.size, offset + READ))
            self.window = Window(data, start, start == 0 or start > offset - READ > 0)
            await self._settle(await self._rows_up(max(start, offset) + 1, 1))

    def _note(self, chunk: OutputChunk) -> None:
        self.size, self.ended = chunk.size, chunk.ended

    async def _read_on(self) -> bool:
        """Take in what comes right after the window; while following a flood, only its end. Whether there was any."""
        chunk = await self._read(self.window.end, READ)
        self._note(chunk)
        if self.following and (chunk.size > chunk.next_offset or chunk.start != self.window.end):
            await self._load_tail()
            return True
        if not chunk.data or chunk.start != self.window.end:
            return False
        self.window = self.window.followed_by(chunk.data)
        return True

    async def _cross_to_tail(self) -> None:
        """Bytes were dropped after the window: go on where what was kept begins again."""
        chunk = await self._read(self.window.end, READ)
        if chunk.data:
            self.window = Window(chunk.data, chunk.start, True)
            await self._settle(chunk.start)

    async def _load_tail(self) -> None:
        """Take the end instead of the window; a stream that grows faster than it is read is shown as it was."""
        chunk = await self._read(-READ, READ)
        self._note(chunk)
        data, start = chunk.data, chunk.start
        if chunk.next_offset < chunk.size:
            data, start = await self._span(start, chunk.size)
        self.window = Window(data, start, start == 0 or start > chunk.size - READ)

    async def _span(self, low: int, high: int) -> tuple[bytes, int]:
        """What is kept between two offsets, as far as it reaches `high` without a hole, and where it begins."""
        data, start, at = b"", low, low
        while at < high:
            chunk = await self._read(at, high - at)
            if not chunk.data or chunk.start >= high:
                break
            if chunk.start > at:
                data, start = b"", chunk.start
            data += chunk.data[: high - chunk.start]
            at = chunk.next_offset
        return data, start if data else high

    async def _read_back(self) -> bool:
        """Take in what comes before the window. Whether there was any."""
        end = self.window.start
        if self.window.first and end > 0:
            return await self._cross_to_head()
        wanted = max(0, end - READ)
        data, start = await self._span(wanted, end)
        if start + len(data) != end:
            data, start = b"", end
        self.window = self.window.preceded_by(data, first=start == 0 or start > wanted)
        return bool(data)

    async def _cross_to_head(self) -> bool:
        """Bytes were dropped before the window: go on at the end of what was kept of the beginning."""
        if self._head_end is None:
            low, high = 0, self.window.start
            while low < high:
                middle = (low + high) // 2
                chunk = await self._read(middle, 1)
                low, high = (middle + 1, high) if chunk.start == middle else (low, middle)
            self._head_end = low
        if self._head_end == 0:
            return False
        wanted = max(0, self._head_end - READ)
        data, start = await self._span(wanted, self._head_end)
        self.window = Window(data, start, start == 0)
        return True

    async def _rows_up(self, offset: int, count: int) -> int:
        """Where the row begins that is `count` rows above `offset`, or the first that can be had."""
        at = offset
        for _ in range(count):
            above = self.window.row_before(at) if at > self.window.start else None
            while above is None:
                crossing = self.window.first
                enough = self.following and (crossing or len(self.window.data) > MOST_READ_BACK)
                if at == 0 or enough or not await self._read_back():
                    return at
                at = self.window.end if crossing else at
                above = self.window.row_before(at)
            at = above
        return at

    async def _rows_down(self, offset: int, count: int) -> int:
        """Where the row begins that is `count` rows below `offset`, or the last."""
        at = offset
        for _ in range(count):
            end = self.window.row_end(at)
            while end is None and await self._read_on():
                end = self.window.row_end(at)
            if end is None or end >= self.window.end:
                break
            at = end
        return at

    async def _settle(self, top: int) -> None:
        """Show from `top`; where less than a screen is left, show the last screen and follow."""
        self.top = top
        while self._wants_more() and await self._read_on():
            pass
        rows = self.rows()
        short = len(rows) < self.height
        at_end = self.window.end >= self.size and (short or (top > 0 and rows[-1].end >= self.size))
        self.following = self.following or at_end
        if short:
            self.top = await self._rows_up(self.window.end, self.height)
        self._trim()

    def _wants_more(self) -> bool:
        """Whether the window ends before the screen does."""
        rows = self.rows()
        return self.window.end < self.size and (len(rows) < self.height or rows[-1].end >= self.window.end)

    def _trim(self) -> None:
        """Let go of what is far from the screen."""
        if len(self.window.data) <= KEPT:
            return
        rows = self.rows()
        bottom = rows[-1].end if rows else self.window.end
        self.window = self.window.cropped(max(0, self.top - READ - CHUNK), bottom + READ)
