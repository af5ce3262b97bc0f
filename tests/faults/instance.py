"""A real supervisor in a process of its own, and short words for what tests do with it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Running
from whisper_tui.system.processes import peer_process
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient
from whisper_tui.wire.rendezvous import connect

HUMAN = Decider(surface="library", who="tester")
PATIENCE_S = 60.0
AGAIN_S = 0.05


class Instance:
    """One home, and a command that runs until it may end."""

    def __init__(self, home: Path, workspace: Path) -> None:
        self.directory = home
        self.home = Directories(config=home / "config", state=home / "state", runtime=home / "run")
        self.workspace = workspace
        self.workspace.mkdir(exist_ok=True)
        self.may_end = workspace / "may-end"
        self.door: SupervisorClient
        self.session = ""

    async def open(self) -> None:
        self.door = await SupervisorClient.connect(self.home)
        hello = SessionHello(name="agent", root=str(self.workspace), environment=dict(os.environ))
        self.session = (await self.door.open_session(hello)).id

    async def close(self) -> None:
        await self.door.close()
        self.whisper("stop", "--end-runs")

    def whisper(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "whisper_tui", *words, "--home", str(self.directory)]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def pid(self) -> int:
        connection = connect(self.home)
        assert connection is not None
        with connection:
            return peer_process(connection)[0]

    async def submit(self, text: str, **about: Any) -> str:
        spec = CommandSpec(command=Shell(text=text), cwd=str(self.workspace))
        request = CallRequest(session_id=self.session, tool="t", arguments={}, spec=spec, **about)
        return await self.door.submit(request)

    async def approve(self, call_id: str) -> None:
        await self.door.decide(call_id, Approve(), HUMAN, (await self.door.record(call_id)).seen_digest())

    async def run(self, text: str) -> CallRecord:
        call_id = await self.submit(text)
        await self.approve(call_id)
        return await asyncio.wait_for(self.door.outcome(call_id), PATIENCE_S)

    async def start_long(self) -> str:
        """A command that writes a line, waits until it may end, writes another one, and exits with 7."""
        waits = f"while [ ! -e {self.may_end} ]; do sleep 0.05; done"
        call_id = await self.submit(f"touch begun; echo begun; {waits}; echo done; exit 7")
        await self.approve(call_id)
        assert isinstance((await asyncio.wait_for(self.door.started(call_id), PATIENCE_S)).state, Running)
        return call_id

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                await asyncio.sleep(AGAIN_S)

    async def output(self, call_id: str) -> bytes:
        return (await self.door.read_output(call_id, "out", 0, 1 << 20)).data

    async def refusal(self, text: str, tries: int, **about: Any) -> WhisperError | None:
        """What an agent is told that asks again and again, as soon as it is told something else than a number."""
        for _ in range(tries):
            try:
                await self.submit(text, **about)
            except WhisperError as error:
                return error
        return None

    async def works_again(self) -> None:
        """Ask until a command runs."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(WhisperError):
                    record = await self.run("touch works; exit 3")
                    if record.state.kind == "ended" and record.state.ending.kind == "exited":
                        return
                await asyncio.sleep(AGAIN_S)
