"""ExecCommand over a supervisor whose executor the test leads by hand, with a clock that stands still."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.conftest import Bench
from whisper_tui.model.ending import Ending
from whisper_tui.model.state import CallRecord
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.tools import ToolContext
from whisper_tui.tools.exec_tool import ExecCommandTool

LONG = 3_600_000
"""A foreground window that no test waits for."""


class Shop:
    """A bench, one session on it, and ExecCommand."""

    def __init__(self, bench: Bench, context: ToolContext) -> None:
        self.bench = bench
        self.context = context
        self.tool = ExecCommandTool(context)
        self._seen: set[str] = set()

    def call(self, **arguments: Any) -> "asyncio.Task[dict[str, Any]]":
        """Call the tool without waiting."""
        return asyncio.create_task(self.tool.execute(**{"cmd": "make", "yield_time_ms": LONG, **arguments}))

    async def submitted(self) -> CallRecord:
        """The newest call, once there is one that was not given out before."""
        async with asyncio.timeout(60):
            while True:
                calls = self.bench.supervisor._store.board.calls
                new = [record for call_id, record in calls.items() if call_id not in self._seen]
                if new:
                    self._seen.add(new[-1].id)
                    return new[-1]
                await asyncio.sleep(0.005)

    async def started(self, **arguments: Any) -> tuple["asyncio.Task[dict[str, Any]]", RunKey]:
        """A call that was approved and has a process."""
        answer = self.call(**arguments)
        record = await self.submitted()
        await self.bench.approve(record.id)
        key = await self.bench.ordered(record.id)
        self.bench.executor.spawn(key)
        await self.bench.state(record.id, "running")
        return answer, key

    async def ended(self, ending: Ending, **arguments: Any) -> dict[str, Any]:
        """The envelope of a call that was approved and ended so."""
        answer, key = await self.started(**arguments)
        self.bench.executor.finish(key, ending)
        return await answer

    async def task(self, **arguments: Any) -> RunKey:
        """A call that was promoted at once."""
        answer, key = await self.started(yield_time_ms=0, **arguments)
        assert (await answer)["result"]["disposition"] == "promoted_to_task"
        return key


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    await made.open()
    yield made
    await made.supervisor.close()


@pytest.fixture
async def shop(bench: Bench) -> Shop:
    session_id = await bench.session()
    session = bench.supervisor._store.board.sessions[session_id]
    return Shop(bench, ToolContext(bench.supervisor, session, clock=lambda: 1.0, shell="bash"))
