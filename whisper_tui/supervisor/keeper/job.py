"""Taking a job: the lock that says the keeper lives, the claim that lets an attempt run at most once, the order."""

import fcntl
import json
import os
import sys
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import layout

LONGEST_MESSAGE = 2000 if sys.platform == "darwin" else 65_536
"""Bytes that go through the socket of jobs in one piece."""


class Job(NamedTuple):
    """An attempt that is ours to run."""

    directory: str
    spec: dict[str, Any]
    environment: dict[str, str]
    lock: int
    """Descriptor of the locked file: to be held to the end."""


def pack(directory: str, environment: dict[str, str]) -> bytes:
    """The message that asks for a run. An environment that does not fit is put into its file. Raises `OSError`."""
    message = json.dumps({"directory": directory, "environment": environment}, separators=(",", ":")).encode()
    if len(message) <= LONGEST_MESSAGE:
        return message
    layout.write_json(os.path.join(directory, layout.ENVIRONMENT), environment)
    return json.dumps({"directory": directory, "environment": None}).encode()


def take(message: bytes) -> Job | None:
    """Make an attempt ours. None: it was revoked, or somebody else has it; then nothing must be run."""
    asked = json.loads(message)
    directory, environment = asked["directory"], asked["environment"]
    try:
        lock = os.open(os.path.join(directory, layout.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        spec = layout.read_json(os.path.join(directory, layout.SPEC))
        environment_file = os.path.join(directory, layout.ENVIRONMENT)
        if environment is None:
            environment = layout.read_json(environment_file)
        os.symlink(layout.RUN, os.path.join(directory, layout.CLAIM))
        if asked["environment"] is None:
            layout.remove(environment_file)
    except (OSError, ValueError):
        os.close(lock)
        return None
    return Job(directory, spec, environment, lock)


class Hints:
    """Tells whoever listens that a file of a run changed. Nobody has to: a lost hint loses nothing."""

    def __init__(self, directory: str) -> None:
        parent, self._name = os.path.split(directory)
        try:
            self._fd = os.open(os.path.join(parent, layout.NOTIFY), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            self._fd = -1

    def give(self, what: str) -> None:
        """Say which file changed."""
        if self._fd < 0:
            return
        try:
            os.write(self._fd, f"{self._name} {what}\n".encode())
        except OSError:
            return

    def close(self) -> None:
        """Give no more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
