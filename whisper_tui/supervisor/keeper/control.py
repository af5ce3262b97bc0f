"""The two FIFOs through which others reach a run: orders to the keeper, and bytes for the command's input."""

import errno
import json
import os
from contextlib import suppress
from typing import Any

from whisper_tui.supervisor.keeper import layout


class Orders:
    """Makes the control FIFO and reads orders from it. It is held open for writing, too, so that it never ends."""

    def __init__(self, path: str) -> None:
        with suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._rest = b""

    def read(self) -> list[dict[str, Any]]:
        """The orders that have arrived whole. A line that is none is left out."""
        try:
            data = os.read(self.fd, layout.CHUNK)
        except BlockingIOError:
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = []
        for line in lines:
            try:
                order = json.loads(line)
            except ValueError:
                continue
            if isinstance(order, dict):
                found.append(order)
        return found


class InputPump:
    """Carries bytes from the input FIFO to the command.

    The FIFO is not the command's own input: a command that opens /dev/stdin by name after the last writer has gone
    would wait for ever.
    """

    def __init__(self, path: str, target: int, end: bytes | None) -> None:
        """`target` is closed in the end. `end`: the bytes that mean the end of input to a terminal; None: a pipe."""
        self.path = path
        self.source = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.target = target
        self._end = end
        self._pending = b""
        self._ending = False
        self.closed = False

    @property
    def wants_source(self) -> bool:
        """Whether to wait for more bytes from the FIFO."""
        return not self.closed and not self._pending

    @property
    def wants_target(self) -> bool:
        """Whether to wait until the command takes more."""
        return not self.closed and bool(self._pending)

    def finish(self) -> None:
        """No more input comes after what is in the FIFO now."""
        self._ending = True
        self.move()

    def move(self) -> None:
        """Carry what can be carried now."""
        while not self.closed:
            if not self._pending:
                self._pending = self._read()
            if not self._pending:
                if self._ending:
                    self._send_end()
                return
            if not self._write():
                return

    def close(self) -> None:
        """Take no more. Who writes to the FIFO from now on is told so."""
        if self.closed:
            return
        self.closed = True
        layout.remove(self.path)
        os.close(self.source)
        os.close(self.target)

    def _send_end(self) -> None:
        self._ending = False
        if self._end is None:
            self.close()
        else:
            self._pending = self._end
            self._write()

    def _read(self) -> bytes:
        try:
            return os.read(self.source, layout.CHUNK)
        except BlockingIOError:
            return b""

    def _write(self) -> bool:
        """Whether the command took something."""
        try:
            count = os.write(self.target, self._pending)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in {errno.EPIPE, errno.EIO}:
                raise
            self.close()
            return False
        self._pending = self._pending[count:]
        return True
