"""How many processes a run may have: counted by its keeper, because the system counts those of a user."""

import signal
from typing import Any

from whisper_tui.supervisor.keeper.alarms import Alarms
from whisper_tui.supervisor.keeper.ending import Ender
from whisper_tui.supervisor.keeper.leader import Leader
from whisper_tui.supervisor.keeper.processes import Descendants

COUNT_S = 0.1
"""Seconds between two counts."""


class Quota:
    """Ends a run that has too many processes, and knows which limit ended the leader."""

    def __init__(
        self, spec: dict[str, Any], descendants: Descendants, alarms: Alarms, leader: Leader, ender: Ender
    ) -> None:
        self._cpu_s: int | None = spec["cpu"]
        self._most: int | None = spec["processes"]
        self._descendants = descendants
        self._alarms = alarms
        self._leader = leader
        self._ender = ender
        self._exceeded = False

    def watch(self) -> None:
        """Begin to count, if there is a limit."""
        if self._most is not None:
            self._alarms.ring_in(COUNT_S, "count", self._count)

    def broken(self) -> str | None:
        """The limit for which the leader was ended by a signal."""
        if self._exceeded and self._leader.ended_by_us:
            return "processes"
        return "cpu" if self._cpu_s is not None and self._leader.used_up(self._cpu_s) else None

    def _count(self) -> None:
        if self._most is not None and len(self._descendants.now()) > self._most:
            self._exceeded = True
            self._leader.note_sent(signal.SIGKILL)
            self._ender.kill()
        self.watch()
