"""A supervisor that listens at its socket, and raw connections to it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from whisper_tui.model.call import Argv, CallRequest, CommandSpec, SessionHello
from whisper_tui.model.protocol_version import VERSION
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.rendezvous import connect
from whisper_tui.wire.server import Server, serve


class Raw:
    """A connection on which a test says exactly what it wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, home: Directories, *, hello: bool = True) -> "Raw":
        connection = connect(home)
        assert connection is not None
        connection.setblocking(False)
        raw = cls(*await asyncio.open_unix_connection(sock=connection, limit=64 << 20))
        if hello:
            assert (await raw.request({"door": "port", "version": VERSION}))["ok"] is True
        return raw

    def send(self, content: Any) -> None:
        line = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.writer.write(line + b"\n")

    async def receive(self) -> dict[str, Any]:
        return json.loads(await asyncio.wait_for(self.reader.readline(), 60))

    async def request(self, content: Any) -> dict[str, Any]:
        self.send(content)
        return await self.receive()

    async def is_closed(self) -> bool:
        return await asyncio.wait_for(self.reader.read(), 60) == b""


@pytest.fixture
async def supervisor(home: Directories) -> AsyncIterator[Supervisor]:
    made = Supervisor(home, LocalExecutor(Path(home.state) / "runs"))
    await made.open()
    yield made
    await made.shutdown(end_runs=True)
    await made.close()


@pytest.fixture
async def server(supervisor: Supervisor, home: Directories) -> AsyncIterator[Server]:
    listening = await serve(supervisor, home, {})
    yield listening
    await listening.close()


@pytest.fixture
async def raw(server: Server, home: Directories) -> AsyncIterator[Raw]:
    connection = await Raw.open(home)
    yield connection
    connection.writer.close()


async def waiting_call(supervisor: Supervisor, root: Path, *words: str) -> str:
    """A call that waits for a human."""
    session = await supervisor.open_session(SessionHello(name="agent", root=str(root)))
    spec = CommandSpec(command=Argv(program=words[0], args=words[1:]), cwd=str(root))
    return await supervisor.submit(
        CallRequest(session_id=session.id, tool="execute_command", arguments={}, spec=spec, description="a test")
    )
