"""Both ends of a relay: the agent that launches it, and a supervisor that the test plays."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

PROGRAM = str(Path(__file__).with_name("relay_program.py"))
INFO = {"name": "codex-mcp-client", "version": "1"}
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"clientInfo": INFO}}
OPENING = INITIALIZE | {"params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": INFO}}
"""A complete `initialize`, which the relay can answer itself."""
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(request_id):
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": "x"}}


def answer(request_id, text="done"):
    return {"jsonrpc": "2.0", "id": request_id, "result": {"text": text}}


class Agent:
    """The relay as the agent's program sees it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def send(self, *messages) -> None:
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def receive(self):
        async with asyncio.timeout(60):
            return json.loads(await self.process.stdout.readline())

    async def end(self) -> tuple[int, bytes, bytes]:
        self.process.stdin.close()
        async with asyncio.timeout(60):
            out, err = await self.process.communicate()
        return self.process.returncode, out, err


class Connection:
    """One connection as the supervisor sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.hello: dict = {}

    def send(self, *messages) -> None:
        for message in messages:
            self.writer.write(json.dumps(message).encode() + b"\n")

    async def receive(self):
        async with asyncio.timeout(60):
            return json.loads(await self.reader.readline())

    async def crash(self) -> None:
        self.writer.transport.abort()


class PlayedSupervisor:
    """Accepts relays, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.arrived: asyncio.Queue[Connection] = asyncio.Queue()
        self._server: asyncio.Server | None = None
        self.greeting: dict = {"ok": True, "session_id": "s1"}

    async def start(self) -> None:
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._greet, str(self.path), limit=1 << 28)

    def stop(self) -> None:
        self._server.close()
        self.path.unlink(missing_ok=True)

    async def _greet(self, reader, writer) -> None:
        connection = Connection(reader, writer)
        connection.hello = await connection.receive()
        connection.send(self.greeting)
        self.arrived.put_nowait(connection)

    async def connection(self) -> Connection:
        async with asyncio.timeout(60):
            return await self.arrived.get()


@asynccontextmanager
async def relay(
    supervisor, *, environment: dict[str, str] | None = None, name: str | None = None
) -> AsyncIterator[Agent]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, PROGRAM, str(supervisor.path), str(supervisor.path.parent), *([name] if name else [])),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | (environment or {}),
        limit=1 << 28,
    )
    try:
        yield Agent(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        process._transport.close()


@asynccontextmanager
async def conversation(supervisor, opening=INITIALIZE) -> AsyncIterator[tuple[Agent, Connection]]:
    """An agent that has initialized, with the supervisor that runs."""
    await supervisor.start()
    async with relay(supervisor) as agent:
        agent.send(opening)
        connection = await supervisor.connection()
        assert await connection.receive() == opening
        connection.send(answer(0))
        assert await agent.receive() == answer(0)
        agent.send(INITIALIZED)
        assert await connection.receive() == INITIALIZED
        yield agent, connection
