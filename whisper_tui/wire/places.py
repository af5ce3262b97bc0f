"""How many may be connected at once, so that nobody takes the files that everything else needs."""

import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from whisper_tui.model.errors import Unavailable

MOST = 4096
"""Connections in all, where the system allows so many open files."""


class Places:
    """So many in all, and half of them for one process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[int] = Counter()

    @contextmanager
    def taken(self, pid: int) -> Iterator[None]:
        """One place for a process. Raises `Unavailable`."""
        if self._taken.total() >= self._most:
            raise Unavailable(
                f"{self._most:,} connections are open, and no more are taken",
                hint="End programs that use whisper_tui, then try again",
            )
        if self._taken[pid] >= self._most // 2:
            raise Unavailable(
                f"process {pid} has {self._taken[pid]:,} connections open, half of all that there may be",
                hint="Let it use one connection for many requests",
            )
        self._taken[pid] += 1
        try:
            yield
        finally:
            self._taken[pid] -= 1
            if not self._taken[pid]:
                del self._taken[pid]


def most_connections() -> int:
    """Half of the files that this process may open: the other half is for the journal and for what runs."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if allowed == resource.RLIM_INFINITY else max(2, min(MOST, allowed // 2))
