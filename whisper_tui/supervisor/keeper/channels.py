"""Between supervisor and keeper: jobs from a queue, orders by a FIFO; and the pipes or the terminal of a run."""

import errno
import fcntl
import json
import os
import select
import struct
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import spawn
from whisper_tui.supervisor.keeper.run_control import Timers
from whisper_tui.supervisor.keeper.run_poll import RunPoll
from whisper_tui.system import run_files

LONGEST_MESSAGE = 2000 if sys.platform == "darwin" else 65_536
"""The largest message on the job socket in bytes. macOS limits local datagrams to 2,048 bytes by default."""


class Job(NamedTuple):
    """An attempt that this keeper has claimed."""

    directory: str
    spec: dict[str, Any]
    environment: dict[str, str]
    lock: int
    """The descriptor of the locked file. It stays open until the run is over."""


def pack(directory: str, environment: dict[str, str]) -> bytes:
    """Return the message that asks for a run; a long environment is written to its file. Raises `OSError`."""
    # The environment may contain secrets. It is sent, and only written to the disk if it is too long (decision 2).
    message = json.dumps({"directory": directory, "environment": environment}, separators=(",", ":")).encode()
    if len(message) <= LONGEST_MESSAGE:
        return message
    run_files.write_json(os.path.join(directory, run_files.ENVIRONMENT), environment)
    return json.dumps({"directory": directory, "environment": None}).encode()


def take(message: bytes) -> Job | None:
    """Claim an attempt. None: it was revoked, or another keeper has claimed it. Then its command must not be run."""
    asked = json.loads(message)
    directory, environment = asked["directory"], asked["environment"]
    try:
        lock = os.open(os.path.join(directory, run_files.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        spec = run_files.read_json(os.path.join(directory, run_files.SPEC))
        environment_file = os.path.join(directory, run_files.ENVIRONMENT)
        if environment is None:
            environment = run_files.read_json(environment_file)
        # A symlink is created with its content, and creating it fails if the supervisor has revoked the attempt.
        os.symlink(run_files.RUN, os.path.join(directory, run_files.CLAIM))
        if asked["environment"] is None:
            run_files.remove(environment_file)
    except (OSError, ValueError):
        os.close(lock)
        return None
    return Job(directory, spec, environment, lock)


class WakeupSender:
    """Tells the supervisor that a file of a run has changed. After a lost wakeup the next sweep finds the change."""

    def __init__(self, directory: str) -> None:
        parent, self._name = os.path.split(directory)
        try:
            # Also opened for reading: opening a FIFO only for writing fails while no supervisor reads it.
            self._fd = os.open(os.path.join(parent, run_files.NOTIFY), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            self._fd = -1

    def send(self, what: str) -> None:
        """Name the file that has changed."""
        if self._fd < 0:
            return
        try:
            os.write(self._fd, f"{self._name} {what}\n".encode())
        except OSError:
            return

    def close(self) -> None:
        """Send no more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


LIFELINE = 0
"""Standard input: a pipe that ends when the supervisor is gone."""


ROWS, COLUMNS = 24, 80


class Channels(NamedTuple):
    """The descriptors of both sides. The caller closes the command's side after the start."""

    actions: list[tuple[Any, ...]]
    """File actions for posix_spawn that turn the command's side into its standard descriptors."""
    sources: tuple[int, ...]
    """Our ends of its output: out and err, or one terminal."""
    target: int
    """Our end of its input. -1: it accepts no input."""
    end_of_input: bytes | None
    """The bytes that signal the end of input on a terminal. None: the target is closed instead."""
    theirs: tuple[int, ...]
    """The descriptors of the command's side."""
    relay: tuple[int, ...] = ()
    """Both ends of a pipe for the output of a terminal. Empty: the system cannot move it into a pipe."""


def pipes(*, takes_input: bool) -> Channels:
    """Make two pipes for output, and one for input or /dev/null. Raises `StartFailed`."""
    try:
        out, err = os.pipe(), os.pipe()
        stdin, target = os.pipe() if takes_input else (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1)
    except OSError as error:
        raise spawn.no_channel("pipes", error) from None
    if takes_input:
        os.set_blocking(target, False)
    actions = spawn.standard_streams(stdin, out[1], err[1])
    return Channels(actions, (out[0], err[0]), target, None, (stdin, out[1], err[1]))


def terminal() -> Channels:
    """Make a terminal of 80 columns and 24 rows. Raises `StartFailed`."""
    try:
        ours, theirs = os.openpty()
        target = os.dup(ours)
        relay = os.pipe() if hasattr(os, "splice") else ()
    except OSError as error:
        raise spawn.no_channel("a terminal", error) from None
    set_size(ours, ROWS, COLUMNS)
    end = termios.tcgetattr(theirs)[6][termios.VEOF]
    return Channels(spawn.terminal(os.ttyname(theirs), theirs), (ours,), target, end, (theirs,), relay)


def set_size(fd: int, rows: int, columns: int) -> bool:
    """Set the size of a terminal in character cells. Returns whether the size was valid."""
    # The kernel sends SIGWINCH to its foreground processes.
    try:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    except (OSError, struct.error):
        return False
    return True


FOREIGN_REPORT_EVERY_S = 60.0
"""Seconds between two reports of foreign lines, so that a flood of them does not fill the journal."""
_REPORTED_BYTES = 200
"""How many bytes of a foreign line are reported."""


class OrderFifo:
    """The FIFO for orders to the keeper."""

    def __init__(self, path: str, key: str | None, fd: int = -1) -> None:
        """`key`: expected in every order of the supervisor. None: the attempt was made by a version without keys.

        `fd`: the FIFO, if it is open already.
        """
        if fd < 0:
            with suppress(FileExistsError):
                os.mkfifo(path, 0o600)
            # Also opened for writing: without any writer the FIFO would report its end again and again.
            fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.fd = fd
        self.foreign = 0
        """Number of lines that no supervisor wrote."""
        self.newest_foreign = b""
        self._key = key
        self._rest = b""

    def read(self) -> list[dict[str, Any]]:
        """Return the complete orders of the supervisor. All other lines are counted."""
        try:
            data = os.read(self.fd, run_files.CHUNK)
        except BlockingIOError:
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > run_files.LONGEST_ORDER:
            lines.append(self._rest)
            self._rest = b""
        found = []
        for line in filter(None, lines):
            order = self._order(line)
            if order is None:
                self.foreign += 1
                self.newest_foreign = line[:_REPORTED_BYTES]
            else:
                found.append(order)
        return found

    def _order(self, line: bytes) -> dict[str, Any] | None:
        try:
            order = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return order if isinstance(order, dict) and self._key in {None, order.get("key")} else None


class ForeignOrders:
    """Reports lines that no supervisor wrote: the first at once, further ones every `FOREIGN_REPORT_EVERY_S`."""

    def __init__(self, directory: str, timers: Timers, wakeups: WakeupSender) -> None:
        self._path = os.path.join(directory, run_files.FOREIGN_ORDERS)
        self._timers = timers
        self._wakeups = wakeups
        self._told = 0

    def note(self, orders: OrderFifo) -> None:
        """Schedule a report if there are new foreign lines."""
        if orders.foreign > self._told:
            self._timers.set_timer_once(
                FOREIGN_REPORT_EVERY_S if self._told else 0.0, "strange", lambda: self.tell(orders)
            )

    def tell(self, orders: OrderFifo) -> None:
        """Report all foreign lines. If the disk is full, the next report includes them."""
        if orders.foreign == self._told:
            return
        line = orders.newest_foreign.decode("utf-8", "replace")
        with suppress(OSError):
            run_files.write_json(self._path, {"count": orders.foreign, "line": line, "at": time.time()})
            self._told = orders.foreign
            self._wakeups.send(run_files.FOREIGN_ORDERS)


def holds_bytes(pipe: int) -> bool:
    """True if there is something to read from a pipe."""
    return fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4) != b"\0" * 4


class InputPump:
    """Copies bytes from the input FIFO to the command's pipe or terminal."""

    # The FIFO is not the command's own standard input: a command that opens /dev/stdin by name after the last writer
    # has closed it would wait for ever.
    def __init__(
        self, path: str, target: int, end: bytes | None, before_inexact: Callable[[], object], source: int = -1
    ) -> None:
        """`target` is closed at the end. `end`: the bytes that end the input of a terminal. None: it is a pipe.

        `before_inexact` is called before bytes are only in this process. `source`: the FIFO, if it is open already.
        """
        self._before_inexact = before_inexact
        self.path = path
        self.source = source if source >= 0 else os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._target = target
        self._poll: RunPoll | None = None
        self._watched = -1
        self._end = end
        self._pending = b""
        self._splices = hasattr(os, "splice")
        self._full = False
        """True while the command's pipe takes no more."""
        self.ending = False
        """True if the input ends with what is in the FIFO."""
        self.closed = False

    def watch(self, poll: RunPoll) -> None:
        """Register with `poll` the one descriptor that the pump waits for now."""
        self._poll = poll
        wanted = -1 if self.closed else self._target if self._pending or self._full else self.source
        if wanted == self._watched:
            return
        self._stop_watching()
        if wanted >= 0:
            poll.register(wanted, select.POLLIN if wanted == self.source else select.POLLOUT)
        self._watched = wanted

    def finish(self) -> None:
        """End the input after the bytes that are in the FIFO now."""
        self.ending = True
        self.move()

    def move(self) -> None:
        """Copy as many bytes as possible without waiting."""
        while not self.closed:
            if self._splices and not self._pending:
                if self._splice():
                    continue
                if self._full or self.closed:
                    return
            elif not self._pending:
                self._pending = self._read()
            if not self._pending:
                if self.ending:
                    self._send_end()
                return
            if not self._write():
                return

    def close(self) -> None:
        """Accept no more input."""
        if self.closed:
            return
        self.closed = True
        self._stop_watching()
        # Without the FIFO and its reader, later writers get an error instead of waiting.
        run_files.remove(self.path)
        os.close(self.source)
        os.close(self._target)

    def _stop_watching(self) -> None:
        if self._watched >= 0 and self._poll is not None:
            self._poll.unregister(self._watched)
        self._watched = -1

    def _send_end(self) -> None:
        self.ending = False
        if self._end is None:
            self.close()
        else:
            self._pending = self._end
            self._write()

    def _splice(self) -> bool:
        """Have the kernel move bytes, so that none is ever only here. Return whether there may be more."""
        try:
            moved = os.splice(self.source, self._target, run_files.CHUNK, flags=os.SPLICE_F_NONBLOCK) > 0
        except BlockingIOError:
            moved = False
        except OSError as error:
            if error.errno == errno.EINVAL:
                self._before_inexact()
                self._splices = False  # This kernel moves nothing to terminals.
                return True
            if error.errno not in {errno.EPIPE, errno.EIO}:
                raise
            self.close()
            return False
        self._full = not moved and holds_bytes(self.source)
        return moved

    def _read(self) -> bytes:
        try:
            return os.read(self.source, run_files.CHUNK)
        except BlockingIOError:
            return b""

    def _write(self) -> bool:
        """Write to the command. Returns whether it accepted any bytes."""
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
