"""Saves output to a file: one stream byte for byte, or both in order of time, of any size."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from whisper_tui.model.errors import Refused
from whisper_tui.model.run import Stream
from whisper_tui.tui.output.ansi import plain_with_colours
from whisper_tui.tui.output.merged_view import Cursor, MergedView
from whisper_tui.tui.output.stream_reader import ReadOutput, TimeIndex

Source = Stream | Literal["both"]
PIECE = 1024 * 1024
"""Bytes of one read or write."""


class Saved(NamedTuple):
    """The result of a save."""

    written: int
    missing: int
    """Bytes that were dropped while the command ran."""


async def pieces(read: ReadOutput) -> AsyncIterator[tuple[bytes, int]]:
    """Yield a stream up to its present end: bytes, and the number of bytes dropped before them."""
    at = 0
    size = (await read(0, 0)).size
    while at < size:
        chunk = await read(at, min(PIECE, size - at))
        if not chunk.data:
            return
        yield chunk.data, chunk.start - at
        at = chunk.next_offset


async def merged_pieces(reads: Mapping[Stream, ReadOutput], index: TimeIndex) -> AsyncIterator[tuple[bytes, int]]:
    """Yield both streams in whole rows, ordered by the time of their first byte."""
    view = MergedView(reads, index)
    while not view.index_is_read:
        await view.poll()
    cursor: Cursor = {"out": 0, "err": 0}
    rows: list[bytes] = []
    held = missing = 0
    while True:
        before = dict(cursor)
        shown = await view.next_row(cursor)
        if shown is None:
            break
        missing += shown.row.start - before[shown.stream]
        whole = shown.row.end - shown.row.start == len(shown.data)
        rows.append(shown.data if whole else await _whole(reads[shown.stream], shown.row.start, shown.row.end))
        held += len(rows[-1])
        if held > PIECE:
            yield b"".join(rows), missing
            rows, held, missing = [], 0, 0
            await asyncio.sleep(0)
    if rows:
        yield b"".join(rows), missing


async def _whole(read: ReadOutput, start: int, end: int) -> bytes:
    data = b""
    while start + len(data) < end:
        chunk = await read(start + len(data), end - start - len(data))
        if not chunk.data:
            break
        data += chunk.data
    return data


async def save(path: Path, source: AsyncIterator[tuple[bytes, int]]) -> Saved:
    """Write a new file that only its owner can read. Raises `Refused` if it exists or cannot be written."""
    try:
        # O_EXCL refuses links and existing files; 0600 because output may hold secrets.
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Refused(f"{path} already exists", hint="Save under another name") from None
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}", hint="Save somewhere else") from error
    written = missing = 0
    with os.fdopen(fd, "wb") as file:
        try:
            async for data, dropped in source:
                await asyncio.to_thread(file.write, data)
                written, missing = written + len(data), missing + dropped
            await asyncio.to_thread(file.flush)
        except OSError as error:
            problem = f"{path} is incomplete: {error.strerror}"
            raise Refused(problem, hint="The part that was written is kept") from error
    return Saved(written, missing)


async def readable(source: AsyncIterator[tuple[bytes, int]]) -> AsyncIterator[tuple[bytes, int]]:
    """Yield output with colours as the only escape sequences, for a pager."""
    async for data, dropped in source:
        yield await asyncio.to_thread(plain_with_colours, data), dropped
