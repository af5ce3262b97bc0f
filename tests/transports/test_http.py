"""MCP over HTTP: the official client through a real server, and whom it does not let in."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import httpx2
import pytest
import uvicorn
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.transports.endpoint_server import ECHO, RESULT
from whisper_tui.model.errors import Unavailable
from whisper_tui.transports.mcp import http_site
from whisper_tui.transports.mcp.http_session import HttpSession
from whisper_tui.transports.mcp.http_site import McpSite
from whisper_tui.transports.mcp.relay import Relay

TOKEN = "a-token"
OPENING = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}},
}
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "execute_command", "arguments": ECHO, "_meta": {"progressToken": 9}},
}


class Place:
    """A server on a port of its own."""

    def __init__(self, site, port):
        self.site = site
        self.url = f"http://127.0.0.1:{port}"
        self.hooks = []

    def http(self, **headers):
        known = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
        return httpx2.AsyncClient(base_url=self.url, headers=known | headers, timeout=30)

    @asynccontextmanager
    async def agent(self, mode="auto"):
        """The official client."""
        async with (
            self.http() as http,
            Client(streamable_http_client(f"{self.url}/mcp", http_client=http), mode=mode) as client,
        ):
            yield client

    @asynccontextmanager
    async def bare(self):
        """Plain requests of a session that has begun."""
        async with self.http() as http:
            http.headers["Mcp-Session-Id"] = (await http.post("/mcp", json=OPENING)).headers["mcp-session-id"]
            yield http


@pytest.fixture
async def place(endpoint, bench):
    def look():
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(endpoint.path))
        return connection

    def opened():
        session = HttpSession()
        relay = Relay(lambda _starting: look(), look, session.receive, root=str(bench.workspace), over_http=True)
        return session.with_relay(relay)

    async def ask_hook(client, asked, deadline):
        made.hooks.append((client, asked, deadline))
        if asked == '"pass"':
            return None
        if asked == '"broken"':
            raise Unavailable("there is no supervisor", hint="Start one")
        if asked == '"wait"':
            try:
                await asyncio.Event().wait()
            finally:
                made.hooks.append("left")
        return {"hookSpecificOutput": {"permissionDecision": "deny"}}

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        made = Place(McpSite(TOKEN, port, opened, ask_hook), port)
        server = uvicorn.Server(uvicorn.Config(made.site, lifespan="off", log_level="warning"))
        serving = asyncio.create_task(server._serve([listening]))
        async with asyncio.timeout(60):
            while not server.started:
                await asyncio.sleep(0.01)
        yield made
        await made.site.close()
        server.should_exit = True
        await serving


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_waits_for_the_human_and_its_answer_comes_over_http(place, human, mode):
    async with place.agent(mode) as client:
        assert {"execute_command", "wait"} <= {tool.name for tool in (await client.list_tools()).tools}
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.approve_and_run()
        result = await asyncio.wait_for(call, 60)
    assert result.structured_content == RESULT


async def test_each_agent_has_a_session_that_ends_when_it_says_so(place, bench):
    sessions = bench.supervisor._store.board.sessions
    async with place.agent() as first, place.agent() as second:
        await first.list_tools()
        await second.list_tools()
        assert [session.closed_at for session in sessions.values()] == [None, None]
        assert {session.client.name for session in sessions.values()} == {"mcp"}
    async with asyncio.timeout(60):
        while any(session.closed_at is None for session in sessions.values()):
            await asyncio.sleep(0.01)


async def test_progress_reaches_the_request_that_it_is_about(place, human):
    said = []

    async def note(_progress, _total, message):
        said.append(message)

    async with place.agent() as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO, progress_callback=note))
        await human.waiting()
        async with asyncio.timeout(60):
            while "waiting for a human (0 ahead)" not in said:
                await asyncio.sleep(0.01)
        await human.approve_and_run()
        await asyncio.wait_for(call, 60)


async def test_calls_at_the_same_time_are_answered_each_for_itself(place, human):
    async with place.agent() as client:
        calls = [asyncio.create_task(client.call_tool("execute_command", {"command": f"c{n}"})) for n in range(3)]
        for number in ("1", "2", "3"):
            await human.waiting(number)
        for number in ("3", "1", "2"):
            await human.approve_and_run(number)
        for call in calls:
            assert (await asyncio.wait_for(call, 60)).structured_content == RESULT


async def test_a_closed_connection_leaves_its_call_and_the_same_request_gets_its_answer(place, human, bench):
    async with place.bare() as http:
        async with http.stream("POST", "/mcp", json=CALL) as response:
            assert response.headers["content-type"] == "text/event-stream"
            await human.waiting()
        record = await human.left()
        assert record.agent_gave_up == "the agent cancelled it: its HTTP connection was closed"
        again = asyncio.create_task(http.post("/mcp", json=CALL | {"id": 2}))
        await bench.eventually("1", lambda record: record.agent_gave_up is None)
        await human.approve_and_run()
        answer = (await asyncio.wait_for(again, 60)).text.rpartition("data: ")[2]
    assert json.loads(answer)["result"]["structuredContent"] == RESULT


async def test_a_request_that_is_cancelled_ends_without_an_answer(place, human):
    async with place.bare() as http:
        call = asyncio.create_task(http.post("/mcp", json=CALL))
        await human.waiting()
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        assert (await http.post("/mcp", json=cancelled)).status_code == 202
        assert '"result"' not in (await asyncio.wait_for(call, 60)).text
        assert (await human.left()).state.kind == "waiting"


async def test_an_agent_that_listens_holds_one_stream(place):
    async with place.bare() as http, http.stream("GET", "/mcp") as stream:
        assert stream.status_code == 200
        assert (await http.get("/mcp")).status_code == 409


async def test_an_ended_http_session_cannot_be_used(place):
    async with place.bare() as http:
        assert (await http.delete("/mcp")).status_code == 204
        answer = await http.post("/mcp", json=CALL)
    assert answer.status_code == 404 and "no such session" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"]
)
@pytest.mark.parametrize("path", ["/mcp", "/hook/claude", "/elsewhere"])
async def test_without_the_token_nothing_is_answered(place, bench, authorization, path):
    async with place.http(Authorization=authorization) as http:
        answer = await http.post(path, json=OPENING)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "--show-token" in answer.json()["error"]["message"]
    assert bench.supervisor._store.board.sessions == {}


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://localhost:1"},
        {"Origin": ""},
    ],
)
async def test_other_names_and_other_pages_are_refused_though_they_know_the_token(place, bench, headers):
    async with place.http(**headers) as http:
        answer = await http.post("/mcp", json=OPENING)
    assert answer.status_code == 403
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert bench.supervisor._store.board.sessions == {}


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
@pytest.mark.parametrize(("path", "allowed"), [("/mcp", "GET, POST, DELETE"), ("/hook/claude", "POST")])
async def test_other_methods_are_refused_with_those_that_do_something(place, method, path, allowed):
    async with place.http() as http:
        answer = await http.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        ("{", {}, 400),
        ("[]", {}, 400),
        ('{"jsonrpc": "1.0"}', {}, 400),
        ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', {}, 400),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping"}', {"Content-Type": "text/plain"}, 415),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping"}', {"Accept": "application/json"}, 406),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping"}', {"Mcp-Session-Id": "another"}, 404),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "x": "' + "x" * 3000 + '"}', {}, 413),
    ],
)
async def test_unanswerable_requests_are_refused_with_a_sentence(place, monkeypatch, content, headers, status):
    monkeypatch.setattr(http_site, "LARGEST", 2000)
    async with place.bare() as http:
        answer = await http.post("/mcp", content=content, headers={"Content-Type": "application/json"} | headers)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


async def test_a_request_before_any_session_is_told_how_to_begin(place):
    async with place.http() as http:
        answer = await http.post("/mcp", json=CALL)
    assert answer.status_code == 400 and "begin with `initialize`" in answer.json()["error"]["message"]


async def test_there_are_no_more_sessions_than_a_bound(place, monkeypatch):
    monkeypatch.setattr(http_site, "MOST_SESSIONS", 1)
    async with place.bare(), place.http() as http:
        assert (await http.post("/mcp", json=OPENING)).status_code == 503
        monkeypatch.setattr(http_site, "IDLE_S", -1.0)
        assert (await http.post("/mcp", json=OPENING)).status_code == 200, "one that says nothing makes room"


async def test_a_hook_is_asked_over_http(place):
    async with place.http() as http:
        assert (await http.post("/hook/claude", json="ask")).json()["hookSpecificOutput"][
            "permissionDecision"
        ] == "deny"
        passes = await http.post("/hook/claude", json="pass", params={"deadline": "86100"})
        assert (passes.status_code, passes.content) == (200, b"")
        broken = await http.post("/hook/claude", json="broken")
        assert broken.status_code == 503 and "there is no supervisor" in broken.json()["error"]["message"]
        assert (await http.post("/hook/claude", json="ask", params={"deadline": "soon"})).status_code == 400
    assert place.hooks[:2] == [("claude", '"ask"', 570.0), ("claude", '"pass"', 86100.0)]


async def test_a_hook_whose_connection_is_closed_has_stopped_waiting(place):
    async with place.http() as http:
        waits = asyncio.create_task(http.post("/hook/claude", json="wait"))
        async with asyncio.timeout(60):
            while not place.hooks:
                await asyncio.sleep(0.01)
        waits.cancel()
        async with asyncio.timeout(60):
            while "left" not in place.hooks:
                await asyncio.sleep(0.01)
