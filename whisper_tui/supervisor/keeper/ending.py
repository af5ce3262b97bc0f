"""Ending a whole run: ask its processes to end, wait a little, then kill until nothing is left."""

import math
import signal
import time
from collections.abc import Callable

from whisper_tui.supervisor.keeper.alarms import Alarms
from whisper_tui.supervisor.keeper.group import RunGroup
from whisper_tui.supervisor.keeper.processes import Descendants
from whisper_tui.supervisor.keeper.signals import kill_burst, send_to_all

SOONEST_S = 0.002
LATEST_S = 0.2
"""Seconds between two bursts of killing: some processes take long to die, and none is worth a busy loop."""


class Ender:
    """Ends the tree of a run, once it is told to."""

    def __init__(
        self, descendants: Descendants, alarms: Alarms, nothing_left: Callable[[], bool], group: RunGroup
    ) -> None:
        self.descendants = descendants
        self._alarms = alarms
        self._nothing_left = nothing_left
        self._group = group
        self._pause = SOONEST_S
        self._kill_at = math.inf
        self.asked = False
        """Whether the run is being ended."""
        self.killing = False
        """Whether it is being killed."""

    def end(self, grace_s: float) -> None:
        """TERM, the grace, KILL. What stands still is let go on, for it would not hear TERM.

        Asked again, it sends TERM again; the shortest grace holds.
        """
        self.asked = True
        if self.killing:
            return
        self._group.thaw()
        send_to_all(self.descendants.now(), signal.SIGTERM, signal.SIGCONT)
        kill_at = time.monotonic() + grace_s
        if kill_at < self._kill_at:
            self._kill_at = kill_at
            self._alarms.ring_in(grace_s, "kill", self.kill)

    def kill(self) -> None:
        """KILL, again and again, until nothing is left."""
        self.asked = self.killing = True
        self._group.kill()
        if not kill_burst(self.descendants, self._nothing_left):
            self._alarms.ring_in(self._pause, "kill", self.kill)
            self._pause = min(2 * self._pause, LATEST_S)
