"""The children of a keeper process: which run each belongs to, and their deaths.

A keeper adopts what a command leaves behind (decision 14). The children that it has not started belong to the run in
whose session they are; a process that has left it is known by its control group, or by the mark that all processes of
a run inherit. One that has changed its mark is counted to the last run that began before it: it stays watched, if
perhaps as another command's.
"""

import _thread
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from whisper_tui.supervisor.keeper.run_cgroup import RunCgroup
from whisper_tui.supervisor.keeper.run_control import Death, Leader
from whisper_tui.system.processes import LINUX, children_of, kernel_file, mark_run, run_mark

_MARK_DIGITS = 10
"""Digits of an order key that are the mark of its run."""


class _Kin(NamedTuple):
    """The marks by which the processes of a run are known."""

    leader: Leader
    group: RunCgroup
    mark: int


class Children:
    """The children of this process, by the leaders of their runs."""

    def __init__(self, has_lost: Callable[[Leader | None], object]) -> None:
        """`has_lost` is called for each child that was reaped, with the leader of its run; None: that is unknown."""
        self._has_lost = has_lost
        self._parent = 0
        self._runs: list[_Kin] = []
        self._leaders: dict[int, Leader] = {}
        """By their pids, until they are reaped."""
        self._apart: set[int] = set()
        """Children that belong to no run, until they are reaped."""
        self._marks_apart: set[int] = set()
        """The marks of the runs that these keep."""
        self._adopted: dict[int, Leader] = {}
        """The leaders of other children, by the pids of these, until they are reaped."""
        # The thread that moves a run into its group looks at children, too. A pid must not be reaped meanwhile.
        self._lock = _thread.allocate_lock()

    def expect(self, leader: Leader, group: RunCgroup, order_key: str | None, *, marks: bool = True) -> None:
        """Take note of a run. `marks`: what this process starts from now on belongs to it."""
        mark = _mark_of(order_key)
        if marks:
            mark_run(mark)
        self._runs.append(_Kin(leader, group, mark))

    def leave_out(self, pid: int, order_key: str | None) -> None:
        """Count a child, and what it will leave behind, to no run here: it keeps one of its own."""
        with self._lock:
            self._apart.add(pid)
            self._marks_apart.add(_mark_of(order_key))
            self._adopted.pop(pid, None)

    def share_with(self, parent: int) -> None:
        """Count the children of the parent, too: it has adopted those of a killed keeper, and reaps them."""
        self._parent = parent

    def have_started(self, leader: Leader) -> None:
        """Note that a leader has its pid."""
        self._leaders[leader.pid] = leader

    def forget(self, leader: Leader) -> None:
        """Forget a run that is over."""
        self._runs = [run for run in self._runs if run.leader is not leader]

    def of(self, leader: Leader) -> list[int]:
        """Return the pids of the children that belong to the run of a leader and are not reaped yet.

        Without one there is no process of the run at all: each has an ancestor among the children.
        """
        if not LINUX:
            return [pid for pid, each in self._leaders.items() if each is leader]
        pids = children_of(os.getpid()) + (self._of_parent() if self._parent else [])
        with self._lock:
            return [pid for pid in pids if self._leader_of(pid) is leader]

    def has_reaped(self, pid: int, death: Death | None) -> None:
        """Take note that the parent has reaped one of its children. `death`: how it has ended, if it was a leader."""
        leader = self._leaders.pop(pid, None)
        if leader is not None and death is not None:
            leader.has_died(death)
        self._has_lost(leader)

    def _of_parent(self) -> list[int]:
        # What is reaped while the kernel lists them makes it skip others.
        found, before = children_of(self._parent), None
        while found != before:
            found, before = children_of(self._parent), found
        return [pid for pid in found if pid != os.getpid()]

    def reap(self) -> None:
        """Reap all dead children, and tell the leaders that are among them."""
        for pid in self._dead() if LINUX else list(self._leaders):
            with self._lock:
                leader = self._leader_of(pid)
                own = leader is not None and leader.pid == pid
                if leader is not None and own:
                    # After it is reaped, /proc no longer has its start time.
                    leader.start_time()
                reaped, status, usage = os.wait4(pid, os.WNOHANG)
                if not reaped:
                    continue
                self._adopted.pop(pid, None)
                self._apart.discard(pid)
                if leader is not None and own:
                    del self._leaders[pid]
                    leader.has_died(Death(status, usage, time.monotonic()))
            self._has_lost(leader)

    def _dead(self) -> Iterator[int]:
        """Yield the pids of dead children, one after the other as they are reaped."""
        with suppress(ChildProcessError):
            while (found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                yield found.si_pid

    def _leader_of(self, pid: int) -> Leader | None:
        if pid in self._apart:
            return None
        found = self._leaders.get(pid) or self._adopted.get(pid)
        if found is not None:
            return found
        found, parent = self._find(pid)
        if found is not None and parent == os.getpid():
            # It cannot be reaped, and its pid be used again, without our knowledge.
            self._adopted[pid] = found
        return found

    def _find(self, pid: int) -> tuple[Leader | None, int]:
        """Return the leader of the run from which a child was adopted, and the pid of its parent."""
        text = kernel_file(f"/proc/{pid}/stat")
        after_name = text[text.rfind(b")") + 2 :].split()
        if len(after_name) < 20:
            return None, 0
        parent = int(after_name[1])
        if parent not in {os.getpid(), self._parent}:
            return None, parent
        found = self._leader_by(pid, int(after_name[3]))
        if found is None and parent == os.getpid() and self._runs and run_mark(pid) not in self._marks_apart:
            started = [run.leader for run in self._runs if run.leader.pid]
            before = [leader for leader in started if leader.start_time() <= int(after_name[19])]
            found = max(before, key=Leader.start_time, default=self._runs[0].leader)
        return found, parent

    def _leader_by(self, pid: int, session: int) -> Leader | None:
        if len(self._runs) == 1 and not self._parent:
            return self._runs[0].leader
        for run in self._runs:
            if run.leader.pid == session:
                return run.leader
        mark, group = run_mark(pid), os.fsdecode(kernel_file(f"/proc/{pid}/cgroup"))
        for run in self._runs:
            if run.group.path is not None and f"/{os.path.basename(run.group.path)}" in group:
                return run.leader
        return next((run.leader for run in self._runs if run.mark and run.mark == mark), None)


def _mark_of(order_key: str | None) -> int:
    return int((order_key or "0")[:_MARK_DIGITS], 16)
