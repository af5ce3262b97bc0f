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

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of one message; a longer one is refused and the connection goes on."""

_PIECE = 256 * 1024

Inbound = MemoryObjectSendStream[SessionMessage | Exception]
Outbound = MemoryObjectSendStream[SessionMessage]


async def serve_lines(server: Server[object], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Let a server speak with whoever is on the stream, until that side ends it or is gone."""
    inbound, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, to_client = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_read, reader, inbound, outbound.clone())
        group.start_soon(_write, to_client, writer, group.cancel_scope)
        await server.run(from_client, outbound, server.create_initialization_options())


async def _read(reader: asyncio.StreamReader, inbound: Inbound, outbound: Outbound) -> None:
    async with inbound, outbound:
        try:
            async for line in _lines(reader):
                message = _message(line)
                try:
                    if isinstance(message, types.JSONRPCError) and message.id is None:
                        await outbound.send(SessionMessage(message))
                    else:
                        await inbound.send(SessionMessage(message))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return
        except ConnectionError:
            return


async def _write(
    to_client: MemoryObjectReceiveStream[SessionMessage], writer: asyncio.StreamWriter, everything: anyio.CancelScope
) -> None:
    async with to_client:
        try:
            async for item in to_client:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode() + b"\n")
                await writer.drain()
        except ConnectionError:
            everything.cancel()


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


def _message(line: bytes | None) -> types.JSONRPCMessage:
    """The message of a line, or the error that its sender is answered with, addressed to nobody's request."""
    if line is None:
        return _refusal(types.INVALID_REQUEST, f"The message is longer than {LONGEST_LINE:,} bytes")
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        try:
            json.loads(line)
        except ValueError as why:
            return _refusal(types.PARSE_ERROR, f"The message is not valid JSON: {why}")
        return _refusal(
            types.INVALID_REQUEST, f"The message is not JSON-RPC 2.0: {error.error_count()} fields are wrong"
        )


def _refusal(code: int, message: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=message))
