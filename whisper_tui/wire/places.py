"""How many may be connected at once, so that nobody takes the files that everything else needs."""

import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from whisper_tui.model.errors import Unavailable
from whisper_tui.wire.peers import Origin

MOST = 4096
"""Connections in all, where the system allows so many open files."""


SHARES: dict[Origin, int] = {"command": 4, "agent": 2}
"""Into how many parts all places are divided, of which those of one origin get one: the rest is left to the human."""

_STARTED_BY: dict[Origin, str] = {"command": "supervised commands", "agent": "agents"}


class Places:
    """So many in all, half of them for one process, and a share for what commands and for what agents have started."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[int] = Counter()
        self._started: Counter[Origin | None] = Counter()

    @contextmanager
    def taken(self, pid: int, origin: Origin | None) -> Iterator[None]:
        """One place for a process, by who has started it: None is neither commands nor agents. Raises `Unavailable`."""
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
        if origin is not None and self._started[origin] >= max(1, self._most // SHARES[origin]):
            raise Unavailable(
                f"{self._started[origin]:,} connections are open of what {_STARTED_BY[origin]} have started, "
                "and no more of those are taken",
                hint="End some of those programs, then try again",
            )
        self._taken[pid] += 1
        self._started[origin] += 1
        try:
            yield
        finally:
            self._started[origin] -= 1
            self._taken[pid] -= 1
            if not self._taken[pid]:
                del self._taken[pid]


def most_connections() -> int:
    """Half of the files that this process may open: the other half is for the journal and for what runs."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if allowed == resource.RLIM_INFINITY else max(2, min(MOST, allowed // 2))
