"""A supervisor that the test leads by hand, with an MCP door in front of it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.supervisor.conftest import Bench
from tests.supervisor.hand_executor import HandExecutor
from tests.transports.endpoint_server import EndpointServer
from tests.transports.relay_ends import PlayedSupervisor
from whisper_tui.model.run import OutputChunk, Stream
from whisper_tui.model.state import CallRecord
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.transports.mcp.mcp_endpoint import McpEndpoint


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """Every run of it has written `hi` and a line feed."""

    def read_output(_self: HandExecutor, _key: RunKey, stream: Stream, offset: int, limit: int) -> OutputChunk:
        data = b"hi\n" if stream == "out" else b""
        return OutputChunk(data=data[offset : offset + limit], start=offset, size=len(data), ended=True)

    monkeypatch.setattr(HandExecutor, "read_output", read_output)
    made = Bench(tmp_path)
    await made.open()
    yield made
    await made.supervisor.close()


@pytest.fixture
async def endpoint(bench: Bench, tmp_path: Path) -> AsyncIterator[EndpointServer]:
    door = McpEndpoint(bench.supervisor, progress_interval_s=0.05)
    async with EndpointServer(door, tmp_path / "door", bench.workspace).open() as opened:
        yield opened


class Human:
    """The human's actions, by the order of the calls."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    async def submitted(self, call_id: str) -> None:
        async with asyncio.timeout(60):
            while call_id not in self.bench.supervisor._store.board.calls:
                await asyncio.sleep(0.005)

    async def waiting(self, call_id: str = "1") -> CallRecord:
        await self.submitted(call_id)
        return await self.bench.state(call_id, "waiting")

    async def approve_and_run(self, call_id: str = "1", **decision: object) -> None:
        await self.waiting(call_id)
        await self.bench.approve(call_id, **decision)
        await self.run(call_id)

    async def run(self, call_id: str, then: Callable[[RunKey], None] | None = None) -> None:
        key = await self.bench.ordered(call_id)
        self.bench.executor.spawn(key)
        if then is not None:
            then(key)
        self.bench.executor.finish(key)

    async def left(self, call_id: str = "1") -> CallRecord:
        return await self.bench.eventually(call_id, lambda record: record.agent_gave_up is not None, "left")


@pytest.fixture
def human(bench: Bench) -> Human:
    return Human(bench)


@pytest.fixture
def supervisor(tmp_path: Path) -> PlayedSupervisor:
    """A supervisor whose part the test plays for a relay."""
    return PlayedSupervisor(tmp_path / "s")
