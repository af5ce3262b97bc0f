"""Printing the output of a run: in large pieces, in the order in which it came, and nothing twice."""

import asyncio
import sys
from collections.abc import Callable
from typing import BinaryIO

from whisper_tui.cli.standard_streams import STDERR, STDOUT, data_on
from whisper_tui.cli.terminal_text import TerminalText
from whisper_tui.model.port import Supervision
from whisper_tui.model.run import OutputSpan, Stream

PIECE = 4 * 1024 * 1024
"""Bytes read at once."""

SPANS = 16_384
"""Rows of the time index read at once."""

POLL_S = 0.1

STREAMS: tuple[Stream, Stream] = ("out", "err")


class Printer:
    """Prints the streams of one call to our own standard output and standard error."""

    def __init__(self, supervision: Supervision, call_id: str) -> None:
        self._supervision = supervision
        self._call_id = call_id
        self._at: dict[Stream, int] = {"out": 0, "err": 0}
        self._write: dict[Stream, Callable[[bytes], None]] = {
            "out": _writer(data_on(STDOUT)),
            "err": _writer(data_on(STDERR)),
        }

    async def print_one(self, stream: Stream, *, follow: bool) -> None:
        """One stream, to its end or, with `follow`, until it has one."""
        while True:
            ended = await self._print_rest(stream)
            if ended or not follow:
                return
            await asyncio.sleep(POLL_S)

    async def print_both(self, *, follow: bool) -> None:
        """Both streams, in the order of the time index."""
        row = 0
        while True:
            spans = await self._supervision.read_timeline(self._call_id, row, SPANS)
            row += len(spans)
            for stream, end in _stretches(spans):
                await self._print_until(stream, end)
            if spans:
                continue
            if not follow or await self._nothing_comes():
                break
            await asyncio.sleep(POLL_S)
        for stream in STREAMS:
            await self._print_rest(stream)

    async def _nothing_comes(self) -> bool:
        """Whether both streams can no longer grow, and the time index has been read to its end."""
        chunks = [await self._supervision.read_output(self._call_id, stream, 0, 0) for stream in STREAMS]
        return all(chunk.ended for chunk in chunks)

    async def _print_rest(self, stream: Stream) -> bool:
        """Print all that is there. Returns whether nothing more can come."""
        while True:
            chunk = await self._supervision.read_output(self._call_id, stream, self._at[stream], PIECE)
            self._take(stream, chunk.start, chunk.data)
            if self._at[stream] >= chunk.size or not chunk.data:
                return chunk.ended

    async def _print_until(self, stream: Stream, end: int) -> None:
        while self._at[stream] < end:
            limit = min(PIECE, end - self._at[stream])
            chunk = await self._supervision.read_output(self._call_id, stream, self._at[stream], limit)
            self._take(stream, chunk.start, chunk.data)
            if not chunk.data:
                return

    def _take(self, stream: Stream, start: int, data: bytes) -> None:
        if start > self._at[stream]:
            sys.stderr.write(f"whisper-tui: {start - self._at[stream]:,} bytes of {stream} were dropped here\n")
            sys.stderr.flush()
        if data:
            self._write[stream](data)
        self._at[stream] = max(self._at[stream], start + len(data))


def _stretches(spans: tuple[OutputSpan, ...]) -> list[tuple[Stream, int]]:
    """Which stream to print up to which offset, in turns."""
    turns: list[tuple[Stream, int]] = []
    for span in spans:
        if turns and turns[-1][0] == span.stream:
            turns.pop()
        turns.append((span.stream, span.start + span.length))
    return turns


def _writer(file: BinaryIO) -> Callable[[bytes], None]:
    """Bytes as they are; for a terminal, without what controls it."""
    shown = TerminalText().feed if file.isatty() else bytes

    def write(data: bytes) -> None:
        file.write(shown(data))
        file.flush()

    return write
