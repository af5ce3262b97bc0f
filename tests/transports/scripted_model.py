"""A chat completion service on the loopback that streams prepared answers in the real wire format."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

Delta = dict[str, Any]


def text(*pieces: str) -> list[Delta]:
    """An answer of text alone, in pieces."""
    return [{"role": "assistant", "content": piece} for piece in pieces]


def call(index: int, call_id: str | None = None, name: str | None = None, arguments: str = "") -> Delta:
    """A piece of a tool call."""
    function: dict[str, Any] = {"arguments": arguments} | ({"name": name} if name else {})
    piece: dict[str, Any] = {"index": index, "function": function}
    return {"tool_calls": [piece | ({"id": call_id, "type": "function"} if call_id else {})]}


class ScriptedModel:
    """Gives its answers in order, and remembers what it was asked."""

    def __init__(self, *answers: list[Delta]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.status = "200 OK"
        self.url = ""
        self._answers = list(answers)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["ScriptedModel"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}/v1"
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.split(":")[1]) for line in head.lower().split("\r\n") if line.startswith("content-length")
        )
        self.headers.append(head)
        self.requests.append(json.loads(await reader.readexactly(length)))
        if self.status != "200 OK":
            body = json.dumps({"error": {"message": "no such key", "code": 401}}).encode()
            kind = "application/json"
            writer.write(f"HTTP/1.1 {self.status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n".encode())
            writer.write(b"Connection: close\r\n\r\n" + body)
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            await self._stream(writer, self._answers.pop(0))
        await writer.drain()
        writer.close()

    async def _stream(self, writer: asyncio.StreamWriter, deltas: list[Delta]) -> None:
        writer.write(b": OPENROUTER PROCESSING\n\n")
        reason = "tool_calls" if any("tool_calls" in delta for delta in deltas) else "stop"
        for delta, ending in [*((delta, None) for delta in deltas), ({}, reason)]:
            choice = {"index": 0, "delta": delta, "finish_reason": ending}
            chunk = {"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            writer.write(f"data: {json.dumps(chunk)}\n\n".encode())
            await writer.drain()
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        last = {
            "id": "gen-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [],
            "usage": usage,
        }
        writer.write(f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n".encode())
