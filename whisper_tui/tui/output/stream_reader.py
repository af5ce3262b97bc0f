"""Reads the output of a run: rows, a window that moves over a stream, and the time index (decision 3)."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from whisper_tui.model.api import Supervision
from whisper_tui.model.run import OutputChunk, OutputSpan, Stream

CHUNK = 16 * 1024
"""A longer line is broken into rows at multiples of this, except where it rewrites itself with `\\r`."""
SPAN = 1024 * 1024
"""A line is always broken at multiples of this."""


class Row(NamedTuple):
    """The byte range of one row of a stream, with its line feed."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Window:
    """A contiguous piece of a stream."""

    data: bytes = b""
    start: int = 0
    first: bool = True
    """True if no kept byte lies directly before it: at the start of the stream, or after dropped bytes."""

    @property
    def end(self) -> int:
        """Offset after the last byte."""
        return self.start + len(self.data)

    def at(self, data: bytes, start: int, *, first: bool) -> "Window":
        """Return another piece of the stream, with rows of the same kind."""
        return replace(self, data=data, start=start, first=first)

    def followed_by(self, data: bytes) -> "Window":
        """Return this window extended at its end."""
        return replace(self, data=self.data + data) if data else self

    def preceded_by(self, data: bytes, *, first: bool) -> "Window":
        """Return this window extended at its start."""
        return self.at(data + self.data, self.start - len(data), first=first)

    def cropped(self, start: int, end: int) -> "Window":
        """Return the part between two offsets."""
        low, high = max(start, self.start), min(end, self.end)
        data = self.data[low - self.start : high - self.start]
        return self.at(data, low, first=self.first and low == self.start)

    def slice(self, start: int, end: int) -> bytes:
        """Return the bytes between two offsets."""
        return self.data[max(0, start - self.start) : max(0, end - self.start)]

    def row_end(self, row_start: int) -> int | None:
        """Return the end of the row that starts at an offset; None if it is outside the window."""
        at = row_start - self.start
        feed = self.data.find(b"\n", at)
        limit = self.end if feed < 0 else self.start + feed
        edge = -(-(row_start + CHUNK) // CHUNK) * CHUNK
        while edge <= limit:
            if self._breaks_at(edge):
                return edge
            edge += CHUNK
        return None if feed < 0 else self.start + feed + 1

    def row_before(self, offset: int) -> int | None:
        """Return the start of the row of the byte before `offset`; None if it is outside the window."""
        feed = self.data.rfind(b"\n", 0, max(0, offset - 1 - self.start))
        line = self.start + feed + 1 if feed >= 0 else self.start if self.first else None
        floor = self.start if line is None else line
        edge = (offset - 1) // CHUNK * CHUNK
        while edge - CHUNK >= floor:
            if self._breaks_at(edge):
                return edge
            edge -= CHUNK
        return line

    def _breaks_at(self, edge: int) -> bool:
        """True if a long line is broken at an edge; the chunk before must hold no line feed."""
        if edge % SPAN == 0:
            return True
        # A progress bar writes megabytes without a line feed; broken in its middle, it would leave rows of old states.
        end = edge - self.start
        return self.data.rfind(b"\r", end - CHUNK, end) < 0


HEX_ROW = 16
"""Bytes in a hex row."""


@dataclass(frozen=True, slots=True)
class ByteWindow(Window):
    """A window of binary data, whose rows all have the same number of bytes."""

    def row_end(self, row_start: int) -> int | None:
        """Return the end of the row that starts at an offset; None if it is outside the window."""
        edge = (row_start // HEX_ROW + 1) * HEX_ROW
        return edge if edge <= self.end else None

    def row_before(self, offset: int) -> int | None:
        """Return the start of the row of the byte before `offset`; None if it is outside the window."""
        edge = (offset - 1) // HEX_ROW * HEX_ROW
        return edge if edge >= self.start else self.start if self.first else None


READ = 64 * 1024
"""Bytes of one read."""
KEPT = 256 * 1024
"""Bytes of the window before it is trimmed; longer rows keep more."""
MOST_READ_BACK = 2 * SPAN
"""While following, bytes from the end that are read to fill the screen; a screen of longer rows stays shorter."""

ReadOutput = Callable[[int, int], Awaitable[OutputChunk]]
"""Reads one stream: offset and limit, as `Supervision.read_output`."""


class StreamReader:
    """Finds the rows above and below an offset in a stream that may be far larger than memory."""

    def __init__(self, read: ReadOutput, empty: Window) -> None:
        """`empty`: an empty window, whose class defines the rows."""
        self._read = read
        self._empty = empty
        self._head_end: int | None = None
        self.window = empty
        self.size = 0
        """Bytes of the stream so far."""
        self.ended = False
        """True once the stream can no longer grow."""

    async def look(self) -> None:
        """Read the present size of the stream."""
        self._note(await self._read(self.size, 0))

    async def read_on(self, *, following: bool = False) -> bool:
        """Extend the window at its end; return True if there was more. `following` skips to the end of a flood."""
        chunk = await self._read(self.window.end, READ)
        self._note(chunk)
        # Reading all of a flood would fall ever further behind; only its end is looked at anyway.
        if following and (chunk.size > chunk.next_offset or chunk.start != self.window.end):
            await self.load_tail()
            return True
        if not chunk.data or chunk.start != self.window.end:
            return False
        self.window = self.window.followed_by(chunk.data)
        return True

    async def load_head(self) -> int:
        """Replace the window by the start of the stream. Return its offset."""
        chunk = await self._read(0, READ)
        self._note(chunk)
        self.window = self._empty.at(chunk.data, chunk.start, first=True)
        return chunk.start

    async def load_tail(self) -> None:
        """Replace the window by the end of the stream, as it was when the read began."""
        chunk = await self._read(-READ, READ)
        self._note(chunk)
        data, start = chunk.data, chunk.start
        if chunk.next_offset < chunk.size:
            data, start = await self._span(start, chunk.size)
        self.window = self._empty.at(data, start, first=start == 0 or start > chunk.size - READ)

    async def go_to(self, offset: int) -> int:
        """Replace the window by the bytes around an offset. Return the offset, or the first kept byte after it."""
        data, start = await self._span(max(0, offset - READ), min(self.size, offset + READ))
        self.window = self._empty.at(data, start, first=start == 0 or start > offset - READ > 0)
        return max(start, offset)

    async def cross_to_tail(self) -> int | None:
        """Replace the window by the bytes kept after a hole. Return their offset, or None."""
        chunk = await self._read(self.window.end, READ)
        if not chunk.data:
            return None
        self.window = self._empty.at(chunk.data, chunk.start, first=True)
        return chunk.start

    async def row_above(self, at: int, *, following: bool = False) -> Row | None:
        """Return the row that ends at an offset in the window; None if there is none, or it is too far away."""
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
        """Return the row that starts at an offset in the window, or None at the end."""
        end = self.window.row_end(start)
        while end is None and await self.read_on():
            end = self.window.row_end(start)
        end = self.window.end if end is None else end
        return Row(start, end) if end > start else None

    def trim(self, top: int, bottom: int) -> None:
        """Drop bytes far from the screen."""
        if len(self.window.data) > KEPT:
            self.window = self.window.cropped(max(0, top - READ - CHUNK), bottom + READ)

    def _note(self, chunk: OutputChunk) -> None:
        self.size, self.ended = chunk.size, chunk.ended

    async def _span(self, low: int, high: int) -> tuple[bytes, int]:
        """The kept bytes that reach up to `high` without a hole, and their offset."""
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
        """Extend the window at its start. Return True if there was anything."""
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
        """Replace the window by the bytes before a hole."""
        if self._head_end is None:
            # The supervisor answers a read inside the hole with the first byte after it, so a binary search finds its
            # start.
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


BLOCK = 4096
"""Rows of one read of the time index."""

ReadTimeline = Callable[[int, int], Awaitable[tuple[OutputSpan, ...]]]
"""Reads the time index of one run: first row and limit, as `Supervision.read_timeline`."""


class _Stream:
    """The rows of one stream: offset, number among the rows of both streams, and time."""

    def __init__(self) -> None:
        self.starts = array("Q")
        self.numbers = array("Q")
        self.times = array("d")
        self.end = 0


class TimeIndex:
    """The time index as far as it has been read; 24 bytes a row, of which the keeper bounds the number."""

    def __init__(self, read: ReadTimeline) -> None:
        self._read = read
        self._streams: dict[Stream, _Stream] = {"out": _Stream(), "err": _Stream()}
        self.count = 0
        """Rows read so far."""

    async def advance(self) -> bool:
        """Read the next rows. Return True if more may be available at once."""
        rows = await self._read(self.count, BLOCK)
        for number, row in enumerate(rows, self.count):
            stream = self._streams[row.stream]
            stream.starts.append(row.start)
            stream.numbers.append(number)
            stream.times.append(row.at)
            stream.end = row.start + row.length
        self.count += len(rows)
        return len(rows) == BLOCK

    def end(self, stream: Stream) -> int:
        """Return the end of the bytes with a known time."""
        return self._streams[stream].end

    def number(self, stream: Stream, offset: int) -> int:
        """Return the row of the index that holds a byte; bytes without a known time come after all rows."""
        rows = self._streams[stream]
        if offset >= rows.end:
            return self.count
        return rows.numbers[max(0, bisect_right(rows.starts, offset) - 1)]

    def offset(self, stream: Stream, number: int) -> int:
        """Return the offset of a stream at a row of the index."""
        rows = self._streams[stream]
        at = bisect_left(rows.numbers, number)
        return rows.starts[at] if at < len(rows.starts) else rows.end

    def time(self, stream: Stream, offset: int) -> float | None:
        """Return the arrival of a byte in seconds since the epoch; None if it is not known."""
        rows = self._streams[stream]
        if offset >= rows.end or not rows.starts:
            return None
        return rows.times[max(0, bisect_right(rows.starts, offset) - 1)]


STREAMS: tuple[Stream, Stream] = ("out", "err")


class RunOutput:
    """The readers of a call's output through the supervisor's API."""

    def __init__(self, supervision: Supervision, call_id: str) -> None:
        self.call_id = call_id
        self.reads: dict[Stream, ReadOutput] = {
            stream: partial(supervision.read_output, call_id, stream) for stream in STREAMS
        }
        self._timeline = partial(supervision.read_timeline, call_id)

    def times(self) -> TimeIndex:
        """Return a new time index, to be read from its start."""
        return TimeIndex(self._timeline)
