"""What a command has left behind: every descendant that outlived it or left its tree, from first sight to its end."""

import os
from typing import Any

from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.processes import Descendants, Seen, command_of, look_at

DEAD_KEPT = 100
"""How many ended processes stay on the list."""


class Background:
    """The list of processes left behind, kept in its file."""

    def __init__(self, directory: str, boot: str, descendants: Descendants) -> None:
        self._path = os.path.join(directory, layout.BACKGROUND)
        self._boot = boot
        self._descendants = descendants
        self._rows: dict[tuple[int, int], dict[str, Any]] = {}
        self._looks = 0

    def look(self, leader: int | None) -> bool:
        """See who is there now; `leader`, while it lives, and its tree are no background. Returns: did it change?"""
        family = {(seen.pid, seen.start): seen for seen in self._descendants.now(without=leader)}
        before = {key: tuple(row.items()) for key, row in self._rows.items()}
        for key, known in self._rows.items():
            if known["alive"] and key not in family:
                known["alive"] = still_there(*key)
        for key, seen in family.items():
            self._rows[key] = row_of(seen)
        self._forget_old()
        changed = before != {key: tuple(row.items()) for key, row in self._rows.items()}
        self._looks += changed
        return changed

    def all_gone(self) -> bool:
        """Note that nothing is alive any more. Returns whether that is news."""
        living = [row for row in self._rows.values() if row["alive"]]
        for row in living:
            row["alive"] = False
        self._looks += bool(living)
        return bool(living)

    @property
    def someone_alive(self) -> bool:
        """Whether, at the last look, something was."""
        return any(row["alive"] for row in self._rows.values())

    def picture(self) -> dict[str, Any]:
        """The list as JSON; a higher `look` is newer."""
        return {"look": self._looks, "boot": self._boot, "processes": list(self._rows.values())}

    def save(self) -> None:
        """Put the list into its file; a disk that takes nothing does not stop the keeper."""
        try:
            layout.write_json(self._path, self.picture())
        except OSError:
            return

    def _forget_old(self) -> None:
        dead = [key for key, row in self._rows.items() if not row["alive"]]
        for key in dead[: max(0, len(dead) - DEAD_KEPT)]:
            del self._rows[key]


def row_of(seen: Seen) -> dict[str, Any]:
    """What the list says about a living process."""
    command = command_of(seen.pid)
    return {"pid": seen.pid, "start": seen.start, "pgid": seen.pgid, "command": command, "alive": True}


def still_there(pid: int, start: int) -> bool:
    """A walk can miss a process whose parent ended under it."""
    seen = look_at(pid)
    return seen is not None and seen.start == start
