"""The records that a keeper leaves: who runs, how it ended, that all is over."""

import json
import os
import sys
import time
from typing import Any

from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.leader import Death
from whisper_tui.supervisor.keeper.processes import look_at
from whisper_tui.supervisor.keeper.spawn import StartFailed


class Records:
    """Writes the records of one run."""

    def __init__(self, directory: str, boot: str) -> None:
        self._directory = directory
        self._boot = boot
        self._process: dict[str, Any] | None = None
        self._reserved = -1

    def identify(self, leader: int, started_at: float) -> None:
        """Remember who the leader is, while its pid cannot be anybody else's."""
        seen = look_at(leader, dead_too=True)
        self._process = {
            "pid": leader,
            "pgid": leader,
            "start": seen.start if seen else 0,
            "boot": self._boot,
            "keeper": os.getpid(),
            "at": started_at,
        }

    def spawned(self) -> None:
        """Tell who runs, and set room aside for the ending. Raises `OSError` on a disk that takes nothing."""
        layout.write_json(self._path(layout.PID), self._process)
        self._reserved = os.open(self._path(layout.EXIT) + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.pwrite(self._reserved, b" " * layout.RESERVED, 0)

    def failed(self, failure: StartFailed) -> None:
        """There was never a process. Raises `OSError`."""
        told = {"problem": failure.problem, "subject": failure.subject, "message": failure.message}
        self._write_exit({"failed": told, "at": time.time(), "out": 0, "err": 0})

    def ended(self, death: Death, wall_s: float, facts: dict[str, Any]) -> None:
        """The leader ended; `facts` is what else belongs to it. Raises `OSError`."""
        status, usage = death.status, death.usage
        if os.WIFSIGNALED(status):
            facts = facts | {"signal": os.WTERMSIG(status), "core": os.WCOREDUMP(status)}
        else:
            facts = facts | {"code": os.WEXITSTATUS(status)}
        facts["process"] = self._process
        facts["at"] = time.time()
        facts["usage"] = {
            "wall_s": round(wall_s, 6),
            "user_s": usage.ru_utime,
            "system_s": usage.ru_stime,
            "max_rss_kib": usage.ru_maxrss // 1024 if sys.platform == "darwin" else usage.ru_maxrss,
        }
        self._write_exit(facts)

    def done(self, totals: tuple[int, int] | None) -> None:
        """All is over. `totals`: the sizes of the streams, where their files do not show them."""
        content = b"" if totals is None else json.dumps({"out": totals[0], "err": totals[1]}).encode()
        try:
            if content:
                layout.write_whole(self._path(layout.DONE), content)
            else:
                os.close(os.open(self._path(layout.DONE), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            return

    def _write_exit(self, facts: dict[str, Any]) -> None:
        """Into the room that was reserved; the blanks behind it are blanks of JSON, too."""
        path = self._path(layout.EXIT)
        data = json.dumps(facts, separators=(",", ":")).encode()
        if self._reserved < 0:
            layout.write_whole(path, data)
            return
        try:
            os.pwrite(self._reserved, data, 0)
        except OSError:
            facts = {**facts, "background": None}
            os.pwrite(self._reserved, json.dumps(facts).encode().ljust(layout.RESERVED), 0)
        os.rename(path + ".tmp", path)
        os.close(self._reserved)
        self._reserved = -1

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)
