"""The output of a run in the order of its arrival, from an offset that counts the bytes of both streams."""

import codecs
from dataclasses import dataclass

from whisper_tui.model.port import Supervision
from whisper_tui.model.run import OutputSpan, Stream
from whisper_tui.model.state import CallRecord
from whisper_tui.tools.arguments import ArgumentError
from whisper_tui.tools.exec_command.preview import WIDEST, cut_text
from whisper_tui.tools.output_text import whole_start

ROWS = 4096
"""Rows of the time index asked for at once."""
PIECE = 1024 * 1024
"""Bytes asked for at once."""
PATIENCE_S = 1.0
"""Seconds after which the rest of a divided character is no longer expected."""


@dataclass(frozen=True)
class Arrived:
    """What has arrived since an offset."""

    text: str
    next_offset: int
    """Where to go on, so that nothing is read twice."""
    cut: bool
    """Whether the middle is left out."""


@dataclass(frozen=True)
class _Span:
    """A row of the time index with its place in the order of arrival."""

    place: int
    row: OutputSpan

    @property
    def end(self) -> int:
        return self.place + self.row.length


class Arrival:
    """One look at what a run has printed."""

    def __init__(self, supervision: Supervision, record: CallRecord, *, now: float) -> None:
        self._supervision = supervision
        self._record = record
        self._now = now

    async def since(self, offset: int, budget: int) -> Arrived:
        """At most `budget` characters of what arrived from `offset` on. Raises `ArgumentError` for one too large."""
        spans = await self._spans()
        total = spans[-1].end if spans else 0
        if offset > total:
            raise ArgumentError(f"The argument 'offset' must be at most {total}, the bytes printed so far")
        reach = WIDEST * budget
        if total - offset <= 2 * reach:
            text, end = await self._text(spans, offset, total, midway=False)
            if len(text) <= budget:
                return Arrived(text, end, cut=False)
            return Arrived(self._cut(text, None, budget, end - offset), end, cut=True)
        head, _ = await self._text(spans, offset, offset + reach, midway=False)
        tail, end = await self._text(spans, total - reach, total, midway=True)
        return Arrived(self._cut(head, tail, budget, end - offset), end, cut=True)

    def _cut(self, head: str, tail: str | None, budget: int, size: int) -> str:
        return cut_text(head, tail, budget, size, f"`whisper-tui logs {self._record.id}` prints what was kept")

    async def _spans(self) -> list[_Span]:
        """All rows of the time index; without one, first all of the one stream and then all of the other."""
        rows: list[OutputSpan] = []
        while batch := await self._supervision.read_timeline(self._record.id, len(rows), ROWS):
            rows += batch
        if not rows:
            rows = [row for stream in ("out", "err") if (row := await self._whole(stream)).length]
        spans, place = [], 0
        for row in rows:
            spans.append(_Span(place, row))
            place += row.length
        return spans

    async def _whole(self, stream: Stream) -> OutputSpan:
        size = (await self._supervision.read_output(self._record.id, stream, 0, 0)).size
        return OutputSpan(at=0.0, stream=stream, start=0, length=size)

    async def _text(self, spans: list[_Span], start: int, end: int, *, midway: bool) -> tuple[str, int]:
        """The text from one place to another, and where it really ends: before a character that is still arriving."""
        text, divided = await self._decode(spans, start, end, midway)
        return (text, end) if divided is None else ((await self._decode(spans, start, divided, midway))[0], divided)

    async def _decode(self, spans: list[_Span], start: int, end: int, midway: bool) -> tuple[str, int | None]:
        decoders = {stream: codecs.getincrementaldecoder("utf-8")(errors="replace") for stream in ("out", "err")}
        begun: dict[str, int | None] = {"out": None, "err": None}
        parts, fresh = [], set[Stream]()
        for span in spans:
            low, high = max(start, span.place), min(end, span.end)
            if low >= high:
                continue
            stream = span.row.stream
            data = await self._bytes(span, low, high)
            if stream not in fresh:
                fresh.add(stream)
                data = whole_start(data) if midway else data
            parts.append(decoders[stream].decode(data))
            pending = len(decoders[stream].getstate()[0])
            if not pending:
                begun[stream] = None
            elif begun[stream] is None or pending <= len(data):
                expected = self._record.is_open and self._now - span.row.at < PATIENCE_S
                begun[stream] = high - pending if expected else None
        divided = min((place for place in begun.values() if place is not None), default=None)
        if divided is None:
            parts += [decoder.decode(b"", final=True) for decoder in decoders.values()]
        return "".join(parts), divided

    async def _bytes(self, span: _Span, low: int, high: int) -> bytes:
        """Bytes of one row between two places; what was dropped when it was captured is said instead."""
        start = span.row.start + low - span.place
        end = start + high - low
        parts: list[bytes] = []
        while start < end:
            wanted = min(PIECE, end - start)
            chunk = await self._supervision.read_output(self._record.id, span.row.stream, start, wanted)
            data = chunk.data[: max(end - chunk.start, 0)]
            if chunk.start > start or not data:
                start = min(chunk.start, end) if chunk.start > start else end
                parts.append(b"\n[whisper_tui: bytes were dropped here when they were captured]\n")
            parts.append(data)
            start += len(data)
        return b"".join(parts)
