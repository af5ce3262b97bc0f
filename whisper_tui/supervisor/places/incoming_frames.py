"""The frames that come from a place, through the pipe of the program that connects to it."""

import asyncio
import errno
import fcntl
import os
import threading
import time
from contextlib import suppress
from typing import Protocol

from whisper_tui.model.errors import Unavailable
from whisper_tui.supervisor.places.frames import BUFFER, GREETING, BadFrame, Begun, FrameReader, FrameView

LONGEST_BANNER = 1 << 16
"""Bytes that a login may print before the greeting."""
READ, READ_OF_FLOOD = 1 << 18, 1 << 9
"""Bytes that are read at once, and those after a long frame: the next one will be as long."""
PIPE = 1 << 20
"""Bytes that the pipe holds, if the system lets it."""
_LOOKS, _GATHER_S = 20, 0.0005
"""Looks at a dry pipe before its next bytes are waited for, and the seconds between them."""


class StreamEnded(Exception):
    """The stream has ended."""

    def __init__(self, *, greeted: bool) -> None:
        super().__init__()
        self.greeted = greeted


class LongFrame:
    """A piece of a file whose payload goes from a pipe into a file: this process reads no byte of it."""

    def __init__(self, begun: Begun, pipe: int) -> None:
        """`pipe`: what it lacks follows there. It does not block."""
        self.header, self._begun, self._lacks = begun
        self._pipe = pipe
        self._poured = 0
        self._lock = threading.Lock()
        self._stopped = False

    @property
    def is_over(self) -> bool:
        """True once all of it was written."""
        return not self._begun and not self._lacks

    def pour(self, target: int, position: int) -> None:
        """Write what has come into a file whose piece begins there, and what comes in the next moments.

        Raises `EOFError` at the end of the pipe; `OSError` if the file cannot be written, and nothing is lost then.
        """
        with self._lock:
            dry = 0
            while not self.is_over and dry < _LOOKS and not self._stopped:
                if self._begun:
                    count = os.pwrite(target, self._begun, position + self._poured)
                    self._begun, self._poured = self._begun[count:], self._poured + count
                    continue
                try:
                    self._move(target, position + self._poured)
                    dry = 0
                except BlockingIOError:
                    # Small pieces come one after the other. Each of them would wake this process.
                    dry += 1
                    time.sleep(_GATHER_S)

    def stop(self) -> None:
        """Write no more, because the pipe is about to be closed."""
        self._stopped = True
        with self._lock:
            pass

    def _move(self, target: int, position: int) -> None:
        try:
            count = os.splice(self._pipe, target, self._lacks, None, position, os.SPLICE_F_NONBLOCK)
            self._poured += count
        except (AttributeError, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise
            # This system, or this file system, does not do that.
            self._begun = memoryview(os.read(self._pipe, min(self._lacks, BUFFER)))
            count = len(self._begun)
        if not count:
            raise EOFError
        self._lacks -= count


class TakesNews(Protocol):
    """Takes the news of runs that a place sends, in order."""

    async def take(self, frames: list[FrameView]) -> None:
        """Take frames, whose payloads are void afterwards."""
        ...

    async def pour(self, frame: LongFrame) -> None:
        """Take what has come of a frame. Raises `EOFError` at the end of the connection."""
        ...


class IncomingFrames:
    """The frames of one connection."""

    def __init__(self, pipe: int) -> None:
        self._long: LongFrame | None = None
        """A frame that has begun, after those that `next` has returned."""
        self._pipe = pipe
        self._heard_at = time.monotonic()
        self._giving = False
        self._reader = FrameReader()
        self._rest = b""
        self._greeted = self._ended = self._poured = False
        self._awaited: asyncio.Future[None] | None = None

    @classmethod
    def over_pipe(cls) -> "tuple[IncomingFrames, int]":
        """Return the frames of a new pipe, and its other end."""
        pipe, output = os.pipe()
        os.set_blocking(pipe, False)
        with suppress(OSError, AttributeError):
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, PIPE)
        return cls(pipe), output

    async def skip_banner(self) -> None:
        """Leave out what precedes the greeting."""
        seen, buffer = b"", memoryview(bytearray(READ))
        while GREETING not in seen:
            if len(seen) > LONGEST_BANNER:
                raise BadFrame("what answers there is no host process")
            seen += buffer[: await self._read(buffer)]
        self._rest = seen.partition(GREETING)[2]

    async def skip_rest(self) -> None:
        """Leave out all that comes. Raises `StreamEnded`."""
        buffer = memoryview(bytearray(READ))
        while True:
            await self._read(buffer)

    async def next(self) -> list[FrameView]:
        """Wait for the next frames, whose payloads are valid until the next call. Raises `StreamEnded`.

        None of them: a long one has begun.
        """
        most = READ_OF_FLOOD if self._poured else READ
        try:
            found, self._rest = list(self._reader.feed(self._rest)) if self._rest else [], b""
            while not found and self._long is None:
                found = list(self._reader.frames(await self._read(self._reader.room()[:most])))
                begun = self._reader.take_begun()
                self._long = LongFrame(begun, self._pipe) if begun is not None else None
        except BadFrame as error:
            raise Unavailable(f"the place sends something else than frames: {error}") from None
        self._greeted, self._poured = True, self._long is not None
        return found

    @property
    def silence_s(self) -> float:
        """Seconds for which nothing has come. While frames are being taken, nothing is expected to."""
        return 0.0 if self._giving else time.monotonic() - self._heard_at

    async def give(self, news: TakesNews, frames: list[FrameView]) -> None:
        """Have frames that came taken, and then the long one that has begun. Raises `StreamEnded`."""
        if frames:
            self._giving = True
            await news.take(frames)
            self._giving = False
        while self._long is not None:
            self._giving = True
            try:
                await news.pour(self._long)
            except EOFError:
                raise StreamEnded(greeted=True) from None
            self._giving, self._heard_at = False, time.monotonic()
            if self._long.is_over:
                self._long = None
            else:
                await self._readable()

    async def _readable(self) -> None:
        """Wait until more has come, or the end. Raises `StreamEnded`."""
        loop = asyncio.get_running_loop()
        self._awaited = loop.create_future()
        loop.add_reader(self._pipe, self._wake)
        try:
            await self._awaited
        finally:
            loop.remove_reader(self._pipe)
        if self._ended:
            raise StreamEnded(greeted=self._greeted)

    def end(self) -> None:
        """Give up the connection."""
        self._ended = True
        self._wake()

    def close(self) -> None:
        """Close the pipe."""
        if self._long is not None:
            self._long.stop()
        os.close(self._pipe)

    def _wake(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    async def _read(self, room: memoryview) -> int:
        while True:
            try:
                count = os.readv(self._pipe, [room])
            except BlockingIOError:
                await self._readable()
                continue
            if not count:
                raise StreamEnded(greeted=self._greeted)
            self._heard_at = time.monotonic()
            return count
