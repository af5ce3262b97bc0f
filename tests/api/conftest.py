"""The API with real commands, once in process and once through the socket."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from whisper_tui.model.api import Supervision
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Session, SessionHello, Shell
from whisper_tui.model.decision import Approve, Decider, Decision
from whisper_tui.model.state import CallRecord
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient
from whisper_tui.wire.server import serve

HUMAN = Decider(surface="library", who="tester")


class Harness:
    """Shortcuts for tests that use the API."""

    def __init__(self, api: Supervision, session: Session) -> None:
        self.api = api
        self.session = session

    async def submit(self, *words: str, text: str | None = None, key: str | None = None, **spec: Any) -> str:
        command = Shell(text=text) if text is not None else Argv(program=words[0], args=words[1:])
        request = CallRequest(
            session_id=self.session.id,
            tool="execute_command",
            arguments={"words": list(words)},
            spec=CommandSpec(command=command, cwd=self.session.root, **spec),
            description="a test",
            key=key,
        )
        return await self.api.submit(request)

    async def decide(self, call_id: str, decision: Decision) -> None:
        await self.api.decide(call_id, decision, HUMAN, (await self.api.record(call_id)).seen_digest())

    async def run(self, *words: str, text: str | None = None, **spec: Any) -> CallRecord:
        call_id = await self.submit(*words, text=text, **spec)
        await self.decide(call_id, Approve())
        return await self.api.outcome(call_id)

    async def until(self, call_id: str, kind: str) -> CallRecord:
        async with asyncio.timeout(60):
            while (record := await self.api.record(call_id)).state.kind != kind:
                await asyncio.sleep(0.01)
        return record

    async def output(self, call_id: str, stream: Any = "out") -> bytes:
        """All of a stream, once it has ended."""
        data = b""
        async with asyncio.timeout(60):
            while True:
                chunk = await self.api.read_output(call_id, stream, len(data), 1 << 20)
                data += chunk.data
                if chunk.ended and len(data) >= chunk.size:
                    return data
                await asyncio.sleep(0.01)


@pytest.fixture
async def supervisor(home: Directories) -> AsyncIterator[Supervisor]:
    made = Supervisor(home, LocalExecutor(Path(home.state) / "runs"))
    await made.open()
    yield made
    await made.shutdown(end_runs=True)
    await made.close()


@pytest.fixture(params=["in process", "through the socket"])
async def api(request: pytest.FixtureRequest, supervisor: Supervisor, home: Directories) -> AsyncIterator[Supervision]:
    if request.param == "in process":
        yield supervisor
        return
    server = await serve(supervisor, home, {})
    client = await SupervisorClient.connect(home, start=False)
    yield client
    await client.close()
    await server.close()


@pytest.fixture
async def harness(api: Supervision, tmp_path: Path) -> Harness:
    root = tmp_path / "workspace"
    root.mkdir()
    return Harness(api, await api.open_session(SessionHello(name="agent", root=str(root))))
