"""A run's output as text, shortened to the amount that a client shows its model."""

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
"""How often a result is created again with less output until it fits."""

# Escapes and markers lengthen a text by a factor that is only known afterwards.
MARGIN = 0.95


@dataclass(frozen=True)
class OutputBudget:
    """How much text a client shows its model without truncation."""

    size: int
    """Characters, or bytes where the client counts those."""
    in_bytes: bool = False
    lines: int | None = None
    """None: lines do not count."""

    def less(self, text: str | None) -> "OutputBudget":
        """Return the remaining budget beside a text, but at least half of it."""
        return (
            self
            if text is None
            else OutputBudget(max(self.size - _size(self, text), self.size // 2), self.in_bytes, self.lines)
        )

    def filled(self, *texts: str) -> float:
        """Return the fraction of the budget that the longest text uses. A text with more than 1 does not fit."""
        return max(self._part(text) for text in texts)

    def _part(self, text: str) -> float:
        lines = 0.0 if self.lines is None else (text.count("\n") + 1) / self.lines
        return max(_size(self, text) / self.size, lines)


Make = Callable[[int | None], Awaitable[Any]]
"""Creates a result with at most that much output, in bytes or characters. None: with all output."""


async def fitted(budget: OutputBudget | None, make: Make, text_of: Callable[[Any], str]) -> Any:
    """Return the result with as much output as fits the budget, both as data and as text."""
    # Some clients show the structured content and some the text, so both must fit (decision 18).
    if budget is None:
        return await make(None)
    limit = budget.size
    for _ in range(TRIES):
        result = await make(limit)
        filled = budget.filled(as_json(result), text_of(result))
        if filled <= 1.0:
            return result
        # At least one less, so that the loop ends even if rounding would keep the limit.
        limit = min(int(limit / filled * MARGIN), limit - 1)
        if limit <= 0:
            break
    return await make(0)


def as_json(result: Any) -> str:
    """Return a result in the format in which clients show structured content."""
    return json.dumps(result, ensure_ascii=False, default=str)


def shortened(text: str, budget: OutputBudget, where: str) -> str:
    """Return a text without its middle, so that it fits. `where`: a hint about how to get the rest."""
    kept = len(text)
    while (filled := budget.filled(short := _without_middle(text, kept, where))) > 1.0 and kept:
        kept = max(0, min(int(kept / filled * MARGIN), kept - 1))
    return short


def _without_middle(text: str, kept: int, where: str) -> str:
    if kept >= len(text):
        return text
    first, last = kept - kept // 2, kept // 2
    left_out = f"{len(text) - kept:,} characters are left out here; {where}"
    return f"{text[:first]}\n[whisper_tui: {left_out}]\n{text[len(text) - last :]}"


def _size(budget: OutputBudget, text: str) -> int:
    return len(text.encode("utf-8", "replace")) if budget.in_bytes else len(text)


PIECE = 1024 * 1024
"""How many bytes are requested at once."""

_LEADING = 0xC0
_CONTINUATION = 0x80


async def captured_texts(supervision: Supervision, record: CallRecord, limit: int | None) -> tuple[str, str]:
    """Return both streams as they were when the leader ended, cut to `limit` bytes. None: no limit.

    Each stream may use half of the limit, and what the other stream does not need. A shortened stream
    keeps its head and its tail. A marker replaces bytes that are omitted here or were dropped by the capture.
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
    return (
        f"all of it is in {path}" if path else f"`whisper-tui logs {call_id} --stream {stream}` prints the kept output"
    )


def _marker(text: str) -> str:
    return f"\n[whisper_tui: {text}]\n"


class StreamText:
    """Reads ranges of one stream as text."""

    def __init__(self, supervision: Supervision, call_id: str, stream: Stream) -> None:
        self._supervision = supervision
        self._call_id = call_id
        self._stream: Stream = stream

    async def text(self, start: int, end: int, *, starts_midway: bool = False, ends_midway: bool = False) -> str:
        """Return the bytes from `start` to `end` as text, without incomplete characters at a cut."""
        parts: list[str] = []
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        offset, after_cut = start, starts_midway
        while offset < end:
            chunk = await self._supervision.read_output(self._call_id, self._stream, offset, min(PIECE, end - offset))
            data = chunk.data[: max(end - chunk.start, 0)]
            # Dropped bytes leave a gap in the offsets. The answer begins at the next captured byte.
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
    """Return the data without an incomplete character at its start."""
    skipped = 0
    # A UTF-8 character has at most three continuation bytes. More of them are not text and are kept.
    while skipped < min(3, len(data)) and data[skipped] & _LEADING == _CONTINUATION:
        skipped += 1
    return data[skipped:]
