"""The control group of one run: the kernel counts, freezes and kills its processes as a whole (decision 14)."""

import _thread
import os
import time
from collections.abc import Sequence
from typing import Any

from whisper_tui.system.processes import Descendants, ProcessEntry, find_process, kernel_file

TASKS_PER_PROCESS = 16
"""Tasks allowed for each process: pids.max counts threads too. Processes are counted exactly elsewhere."""
TRIES = 10
PAUSE_S = 0.002
"""First pause between two attempts to remove a group, doubled each time: some kernels release it late."""


class RunCgroup:
    """The control group of a run. It is a null object if the run has none, so that callers need no condition."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        self.group_limits: tuple[str, ...] = ()
        """The limits that apply to the sum of the run's processes, by their names in the configuration."""

    @property
    def path(self) -> str | None:
        """The directory of the group. None: the run has no control group."""
        return self._path or None

    def prepare(self, order: dict[str, Any]) -> None:
        """Make the group before the start, if the kernel limits the run's memory."""
        # Such a limit must apply from the first instruction on.
        asked = order.get("group")
        if asked is not None and order["memory"] is not None and "memory" in asked["counts"]:
            self.make(order)

    def make(self, order: dict[str, Any]) -> None:
        """Make the group with its limits, if the attempt asks for one, it does not exist, and the system permits it."""
        asked = order.get("group")
        if asked is None or self._path:
            return
        try:
            os.mkdir(asked["path"])
        except OSError:
            return
        self._path = asked["path"]
        self.limit(order, asked["counts"])

    def take_over(self, order: dict[str, Any], sums: Sequence[str]) -> None:
        """Go on with the group that another process has made, with the limits that apply to sums."""
        asked = order.get("group")
        if asked is not None and os.path.isdir(asked["path"]):
            self._path, self.group_limits = asked["path"], tuple(sums)

    def limit(self, order: dict[str, Any], counts: list[str]) -> None:
        """Set the limits of an attempt. `counts`: the available controllers."""
        sums = []
        if order["cpu"] is not None:
            sums.append("cpu_s")
        if order["memory"] is not None and "memory" in counts and self._limit_memory(order["memory"]):
            sums.append("memory_bytes")
        if order["processes"] is not None and "pids" in counts:
            self._write("pids.max", str(order["processes"] * TASKS_PER_PROCESS))
        self.group_limits = tuple(sums)

    def take(self, pid: int) -> None:
        """Move a process into the group; 0 is the calling one."""
        self._write("cgroup.procs", str(pid))

    def freeze(self) -> bool:
        """Freeze all processes in the group. Return whether the kernel did."""
        return self._write("cgroup.freeze", "1")

    def thaw(self) -> None:
        """Thaw all processes in the group."""
        self._write("cgroup.freeze", "0")

    def kill(self) -> None:
        """Kill all processes in the group in one step, so that no fork can escape."""
        self._write("cgroup.kill", "1")

    def populated(self) -> bool:
        """True while a process is in the group."""
        return self._number("cgroup.events", "populated") > 0

    def members(self) -> list[ProcessEntry]:
        """Return the processes in the group and in subgroups that the run has created."""
        found = []
        for directory in self._directories():
            for pid in kernel_file(os.path.join(directory, "cgroup.procs")).split():
                if (seen := find_process(int(pid))) is not None:
                    found.append(seen)
        return found

    def cpu_s(self) -> float:
        """Processor time of all its processes in seconds, including ended ones."""
        return self._number("cpu.stat", "usage_usec") / 1e6

    def ran_out_of_memory(self) -> bool:
        """True if the kernel killed the group because its processes together reached the memory limit."""
        return self._number("memory.events", "oom") > 0 and self._number("memory.events", "oom_kill") > 0

    def remove(self) -> None:
        """Remove the group and the subgroups that the run has created, unless they contain processes."""
        for tried in range(TRIES):
            if self.is_removed():
                return
            time.sleep(PAUSE_S * 2**tried)

    def is_removed(self) -> bool:
        """Try once to remove it. Return False if it has to be tried again: there is no process, and it is not free."""
        for directory in reversed(self._directories()):
            try:
                os.rmdir(directory)
            except OSError:
                return self.populated()
        return True

    def _limit_memory(self, most: int) -> bool:
        """Set the memory limit. Return whether the kernel accepted it."""
        # Otherwise a run would continue in swap beyond its limit.
        self._write("memory.swap.max", "0")
        # The kernel kills the whole group, because a partly killed run has no useful result.
        self._write("memory.oom.group", "1")
        return self._write("memory.max", str(most))

    def _directories(self) -> list[str]:
        """Return the directories of the group and those below it, parents before their children."""
        return [directory for directory, _, _ in os.walk(self._path)] if self._path else []

    def _number(self, name: str, key: str) -> int:
        words = kernel_file(os.path.join(self._path, name)).split() if self._path else []
        return int(words[words.index(key.encode()) + 1]) if key.encode() in words else 0

    def _write(self, name: str, text: str) -> bool:
        """Write to a file of the group. Return whether the kernel accepted it."""
        if not self._path:
            return False
        try:
            fd = os.open(os.path.join(self._path, name), os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(fd, text.encode())
            finally:
                os.close(fd)
        except OSError:
            return False
        return True


ROUNDS = 20
"""The most passes over the tree. Children of a moved process start in the group, so few are needed."""


class CgroupMover:
    """Moves a run into its group, in a thread because the kernel may take 10 ms."""

    def __init__(self, descendants: Descendants, group: RunCgroup) -> None:
        self._descendants = descendants
        self._group = group
        self._moving = _thread.allocate_lock()

    def begin(self) -> None:
        """Start to move all processes of the run."""
        if self._group.path is None or not self._moving.acquire(blocking=False):
            return
        try:
            _thread.start_new_thread(self._move, ())
        except RuntimeError:
            self._moving.release()

    @property
    def moves(self) -> bool:
        """True while processes are being moved."""
        return self._moving.locked()

    def _move(self) -> None:
        try:
            for _ in range(ROUNDS):
                inside = {seen.pid for seen in self._group.members()}
                outside = [seen.pid for seen in self._descendants.now() if seen.pid not in inside]
                if not outside:
                    return
                for pid in outside:
                    self._group.take(pid)
        finally:
            self._moving.release()
