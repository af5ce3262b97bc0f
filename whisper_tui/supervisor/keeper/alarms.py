"""What is to be done at a certain time, by name; a name that is set again is moved."""

import time
from collections.abc import Callable

LONGEST_WAIT_S = 86_400.0
"""Seconds of one wait at most: the system takes no number of milliseconds that is much larger."""


class Alarms:
    """A handful of alarms on the monotonic clock."""

    def __init__(self) -> None:
        self._set: dict[str, tuple[float, Callable[[], None]]] = {}
        self._suspended: dict[str, tuple[float, Callable[[], None]]] = {}

    def ring_in(self, seconds: float, name: str, action: Callable[[], None]) -> None:
        """Do this once, so many seconds from now, in place of what the name stood for."""
        self._set[name] = (time.monotonic() + seconds, action)

    def ring_in_once(self, seconds: float, name: str, action: Callable[[], None]) -> None:
        """The same, unless the name stands for something already."""
        if name not in self._set:
            self.ring_in(seconds, name, action)

    def cancel(self, name: str) -> bool:
        """Forget it. Returns whether it was set."""
        self._suspended.pop(name, None)
        return self._set.pop(name, None) is not None

    def suspend(self, name: str) -> None:
        """Let its time stand still."""
        if name in self._set:
            when, action = self._set.pop(name)
            self._suspended[name] = (max(0.0, when - time.monotonic()), action)

    def resume(self, name: str) -> None:
        """Let the time go on that was left of it, if it stands still."""
        if name in self._suspended:
            seconds, action = self._suspended.pop(name)
            self.ring_in(seconds, name, action)

    def milliseconds_left(self) -> int | None:
        """Until the first one is due, rounded up; None: there is none."""
        if not self._set:
            return None
        left = min(when for when, _ in self._set.values()) - time.monotonic()
        return max(0, int(min(left, LONGEST_WAIT_S) * 1000) + 1)

    def ring(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        for name, (when, action) in list(self._set.items()):
            if when <= now and self._set.get(name) == (when, action):
                del self._set[name]
                action()
