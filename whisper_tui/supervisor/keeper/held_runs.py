"""The runs of a keeper process as its parent holds them, so that a killed keeper loses none (decision 14).

The parent has duplicates of the descriptors of each run, and the few facts that no file has. It adopts the processes
of a killed keeper, and starts a successor that gets all of it.
"""

import json
import mmap
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from whisper_tui.supervisor.keeper.run_control import Death
from whisper_tui.system.processes import LINUX

_MOST_DESCRIPTORS = 16
_LONGEST_MESSAGE = 65_536
_BUFFER = 4 << 20
# macOS has no other whose end is seen, and there nothing is sent.
_KIND = socket.SOCK_SEQPACKET if LINUX else socket.SOCK_STREAM


class HeldRun:
    """A run as it is held."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.fds: dict[str, int] = {}
        """Duplicates of its descriptors, by what they are for."""
        self.facts: dict[str, Any] = {}

    @property
    def death(self) -> Death | None:
        """The end of its leader. None: it is alive, or nobody knows how it ended."""
        told = self.facts.get("death")
        return None if told is None else Death.of(told)

    def close(self) -> None:
        """Close the duplicates."""
        for fd in self.fds.values():
            os.close(fd)
        self.fds.clear()


class Doorbell:
    """Wakes the parent to read what keepers tell it: a short run would cost a third more if each word did."""

    # What it has not read yet is in the queues of the connections, and is there when a keeper is dead.
    def __init__(self) -> None:
        """Raises `OSError`."""
        self.reader, self._writer = os.pipe()
        for fd in (self.reader, self._writer):
            os.set_blocking(fd, False)
        self._expected = mmap.mmap(-1, 1)
        """One byte that all processes share: 1 while the parent will read soon by itself."""

    def ring(self, *, now: bool = False) -> None:
        """Have what was told read: within `READ_AFTER_S`, or now."""
        if now or not self._expected[0]:
            self._expected[0] = 1
            # BrokenPipeError: the parent is gone. BlockingIOError: it has not heard the last ones yet.
            with suppress(BrokenPipeError, BlockingIOError):
                os.write(self._writer, b"!")

    def answer(self, read: Callable[[], bool]) -> bool:
        """In the parent: have all connections read. Return whether that has to be repeated after `READ_AFTER_S`."""
        with suppress(BlockingIOError):
            os.read(self.reader, 4096)
        # First: whoever tells something from now on rings again.
        self._expected[0] = 0
        if read():
            self._expected[0] = 1
            return True
        return False


READ_AFTER_S = 1.0
"""Seconds after which the parent reads what it has been told meanwhile."""
RINGS_AT = 48
"""Messages after which it reads at once. Of descriptors on their way, and of bytes, the system permits only so many."""
_ROOM_WITHIN_S = 1.0
"""Seconds in which a parent that goes on makes room in the queue."""


class Guard:
    """A keeper's way to its parent. A run that cannot be told about is not held, and lost with its keeper."""

    def __init__(self, connection: socket.socket | None, bell: Doorbell | None = None) -> None:
        """None: there is no parent that would go on with its runs."""
        self._connection = connection
        self._bell = bell
        self._unread = 0
        """Messages since it was last certain to read."""
        if connection is not None:
            connection.setblocking(False)

    def hold(self, directory: str, fds: Mapping[str, int] = {}, **facts: Any) -> bool:
        """Have further descriptors and facts of a run held. Return False if they are too long; drop it then."""
        message = json.dumps({"hold": directory, "roles": list(fds), "facts": facts}).encode()
        if len(message) > _LONGEST_MESSAGE:
            return False
        self._send(message, fds.values())
        return True

    def release(self, directory: str, role: str) -> None:
        """Have a descriptor closed: only then does the other side see that it is."""
        self._send(json.dumps({"release": directory, "role": role}).encode(), urgent=True)

    def drop(self, directory: str) -> None:
        """Have nothing of a run held any more: it is over."""
        self._send(json.dumps({"drop": directory}).encode())

    def receive(self) -> dict[str, Any] | None:
        """Return the next message of the parent. None: there is none now. Raises `EOFError` if it is gone."""
        if self._connection is None:
            raise EOFError
        try:
            data = self._connection.recv(_LONGEST_MESSAGE)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            raise EOFError
        told: dict[str, Any] = json.loads(data)
        return told

    def fileno(self) -> int:
        """Return the descriptor on which messages arrive. -1: there is no parent."""
        return -1 if self._connection is None else self._connection.fileno()

    def close(self) -> None:
        """Have nothing held any more."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, message: bytes, fds: Iterable[int] = (), *, urgent: bool = False) -> None:
        if self._connection is None or self._bell is None:
            return
        try:
            try:
                socket.send_fds(self._connection, [message], list(fds))
            except BlockingIOError:
                self._bell.ring(now=True)
                self._connection.settimeout(_ROOM_WITHIN_S)
                socket.send_fds(self._connection, [message], list(fds))
                self._connection.setblocking(False)
        except OSError:
            # What it does not know may be wrong by now. Without the connection it holds nothing.
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        self._unread += 1
        if urgent or self._unread >= RINGS_AT:
            self._unread = 0
            urgent = True
        self._bell.ring(now=urgent)


class Holder:
    """The parent's end: what it holds of the runs of one keeper."""

    def __init__(self, runs: dict[str, HeldRun], bell: Doorbell) -> None:
        """`runs`: those of a keeper that was killed, by their directories. Raises `OSError`."""
        self._bell = bell
        self.connection, self._theirs = socket.socketpair(socket.AF_UNIX, _KIND)
        for each in (self.connection, self._theirs):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        self.connection.setblocking(False)
        self.runs = runs
        """By their directories."""
        self.shares = bool(runs)
        """True if processes of its runs are children of this process."""
        for run in runs.values():
            if "leader" not in run.fds and "death" not in run.facts:
                pid = run.facts["pid"]
                try:
                    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                except ChildProcessError:
                    # The keeper has reaped it, and was killed before it could say how it ended.
                    run.facts["gone"] = True
                    continue
                # It is a child of this process by now, so its pid is not used again before it is reaped.
                run.fds["leader"] = os.pidfd_open(pid)

    def guard(self) -> Guard:
        """Return the keeper's end. Called in the keeper, which has nothing of this end then."""
        self.connection.close()
        return Guard(self._theirs, self._bell)

    def has_forked(self) -> None:
        """Leave the keeper's end to the keeper."""
        self._theirs.close()

    def receive(self) -> bool:
        """Take note of what the keeper has sent. Return whether there was anything."""
        heard = False
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(
                    self.connection, _LONGEST_MESSAGE, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
                )
            except OSError:
                return heard
            if not data:
                return heard
            self._note(json.loads(data), fds)
            heard = True

    def tell(self, message: dict[str, Any]) -> None:
        """Tell the keeper. It is told again by its files if that fails."""
        with suppress(OSError):
            self.connection.send(json.dumps(message).encode())

    def run_of(self, pid: int) -> HeldRun | None:
        """Return the run with this leader."""
        return next((run for run in self.runs.values() if run.facts.get("pid") == pid), None)

    def close(self) -> None:
        """Hold nothing any more."""
        self.connection.close()
        for run in self.runs.values():
            run.close()
        self.runs.clear()

    def _note(self, told: dict[str, Any], fds: list[int]) -> None:
        if directory := told.get("hold"):
            if "lock" in told["roles"]:
                self.runs[directory] = HeldRun(directory)
            elif directory not in self.runs:
                return  # A thread of its keeper was late.
            run = self.runs[directory]
            run.facts |= told["facts"]
            for role, fd in zip(told["roles"], fds, strict=False):
                run.fds[role] = fd
        elif directory := told.get("release"):
            if directory in self.runs and (fd := self.runs[directory].fds.pop(told["role"], -1)) >= 0:
                os.close(fd)
        elif told["drop"] in self.runs:
            self.runs.pop(told["drop"]).close()
