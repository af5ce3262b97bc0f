"""The output of a run in the order and at the times at which it came, and the sizes of its terminal meanwhile."""

from collections import deque
from collections.abc import AsyncIterator
from typing import NamedTuple

from whisper_tui.model.port import Supervision
from whisper_tui.model.run import OutputSpan, Stream, TerminalSize
from whisper_tui.model.state import CallRecord

SPANS = 4096
"""Rows of the time index read at once."""
PIECE = 256 * 1024
"""Bytes of a stream read at once, and the longest piece."""


class Piece(NamedTuple):
    """Bytes that arrived together."""

    after_s: float
    """Seconds since the command started."""
    stream: Stream
    data: bytes
    dropped: int = 0
    """Bytes directly before these that were not kept."""


class Resized(NamedTuple):
    """The terminal got another size."""

    after_s: float
    """Seconds since the command started."""
    rows: int
    columns: int


class _Reader:
    """One stream, read ahead of what is asked for."""

    def __init__(self, supervision: Supervision, call_id: str, stream: Stream) -> None:
        self._supervision = supervision
        self._call_id = call_id
        self._stream = stream
        self._data = b""
        self._start = 0
        self.at = 0
        """Offset of the next byte."""

    async def until(self, end: int, after_s: float) -> AsyncIterator[Piece]:
        """The bytes up to an offset, as far as they were kept."""
        while self.at < end:
            if not self._start <= self.at < self._start + len(self._data):
                chunk = await self._supervision.read_output(self._call_id, self._stream, self.at, PIECE)
                if not chunk.data:
                    return
                self._data, self._start = chunk.data, chunk.start
            dropped = max(0, self._start - self.at)
            self.at = max(self.at, self._start)
            data = self._data[self.at - self._start : max(0, end - self._start)]
            self.at += len(data)
            yield Piece(after_s, self._stream, data, dropped)


class _Terminal:
    """The output of a run, with each new size of its terminal between the bytes before and after it."""

    def __init__(self, out: _Reader, sizes: tuple[TerminalSize, ...], began: float) -> None:
        self._out = out
        self._sizes = deque(sizes[1:])
        self._began = began
        self._last_s = 0.0

    async def until(self, reader: _Reader, end: int, after_s: float) -> AsyncIterator[Piece | Resized]:
        """The bytes of a stream up to an offset, which came at that time."""
        while reader is self._out and self._sizes and self._sizes[0].start < end:
            async for before in reader.until(self._sizes[0].start, after_s):
                yield before
            yield self._resized()
        async for piece in reader.until(end, max(after_s, self._last_s)):
            yield piece

    def rest(self) -> list[Resized]:
        """Sizes after all output."""
        return [self._resized() for _ in range(len(self._sizes))]

    def _resized(self) -> Resized:
        size = self._sizes.popleft()
        self._last_s = max(self._last_s, size.at - self._began)
        return Resized(self._last_s, size.rows, size.columns)


async def moments(
    supervision: Supervision, record: CallRecord, sizes: tuple[TerminalSize, ...]
) -> AsyncIterator[Piece | Resized]:
    """All that a run has printed, and the later sizes of its terminal.

    What the time index does not know comes last, at the time of the last row.
    """
    if record.process is None:
        return
    began = record.process.started_at
    readers: dict[Stream, _Reader] = {name: _Reader(supervision, record.id, name) for name in ("out", "err")}
    terminal = _Terminal(readers["out"], sizes, began)
    after_s, row = 0.0, 0
    while spans := await supervision.read_timeline(record.id, row, SPANS):
        row += len(spans)
        for span in spans:
            after_s = max(after_s, span.at - began)
            async for moment in terminal.until(readers[span.stream], _end(span), after_s):
                yield moment
    for stream, reader in readers.items():
        size = (await supervision.read_output(record.id, stream, 0, 0)).size
        async for moment in terminal.until(reader, size, after_s):
            yield moment
    for resized in terminal.rest():
        yield resized


def _end(span: OutputSpan) -> int:
    return span.start + span.length
