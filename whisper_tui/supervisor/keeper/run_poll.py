"""The descriptors that a keeper process waits for, each with the run that it belongs to."""

import math
import select
from contextlib import suppress
from typing import Any, Generic, TypeVar

from whisper_tui.system.processes import LINUX

LONGEST_WAIT_S = 86_400.0
"""The longest wait in seconds: the system takes milliseconds as a C int, which overflows after 24 days."""
_Owner = TypeVar("_Owner")


class ProcessPoll(Generic[_Owner]):
    """All descriptors that a process waits for."""

    def __init__(self) -> None:
        # poll(2) looks at all descriptors at each call, and macOS has no epoll.
        self._poll: Any = select.epoll() if LINUX else select.poll()
        self._owners: dict[int, _Owner | None] = {}

    def register(self, fd: int, events: int, owner: _Owner | None) -> None:
        """Wait for these events of a descriptor."""
        self._poll.register(fd, events)
        self._owners[fd] = owner

    def unregister(self, fd: int) -> None:
        """Wait no more for a descriptor, which must still be open."""
        if fd in self._owners:
            self._poll.unregister(fd)
            del self._owners[fd]

    def forget(self, owner: _Owner) -> None:
        """Wait no more for the descriptors of a run, open or not."""
        for fd in [fd for fd, each in self._owners.items() if each is owner]:
            del self._owners[fd]
            with suppress(OSError, KeyError):
                self._poll.unregister(fd)

    def owner(self, fd: int) -> _Owner | None:
        """Return the run that a descriptor belongs to. None: it was closed, or belongs to none."""
        return self._owners.get(fd)

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        """Wait for events, but no longer than some seconds. None: for ever."""
        if seconds is None:
            return self._poll.poll(None)  # type: ignore[no-any-return]
        seconds = max(0.0, min(seconds, LONGEST_WAIT_S))
        return self._poll.poll(seconds if LINUX else math.ceil(seconds * 1000))  # type: ignore[no-any-return]

    def close(self) -> None:
        """Release what it has of the system."""
        if LINUX:
            self._poll.close()


class RunPoll:
    """The descriptors of one run."""

    def __init__(self, poll: ProcessPoll[Any], run: object) -> None:
        self._poll = poll
        self._run = run

    def register(self, fd: int, events: int) -> None:
        """Tell the run about these events of a descriptor."""
        self._poll.register(fd, events, self._run)

    def unregister(self, fd: int) -> None:
        """Tell no more about a descriptor, which must still be open."""
        self._poll.unregister(fd)
