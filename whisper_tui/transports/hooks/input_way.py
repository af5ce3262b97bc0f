"""The way of standard input to a run: straight into its FIFO, or through the supervisor where that cannot be opened.

Straight, no byte of it can be lost with a supervisor that dies. Standard library only.
"""

import errno
import os

from whisper_tui.transports.hooks.frames import EOF, STDIN, frame

READ = 1 << 16
_OVER = frozenset({errno.ENOENT, errno.ENXIO})
"""What opening says when the run takes no more input."""


class InputWay:
    """Carries what can be read from descriptor 0 once the run says that it takes input."""

    def __init__(self) -> None:
        self.open = not _is_nothing(0)
        """Whether more can be read and somebody takes it."""
        self.has_any = self.open
        """Whether there was anything to read from at the start."""
        self.ended = False
        """Whether all of it was read. The run has to be told, by every connection anew."""
        self._begun = False
        self._fifo = -1
        self._unwritten = b""

    def begin(self, path: bytes) -> None:
        """The run takes input now. `path`: its FIFO; empty: there is none that others could write to."""
        if self._begun:
            return
        self._begun = True
        if not path:
            return
        try:
            self._fifo = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.open = error.errno not in _OVER

    @property
    def reads(self) -> list[int]:
        """What to wait for until it can be read."""
        return [0] if self.open and self._begun and not self._unwritten else []

    @property
    def writes(self) -> list[int]:
        """What to wait for until it can be written to."""
        return [self._fifo] if self._unwritten else []

    def read(self) -> bytes:
        """Take what has come. Returns what is to be sent through the supervisor: a piece of it, its end or nothing."""
        try:
            data = os.read(0, READ)
        except OSError:
            data = b""
        if not data:
            self.ended = True
            self._close()
            return frame(EOF)
        if self._fifo < 0:
            return frame(STDIN, data)
        self._unwritten = data
        self.write()
        return b""

    def write(self) -> None:
        """Write what the FIFO takes now; nothing is read until it has taken all."""
        try:
            self._unwritten = self._unwritten[os.write(self._fifo, self._unwritten) :]
        except BlockingIOError:
            return
        except OSError:
            self._close()

    def _close(self) -> None:
        self.open, self._unwritten = False, b""
        if self._fifo >= 0:
            os.close(self._fifo)
            self._fifo = -1


def _is_nothing(descriptor: int) -> bool:
    """Whether nothing can be read from a descriptor: it is closed, or the null device."""
    try:
        about = os.fstat(descriptor)
    except OSError:
        return True
    return about.st_rdev == os.stat(os.devnull).st_rdev and about.st_rdev != 0  # noqa: PTH116
