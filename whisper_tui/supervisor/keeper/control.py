"""The two FIFOs through which others reach a run: orders to the keeper, and bytes for the command's input."""

import errno
import json
import os
import select
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
        self._source = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._target = target
        self._watched = -1
        self._end = end
        self._pending = b""
        self._ending = False
        self.closed = False

    def watch(self, poll: select.poll) -> None:
        """Have it wake whoever moves this for the one end of the way that is waited for now."""
        wanted = -1 if self.closed else self._target if self._pending else self._source
        if wanted == self._watched:
            return
        if self._watched >= 0:
            poll.unregister(self._watched)
        if wanted >= 0:
            poll.register(wanted, select.POLLIN if wanted == self._source else select.POLLOUT)
        self._watched = wanted

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
        os.close(self._source)
        os.close(self._target)

    def _send_end(self) -> None:
        self._ending = False
        if self._end is None:
            self.close()
        else:
            self._pending = self._end
            self._write()

    def _read(self) -> bytes:
        try:
            return os.read(self._source, layout.CHUNK)
        except BlockingIOError:
            return b""

    def _write(self) -> bool:
        """Whether the command took something."""
        try:
            count = os.write(self._target, self._pending)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in {errno.EPIPE, errno.EIO}:
                raise
            self.close()
            return False
        self._pending = self._pending[count:]
        return True
