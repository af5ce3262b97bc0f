"""A run's captured output as text for an answer, read piece by piece."""

import asyncio
import codecs

from whisper_tui.model.port import Supervision
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended

PIECE = 1024 * 1024
"""Bytes asked for at once."""

_LEADING = 0xC0
_CONTINUATION = 0x80


async def captured_texts(supervision: Supervision, record: CallRecord, limit: int | None) -> tuple[str, str]:
    """What both streams held when the leader ended; of more than `limit` bytes the first and the last part of each.

    Each may take half, and what the other leaves. What is left out, or was dropped when it was captured, is marked
    where it is missing. None: no limit.
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
        """The bytes from `start` up to `end`, decoded; a character that a cut divides is left out."""
        parts: list[str] = []
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        offset, after_cut = start, starts_midway
        while offset < end:
            chunk = await self._supervision.read_output(self._call_id, self._stream, offset, min(PIECE, end - offset))
            data = chunk.data[: max(end - chunk.start, 0)]
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
    """The data without the continuation bytes of a character whose first byte is not in it."""
    skipped = 0
    while skipped < min(3, len(data)) and data[skipped] & _LEADING == _CONTINUATION:
        skipped += 1
    return data[skipped:]
