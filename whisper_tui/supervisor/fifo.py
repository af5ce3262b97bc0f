"""Writing to the FIFOs of a run without ever waiting for it in the way of others."""

import asyncio
import errno
import os

from whisper_tui.model.errors import NotRunning, Unavailable, WhisperError

_NOBODY = frozenset({errno.ENXIO, errno.ENOENT, errno.EPIPE, errno.ENOTDIR})


async def write_fifo(path: str, data: bytes, nobody: str) -> None:
    """Write all of the data, waiting while the FIFO is full. Raises `NotRunning(nobody)` if nobody reads it."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _translated(error, nobody) from None
    try:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(fd, rest[: 1 << 16]) :]
            except BlockingIOError:
                await _writable(fd)
            except OSError as error:
                raise _translated(error, nobody) from None
    finally:
        os.close(fd)


async def _writable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(fd, _resolve, ready)
    try:
        await ready
    finally:
        loop.remove_writer(fd)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _translated(error: OSError, nobody: str) -> WhisperError:
    if error.errno in _NOBODY:
        return NotRunning(nobody)
    return Unavailable(f"the run cannot be reached: {error.strerror}", hint="Close other programs, then try again")
