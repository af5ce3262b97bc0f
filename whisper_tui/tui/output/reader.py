"""A window on one stream, moved to where somebody looks: it is read there and nowhere else."""

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


class StreamReader:
    """Finds rows above and below a place in a stream that may be far larger than memory."""

    def __init__(self, read: ReadOutput, empty: Window) -> None:
        """`empty`: a window that holds nothing; its kind says what a row is."""
        self._read = read
        self._empty = empty
        self._head_end: int | None = None
        self.window = empty
        self.size = 0
        """Bytes of the whole stream so far."""
        self.ended = False
        """Whether the stream can no longer grow."""

    async def look(self) -> None:
        """Learn how large the stream is now."""
        self._note(await self._read(self.size, 0))

    async def read_on(self, *, following: bool = False) -> bool:
        """Take in what comes right after the window; while following a flood, only its end. Whether there was any."""
        chunk = await self._read(self.window.end, READ)
        self._note(chunk)
        if following and (chunk.size > chunk.next_offset or chunk.start != self.window.end):
            await self.load_tail()
            return True
        if not chunk.data or chunk.start != self.window.end:
            return False
        self.window = self.window.followed_by(chunk.data)
        return True

    async def load_head(self) -> int:
        """Take the beginning instead of the window. Returns where it begins."""
        chunk = await self._read(0, READ)
        self._note(chunk)
        self.window = self._empty.at(chunk.data, chunk.start, first=True)
        return chunk.start

    async def load_tail(self) -> None:
        """Take the end instead of the window; a stream that grows faster than it is read is shown as it was."""
        chunk = await self._read(-READ, READ)
        self._note(chunk)
        data, start = chunk.data, chunk.start
        if chunk.next_offset < chunk.size:
            data, start = await self._span(start, chunk.size)
        self.window = self._empty.at(data, start, first=start == 0 or start > chunk.size - READ)

    async def go_to(self, offset: int) -> int:
        """Take what lies around an offset instead of the window. Returns the offset, or the first kept byte after."""
        data, start = await self._span(max(0, offset - READ), min(self.size, offset + READ))
        self.window = self._empty.at(data, start, first=start == 0 or start > offset - READ > 0)
        return max(start, offset)

    async def cross_to_tail(self) -> int | None:
        """Bytes were dropped after the window: take what was kept after them. Returns where that begins."""
        chunk = await self._read(self.window.end, READ)
        if not chunk.data:
            return None
        self.window = self._empty.at(chunk.data, chunk.start, first=True)
        return chunk.start

    async def row_above(self, at: int, *, following: bool = False) -> Row | None:
        """The row that ends at an offset in the window. None: there is none, or while following it is too far away."""
        above = self.window.row_before(at) if at > self.window.start else None
        while above is None:
            crossing = self.window.first
            enough = following and (crossing or len(self.window.data) > MOST_READ_BACK)
            if at == 0 or enough or not await self._read_back():
                return None
            at = self.window.end if crossing else at
            above = self.window.row_before(at)
        return Row(above, at)

    async def row_at(self, start: int) -> Row | None:
        """The row that begins at an offset in the window. None: nothing is there."""
        end = self.window.row_end(start)
        while end is None and await self.read_on():
            end = self.window.row_end(start)
        end = self.window.end if end is None else end
        return Row(start, end) if end > start else None

    def trim(self, top: int, bottom: int) -> None:
        """Let go of what is far from the screen."""
        if len(self.window.data) > KEPT:
            self.window = self.window.cropped(max(0, top - READ - CHUNK), bottom + READ)

    def _note(self, chunk: OutputChunk) -> None:
        self.size, self.ended = chunk.size, chunk.ended

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
        self.window = self._empty.at(data, start, first=start == 0)
        return True
