"""One instance under attack: how it is reached, who lives in it, what has been killed, and what everybody was told."""

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.work import Numbers, Work
from whisper_tui.model.board import Board
from whisper_tui.model.errors import WhisperError
from whisper_tui.system.processes import find_process, peer_process
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient
from whisper_tui.wire.rendezvous import connect

PROGRAM = (sys.executable, "-m", "whisper_tui")
CONFIGURATION = "[supervisor]\nworkers = 8\n"
AGAIN_S = 0.1


@dataclass
class Told:
    """What agents and human were told: the journal must never say anything else."""

    submitted: dict[str, Work] = field(default_factory=dict)
    """Calls whose submission was confirmed, by their ids."""
    decided: dict[str, tuple[str, float]] = field(default_factory=dict)
    """What was decided, by call: `approve` or `deny`, and when that was confirmed first, in seconds since the epoch."""
    results: int = 0
    """Exit codes with outputs that agents were given."""
    untrue: list[str] = field(default_factory=list)
    """Those that no such command can have, each in a sentence."""

    def submission(self, call_id: str, work: Work) -> None:
        """An agent was told that its command is this call."""
        if self.submitted.setdefault(call_id, work) != work:
            self.untrue.append(f"call {call_id} was confirmed as commands {self.submitted[call_id]} and {work}")

    def decision(self, call_id: str, kind: str) -> None:
        """The human was told that this is decided."""
        self.decided.setdefault(call_id, (kind, time.time()))

    def result(self, work: Work, code: int, output: bytes) -> None:
        """An agent was given an exit code and what is said to be all of the standard output."""
        self.results += 1
        if code != work.code or output not in {work.answered(), *work.outputs()}:
            told = f"exit {code} and {len(output)} bytes of output"
            self.untrue.append(f"the agent of {work.kind} command {work.number} was told {told}")


@dataclass
class Field:
    """Shared by agents, human and killer."""

    root: Path
    numbers: Numbers = field(default_factory=Numbers)
    board: Board = field(default_factory=Board)
    """What the human sees."""
    told: Told = field(default_factory=Told)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nobody shall begin anything more."""
    alive: dict[str, dict[int, int]] = field(default_factory=dict)
    """What can be killed, by what it is: the pids with the starts of the processes."""
    killed: Counter[str] = field(default_factory=Counter)
    killed_at: dict[int, float] = field(default_factory=dict)
    """When, in seconds since the epoch, by pid."""
    supervisors_killed: list[float] = field(default_factory=list)
    keepers_killed: dict[int, float] = field(default_factory=dict)
    """The same of keepers: what they had not told their guardian yet may honestly be lost."""
    guardians_killed: list[float] = field(default_factory=list)
    """The same of those who hold what keepers keep: all of it may honestly be lost if a keeper is killed as well."""
    under_way: list[int] = field(default_factory=list)
    """How many calls were open at each kill."""
    without_leader: set[str] = field(default_factory=set)
    """Calls whose commands were killed."""
    ended_by_agent: set[int] = field(default_factory=set)
    """Commands whose stand-in, or its client, was killed, so that they were to be ended."""
    by_keys: int = 0
    """What a human at a cockpit has done by keys, as far as the screen confirmed it."""

    def __post_init__(self) -> None:
        self.home = Directories(config=self.root / "config", state=self.root / "state", runtime=self.root / "run")
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

    def open_calls(self) -> int:
        """How many calls something can still happen to."""
        board = self.board
        return sum(map(len, (board.waiting, board.held, board.queued, board.running, board.unsettled)))

    def born(self, kind: str, pid: int) -> None:
        """There is a process that the killer may find."""
        seen = find_process(pid)
        if seen is not None:
            self.alive.setdefault(kind, {})[pid] = seen.start

    def died(self, kind: str, pid: int) -> None:
        """It has ended."""
        self.alive.get(kind, {}).pop(pid, None)

    def victims(self, kind: str) -> list[int]:
        """Those of a kind that are still there."""
        seen = {pid: find_process(pid) for pid in self.alive.get(kind, {})}
        return [pid for pid, now in seen.items() if now is not None and now.start == self.alive[kind][pid]]

    def kill(self, kind: str, pid: int) -> bool:
        """Kill one process for good. False: it was gone already."""
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.killed[kind] += 1
        self.killed_at[pid] = time.time()
        if kind in {"keeper", "waiting keeper"}:
            self.keepers_killed[pid] = self.killed_at[pid]
        elif kind == "guardian":
            self.guardians_killed.append(self.killed_at[pid])
        elif kind == "supervisor":
            self.supervisors_killed.append(self.killed_at[pid])
        self.under_way.append(self.open_calls())
        return True

    async def end(self) -> None:
        """End the supervisor with all runs, and wait until it is gone."""
        door = await self.door()
        await door.shutdown(end_runs=True)
        await door.close()
        while self.supervisor() is not None:
            await asyncio.sleep(AGAIN_S)

    async def door(self) -> SupervisorClient:
        """A connection to whatever supervisor there is, started if there is none."""
        while True:
            with suppress(WhisperError, OSError):
                return await SupervisorClient.connect(self.home)
            await asyncio.sleep(AGAIN_S)
