"""Connections over HTTP are bounded in number and in patience."""

import asyncio
import socket
from contextlib import suppress

import pytest
import uvicorn

from whisper_tui.transports import loopback_http
from whisper_tui.transports.loopback_http import BoundedProtocol


async def app(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
async def port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, lifespan="off", log_level="warning", http=BoundedProtocol, interface="asgi3")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server._serve([listening]))
        async with asyncio.timeout(60):
            while not server.started:
                await asyncio.sleep(0.01)
        yield listening.getsockname()[1]
        server.should_exit = True
        await serving


async def test_connections_beyond_those_that_there_may_be_are_told_so_and_closed(port, monkeypatch):
    monkeypatch.setattr(loopback_http, "MOST_CONNECTIONS", 2)
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    for other, sending in held:
        sending.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(other.readuntil(b"\r\n\r\n"), 60)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    told = await asyncio.wait_for(reader.read(), 60)
    assert told.startswith(b"HTTP/1.1 503 ") and b"2 connections are open already" in told
    writer.close()
    held[0][1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await asyncio.wait_for(held[0][0].readline(), 60)).startswith(b"HTTP/1.1 204")
    for _, writer in held:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def test_a_connection_that_has_asked_for_nothing_gives_way_to_one_that_comes(port, monkeypatch):
    monkeypatch.setattr(loopback_http, "MOST_CONNECTIONS", 2)
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await asyncio.wait_for(reader.readline(), 60)).startswith(b"HTTP/1.1 204")
    ended = [asyncio.create_task(other.read()) for other, _ in held]
    await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED, timeout=30)
    assert any(task.done() for task in ended)
    for task in ended:
        task.cancel()
    for sending in (writer, *(each for _, each in held)):
        sending.close()


@pytest.mark.slow
async def test_a_connection_that_begins_no_request_is_ended_and_one_that_did_is_not(port, monkeypatch):
    monkeypatch.setattr(loopback_http, "FIRST_REQUEST_WITHIN_S", 3.0)  # a busy machine has to send a request in it
    slow_reader, slow = await asyncio.open_connection("127.0.0.1", port)
    slow.write(b"GET / HTTP/1.1\r\nHos")
    quick_reader, quick = await asyncio.open_connection("127.0.0.1", port)
    quick.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await asyncio.wait_for(quick_reader.readline(), 60)).startswith(b"HTTP/1.1 204")
    assert await asyncio.wait_for(slow_reader.read(), 60) == b""
    quick.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.wait_for(quick_reader.readuntil(b"HTTP/1.1 204"), 60)
    for writer in (slow, quick):
        writer.close()
