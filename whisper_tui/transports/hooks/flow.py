"""The output of a run as it comes: both streams in their order, until the answer is fixed."""

import asyncio
from collections.abc import AsyncIterator

from whisper_tui.model.port import Supervision
from whisper_tui.model.run import OutputSpan, Stream
from whisper_tui.model.state import CallRecord, Ended

PIECE = 1 << 20
"""Bytes in one piece."""

SPANS = 4096
"""Rows of the time index read at once."""

SHORTEST_S, LONGEST_S = 0.005, 0.1
"""Seconds between two looks: the longer nothing came, the longer."""

STREAMS: tuple[Stream, Stream] = ("out", "err")


class Flow:
    """Reads the output of one call from given offsets."""

    def __init__(self, supervision: Supervision, call_id: str, out: int, err: int) -> None:
        self._supervision = supervision
        self._call_id = call_id
        self._at: dict[Stream, int] = {"out": out, "err": err}
        self._row = 0

    async def pieces(self) -> AsyncIterator[tuple[Stream, bytes]]:
        """What the command has written, up to what was there when its leader ended."""
        await self._supervision.started(self._call_id)
        outcome = asyncio.create_task(self._supervision.outcome(self._call_id))
        pause = SHORTEST_S
        try:
            while not outcome.done():
                came = False
                async for piece in self._in_order():
                    came = True
                    yield piece
                pause = SHORTEST_S if came else min(pause * 2, LONGEST_S)
                await asyncio.wait({outcome}, timeout=pause)
            async for piece in self._in_order():
                yield piece
            async for piece in self._rest(await outcome):
                yield piece
        finally:
            outcome.cancel()

    async def _in_order(self) -> AsyncIterator[tuple[Stream, bytes]]:
        while spans := await self._supervision.read_timeline(self._call_id, self._row, SPANS):
            self._row += len(spans)
            for stream, end in _turns(spans):
                async for piece in self._until(stream, end):
                    yield piece

    async def _rest(self, record: CallRecord) -> AsyncIterator[tuple[Stream, bytes]]:
        """What the time index did not tell: all that was captured when the leader ended."""
        sizes = record.state.output if isinstance(record.state, Ended) else None
        for stream in STREAMS:
            end = getattr(sizes, stream) if sizes is not None else 0
            async for piece in self._until(stream, end):
                yield piece

    async def _until(self, stream: Stream, end: int) -> AsyncIterator[tuple[Stream, bytes]]:
        while self._at[stream] < end:
            limit = min(PIECE, end - self._at[stream])
            chunk = await self._supervision.read_output(self._call_id, stream, self._at[stream], limit)
            missing = chunk.start - self._at[stream]
            if missing > 0:
                yield "err", b"\nwhisper_tui: %d bytes of the output were not kept\n" % missing
            if not chunk.data:
                self._at[stream] = max(self._at[stream], chunk.start)
                return
            self._at[stream] = chunk.start + len(chunk.data)
            yield stream, chunk.data


def _turns(spans: tuple[OutputSpan, ...]) -> list[tuple[Stream, int]]:
    """Which stream to read up to which offset, in turns."""
    turns: list[tuple[Stream, int]] = []
    for span in spans:
        if turns and turns[-1][0] == span.stream:
            turns.pop()
        turns.append((span.stream, span.start + span.length))
    return turns
