"""The records that a keeper leaves: who runs, how it ended, that all is over."""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.group import RunGroup
from whisper_tui.supervisor.keeper.leader import Death, Leader
from whisper_tui.supervisor.keeper.spawn import StartFailed


class Records:
    """Writes the records of one run."""

    def __init__(self, directory: str, boot: str, group: RunGroup) -> None:
        self._directory = directory
        self._boot = boot
        self._group = group
        self._process: dict[str, Any] | None = None
        self._reserved = -1
        self._has_ending = False
        self._own_memory = 0
        """What this keeper had at most when the leader was started, in the unit of the system."""

    def identify(self, leader: Leader) -> None:
        """Note who the leader is."""
        self._own_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._process = {
            "pid": leader.pid,
            "pgid": leader.pid,
            "start": leader.start_time(),
            "boot": self._boot,
            "keeper": os.getpid(),
            "at": leader.born_at,
            "group": self._group.path,
            "sums": self._group.sums,
        }

    def spawned(self, leader: Leader) -> None:
        """Tell who runs, and set room aside for an ending to come. Raises `OSError` on a disk that takes nothing."""
        self.identify(leader)
        layout.write_json(self._path(layout.PID), self._process)
        if self._has_ending:
            return
        self._reserved = os.open(self._path(layout.EXIT) + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.pwrite(self._reserved, b" " * layout.RESERVED, 0)

    def failed(self, failure: StartFailed, *, sandboxed: bool) -> None:
        """There was never a process. Raises `OSError`."""
        told = {"problem": failure.problem, "subject": failure.subject, "message": failure.message}
        facts: dict[str, Any] = {"failed": told, "at": time.time(), "out": 0, "err": 0}
        if sandboxed and failure.problem == "permission_denied":
            facts["blocked"] = {"attempts": [{"what": "execute", "subject": failure.subject}]}
        self._write_exit(facts)

    def ended(self, leader: Leader, death: Death, facts: dict[str, Any]) -> None:
        """The leader ended; `facts` is what else belongs to it. Raises `OSError`."""
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
        """The most memory that the leader had, in KiB. 0: less than this keeper, so that it is not known.

        Linux counts what a process had before it became the command, and then it was a copy of this one.
        """
        if sys.platform == "darwin":
            return int(usage.ru_maxrss // 1024)
        return int(usage.ru_maxrss) if usage.ru_maxrss > self._own_memory else 0

    def written(self, write: Callable[[], None]) -> bool:
        """Whether a record is written, or can never be: where the directory was removed, nobody waits for it."""
        try:
            write()
        except FileNotFoundError:
            return not os.path.isdir(self._directory)
        except OSError:
            return False
        return True

    def done(self, totals: tuple[int, int] | None) -> None:
        """All is over. `totals`: the sizes of the streams, where their files do not show them."""
        path = self._path(layout.DONE)
        if totals is not None and self._done_with_sizes(path, totals):
            return
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            return

    def close(self) -> None:
        """Let go of the room that no ending needed."""
        if self._reserved >= 0:
            os.close(self._reserved)
            self._reserved = -1

    def _done_with_sizes(self, path: str, totals: tuple[int, int]) -> bool:
        """Also on a full disk: the record of the ending is there already, and holds the sizes as they were then."""
        try:
            layout.write_json(path, {"out": totals[0], "err": totals[1]})
        except OSError:
            try:
                os.link(self._path(layout.EXIT), path)
            except OSError:
                return False
        return True

    def _write_exit(self, facts: dict[str, Any]) -> None:
        """Into the room that was reserved; the blanks behind it are blanks of JSON, too."""
        path = self._path(layout.EXIT)
        data = json.dumps(facts, separators=(",", ":")).encode()
        if self._reserved < 0:
            layout.write_whole(path, data)
        else:
            self._write_into_reserve(path, data, facts)
        self._has_ending = True

    def _write_into_reserve(self, path: str, data: bytes, facts: dict[str, Any]) -> None:
        try:
            os.pwrite(self._reserved, data, 0)
        except OSError:
            facts = {**facts, "background": None, "blocked": None}
            os.pwrite(self._reserved, json.dumps(facts).encode().ljust(layout.RESERVED), 0)
        os.rename(path + ".tmp", path)
        self.close()

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)
