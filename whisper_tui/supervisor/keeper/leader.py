"""The command itself, the first of its processes: signalled only while its pid cannot be anybody else's."""

import os
import signal
import time
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper.processes import Descendants, look_at
from whisper_tui.supervisor.keeper.signals import send_to_all, send_to_group


class Death(NamedTuple):
    """What the system said about the leader's end."""

    status: int
    """As `os.wait` returns it."""
    usage: Any
    """`resource.struct_rusage`."""
    at: float
    """Monotonic seconds."""


class Leader:
    """The leader of a run and, through it, the ways to signal the run's processes."""

    def __init__(self, descendants: Descendants) -> None:
        self._descendants = descendants
        self._sent: set[int] = set()
        self.pid = 0
        """Also its process group: it was started in a session of its own."""
        self.born = 0.0
        """Monotonic seconds."""
        self.born_at = 0.0
        """Seconds since the epoch."""
        self._start_time: int | None = None
        self.death: Death | None = None
        """None: it is not reaped, so its pid is its own."""

    def has_started(self, pid: int) -> None:
        """The process exists."""
        self.pid = pid
        self.born = time.monotonic()
        self.born_at = time.time()
        self._descendants.expect_group(pid)

    @property
    def if_alive(self) -> int | None:
        """Its pid while it lives."""
        return self.pid if self.death is None else None

    @property
    def ended_by_us(self) -> bool:
        """Whether it died of a signal that was sent through us."""
        return self._died_of() in self._sent

    @property
    def was_killed(self) -> bool:
        """Whether it was killed, and not through us."""
        return self._died_of() == signal.SIGKILL and not self.ended_by_us

    def used_up(self, cpu_s: int) -> bool:
        """Whether the system ended it for its processor time."""
        if self.death is None or self.ended_by_us:
            return False
        used = self.death.usage.ru_utime + self.death.usage.ru_stime
        return self._died_of() == signal.SIGXCPU or (self.was_killed and used >= cpu_s)

    def start_time(self) -> int:
        """Its start as the kernel counts it; 0: it does not tell. In the middle of its exec a process answers late."""
        if self._start_time is None:
            seen = look_at(self.pid, dead_too=True) if self.death is None else None
            self._start_time = seen.start if seen else 0
        return self._start_time

    def reap(self) -> bool:
        """Bury all our dead. Returns whether nobody is left."""
        if self.pid and self.death is None:
            self.start_time()
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return not self._descendants.can_hide or not self._descendants.now()
            if not pid:
                return False
            if pid == self.pid and self.death is None:
                self.death = Death(status, usage, time.monotonic())

    def note_sent(self, *numbers: int) -> None:
        """These signals are sent in a way that can reach it."""
        if self.death is None:
            self._sent.update(numbers)

    def signal(self, number: int, target: str) -> None:
        """Send a signal to `leader`, `group` or `tree`."""
        self.note_sent(number)
        match target:
            case "leader" if self.death is None:
                os.kill(self.pid, number)
            case "group" if self.death is None or self._group_is_ours():
                send_to_group(self.pid, number)
            case "tree":
                send_to_all(self._descendants.now(), number)

    def _died_of(self) -> int | None:
        """The signal that ended it."""
        if self.death is None or not os.WIFSIGNALED(self.death.status):
            return None
        return os.WTERMSIG(self.death.status)

    def _group_is_ours(self) -> bool:
        """The group has lost its leader: its number is only as good as a member that is seen in it."""
        return any(seen.pgid == self.pid for seen in self._descendants.now())
