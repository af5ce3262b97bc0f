"""The page of a phone over HTTP, in front of a supervisor in memory."""

import asyncio
import json
import random
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import aiohttp
import pytest

from tests.in_memory.phone import PhoneInMemory
from whisper_tui.transports.phone.phone_site import serve

BOUND_S = 60
JSON = {"Content-Type": "application/json"}


class Site:
    """A served page, and requests to it as its own page makes them."""

    def __init__(self, supervisor: PhoneInMemory, port: int, http: aiohttp.ClientSession) -> None:
        self.supervisor = supervisor
        self.port = port
        self.origin = supervisor.origin
        self.http = http
        self.token = ""

    async def get(self, path: str, **headers: str) -> tuple[int, str, Any]:
        return await self._ask("GET", path, b"", headers)

    async def post(self, operation: str, content: Any = None, **headers: str) -> tuple[int, Any, Any]:
        """Ask for an operation. A header that is None is not sent; `cookie` is the token of a phone."""
        body = content if isinstance(content, bytes) else json.dumps(content or {}).encode()
        given = {"Origin": self.origin, **JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.token and "Cookie" not in given:
            given["Cookie"] = f"whisper-phone={self.token}"
        status, text, answered = await self._ask("POST", f"/api/{operation}", body, given)
        return status, json.loads(text), answered

    async def _ask(self, method: str, path: str, body: bytes, headers: dict[str, Any]) -> tuple[int, str, Any]:
        sent = {"Host": self.origin.removeprefix("http://"), **headers}
        sent = {name: value for name, value in sent.items() if value is not None}
        url = f"http://127.0.0.1:{self.port}{path}"
        async with self.http.request(method, url, data=body or None, headers=sent, allow_redirects=False) as answer:
            return answer.status, await answer.text(), answer.headers


def free_port() -> int:
    """A port for something that has to know it before it listens."""
    while True:
        # Below those that the system gives to connections, which could take it meanwhile.
        port = random.randrange(20_000, 32_000)
        with socket.socket() as listening, suppress(OSError):
            listening.bind(("127.0.0.1", port))
            return port


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    # The origin holds the port, so it has to be known before.
    port = free_port()
    supervisor = PhoneInMemory(f"http://desk.localhost:{port}")
    ready = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(supervisor, origin=supervisor.origin, port=port, ready=ready.set_result))
    await asyncio.wait({serving, ready}, timeout=BOUND_S, return_when=asyncio.FIRST_COMPLETED)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        yield Site(supervisor, ready.result(), http)
    serving.cancel()
    await asyncio.wait({serving}, timeout=BOUND_S)
    assert serving.cancelled()
