"""Jobs for keepers: idle keepers wait at a queue, and each attempt is claimed at most once."""

import fcntl
import json
import os
import select
import socket
import sys
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import run_files

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
    # The environment may contain secrets. It is sent, and only written to the disk if it is too long (decision 3).
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


class JobQueue:
    """One keeper's end of the job socket. It is created in the keeper, because each keeper needs an epoll of its own.

    Keepers that wait on the socket itself are woken in turn, so each one's memory is cold. With EPOLLEXCLUSIVE,
    Linux wakes the first idle keeper that has registered, so commands in a row get a warm one.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._watch: select.epoll | None = None
        if connection.type == socket.SOCK_SEQPACKET:
            self._watch = select.epoll()
            # Exclusive: one job wakes one keeper instead of all.
            self._watch.register(connection, select.EPOLLIN | select.EPOLLEXCLUSIVE)

    @property
    def closed(self) -> bool:
        """True once no more jobs are taken."""
        return self._connection.fileno() < 0

    def close(self) -> None:
        """Take no more jobs."""
        if self._watch is not None:
            self._watch.close()
        self._connection.close()

    def next(self, longest_s: float | None) -> bytes:
        """Wait for the next job. Empty: the supervisor is gone, or `longest_s` has passed."""
        while self._wait_for_job(longest_s):
            try:
                return self._connection.recv(LONGEST_MESSAGE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue  # Another keeper has taken it.
        return b""

    def _wait_for_job(self, longest_s: float | None) -> bool:
        if self._watch is not None:
            return bool(self._watch.poll(longest_s))
        # A datagram socket (macOS) has no end of stream. The lifeline shows when the supervisor is gone.
        poll = select.poll()
        poll.register(LIFELINE, 0)
        poll.register(self._connection, select.POLLIN)
        ready = dict(poll.poll(None if longest_s is None else longest_s * 1000))
        return self._connection.fileno() in ready


def is_waiting(connection: socket.socket) -> bool:
    """True if a job has arrived already."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
