"""A keeper's records of its run: process, background processes, ending, and completion."""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from whisper_tui.supervisor.keeper.run_cgroup import RunCgroup
from whisper_tui.supervisor.keeper.run_control import Death, Leader
from whisper_tui.supervisor.keeper.spawn import StartFailed
from whisper_tui.system import run_files
from whisper_tui.system.processes import Descendants, ProcessEntry, command_of, find_process

ENDED_KEPT = 100
"""How many ended processes stay on the list."""


class BackgroundProcesses:
    """The list of background processes: those that the command has left behind."""

    def __init__(self, directory: str, boot: str, descendants: Descendants) -> None:
        self._path = os.path.join(directory, run_files.BACKGROUND)
        self._boot = boot
        self._descendants = descendants
        self._rows: dict[tuple[int, int], dict[str, Any]] = {}
        self._looks = 0

    def look(self, leader: int | None) -> bool:
        """Update the list. Return whether it changed. `leader`: a living leader, whose tree is not background."""
        family = {(seen.pid, seen.start): seen for seen in self._descendants.now(without=leader)}
        before = {key: tuple(row.items()) for key, row in self._rows.items()}
        for key, known in self._rows.items():
            if known["alive"] and key not in family:
                known["alive"] = is_still_there(*key)
        for key, seen in family.items():
            self._rows[key] = entry_of(seen)
        self._forget_old()
        changed = before != {key: tuple(row.items()) for key, row in self._rows.items()}
        self._looks += changed
        return changed

    def take_over(self) -> None:
        """Go on with the list of another process."""
        with suppress(OSError, ValueError, KeyError):
            told = run_files.read_json(self._path)
            self._looks = told["look"]
            self._rows = {(row["pid"], row["start"]): row for row in told["processes"]}

    def all_gone(self) -> bool:
        """Record that no process is alive any more. Return whether the list changed."""
        living = [row for row in self._rows.values() if row["alive"]]
        for row in living:
            row["alive"] = False
        self._looks += bool(living)
        return bool(living)

    @property
    def any_alive(self) -> bool:
        """True if a process was alive at the last update."""
        return any(row["alive"] for row in self._rows.values())

    def snapshot(self) -> dict[str, Any]:
        """Return the list as JSON. Of two lists the one with the higher `look` is newer."""
        return {"look": self._looks, "boot": self._boot, "processes": list(self._rows.values())}

    def save(self) -> None:
        """Write the list to its file. A full disk does not stop the keeper."""
        try:
            run_files.write_json(self._path, self.snapshot())
        except OSError:
            return

    def _forget_old(self) -> None:
        dead = [key for key, row in self._rows.items() if not row["alive"]]
        for key in dead[: max(0, len(dead) - ENDED_KEPT)]:
            del self._rows[key]


def entry_of(seen: ProcessEntry) -> dict[str, Any]:
    """Return the entry of a living process."""
    command = command_of(seen.pid)
    return {"pid": seen.pid, "start": seen.start, "pgid": seen.pgid, "command": command, "alive": True}


def is_still_there(pid: int, start: int) -> bool:
    """True if this process is alive."""
    # Walking the tree can miss a process whose parent ends at that moment, so it is looked up by its pid.
    seen = find_process(pid)
    return seen is not None and seen.start == start


class RunRecords:
    """Writes the records of one run."""

    def __init__(self, directory: str, boot: str, group: RunCgroup) -> None:
        self._directory = directory
        self._boot = boot
        self._group = group
        self.terminal: str | None = None
        """The device of its terminal, if it has one."""
        self._process: dict[str, Any] | None = None
        self._reserved = -1
        self._has_ending = False
        self._own_memory = 0
        """Peak memory of this keeper when the leader was started, in the unit of the system."""

    def identify(self, leader: Leader) -> None:
        """Record the process of the leader."""
        self._own_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._process = {
            "pid": leader.pid,
            "pgid": leader.pid,
            "start": leader.start_time(),
            "boot": self._boot,
            "keeper": os.getpid(),
            "at": leader.born_at,
            "group": self._group.path,
            "sums": self._group.group_limits,
            "terminal": self.terminal,
        }

    def spawned(self, leader: Leader) -> None:
        """Write the process, and reserve space for the record of its ending. Raises `OSError` on a full disk."""
        self.identify(leader)
        run_files.write_json(self._path(run_files.PID), self._process)
        self.reserve()

    def take_over(self) -> bool:
        """Go on with the records of another process. Return whether it has recorded the ending."""
        self._has_ending = os.path.exists(self._path(run_files.EXIT))
        if not self._has_ending and os.path.exists(self._path(run_files.EXIT) + ".tmp"):
            with suppress(OSError):
                self.reserve()
        return self._has_ending

    def lost(self, why: str) -> None:
        """Record that nobody knows how the leader has ended."""
        with suppress(OSError):
            run_files.write_json(self._path(run_files.EXIT), {"lost": why})
            self._has_ending = True

    def reserve(self) -> None:
        """Reserve space for the record of the ending, once. Raises `OSError` on a full disk."""
        if self._has_ending or self._reserved >= 0:
            return
        fd = os.open(self._path(run_files.EXIT) + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(fd, b" " * run_files.RESERVED, 0)
        except OSError:
            os.close(fd)
            raise
        self._reserved = fd

    def failed(self, failure: StartFailed, *, sandboxed: bool) -> None:
        """Record that no process was started, and why. Raises `OSError`."""
        told = {"problem": failure.problem, "subject": failure.subject, "message": failure.message}
        facts: dict[str, Any] = {"failed": told, "at": time.time(), "out": 0, "err": 0}
        if sandboxed and failure.problem == "permission_denied":
            facts["blocked"] = {"attempts": [{"what": "execute", "subject": failure.subject}]}
        self._write_exit(facts)

    def ended(self, leader: Leader, death: Death, facts: dict[str, Any]) -> None:
        """Record the ending of the leader with further `facts`. Raises `OSError`."""
        if self._process is None:
            self.identify(leader)
        status, usage = death.status, death.usage
        if os.WIFSIGNALED(status):
            facts = facts | {"signal": os.WTERMSIG(status), "core": os.WCOREDUMP(status)}
        else:
            facts = facts | {"code": os.WEXITSTATUS(status)}
        facts["process"] = self._process
        facts["at"] = time.time()
        facts["usage"] = {
            "wall_s": round(death.at - leader.born, 6),
            "user_s": usage.ru_utime,
            "system_s": usage.ru_stime,
            "max_rss_kib": self._memory(usage),
        }
        self._write_exit(facts)

    def _memory(self, usage: Any) -> int:
        """Return the peak memory of the leader in KiB. 0: unknown, because it is below the keeper's own."""
        # Linux includes the peak from before the exec, when the process was a copy of this keeper.
        if sys.platform == "darwin":
            return int(usage.ru_maxrss // 1024)
        return int(usage.ru_maxrss) if usage.ru_maxrss > self._own_memory else 0

    def written(self, write: Callable[[], None]) -> bool:
        """Call `write`. Return False if it has to be retried."""
        # If the directory was removed, nobody waits for a record.
        try:
            write()
        except FileNotFoundError:
            return not os.path.isdir(self._directory)
        except OSError:
            return False
        return True

    def done(self, totals: tuple[int, int] | None) -> None:
        """Record that the run is over. `totals`: the sizes of the streams, if their files do not show them."""
        path = self._path(run_files.DONE)
        if totals is not None and self._done_with_sizes(path, totals):
            return
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            return

    def close(self) -> None:
        """Release the reserved space."""
        if self._reserved >= 0:
            os.close(self._reserved)
            self._reserved = -1

    def _done_with_sizes(self, path: str, totals: tuple[int, int]) -> bool:
        """Record completion with the sizes of the streams, even on a full disk. Return whether that succeeded."""
        # A link needs no space. The record of the ending exists, and contains the sizes of that time.
        try:
            run_files.write_json(path, {"out": totals[0], "err": totals[1]})
        except OSError:
            try:
                os.link(self._path(run_files.EXIT), path)
            except OSError:
                return False
        return True

    def _write_exit(self, facts: dict[str, Any]) -> None:
        """Write the record of the ending, into the reserved space if there is any."""
        path = self._path(run_files.EXIT)
        data = json.dumps(facts, separators=(",", ":")).encode()
        if self._reserved < 0:
            run_files.write_whole(path, data)
        else:
            self._write_into_reserve(path, data, facts)
        self._has_ending = True

    def _write_into_reserve(self, path: str, data: bytes, facts: dict[str, Any]) -> None:
        try:
            os.pwrite(self._reserved, data, 0)
        except OSError:
            # Longer than the reserve on a full disk: optional fields are left out. JSON permits trailing spaces.
            facts = {**facts, "background": None, "blocked": None}
            os.pwrite(self._reserved, json.dumps(facts).encode().ljust(run_files.RESERVED), 0)
        os.rename(path + ".tmp", path)
        self.close()

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)
