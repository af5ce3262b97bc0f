"""The loop of a keeper process: descriptors, timers, signals and dead children of any number of runs.

A process has one loop. What happens is told to the run that it concerns, and to no other.
"""

import heapq
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import NamedTuple, Protocol

from whisper_tui.supervisor.keeper.capture import COALESCE_S
from whisper_tui.supervisor.keeper.children import Children
from whisper_tui.supervisor.keeper.run_control import Leader, Timers
from whisper_tui.supervisor.keeper.run_poll import ProcessPoll, RunPoll

ALONE_S = COALESCE_S
"""Seconds for which a pipe is read before timers get their turn."""


class DrivenRun(Protocol):
    """A run as its loop sees it."""

    over: bool
    """True once nothing will happen any more."""

    @property
    def leader(self) -> Leader:
        """Its first process."""

    def start(self) -> None:
        """Start the command."""

    def handle_event(self, fd: int, event: int) -> None:
        """Handle an event of one of its descriptors."""

    def stores_alone(self, fd: int) -> Callable[[int], bool] | None:
        """Return what stores the next bytes of a pipe, and returns whether there may be more. None: it is no pipe."""

    def has_lost_child(self) -> None:
        """Take note that one of its processes, or of those of an unknown run, was reaped."""

    def end_as_asked(self) -> None:
        """End it, because this process was asked to end."""

    def after_turn(self) -> None:
        """Do what depends on all that has happened to it in one turn of the loop."""

    def close(self) -> None:
        """Close everything."""


class _Alarm(NamedTuple):
    """A time at which the timers of a run have to be run. It is void if they expect another one by then."""

    at: float
    number: int
    """Unique, so that nothing behind it is compared."""
    timers: Timers
    run: DrivenRun


class KeeperLoop:
    """Drives runs until they are over."""

    def __init__(self, wake: int) -> None:
        """`wake`: the descriptor that receives each signal's number as one byte."""
        self.children = Children(self._note_dead)
        self.wake = wake
        self._poll: ProcessPoll[DrivenRun] = ProcessPoll()
        self._poll.register(wake, select.POLLIN, None)
        self._driven: list[DrivenRun] = []
        self._alarms: list[_Alarm] = []
        self._numbers = count()
        self._actions: dict[int, Callable[[], object]] = {}
        """The functions to call for descriptors that belong to no run."""
        self._touched: dict[DrivenRun, None] = {}
        """The runs to which something has happened in this turn."""

    def poll_for(self, run: DrivenRun) -> RunPoll:
        """Return the descriptors of a run."""
        return RunPoll(self._poll, run)

    def timers_for(self, run: DrivenRun) -> Timers:
        """Return timers for a run."""

        def wake_at(when: float) -> None:
            heapq.heappush(self._alarms, _Alarm(when, next(self._numbers), timers, run))

        timers = Timers(wake_at)
        return timers

    @property
    def idle(self) -> bool:
        """True if it drives no run."""
        return not self._driven

    def watch(self, fd: int, events: int, action: Callable[[], object]) -> None:
        """Call `action` at these events of a descriptor that belongs to no run."""
        self._poll.register(fd, events, None)
        self._actions[fd] = action

    def unwatch(self, fd: int) -> None:
        """Wait no more for a descriptor that belongs to no run."""
        self._poll.unregister(fd)
        del self._actions[fd]

    def add(self, run: DrivenRun, begin: Callable[[], object] | None = None) -> None:
        """Start a run, which is driven from now on. `begin`: how, instead of `start`."""
        self._driven.append(run)
        self._do(run, begin or run.start)
        self._end_turn()

    def drive(self, run: DrivenRun) -> None:
        """Start a run, and drive it and all others until it is over."""
        self.add(run)
        while run in self._driven:
            self.turn()

    def end_all(self) -> None:
        """End all runs, as this process was asked to."""
        for run in list(self._driven):
            self._do(run, run.end_as_asked)

    def discard_signals(self) -> None:
        """Forget the signals that have arrived so far."""
        with suppress(BlockingIOError):
            os.read(self.wake, 4096)

    def close(self) -> None:
        """Wait for nothing more."""
        self._poll.close()

    def turn(self) -> None:
        """Wait for what happens next, and tell it to the runs that it concerns."""
        ready = self._poll.wait(self._alarms[0].at - time.monotonic() if self._alarms else None)
        if len(ready) == 1:
            ready = self._store_alone(ready)
        # First: what has arrived with a signal, such as a job, comes after it.
        if any(fd == self.wake for fd, _ in ready):
            self._read_signals()
        for fd, event in ready:
            if fd in self._actions:
                self._actions[fd]()
            elif (run := self._poll.owner(fd)) is not None:
                self._do(run, partial(run.handle_event, fd, event))
        self._run_alarms()
        self._end_turn()

    def _store_alone(self, ready: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Store what a pipe delivers as long as nothing else happens. Return the events that are left to handle."""
        fd = ready[0][0]
        run = self._poll.owner(fd)
        store = run.stores_alone(fd) if run is not None else None
        if run is None or store is None:
            return ready
        # In a flood a turn costs as much as a chunk, so it is only left for other events and timers.
        alone, left = [(fd, select.POLLIN)], ready

        def store_all() -> None:
            nonlocal left
            until = time.monotonic() + ALONE_S
            while left == alone and store(fd) and (seconds := until - time.monotonic()) > 0:
                left = self._poll.wait(seconds)

        self._do(run, store_all)
        return [] if left == alone else left

    def _read_signals(self) -> None:
        numbers = os.read(self.wake, 4096)
        if signal.SIGTERM in numbers:
            self.end_all()
        if signal.SIGCHLD in numbers:
            self.children.reap()

    def _note_dead(self, leader: Leader | None) -> None:
        for run in list(self._driven):
            if leader is None or run.leader is leader:
                self._do(run, run.has_lost_child)

    def _run_alarms(self) -> None:
        now = time.monotonic()
        while self._alarms and self._alarms[0].at <= now:
            alarm = heapq.heappop(self._alarms)
            if alarm.at == alarm.timers.next_due:
                self._do(alarm.run, alarm.timers.run_due)

    def _do(self, run: DrivenRun, action: Callable[[], object], *, touches: bool = True) -> None:
        """Do something for a run. An error that nobody expects ends its keeping, and no other run's."""
        if run not in self._driven:
            return
        if touches:
            self._touched[run] = None
        try:
            action()
        except Exception:  # noqa: BLE001 - it is lost as if its keeper had been killed, and the log has the reason
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
            self._poll.forget(run)
            with suppress(OSError):
                self._remove(run)

    def _end_turn(self) -> None:
        while self._touched:
            run, _ = self._touched.popitem()
            self._do(run, run.after_turn, touches=False)
            if run.over and run in self._driven:
                self._remove(run)

    def _remove(self, run: DrivenRun) -> None:
        self._driven.remove(run)
        self._touched.pop(run, None)
        self._alarms = [alarm for alarm in self._alarms if alarm.run is not run]
        heapq.heapify(self._alarms)
        self.children.forget(run.leader)
        run.close()
