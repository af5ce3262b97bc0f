"""The output of a run, printed in its order; for a terminal without control sequences other than colours."""

import asyncio
import codecs
import re
import sys
from collections.abc import Callable
from typing import BinaryIO

from whisper_tui.cli.standard_streams import STDERR, STDOUT, data_on
from whisper_tui.model.api import Supervision
from whisper_tui.model.run import Stream, output_turns
from whisper_tui.model.text import replace_hidden, show_characters

_CONTROLS = re.compile(
    r"(?P<colour>\x1b\[[0-9;:]*m)"
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # other control sequences
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"  # strings: titles, clipboard, pictures
    r"|\x1b[ -/]*[0-~]"  # short escapes
    r"|\r(?!\n)"  # back over what was shown
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]",
    re.DOTALL,
)
_PALETTE = re.compile(r"[345]8;(?:5;\d*|2(?:;\d*){3})")
"""A colour by number, in which no number means anything else."""
_CONCEAL = "8"
_UNFINISHED = re.compile(r"\r\Z|\x1b(?:\[[0-?]*[ -/]*|[\]PX^_](?:(?!\x07|\x1b\\).)*|[ -/]*)$", re.DOTALL)
_KEPT = frozenset("\n\r\t\x1b")

LONGEST_ESCAPE = 65_536
"""Characters of an unfinished escape that are waited for; a longer one is let go."""


class TerminalText:
    """Filters a stream piece by piece; an escape cut by the end of a piece is finished by the next one."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def feed(self, data: bytes) -> bytes:
        """Return the part of the next piece that may be shown."""
        text = self._held + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text, max(0, len(text) - LONGEST_ESCAPE))
        self._held = unfinished.group() if unfinished else ""
        ready = text[: unfinished.start()] if unfinished else text
        kept = _CONTROLS.sub(_shown, ready)
        return (kept if kept.isascii() else replace_hidden(kept, show_characters, keep=_KEPT, printed=True)).encode()


def _shown(found: "re.Match[str]") -> str:
    """Return the replacement for a control sequence."""
    # A lone carriage return would let later text overwrite earlier text, so it becomes a line end.
    if found.group() == "\r":
        return "\n"
    # Colours stay, except "conceal", which makes text invisible.
    colour = found.group("colour") or ""
    parts = _PALETTE.sub("", colour[2:-1]).split(";")
    return "" if any(part.partition(":")[0].lstrip("0") == _CONCEAL for part in parts) else colour


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
            for stream, end in output_turns(spans):
                await self._print_until(stream, end)
            if spans:
                continue
            if not follow or await self._nothing_comes():
                break
            await asyncio.sleep(POLL_S)
        for stream in STREAMS:
            await self._print_rest(stream)

    async def _nothing_comes(self) -> bool:
        """True if both streams can no longer grow, and the time index has been read to its end."""
        chunks = [await self._supervision.read_output(self._call_id, stream, 0, 0) for stream in STREAMS]
        return all(chunk.ended for chunk in chunks)

    async def _print_rest(self, stream: Stream) -> bool:
        """Print everything up to now. Return True if no more can come."""
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


def _writer(file: BinaryIO) -> Callable[[bytes], None]:
    """Bytes as they are; for a terminal, without what controls it."""
    shown = TerminalText().feed if file.isatty() else bytes

    def write(data: bytes) -> None:
        file.write(shown(data))
        file.flush()

    return write
