"""Control of a run's processes: signals to the leader, and freezing, limiting and ending the whole tree."""

import math
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper.limited_start import LAST_CPU_S
from whisper_tui.supervisor.keeper.run_cgroup import RunCgroup
from whisper_tui.system.processes import (
    Descendants,
    ProcessEntry,
    find_process,
    is_stopped,
    kill_burst,
    send_to,
    send_to_all,
    send_to_group,
)


class Timers:
    """Named timers on the monotonic clock."""

    def __init__(self, wake_at: Callable[[float], None] = lambda _: None) -> None:
        """`wake_at` is called with a time at which `run_due` has to be called, each time that one is the next."""
        self._set: dict[str, tuple[float, Callable[[], None]]] = {}
        self._suspended: dict[str, tuple[float, Callable[[], None]]] = {}
        self._wake_at = wake_at
        self.next_due = math.inf
        """The time at which `run_due` has to be called next. Nothing may be due then: a timer may be cancelled."""

    def set_timer(self, seconds: float, name: str, action: Callable[[], None]) -> None:
        """Call `action` once after so many seconds. A timer with the same name is replaced."""
        when = time.monotonic() + seconds
        self._set[name] = (when, action)
        self._expect(when)

    def set_timer_once(self, seconds: float, name: str, action: Callable[[], None]) -> None:
        """Set a timer, unless one with that name is already set."""
        if name not in self._set:
            self.set_timer(seconds, name, action)

    def is_set(self, name: str) -> bool:
        """True if a timer has not been due yet."""
        return name in self._set

    def cancel(self, name: str) -> bool:
        """Remove a timer. Returns whether it was set."""
        self._suspended.pop(name, None)
        return self._set.pop(name, None) is not None

    def suspend(self, name: str) -> None:
        """Stop the clock of a timer."""
        if name in self._set:
            when, action = self._set.pop(name)
            self._suspended[name] = (max(0.0, when - time.monotonic()), action)

    def suspended_s(self, name: str) -> float | None:
        """Seconds that are left of a suspended timer. None: it is not suspended."""
        return self._suspended[name][0] if name in self._suspended else None

    def resume(self, name: str) -> None:
        """Resume a suspended timer with its remaining time."""
        if name in self._suspended:
            seconds, action = self._suspended.pop(name)
            self.set_timer(seconds, name, action)

    def run_due(self) -> None:
        """Call the actions that are due."""
        self.next_due = math.inf
        now = time.monotonic()
        # An action may cancel or replace other timers.
        for name, (when, action) in list(self._set.items()):
            if when <= now and self._set.get(name) == (when, action):
                del self._set[name]
                action()
        if self._set:
            self._expect(min(when for when, _ in self._set.values()))

    def _expect(self, when: float) -> None:
        if when < self.next_due:
            self.next_due = when
            self._wake_at(when)


class Death(NamedTuple):
    """The end of the leader, as the system reported it."""

    status: int
    """The status that `os.wait` returns."""
    usage: Any
    """`resource.struct_rusage`."""
    at: float
    """Monotonic seconds."""

    def used(self) -> tuple[float, float, int]:
        """Return its processor time in seconds, for itself and in the system, and its peak memory."""
        return self.usage.ru_utime, self.usage.ru_stime, self.usage.ru_maxrss

    def told(self) -> list[float]:
        """Return it as a message has it."""
        return [self.status, self.at, *self.used()]

    @classmethod
    def of(cls, told: list[float]) -> "Death":
        """Return the end that a message has."""
        status, at, user, system, memory = told
        return cls(int(status), SimpleNamespace(ru_utime=user, ru_stime=system, ru_maxrss=int(memory)), at)


class Leader:
    """The leader of a run. It can be signalled alone or with its group or tree."""

    def __init__(self, descendants: Descendants, noted: Callable[[str, Any], object]) -> None:
        """`noted` is called with `sent`, all signals up to the next one, and with its `death`."""
        self._descendants = descendants
        self._sent: set[int] = set()
        self._noted = noted
        self.pidfd = -1
        """Leads to it if another process has started it."""
        self.pid = 0
        """Its pid, which is also its process group, because it was started in its own session."""
        self.born = 0.0
        """Monotonic seconds."""
        self.born_at = 0.0
        """Seconds since the epoch."""
        self._start_time: int | None = None
        self.death: Death | None = None
        """None: it is not reaped yet, so its pid cannot belong to another process."""

    def has_started(self, pid: int) -> None:
        """Record the process of the leader."""
        self.pid = pid
        self.born = time.monotonic()
        self.born_at = time.time()
        self._descendants.expect_group(pid)

    def take_over(self, facts: dict[str, Any], pidfd: int) -> None:
        """Go on with the leader that another process has started, and that its parent reaps."""
        self.pid, self.born, self.born_at = facts["pid"], facts["born"], facts["born_at"]
        self._sent.update(facts.get("sent", ()))
        self.pidfd = pidfd
        self._start_time = facts.get("start") or None
        self._descendants.expect_group(self.pid)

    @property
    def if_alive(self) -> int | None:
        """Its pid while it is alive, else None."""
        return self.pid if self.death is None else None

    @property
    def ended_by_us(self) -> bool:
        """True if it died of a signal that was sent through this keeper."""
        return self._died_of() in self._sent

    @property
    def was_killed(self) -> bool:
        """True if it was killed, and not through this keeper."""
        return self._died_of() == signal.SIGKILL and not self.ended_by_us

    def used_up(self, cpu_s: int) -> bool:
        """True if the kernel ended it because of its processor time limit."""
        if self.death is None or self.ended_by_us:
            return False
        used = self.death.usage.ru_utime + self.death.usage.ru_stime
        return self._died_of() == signal.SIGXCPU or (self.was_killed and used >= cpu_s)

    def start_time(self) -> int:
        """Its start time in the kernel's ticks. 0: unknown."""
        # Read late and only once: while a process is in exec, readers of /proc have to wait.
        if self._start_time is None:
            seen = find_process(self.pid, dead_too=True) if self.death is None else None
            self._start_time = seen.start if seen else 0
        return self._start_time

    def has_died(self, death: Death) -> None:
        """Record its end, once it is reaped."""
        self.death = death
        self._noted("death", death.told())

    def note_sent(self, *numbers: int) -> None:
        """Record signals that are about to be sent and can reach the leader."""
        if self.death is None and not self._sent.issuperset(numbers):
            self._sent.update(numbers)
            self._noted("sent", sorted(self._sent))

    def close(self) -> None:
        """Close what leads to it."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def signal(self, number: int, target: str) -> None:
        """Send a signal to `leader`, `group` or `tree`."""
        self.note_sent(number)
        match target:
            case "leader" if self.death is None:
                self._send(number)
            case "group" if self.death is None or self._group_is_ours():
                send_to_group(self.pid, number)
            case "tree":
                send_to_all(self._descendants.now(), number)

    def _send(self, number: int) -> None:
        if self.pidfd < 0:
            os.kill(self.pid, number)
            return
        # Its parent may have reaped it by now.
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def _died_of(self) -> int | None:
        """Return the signal that ended it, or None."""
        if self.death is None or not os.WIFSIGNALED(self.death.status):
            return None
        return os.WTERMSIG(self.death.status)

    def _group_is_ours(self) -> bool:
        """True if a process of the run is in the leader's group."""
        # The leader is dead. Without a process of ours in the group, its number may belong to another group by now.
        return any(seen.pgid == self.pid for seen in self._descendants.now())


SOONEST_S = 0.002
LATEST_S = 0.2
"""Shortest and longest pause between two rounds of SIGKILL: some processes take long to die."""


class RunEnder:
    """Ends the process tree of a run."""

    def __init__(
        self,
        descendants: Descendants,
        timers: Timers,
        nothing_left: Callable[[], bool],
        group: RunCgroup,
        *,
        noted: Callable[[float], object],
    ) -> None:
        """`noted` is called with the time at which the run will be killed, before anything is done to it."""
        self.descendants = descendants
        self._noted = noted
        self._timers = timers
        self._nothing_left = nothing_left
        self._group = group
        self._pause = SOONEST_S
        self._kill_at = math.inf
        self.asked = False
        """True once the run is being ended."""
        self.killing = False
        """True once it is being killed."""

    def take_over(self, kills_at: float | None) -> None:
        """Go on as another process would have."""
        if kills_at is not None:
            self.asked, self._kill_at = True, kills_at
            self._timers.set_timer(max(0.0, kills_at - time.monotonic()), "kill", self.kill)

    def end(self, grace_s: float) -> None:
        """Send SIGTERM, wait for the grace period, and kill.

        Each further call sends SIGTERM again. The shortest grace period counts.
        """
        self.asked = True
        if self.killing:
            return
        kill_at = time.monotonic() + grace_s
        if kill_at < self._kill_at:
            self._kill_at = kill_at
            self._timers.set_timer(grace_s, "kill", self.kill)
            self._noted(kill_at)
        # Frozen or stopped processes cannot handle SIGTERM before they continue.
        self._group.thaw()
        send_to_all(self.descendants.now(), signal.SIGTERM, signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL again and again, until no process is left."""
        if not self.killing:
            self.asked = self.killing = True
            self._noted(0.0)
        self._group.kill()
        if not kill_burst(self.descendants, self._nothing_left):
            self._timers.set_timer(self._pause, "kill", self.kill)
            self._pause = min(2 * self._pause, LATEST_S)


ROUNDS = 20
"""The most passes over the tree. A stopped process cannot fork, so few are needed."""
AGAIN_S = 0.05
"""Seconds until the second check, for a fork that was in progress during the first. Later checks are rarer."""
LATER_S = 1.0


class RunFreezer:
    """Freezes and thaws a run. Its timeout is suspended while it is frozen.

    A control group is frozen in one step. Processes outside of it are stopped by signals.
    """

    def __init__(
        self,
        descendants: Descendants,
        timers: Timers,
        ender: RunEnder,
        group: RunCgroup,
        *,
        noted: Callable[[dict[str, Any] | None], object],
    ) -> None:
        """`noted` is called with what `take_over` needs, before anything is done. None: it is not frozen."""
        self._noted = noted
        self._descendants = descendants
        self._timers = timers
        self._ender = ender
        self._group = group
        self._frozen = False
        self._whole = False
        """True while the control group is frozen."""
        self._known: set[tuple[int, int]] = set()
        self._stopped: list[ProcessEntry] = []
        """Stopped processes, parents before their children."""

    def take_over(self, told: dict[str, Any] | None) -> None:
        """Go on with a run that another process has frozen."""
        if told is None:
            return
        self._frozen = True
        self._stopped = [ProcessEntry(*each) for each in told["stopped"]]
        self._whole = self._group.freeze()
        self._check(AGAIN_S)

    def execute(self, order: str) -> None:
        """Carry out `freeze` or `thaw`, both idempotent. A run that is being ended is not frozen."""
        if order == "thaw":
            self._thaw()
        elif not self._frozen and not self._ender.asked:
            self._frozen = True
            self._timers.suspend("timeout")
            self._note()
            self._whole = self._group.freeze()
            self._check(AGAIN_S)

    def _check(self, pause_s: float) -> None:
        if self._ender.asked:
            self._forget()
            return
        for _ in range(ROUNDS):
            if self._whole:
                self._known |= {(seen.pid, seen.start) for seen in self._group.members()}
            new = [seen for seen in self._descendants.now() if (seen.pid, seen.start) not in self._known]
            if not new:
                break
            running = [seen for seen in new if not is_stopped(seen.pid)]
            self._known.update((seen.pid, seen.start) for seen in new)
            if running:
                self._stopped += running
                self._note()
                send_to_all(running, signal.SIGSTOP)
        self._timers.set_timer(pause_s, "freeze", lambda: self._check(LATER_S))

    def _thaw(self) -> None:
        """Continue all processes."""
        # Children first: a shell that wakes must not find its jobs stopped.
        for seen in reversed(self._stopped):
            send_to(seen, signal.SIGCONT)
        self._group.thaw()
        self._timers.resume("timeout")
        self._forget()

    def _forget(self) -> None:
        self._timers.cancel("freeze")
        if self._frozen:
            self._noted(None)
        self._frozen = False
        self._known.clear()
        self._stopped.clear()

    def _note(self) -> None:
        self._noted({"stopped": self._stopped, "timeout": self._timers.suspended_s("timeout")})


CHECK_S = 0.1
"""Seconds between two checks."""


class Quota:
    """Ends a run that exceeds a limit, and records which limit ended the leader."""

    def __init__(
        self,
        spec: dict[str, Any],
        timers: Timers,
        leader: Leader,
        ender: RunEnder,
        group: RunCgroup,
        *,
        noted: Callable[[str], object],
    ) -> None:
        """`noted` is called with the limit that was exceeded, before the run is ended."""
        self._noted = noted
        self._cpu_s: int | None = spec["cpu"]
        self._most: int | None = spec["processes"]
        self._timers = timers
        self._leader = leader
        self._ender = ender
        self._group = group
        self._exceeded: str | None = None

    def take_over(self, exceeded: str | None) -> None:
        """Go on with a run of which another process has found that it exceeds a limit."""
        self._exceeded = exceeded

    def watch(self) -> None:
        """Start the checks if there is a limit."""
        if self._most is not None or "cpu_s" in self._group.group_limits:
            self._timers.set_timer(CHECK_S, "quota", self._check)

    def broken(self) -> str | None:
        """Return the limit that the leader exceeded, or None."""
        if self._leader.ended_by_us:
            return self._exceeded
        if self._cpu_s is not None and self._leader.used_up(self._cpu_s):
            return "cpu"
        return "memory" if self._leader.was_killed and self._group.ran_out_of_memory() else None

    def _check(self) -> None:
        if self._most is not None and len(self._ender.descendants.now()) > self._most:
            self._end("processes")
        elif self._has_used_up():
            self._end("cpu")
        self.watch()

    def _has_used_up(self) -> bool:
        """True if all processes together have used up their processor time."""
        # The group gets as much time as a single process: the limit, and the time to handle SIGXCPU.
        if self._cpu_s is None or "cpu_s" not in self._group.group_limits:
            return False
        return self._group.cpu_s() >= self._cpu_s + LAST_CPU_S

    def _end(self, limit: str) -> None:
        self._exceeded = limit
        self._noted(limit)
        self._leader.note_sent(signal.SIGKILL)
        self._ender.kill()
