"""A run's output as text, cut to the amount that a client shows its model."""

import asyncio
import codecs
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from whisper_tui.model.api import Supervision
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended

TRIES = 8
"""Attempts to fit a result with less and less output."""

# Escapes and markers make a text longer by a factor that is known only once the text is made.
MARGIN = 0.95


@dataclass(frozen=True)
class OutputBudget:
    """The amount of text that a client shows its model whole."""

    size: int
    """Characters, or bytes where the client counts those."""
    in_bytes: bool = False
    lines: int | None = None
    """None: lines are not counted."""

    def less(self, text: str | None) -> "OutputBudget":
        """Return the budget that is left beside a text; never less than half."""
        return (
            self
            if text is None
            else OutputBudget(max(self.size - _size(self, text), self.size // 2), self.in_bytes, self.lines)
        )

    def filled(self, *texts: str) -> float:
        """The part of the budget that the longest text takes. A text that takes more than 1 does not fit."""
        return max(self._part(text) for text in texts)

    def _part(self, text: str) -> float:
        lines = 0.0 if self.lines is None else (text.count("\n") + 1) / self.lines
        return max(_size(self, text) / self.size, lines)


Make = Callable[[int | None], Awaitable[Any]]
"""Makes a result with at most that much output, in bytes or characters. None: with all output."""


async def fitted(room: OutputBudget | None, make: Make, text_of: Callable[[Any], str]) -> Any:
    """Return the result with as much output as fits the budget, both as data and as text."""
    # Some clients show the structured content and some the text, so both must fit (decision 23).
    if room is None:
        return await make(None)
    limit = room.size
    for _ in range(TRIES):
        result = await make(limit)
        filled = room.filled(as_json(result), text_of(result))
        if filled <= 1.0:
            return result
        # At least one less, so that the loop ends even where rounding would keep the limit.
        limit = min(int(limit / filled * MARGIN), limit - 1)
        if limit <= 0:
            break
    return await make(0)


def as_json(result: Any) -> str:
    """A result as clients show structured content."""
    return json.dumps(result, ensure_ascii=False, default=str)


def shortened(text: str, room: OutputBudget, where: str) -> str:
    """Return a text without its middle, so that it fits. `where`: a sentence about how to get the rest."""
    kept = len(text)
    while (filled := room.filled(short := _without_middle(text, kept, where))) > 1.0 and kept:
        kept = max(0, min(int(kept / filled * MARGIN), kept - 1))
    return short


def _without_middle(text: str, kept: int, where: str) -> str:
    if kept >= len(text):
        return text
    first, last = kept - kept // 2, kept // 2
    left_out = f"{len(text) - kept:,} characters are left out here; {where}"
    return f"{text[:first]}\n[whisper_tui: {left_out}]\n{text[len(text) - last :]}"


def _size(room: OutputBudget, text: str) -> int:
    return len(text.encode("utf-8", "replace")) if room.in_bytes else len(text)


PIECE = 1024 * 1024
"""Bytes asked for at once."""

_LEADING = 0xC0
_CONTINUATION = 0x80


async def captured_texts(supervision: Supervision, record: CallRecord, limit: int | None) -> tuple[str, str]:
    """Return both streams as they were when the leader ended, cut to `limit` bytes. None: no limit.

    Each stream may take half of the limit, and the part of the other half that is not needed there. A cut stream
    keeps its head and its tail; a marker stands in place of bytes that are left out or were dropped by the capture.
    """
    if not isinstance(record.state, Ended) or record.state.attempt is None:
        return "", ""
    out, err = record.state.output.out, record.state.output.err
    most_err = err if limit is None else max(limit // 2, limit - out)
    most_out = out if limit is None else limit - min(err, most_err)
    return await asyncio.gather(
        _captured(supervision, record.id, "out", out, most_out), _captured(supervision, record.id, "err", err, most_err)
    )


async def _captured(supervision: Supervision, call_id: str, stream: Stream, size: int, limit: int) -> str:
    reader = StreamText(supervision, call_id, stream)
    if size <= limit:
        return await reader.text(0, size)
    half = limit // 2
    head = await reader.text(0, half, ends_midway=True)
    tail = await reader.text(size - half, size, starts_midway=True)
    left_out = f"{size - 2 * half:,} bytes are left out here"
    return head + _marker(f"{left_out}; {await _where(supervision, call_id, stream)}") + tail


async def _where(supervision: Supervision, call_id: str, stream: Stream) -> str:
    path = await supervision.output_file(call_id, stream)
    return f"all of it is in {path}" if path else f"`whisper-tui logs {call_id} --stream {stream}` prints what was kept"


def _marker(text: str) -> str:
    return f"\n[whisper_tui: {text}]\n"


class StreamText:
    """Reads ranges of one stream as text."""

    def __init__(self, supervision: Supervision, call_id: str, stream: Stream) -> None:
        self._supervision = supervision
        self._call_id = call_id
        self._stream: Stream = stream

    async def text(self, start: int, end: int, *, starts_midway: bool = False, ends_midway: bool = False) -> str:
        """Return the bytes from `start` up to `end` as text, without characters that a cut divides."""
        parts: list[str] = []
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        offset, after_cut = start, starts_midway
        while offset < end:
            chunk = await self._supervision.read_output(self._call_id, self._stream, offset, min(PIECE, end - offset))
            data = chunk.data[: max(end - chunk.start, 0)]
            # Dropped bytes leave a gap in the offsets: the answer begins where the next captured byte is.
            if chunk.start > offset or not data:
                reached = min(chunk.start, end) if chunk.start > offset else end
                parts.append(_marker(f"{reached - offset:,} bytes were dropped here when the output was captured"))
                decoder.reset()
                offset, after_cut = reached, True
            if data:
                parts.append(decoder.decode(whole_start(data) if after_cut else data))
                offset, after_cut = offset + len(data), False
        if not ends_midway:
            parts.append(decoder.decode(b"", final=True))
        return "".join(parts)


def whole_start(data: bytes) -> bytes:
    """Return the data without a divided character at its start."""
    skipped = 0
    # A character of UTF-8 has at most three continuation bytes; more of them are no text and are shown as such.
    while skipped < min(3, len(data)) and data[skipped] & _LEADING == _CONTINUATION:
        skipped += 1
    return data[skipped:]
