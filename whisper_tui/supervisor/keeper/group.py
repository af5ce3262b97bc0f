"""The control group of one run: what is in it is counted, held still and killed by the kernel as one."""

import os
import time
from contextlib import suppress
from typing import Any

from whisper_tui.supervisor.keeper.processes import Seen, kernel_file, look_at

TASKS_PER_PROCESS = 16
"""The kernel counts threads, too: so many for each process leave room for whatever keeps to its limit."""
TRIES = 10
PAUSE_S = 0.002
"""Some kernels find a group empty only some moments after its last process was buried; each pause is twice as long."""


class RunGroup:
    """Where a run has no control group, nothing is in it, and nothing that is asked of it happens."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        self.sums: tuple[str, ...] = ()
        """The limits that the sum of the run's processes has to keep, by their names in the configuration."""

    @property
    def path(self) -> str | None:
        """Its directory. None: the run has no control group."""
        return self._path or None

    def prepare(self, order: dict[str, Any]) -> None:
        """Before the start: what the kernel limits is in its group from its first instruction."""
        asked = order.get("group")
        if asked is not None and order["memory"] is not None and "memory" in asked["counts"]:
            self.make(order)

    def make(self, order: dict[str, Any]) -> None:
        """Make it with its limits, unless it is there, if the attempt asks for one and the system gives it."""
        asked = order.get("group")
        if asked is None or self._path:
            return
        try:
            os.mkdir(asked["path"])
        except OSError:
            return
        self._path = asked["path"]
        self.limit(order, asked["counts"])

    def limit(self, order: dict[str, Any], counts: list[str]) -> None:
        """Set the limits of an attempt. `counts`: the controllers that there are."""
        sums = []
        if order["cpu"] is not None:
            sums.append("cpu_s")
        if order["memory"] is not None and "memory" in counts and self._limit_memory(order["memory"]):
            sums.append("memory_bytes")
        if order["processes"] is not None and "pids" in counts:
            self._write("pids.max", str(order["processes"] * TASKS_PER_PROCESS))
        self.sums = tuple(sums)

    def take(self, pid: int) -> None:
        """Move a process into it; 0 is this one."""
        self._write("cgroup.procs", str(pid))

    def freeze(self) -> bool:
        """Hold everything in it still. Returns whether the kernel does so."""
        return self._write("cgroup.freeze", "1")

    def thaw(self) -> None:
        """Let everything in it go on."""
        self._write("cgroup.freeze", "0")

    def kill(self) -> None:
        """Kill everything in it in one step, which no fork outruns."""
        self._write("cgroup.kill", "1")

    def populated(self) -> bool:
        """Whether something lives in it."""
        return self._number("cgroup.events", "populated") > 0

    def members(self) -> list[Seen]:
        """What lives in it, and in groups that the run has made below it."""
        found = []
        for directory in self._directories():
            for pid in kernel_file(os.path.join(directory, "cgroup.procs")).split():
                if (seen := look_at(int(pid))) is not None:
                    found.append(seen)
        return found

    def cpu_s(self) -> float:
        """Seconds of processor time that all of its processes have used, those that have ended included."""
        return self._number("cpu.stat", "usage_usec") / 1e6

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed it because all of it together was at its limit of memory."""
        return self._number("memory.events", "oom") > 0 and self._number("memory.events", "oom_kill") > 0

    def remove(self) -> None:
        """Remove it, and the groups that the run has made below it, unless something lives in them."""
        for directory in reversed(self._directories()):
            for tried in range(TRIES):
                with suppress(OSError):
                    os.rmdir(directory)
                    break
                if self.populated():
                    return
                time.sleep(PAUSE_S * 2**tried)

    def _limit_memory(self, most: int) -> bool:
        """Whether that many bytes are its limit. Swap is no way around it, and no part of a run survives the rest."""
        self._write("memory.swap.max", "0")
        self._write("memory.oom.group", "1")
        return self._write("memory.max", str(most))

    def _directories(self) -> list[str]:
        """Parents before their children."""
        return [directory for directory, _, _ in os.walk(self._path)] if self._path else []

    def _number(self, name: str, key: str) -> int:
        words = kernel_file(os.path.join(self._path, name)).split() if self._path else []
        return int(words[words.index(key.encode()) + 1]) if key.encode() in words else 0

    def _write(self, name: str, text: str) -> bool:
        """Whether the kernel took it."""
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
