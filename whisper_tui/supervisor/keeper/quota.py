"""What a run may use as a whole: looked at by its keeper, because the system looks at single processes, or at users."""

import signal
from typing import Any

from whisper_tui.supervisor.keeper.alarms import Alarms
from whisper_tui.supervisor.keeper.ending import Ender
from whisper_tui.supervisor.keeper.group import RunGroup
from whisper_tui.supervisor.keeper.leader import Leader
from whisper_tui.supervisor.keeper.limited import LAST_CPU_S

LOOK_S = 0.1
"""Seconds between two looks."""


class Quota:
    """Ends a run that uses too much, and knows which limit ended the leader."""

    def __init__(self, spec: dict[str, Any], alarms: Alarms, leader: Leader, ender: Ender, group: RunGroup) -> None:
        self._cpu_s: int | None = spec["cpu"]
        self._most: int | None = spec["processes"]
        self._alarms = alarms
        self._leader = leader
        self._ender = ender
        self._group = group
        self._exceeded: str | None = None

    def watch(self) -> None:
        """Begin to look, if there is a limit."""
        if self._most is not None or "cpu_s" in self._group.sums:
            self._alarms.ring_in(LOOK_S, "quota", self._look)

    def broken(self) -> str | None:
        """The limit for which the leader was ended by a signal."""
        if self._leader.ended_by_us:
            return self._exceeded
        if self._cpu_s is not None and self._leader.used_up(self._cpu_s):
            return "cpu"
        return "memory" if self._leader.was_killed and self._group.ran_out_of_memory() else None

    def _look(self) -> None:
        if self._most is not None and len(self._ender.descendants.now()) > self._most:
            self._end("processes")
        elif self._has_used_up():
            self._end("cpu")
        self.watch()

    def _has_used_up(self) -> bool:
        """All of it together has as long as a single process: until that could handle no signal any more."""
        if self._cpu_s is None or "cpu_s" not in self._group.sums:
            return False
        return self._group.cpu_s() >= self._cpu_s + LAST_CPU_S

    def _end(self, limit: str) -> None:
        self._exceeded = limit
        self._leader.note_sent(signal.SIGKILL)
        self._ender.kill()
