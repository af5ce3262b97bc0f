"""A supervisor that is tried again whenever it says that nothing was done, and that may be replaced at any time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.faults.breaking import BrokenFrom, facts
from tests.faults.swift import Machine, SwiftExecutor
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Function, SessionHello
from whisper_tui.model.decision import Approve, Decider, Decision
from whisper_tui.model.errors import JournalFailed, Unavailable
from whisper_tui.model.state import CallRecord
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories

HUMAN = Decider(surface="library", who="tester")
AGAIN_S = 0.02
PATIENCE_S = 60.0
T = TypeVar("T")


class World:
    """One instance, and whoever uses it."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self.home = Directories(config=directory / "config", state=directory / "state", runtime=directory / "run")
        self.journal = Path(self.home.state) / "journal.sqlite"
        self.workspace = directory / "workspace"
        self.workspace.mkdir(parents=True)
        self.machine = Machine(self._is_journaled)
        self.told: list[JournalFailed] = []
        """What whoever asked for something was told instead."""
        self.troubles: list[str] = []
        """What the supervisor said about itself while something was broken."""
        self._clock = clock
        self._replaced = asyncio.Event()
        self._closed: list[Supervisor] = []
        self.supervisor: Supervisor

    async def open(self) -> None:
        self.supervisor = Supervisor(self.home, SwiftExecutor(self.machine), clock=self._clock)
        await self.supervisor.open()

    async def replace(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Let another supervisor take over."""
        self._closed.append(self.supervisor)
        await self.supervisor.close()
        meanwhile()
        await self.open()
        replaced, self._replaced = self._replaced, asyncio.Event()
        replaced.set()

    async def do(self, action: Callable[[Supervisor], Awaitable[T]]) -> T:
        """Ask for something until it is done."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                supervisor, replaced = self.supervisor, asyncio.ensure_future(self._replaced.wait())
                asked = asyncio.ensure_future(action(supervisor))
                await asyncio.wait({asked, replaced}, return_when=asyncio.FIRST_COMPLETED)
                replaced.cancel()
                if not asked.done():
                    asked.cancel()
                    continue
                if asked.cancelled():
                    continue  # Its supervisor ended in the middle of it.
                try:
                    return asked.result()
                except JournalFailed as error:
                    self.told.append(error)
                except Unavailable:
                    if supervisor not in self._closed:
                        raise
                await asyncio.sleep(AGAIN_S)

    async def broken_once(self, broken: BrokenFrom, *, crash: bool) -> None:
        """Wait until the supervisor notices, and mend it; `crash`: by another supervisor, after the end of this one."""
        while (trouble := (await self.supervisor.status()).problem) is None:
            await asyncio.sleep(AGAIN_S)
        self.troubles.append(trouble)
        if crash:
            await self.replace(meanwhile=broken.mend)
        else:
            broken.mend()

    async def session(self, name: str, **hello: Any) -> str:
        made = SessionHello(name=name, root=str(self.workspace), **hello)
        return (await self.do(lambda supervisor: supervisor.open_session(made))).id

    async def submit(self, session_id: str, *words: str, **request: Any) -> str:
        spec = CommandSpec(command=Argv(program=words[0], args=words[1:]), cwd=str(self.workspace))
        return await self._submit(session_id, spec, **request)

    async def submit_function(self, session_id: str, tool: str) -> str:
        spec = CommandSpec(command=Function(tool=tool, arguments={}), cwd=str(self.workspace))
        return await self._submit(session_id, spec)

    async def decide(self, call_id: str, decision: Decision | None = None) -> None:
        async def decided(supervisor: Supervisor) -> None:
            record = await supervisor.record(call_id)
            await supervisor.decide(call_id, decision or Approve(), HUMAN, record.seen_digest())

        await self.do(decided)

    async def until(self, call_id: str, holds: Callable[[CallRecord], bool]) -> CallRecord:
        async with asyncio.timeout(PATIENCE_S):
            while not holds(record := await self.do(lambda supervisor: supervisor.record(call_id))):
                await asyncio.sleep(AGAIN_S)
        return record

    async def settled(self, call_id: str) -> CallRecord:
        await self.do(lambda supervisor: supervisor.outcome(call_id))
        return await self.until(call_id, lambda record: not record.is_open)

    def facts_of(self, call_id: str) -> list[str]:
        """The kinds of a call's facts, in order."""
        return [fact["kind"] for fact in facts(self.journal) if _call_of(fact) == call_id]

    async def _submit(self, session_id: str, spec: CommandSpec, **about: Any) -> str:
        request = CallRequest(session_id=session_id, tool="t", arguments={}, spec=spec, **about)
        return await self.do(lambda supervisor: supervisor.submit(request))

    def _is_journaled(self, key: RunKey) -> bool:
        return any(
            fact["kind"] == "started" and (fact["call_id"], fact["attempt"]) == key for fact in facts(self.journal)
        )


def _call_of(fact: dict[str, Any]) -> str | None:
    return fact["call"]["id"] if fact["kind"] == "submitted" else fact.get("call_id")
