"""When each byte of a run's output arrived, and so the order of its two streams."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable

from whisper_tui.model.run import OutputSpan, Stream

BLOCK = 4096
"""Rows asked for at once."""

ReadTimeline = Callable[[int, int], Awaitable[tuple[OutputSpan, ...]]]
"""Reads the time index of one run: from which row, and how many, as `Supervision.read_timeline`."""


class _Stream:
    """The rows of one stream: where each begins, its number among all rows, and its time."""

    def __init__(self) -> None:
        self.starts = array("Q")
        self.numbers = array("Q")
        self.times = array("d")
        self.end = 0


class TimeIndex:
    """The time index as far as it has been read; 24 bytes a row, and the keeper bounds the number of rows."""

    def __init__(self, read: ReadTimeline) -> None:
        self._read = read
        self._streams: dict[Stream, _Stream] = {"out": _Stream(), "err": _Stream()}
        self.count = 0
        """Rows read so far."""

    async def advance(self) -> bool:
        """Read on. Whether there may be still more to be had at once."""
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
        """Bytes of a stream whose time is known."""
        return self._streams[stream].end

    def number(self, stream: Stream, offset: int) -> int:
        """The row of the index that holds a byte; later bytes than are known come after all rows."""
        rows = self._streams[stream]
        if offset >= rows.end:
            return self.count
        return rows.numbers[max(0, bisect_right(rows.starts, offset) - 1)]

    def offset(self, stream: Stream, number: int) -> int:
        """How much of a stream had arrived before a row of the index."""
        rows = self._streams[stream]
        at = bisect_left(rows.numbers, number)
        return rows.starts[at] if at < len(rows.starts) else rows.end

    def time(self, stream: Stream, offset: int) -> float | None:
        """When a byte arrived, in seconds since the epoch. None: not known yet, or never."""
        rows = self._streams[stream]
        if offset >= rows.end or not rows.starts:
            return None
        return rows.times[max(0, bisect_right(rows.starts, offset) - 1)]
