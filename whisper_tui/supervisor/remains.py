"""What lives on of a run whose keeper was killed: its control group still holds it, so it is seen, held and ended."""

import asyncio
import signal
from contextlib import suppress
from typing import Any

from whisper_tui.supervisor.attempt import Attempt
from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.background import row_of, still_there
from whisper_tui.supervisor.keeper.signals import send_to_all


class Remains:
    """Stands in for the keeper, as far as a control group lets one."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._group = attempt.group()

    @property
    def alive(self) -> bool:
        """Whether anything is left."""
        return self._group.populated()

    def list(self, boot: str) -> dict[str, Any]:
        """The list of what was left behind, written anew where it has changed. `boot`: the id of this one."""
        before = self._attempt.read(layout.BACKGROUND) or {"look": 0, "boot": boot, "processes": []}
        if before["boot"] != boot:
            return before
        rows = {(each["pid"], each["start"]): each for each in before["processes"]}
        rows = {key: each | {"alive": each["alive"] and still_there(*key)} for key, each in rows.items()}
        rows |= {(seen.pid, seen.start): row_of(seen) for seen in self._group.members()}
        now = list(rows.values())
        if now == before["processes"]:
            return before
        picture = {"look": before["look"] + 1, "boot": boot, "processes": now}
        with suppress(OSError):
            layout.write_json(self._attempt.path(layout.BACKGROUND), picture)
        return picture

    def remove(self) -> None:
        """Nothing is left: neither is the group."""
        self._group.remove()

    def obey(self, order: dict[str, Any]) -> None:
        """Carry out what a keeper is told. Input and terminal went with the keeper."""
        match order:
            case {"do": "signal", "number": signal.SIGKILL, "target": "tree"}:
                self._group.kill()
            case {"do": "signal", "number": number}:
                send_to_all(self._group.members(), number)
            case {"do": "end", "grace": grace}:
                self._group.thaw()
                send_to_all(self._group.members(), signal.SIGTERM, signal.SIGCONT)
                asyncio.get_running_loop().call_later(grace, self._group.kill)
            case {"do": "freeze"}:
                self._group.freeze()
            case {"do": "thaw"}:
                self._group.thaw()
