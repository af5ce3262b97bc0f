"""JSON-RPC lines over an asyncio stream, as the pair of message streams that the MCP SDK serves."""

import asyncio
import json
from collections.abc import AsyncIterator

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from whisper_tui.model.sendable import is_sendable
from whisper_tui.transports.goodbye import Heard

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of one message; a longer one is refused and the connection goes on."""

_PIECE = 256 * 1024

Inbound = MemoryObjectSendStream[SessionMessage | Exception]
Outbound = MemoryObjectSendStream[SessionMessage]


async def serve_lines(
    server: Server[object], reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Heard
) -> None:
    """Let a server speak with whoever is on the stream, until that side ends it or is gone.

    Cancelled, it writes nothing more: requests that wait are not answered with an error, for their agent may come back.
    """
    inbound, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, to_client = anyio.create_memory_object_stream[SessionMessage](0)
    voice = _Voice(writer)
    ended = anyio.Event()

    async def run() -> None:
        try:
            await server.run(from_client, outbound, server.create_initialization_options())
        finally:
            ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(_read, reader, inbound, outbound.clone(), heard)
        group.start_soon(voice.speak, to_client, group.cancel_scope)
        group.start_soon(run)
        try:
            await ended.wait()
        except asyncio.CancelledError:
            voice.silent = True
            raise


class _Voice:
    """Writes the server's messages as lines."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.silent = False

    async def speak(self, messages: MemoryObjectReceiveStream[SessionMessage], everything: anyio.CancelScope) -> None:
        async with messages:
            try:
                async for item in messages:
                    if self.silent:
                        return
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    self._writer.write(text.encode() + b"\n")
                    await self._writer.drain()
            except ConnectionError:
                everything.cancel()


async def _read(reader: asyncio.StreamReader, inbound: Inbound, outbound: Outbound, heard: Heard) -> None:
    async with inbound, outbound:
        try:
            async for line in _lines(reader):
                heard.lines += 1
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line or b"", by_name=False)
                except ValidationError:
                    await outbound.send(SessionMessage(_refusal(line)))
                else:
                    await inbound.send(SessionMessage(message))
        except (ConnectionError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes | None]:
    """Lines without their ends; None stands for one that was too long."""
    held = bytearray()
    too_long = False
    while data := await reader.read(_PIECE):
        searched = len(held)
        held += data
        while (end := held.find(b"\n", searched)) >= 0:
            line, searched = bytes(held[:end]), 0
            del held[: end + 1]
            if too_long or line.strip():
                yield None if too_long else line
            too_long = False
        if len(held) > LONGEST_LINE:
            held.clear()
            too_long = True


def _refusal(line: bytes | None) -> types.JSONRPCError:
    """What the sender of a line that is no message is told; by the request's id, where one can be read."""
    if line is None:
        return _error(types.INVALID_REQUEST, f"The message is longer than {LONGEST_LINE:,} bytes")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _error(types.PARSE_ERROR, f"The message is not valid JSON: {error}")
    request_id = message.get("id") if isinstance(message, dict) and "method" in message else None
    return _error(types.INVALID_REQUEST, "The message is not JSON-RPC 2.0", request_id if _is_id(request_id) else None)


def _is_id(request_id: object) -> bool:
    """Whether an answer can name it: half of a character cannot be sent."""
    if isinstance(request_id, str):
        return is_sendable(request_id)
    return isinstance(request_id, int) and not isinstance(request_id, bool)


def _error(code: int, message: str, request_id: types.RequestId | None = None) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))
