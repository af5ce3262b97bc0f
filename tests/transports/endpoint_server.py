"""An MCP door on a real socket, and agents that come through it: the official client, or plain lines."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.client.client import Client
from mcp.shared.message import SessionMessage

from whisper_tui.transports.mcp.mcp_endpoint import McpEndpoint


class EndpointServer:
    """Does what the supervisor's server does: reads the hello line and hands the stream over."""

    def __init__(self, door: McpEndpoint, path: Path, root: Path) -> None:
        self.path = path
        self.root = root
        self._door = door
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["EndpointServer"]:
        self.path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._greet, str(self.path))
        try:
            yield self
        finally:
            server.close()
            await self.stop()

    async def stop(self) -> None:
        """Cancel every connection, as a supervisor that stops does."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._door(reader, writer, json.loads(await reader.readline()))
        finally:
            writer.close()

    def hello(self, **session: Any) -> dict[str, Any]:
        said = {"name": "agent", "root": str(self.root), "pid": 1, "environment": {}, "resume": None} | session
        return {"door": "mcp", "version": 1, "session": said}

    @asynccontextmanager
    async def lines(self, hello: dict[str, Any] | None = None) -> AsyncIterator["Lines"]:
        """An agent that writes its own lines."""
        reader, writer = await asyncio.open_unix_connection(str(self.path), limit=1 << 28)
        agent = Lines(reader, writer)
        try:
            agent.send(hello or self.hello())
            agent.greeting = await agent.receive()
            yield agent
        finally:
            writer.close()

    @asynccontextmanager
    async def client(self, *, mode: str = "auto", name: str | None = None, **session: Any) -> AsyncIterator[Client]:
        """The official client."""
        async with self.lines(self.hello(**session)) as agent:
            info = types.Implementation(name=name, version="1.0") if name else None
            async with Client(_transport(agent), mode=mode, client_info=info) as client:
                yield client


class Lines:
    """One agent's end of the connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.greeting: dict[str, Any] = {}

    def send(self, message: dict[str, Any] | str) -> None:
        text = message if isinstance(message, str) else json.dumps(message)
        self.writer.write(text.encode() + b"\n")

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(60):
            return json.loads(await self.reader.readline())

    async def receive_answer(self, request_id: Any) -> dict[str, Any]:
        while (message := await self.receive()).get("id") != request_id or "method" in message:
            pass
        return message

    async def initialize(self, client: str = "lines", version: str = "2025-06-18") -> dict[str, Any]:
        info = {"name": client, "version": "0"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        self.request("init", "initialize", params)
        answer = await self.receive_answer("init")
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def request(self, request_id: Any, method: str, params: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})

    def call(self, request_id: Any, tool: str, arguments: dict[str, Any], **meta: Any) -> None:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        self.request(request_id, "tools/call", params | ({"_meta": meta} if meta else {}))

    def cancel(self, request_id: Any, reason: str | None = None) -> None:
        params = {"requestId": request_id} | ({"reason": reason} if reason else {})
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


@asynccontextmanager
async def _transport(agent: Lines) -> AsyncIterator[tuple[Any, Any]]:
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with to_client:
            while line := await agent.reader.readline():
                await to_client.send(SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False)))

    async def write() -> None:
        async with from_client:
            async for item in from_client:
                agent.send(item.message.model_dump_json(by_alias=True, exclude_unset=True))
                await agent.writer.drain()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(write)
        yield from_server, to_server
        group.cancel_scope.cancel()


ECHO = {"command": "echo", "args": ["hi"]}
RESULT = {"stdout": "hi\n", "stderr": "", "return_code": 0, "timed_out": False}
