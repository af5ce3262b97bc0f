"""Where the lines of a stream begin, found from any place in it without having read what comes before.

A row is a line. A line that is too long to be drawn is broken at multiples of `CHUNK` bytes of the stream, so that the
same breaks are found from both sides: there is one where the `CHUNK` bytes before it hold neither a line feed nor a
carriage return. Lines full of carriage returns are progress bars and stay one row, save at multiples of `SPAN`.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

CHUNK = 16 * 1024
SPAN = 1024 * 1024


class Row(NamedTuple):
    """The bytes of one row of a stream, line feed included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Window:
    """A contiguous piece of a stream."""

    data: bytes = b""
    start: int = 0
    first: bool = True
    """Whether nothing that was kept lies directly before it: the beginning of the stream, or dropped bytes."""

    @property
    def end(self) -> int:
        """Offset after the last byte."""
        return self.start + len(self.data)

    def at(self, data: bytes, start: int, *, first: bool) -> "Window":
        """Another piece of the stream, with rows of the same kind."""
        return replace(self, data=data, start=start, first=first)

    def followed_by(self, data: bytes) -> "Window":
        """This window with more bytes behind it."""
        return replace(self, data=self.data + data) if data else self

    def preceded_by(self, data: bytes, *, first: bool) -> "Window":
        """This window with more bytes before it."""
        return self.at(data + self.data, self.start - len(data), first=first)

    def cropped(self, start: int, end: int) -> "Window":
        """The part of it between two offsets."""
        low, high = max(start, self.start), min(end, self.end)
        data = self.data[low - self.start : high - self.start]
        return self.at(data, low, first=self.first and low == self.start)

    def slice(self, start: int, end: int) -> bytes:
        """The bytes between two offsets inside it."""
        return self.data[max(0, start - self.start) : max(0, end - self.start)]

    def row_end(self, row_start: int) -> int | None:
        """Where the row that begins there ends. None: not in this window."""
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
        """Where the row begins that holds the byte before `offset`. None: before this window."""
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
        """Whether a long line is broken there; the caller knows that it has no line feed in the chunk before."""
        if edge % SPAN == 0:
            return True
        end = edge - self.start
        return self.data.rfind(b"\r", end - CHUNK, end) < 0


HEX_ROW = 16
"""Bytes in a row of data that is no text."""


@dataclass(frozen=True, slots=True)
class ByteWindow(Window):
    """A piece of a stream that is no text: every row has the same number of bytes."""

    def row_end(self, row_start: int) -> int | None:
        """Where the row that begins there ends. None: not in this window."""
        edge = (row_start // HEX_ROW + 1) * HEX_ROW
        return edge if edge <= self.end else None

    def row_before(self, offset: int) -> int | None:
        """Where the row begins that holds the byte before `offset`. None: before this window."""
        edge = (offset - 1) // HEX_ROW * HEX_ROW
        return edge if edge >= self.start else self.start if self.first else None
