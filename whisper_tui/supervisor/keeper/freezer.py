"""Holding a whole run still and letting it go on: only what was stopped here is continued here."""

import signal

from whisper_tui.supervisor.keeper.alarms import Alarms
from whisper_tui.supervisor.keeper.ending import Ender
from whisper_tui.supervisor.keeper.group import RunGroup
from whisper_tui.supervisor.keeper.processes import Descendants, Seen, is_stopped
from whisper_tui.supervisor.keeper.signals import send_to

ROUNDS = 20
"""Looks at the tree in a row; a process that has been sent the signal forks no more, so few are needed."""
AGAIN_S = 0.05
"""Until the next look, for a fork that was under way at the first; later looks come less often."""
LATER_S = 1.0


class Freezer:
    """The run's time is held, too: what stands still is not ended for being slow.

    A control group stands still in one step. What has left it, or all of a run that has none, is stopped by signals.
    """

    def __init__(self, descendants: Descendants, alarms: Alarms, ender: Ender, group: RunGroup) -> None:
        self._descendants = descendants
        self._alarms = alarms
        self._ender = ender
        self._group = group
        self._frozen = False
        self._whole = False
        """Whether the control group stands still."""
        self._known: set[tuple[int, int]] = set()
        self._stopped: list[Seen] = []
        """Parents before their children."""

    def obey(self, order: str) -> None:
        """Carry out `freeze` or `thaw`; either may be given again. What is being ended is not held up."""
        if order == "thaw":
            self._thaw()
        elif not self._frozen and not self._ender.asked:
            self._frozen = True
            self._alarms.suspend("timeout")
            self._whole = self._group.freeze()
            self._look(AGAIN_S)

    def _look(self, pause_s: float) -> None:
        if self._ender.asked:
            self._forget()
            return
        for _ in range(ROUNDS):
            if self._whole:
                self._known |= {(seen.pid, seen.start) for seen in self._group.members()}
            new = [seen for seen in self._descendants.now() if (seen.pid, seen.start) not in self._known]
            if not new:
                break
            for seen in new:
                self._known.add((seen.pid, seen.start))
                if not is_stopped(seen.pid) and send_to(seen, signal.SIGSTOP):
                    self._stopped.append(seen)
        self._alarms.ring_in(pause_s, "freeze", lambda: self._look(LATER_S))

    def _thaw(self) -> None:
        """Children first, so that a shell that wakes finds none of its jobs stopped."""
        for seen in reversed(self._stopped):
            send_to(seen, signal.SIGCONT)
        self._group.thaw()
        self._alarms.resume("timeout")
        self._forget()

    def _forget(self) -> None:
        self._alarms.cancel("freeze")
        self._frozen = False
        self._known.clear()
        self._stopped.clear()
