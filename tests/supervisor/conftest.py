"""A supervisor over an executor that the test leads by hand."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from tests.supervisor.hand_executor import HandExecutor
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.model.decision import Approve, Decider, Decision, Deny, Scope
from whisper_tui.model.state import CallRecord
from whisper_tui.policy.rules.rule import NO_RULES, Rules
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories

HUMAN = Decider(surface="library", who="tester")


class Bench:
    """A supervisor, its executor, and short words for what tests do with them."""

    def __init__(self, directory: Path) -> None:
        self.home = Directories(config=directory / "config", state=directory / "state", runtime=directory / "run")
        self.workspace = directory / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self.executor = HandExecutor()
        self.places: Sequence[PlaceSettings] = ()
        self.supervisor: Supervisor

    async def open(self, rules: Rules = NO_RULES, workers: int = 4) -> None:
        self.executor = HandExecutor()
        settings = SupervisorSettings(workers=workers)
        self.supervisor = Supervisor(self.home, self.executor, rules=rules, settings=settings, places=self.places)
        await self.supervisor.open()

    async def restart(self, rules: Rules = NO_RULES) -> None:
        await self.supervisor.close()
        await self.open(rules)

    async def kill(self, rules: Rules = NO_RULES) -> None:
        """What the next supervisor finds where this one had no time to say that it stops."""
        await self.supervisor.close()
        (Path(self.home.state) / "journal.end").unlink()
        await self.open(rules)

    async def session(self, name: str = "agent", **hello: object) -> str:
        made = SessionHello.model_validate({"name": name, "root": str(self.workspace), **hello})
        return (await self.supervisor.open_session(made)).id

    async def submit(self, session_id: str, *words: str, key: str | None = None, text: str | None = None) -> str:
        command = Shell(text=text) if text is not None else Argv(program=words[0], args=words[1:])
        spec = CommandSpec(command=command, cwd=str(self.workspace))
        request = CallRequest(
            session_id=session_id, tool="execute_command", arguments={}, spec=spec, description="a test", key=key
        )
        return await self.supervisor.submit(request)

    async def approve(self, call_id: str, *, edited: CommandSpec | None = None, remember: Scope | None = None) -> None:
        await self.decide(call_id, Approve(edited=edited, remember=remember))

    async def deny(self, call_id: str, reason: str, *, stop_session: bool = False) -> None:
        await self.decide(call_id, Deny(reason=reason, stop_session=stop_session))

    async def decide(self, call_id: str, decision: Decision) -> None:
        seen = (await self.record(call_id)).seen_digest()
        await self.supervisor.decide(call_id, decision, HUMAN, seen)

    async def record(self, call_id: str) -> CallRecord:
        return await self.supervisor.record(call_id)

    async def state(self, call_id: str, kind: str) -> CallRecord:
        return await self.eventually(call_id, lambda record: record.state.kind == kind, kind)

    async def eventually(self, call_id: str, holds: Callable[[CallRecord], bool], what: str = "") -> CallRecord:
        async with asyncio.timeout(60):
            while not holds(record := await self.record(call_id)):
                await asyncio.sleep(0.005)
        return record

    async def ordered(self, call_id: str, attempt: int = 1) -> RunKey:
        """Wait until the executor was asked to start the call."""
        key = RunKey(call_id, attempt)
        async with asyncio.timeout(60):
            while key not in self.executor.orders:
                await asyncio.sleep(0.005)
        return key


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    await made.open()
    yield made
    await made.supervisor.close()
