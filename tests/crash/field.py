"""One instance under attack: how it is reached, who lives in it, and what has been killed."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.home import Home
from whisper_tui.wire.client import RemoteSupervision
from whisper_tui.wire.rendezvous import connect, peer_process

PROGRAM = (sys.executable, "-m", "whisper_tui")
CONFIGURATION = "[supervisor]\nworkers = 8\n"
AGAIN_S = 0.1


@dataclass
class Field:
    """Shared by agents, human and killer."""

    root: Path
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nobody shall begin anything more."""
    processes: dict[str, set[asyncio.subprocess.Process]] = field(default_factory=dict)
    """What can be killed, by what it is."""
    killed: Counter[str] = field(default_factory=Counter)
    without_keeper: set[str] = field(default_factory=set)
    """Calls whose keepers were killed: their ends may honestly be lost."""
    told: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """Exit code and output that an agent was given, by the number of the command."""
    ended_by_agent: set[int] = field(default_factory=set)
    """Commands whose stand-in was killed, so that they were to be ended."""

    def __post_init__(self) -> None:
        self.home = Home(config=self.root / "config", state=self.root / "state", runtime=self.root / "run")
        self.workspace = self.root / "workspace"
        self.workspace.mkdir(parents=True)
        (self.root / "config").mkdir(mode=0o700)
        (self.root / "config" / "config.toml").write_text(CONFIGURATION)

    def supervisor(self) -> int | None:
        """Its pid. None: none runs."""
        with suppress(WhisperError, OSError):
            connection = connect(self.home)
            if connection is not None:
                with connection:
                    return peer_process(connection)[0]
        return None

    async def start(self, kind: str, *words: str, stdin: int = asyncio.subprocess.PIPE) -> asyncio.subprocess.Process:
        """Start a program that the killer may find."""
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=self.workspace,
            limit=1 << 26,
        )
        self.processes.setdefault(kind, set()).add(process)
        return process

    def forget(self, kind: str, process: asyncio.subprocess.Process) -> None:
        """It has ended."""
        self.processes[kind].discard(process)

    def kill(self, kind: str, pid: int) -> bool:
        """Kill one process for good. False: it was gone already."""
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.killed[kind] += 1
        return True

    async def door(self) -> RemoteSupervision:
        """A connection to whatever supervisor there is, started if there is none."""
        while True:
            with suppress(WhisperError, OSError):
                return await RemoteSupervision.connect(self.home)
            await asyncio.sleep(AGAIN_S)
