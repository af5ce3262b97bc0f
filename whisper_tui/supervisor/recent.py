"""The newest events, kept at hand for those who watch."""

from collections import deque

from whisper_tui.model.event import Event

MOST = 4096
"""Events; whoever is further behind reads the journal."""

LARGEST = 32 * 1024 * 1024
"""Characters of all of them as the journal holds them; the newest is kept whatever its size."""


class Recent:
    """As many as there is room for, in their order."""

    def __init__(self, most: int = MOST, largest: int = LARGEST) -> None:
        self._most = most
        self._largest = largest
        self._events: deque[tuple[Event, int]] = deque()
        self._size = 0

    def add(self, event: Event, size: int) -> None:
        """Keep one more, and let go of the oldest that there is no room for."""
        self._events.append((event, size))
        self._size += size
        while len(self._events) > self._most or (self._size > self._largest and len(self._events) > 1):
            self._size -= self._events.popleft()[1]

    def newest(self, count: int, at_once: int) -> tuple[Event, ...] | None:
        """Of the last `count` events the first `at_once`. None: they are not all kept."""
        first = len(self._events) - count
        if first < 0:
            return None
        return tuple(self._events[index][0] for index in range(first, min(first + at_once, len(self._events))))
