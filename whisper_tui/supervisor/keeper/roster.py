"""Which keepers wait for a job: in memory that their parent shares with them, so that nobody is woken to be told."""

import mmap

PLACES = 4096
"""Keepers that are on it at once: those that wait, and those that may wait again."""

_FREE, _WAITS, _WORKS = 0, 1, 2


class Roster:
    """One byte for each keeper. Whoever writes there is the keeper itself, or the parent before and after its life."""

    def __init__(self) -> None:
        self._states = mmap.mmap(-1, PLACES)
        self._keepers: dict[int, int] = {}
        """The pid of the last keeper in each place; the parent's."""

    @property
    def waiting(self) -> int:
        """How many wait for a job."""
        return self._states[:].count(_WAITS)

    def take_place(self) -> int | None:
        """A place for a keeper that is about to be forked, who waits from then on. None: there is no room."""
        place = self._states.find(bytes([_FREE]))
        if place < 0:
            return None
        self._states[place] = _WAITS
        return place

    def seat(self, place: int, pid: int) -> None:
        """Note who was forked for a place."""
        self._keepers[place] = pid

    def bury(self, pid: int) -> bool:
        """Take a dead keeper off. Returns whether it died while it waited, perhaps with a job just in its hands."""
        place = next((place for place, keeper in self._keepers.items() if keeper == pid), None)
        if place is None:
            return False
        waited = self._states[place] == _WAITS
        self.leave(place)
        del self._keepers[place]
        return waited

    def wait(self, place: int) -> None:
        """The keeper waits for a job."""
        self._states[place] = _WAITS

    def work(self, place: int) -> None:
        """The keeper has one."""
        self._states[place] = _WORKS

    def leave(self, place: int) -> None:
        """The keeper takes no other job: its place is free."""
        self._states[place] = _FREE
