"""The gateway in front of another MCP server: everything passes but calls of tools, which a human decides."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import mcp_types as types
import psutil
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.outside import outside_only
from tests.transports.test_end_to_end import PATIENCE_S, Place, answer, asked
from whisper_tui.transports.json_lines import LineWriter

pytestmark = outside_only
SERVER = str(Path(__file__).with_name("gateway_server.py"))
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "raw-client", "version": "9"},
}


class GatewayPlace(Place):
    """An instance, and agents that reach the scripted server through the gateway alone."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.log = directory / "received"

    def words(self, *server: str, through: str = "scripted") -> list[str]:
        # What decides here descends from this process, so that another one has to be the agent.
        self.ready()
        begin = ["sh", "-c", '"$@"; exit $?', "agent", sys.executable, "-m", "whisper_tui", "mcp"]
        command = server or (sys.executable, SERVER, str(self.log))
        places = ["--home", str(self.home), "--root", str(self.workspace)]
        return [*begin, *places, "--through", through, "--", *command]

    @asynccontextmanager
    async def client(self, **settings: Any) -> AsyncIterator[Client]:
        words = self.words()
        relay = StdioServerParameters(command=words[0], args=words[1:])
        async with Client(stdio_client(relay), mode="legacy", **settings) as client:
            yield client

    @asynccontextmanager
    async def lines(self, *server: str, through: str = "scripted") -> AsyncIterator["RawClient"]:
        words = self.words(*server, through=through)
        process = await asyncio.create_subprocess_exec(
            *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, limit=1 << 28
        )
        try:
            yield RawClient(process)
        finally:
            # Not by a signal, which would end the shell and leave the gateway.
            assert process.stdin is not None
            process.stdin.close()
            await asyncio.wait_for(process.communicate(), PATIENCE_S)

    def received(self, method: str) -> list[bytes]:
        """The lines with a method that reached the server."""
        return [line for line in self.log.read_bytes().splitlines() if json.loads(line).get("method") == method]


class RawClient:
    """A client that sends and reads lines as they are."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def send(self, line: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        content = line if isinstance(line, bytes) else json.dumps({"jsonrpc": "2.0", **line}).encode()
        self.process.stdin.write(content + b"\n")
        await self.process.stdin.drain()

    async def call(self, request_id: Any, tool: str, arguments: dict[str, Any] | None = None, **more: Any) -> None:
        params = {"name": tool, "arguments": arguments or {}, **more}
        await self.send({"id": request_id, "method": "tools/call", "params": params})

    async def line(self) -> bytes:
        assert self.process.stdout is not None
        return await asyncio.wait_for(self.process.stdout.readline(), PATIENCE_S)

    async def until(self, request_id: Any) -> dict[str, Any]:
        """The answer to a request; what comes before it is passed over."""
        while line := await self.line():
            with suppress(ValueError):
                message: dict[str, Any] = json.loads(line)
                if message.get("id") == request_id and "method" not in message:
                    return message
        raise AssertionError(f"the gateway ended before it answered {request_id}")


@pytest.fixture
async def place(tmp_path: Path, warm: None) -> AsyncIterator[GatewayPlace]:
    made = GatewayPlace(tmp_path)
    yield made
    await made.stop()


async def ended(place: Place, call_id: str) -> dict[str, Any]:
    return await place.call(lambda row: row["id"] == call_id and row["ending"] is not None, "history")


async def test_lists_of_tools_pass_unchanged_with_their_pages(place):
    async with place.lines() as client:
        await client.send({"id": "i", "method": "initialize", "params": INITIALIZE})
        await client.until("i")
        await client.send({"id": 1, "method": "tools/list"})
        first = await client.until(1)
        await client.send({"id": 2, "method": "tools/list", "params": {"cursor": first["result"]["nextCursor"]}})
        second = await client.until(2)
    (tool,) = first["result"]["tools"]
    assert tool["title"] == "Echo" and tool["annotations"] == {"readOnlyHint": True, "title": "An echo"}
    assert tool["inputSchema"]["x-unknown"] == [1, 2.5] and tool["_meta"] == {"example.org/colour": "green"}
    assert [tool["name"] for tool in second["result"]["tools"]] == ["count"]


@pytest.mark.slow
async def test_everything_but_calls_of_tools_passes_in_both_directions_without_a_question(place):
    heard: list[Any] = []

    async def note(message: Any) -> None:
        heard.append(message)

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        heard.append(params.data)

    async with place.client(message_handler=note, logging_callback=log) as client:
        assert (await client.list_resources()).resources[0].name == "a"
        assert (await client.read_resource("mem://a")).contents[0].text == "content of a"
        await client.subscribe_resource("mem://a")
        assert (await client.list_prompts()).prompts[0].name == "p"
        assert (await client.get_prompt("p", {"who": "you"})).messages[0].content.text == "Hello you"
        reference = types.PromptReference(type="ref/prompt", name="p")
        assert (await client.complete(reference, {"name": "who", "value": "ann"})).completion.values == ["ann!"]
        await client.set_logging_level("warning")
        await client.send_ping()
        async with asyncio.timeout(PATIENCE_S):
            while "level set" not in heard or not any(
                isinstance(one, types.ResourceUpdatedNotification) for one in heard
            ):
                await asyncio.sleep(0.02)
        assert await place.rows("history") == [] and await place.rows("list") == []


@pytest.mark.slow
async def test_an_approved_call_reaches_the_server_and_its_result_the_client_unchanged(place):
    async with place.client() as client:
        await client.list_tools()
        call = asked(client, "echo", {"text": "hi"})
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["tool"] == "mcp__scripted__echo" and row["description"] == "Say the arguments again"
        assert place.received("tools/call") == [] and not call.done()
        await place.run("approve", row["id"])
        result = await answer(call)
        assert result.structured_content == {"text": "hi"} and result.meta == {"kept": 1}
        assert [part.text for part in result.content] == ['{"text": "hi"}']
        assert (await ended(place, row["id"]))["exit_code"] == 0


@pytest.mark.slow
async def test_a_call_that_a_rule_decides_is_asked_of_nobody_and_recorded(place):
    rules = "".join(
        f'[[rules.{effect}]]\nname = "{effect} {tool}"\ntool = "mcp__scripted__{tool}"\nanything = true\n'
        for effect, tool in (("allow", "echo"), ("deny", "count"))
    )
    (place.home / "config" / "config.toml").write_text(rules)
    (place.home / "config" / "config.toml").chmod(0o600)
    async with place.lines() as client:
        for number in range(3):
            await client.call(number, "echo", {"n": number})
            assert (await client.until(number))["result"]["structuredContent"] == {"n": number}
        await client.call("denied", "count")
        denied = (await client.until("denied"))["result"]
        assert denied["isError"] and "Nothing ran" in denied["content"][0]["text"]
        rows = [await ended(place, str(number)) for number in range(1, 5)]
    assert [(row["ending"], row["exit_code"]) for row in rows] == [("exited", 0)] * 3 + [("denied", None)]
    assert [json.loads(line)["params"]["arguments"] for line in place.received("tools/call")] == [
        {"n": number} for number in range(3)
    ]


@pytest.mark.slow
async def test_a_denial_is_an_error_result_with_the_words_of_the_human(place):
    async with place.client() as client:
        call = asked(client, "echo", {"text": "hi"})
        await place.run("deny", await place.waiting(), "--reason", "Ask “Ada” first")
        result = await answer(call)
    assert result.is_error and "Ask “Ada” first" in result.content[0].text and "Nothing ran" in result.content[0].text
    assert place.received("tools/call") == []


@pytest.mark.slow
async def test_edited_arguments_are_what_the_server_gets_and_the_client_is_told(place):
    async with place.client() as client:
        call = asked(client, "echo", {"text": "hi", "more": 1})
        call_id = await place.waiting()
        await place.run("approve", call_id, "--command", '{"text": "changed"}')
        result = await answer(call)
    told, body = (part.text for part in result.content)
    assert told.startswith("The human changed") and '{"text": "changed"}' in told
    assert json.loads(body) == {"text": "changed"} and result.structured_content == {"text": "changed"}
    (line,) = place.received("tools/call")
    assert json.loads(line)["params"]["arguments"] == {"text": "changed"}


@pytest.mark.slow
async def test_a_failed_tool_is_recorded_as_failed_and_its_result_is_unchanged(place):
    async with place.client() as client:
        call = asked(client, "fail", {})
        call_id = await place.waiting()
        await place.run("approve", call_id)
        result = await answer(call)
        assert result.is_error and result.content[0].text == "it failed"
        assert (await ended(place, call_id))["exit_code"] == 1


@pytest.mark.slow
async def test_progress_is_reported_while_a_human_thinks_and_then_by_the_server(place):
    heard: list[tuple[float, str | None]] = []

    async def note(progress: float, _total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with place.client() as client:
        call = asked(client, "count", {}, progress_callback=note)
        call_id = await place.waiting()
        async with asyncio.timeout(PATIENCE_S):
            while not heard:
                await asyncio.sleep(0.02)
        await place.run("approve", call_id)
        await answer(call)
        async with asyncio.timeout(PATIENCE_S):
            while heard[-1][1] != "number 3":
                await asyncio.sleep(0.02)
    assert heard[0][1] is not None and heard[0][1].startswith("waiting for a human")
    assert [progress for progress, _ in heard] == sorted({progress for progress, _ in heard})


@pytest.mark.slow
async def test_progress_says_that_a_human_has_set_the_call_aside_and_it_is_made_once_approved(place):
    heard: list[str | None] = []

    async def note(_progress: float, _total: float | None, message: str | None) -> None:
        heard.append(message)

    async with place.client() as client:
        call = asked(client, "echo", {"text": "hi"}, progress_callback=note)
        call_id = await place.waiting()
        await place.run("aside", call_id)
        async with asyncio.timeout(PATIENCE_S):
            while not any(str(said).startswith("set aside by a human, and still to be decided, in") for said in heard):
                await asyncio.sleep(0.02)
        assert not call.done() and place.received("tools/call") == []
        await place.run("approve", call_id)
        await answer(call)
    assert len(place.received("tools/call")) == 1


@pytest.mark.slow
async def test_a_cancelled_call_that_waits_is_withdrawn_and_never_reaches_the_server(place):
    async with place.client() as client:
        call = asked(client, "echo", {"text": "hi"})
        call_id = await place.waiting()
        call.cancel()
        row = await ended(place, call_id)
        assert row["ending"] == "withdrawn"
        await client.send_ping()
    assert place.received("tools/call") == [] and place.received("notifications/cancelled") == []


@pytest.mark.slow
async def test_the_cancellation_of_a_running_call_reaches_the_server(place):
    async with place.client() as client:
        call = asked(client, "hang", {})
        call_id = await place.waiting()
        await place.run("approve", call_id)
        async with asyncio.timeout(PATIENCE_S):
            while not place.received("tools/call"):
                await asyncio.sleep(0.02)
        call.cancel()
        assert (await ended(place, call_id))["exit_code"] == 1
        async with asyncio.timeout(PATIENCE_S):
            while not place.received("notifications/cancelled"):
                await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_a_server_may_ask_the_client_while_its_tool_runs(place):
    async def sample(_context: Any, _params: Any) -> types.CreateMessageResult:
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="sampled"), model="m"
        )

    async def elicit(_context: Any, _params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def roots(_context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///a")])

    callbacks = {"sampling_callback": sample, "elicitation_callback": elicit, "list_roots_callback": roots}
    async with place.client(**callbacks) as client:
        for tool, word in (("sample", "sampled"), ("elicit", "Ada"), ("roots", "file:///a")):
            call = asked(client, tool, {})
            await place.run("approve", await place.waiting())
            assert word in (await answer(call)).content[0].text


@pytest.mark.slow
async def test_a_changed_list_of_tools_is_announced(place):
    announced = asyncio.Event()

    async def note(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            announced.set()

    async with place.client(message_handler=note) as client:
        call = asked(client, "grow", {})
        await place.run("approve", await place.waiting())
        await answer(call)
        await asyncio.wait_for(announced.wait(), PATIENCE_S)


@pytest.mark.slow
async def test_notifications_of_the_client_reach_the_server_as_they_are(place):
    told = [
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.50}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"of nothing that waits"}}',
    ]
    async with place.lines() as client:
        for line in told:
            await client.send(line)
        await client.send({"id": 1, "method": "x/echo", "params": {}})
        await client.until(1)
    assert place.log.read_bytes().splitlines()[:-1] == told


async def test_notifications_of_the_server_reach_the_client_in_their_order_with_its_answer_last(place):
    messages = [
        {"method": f"notifications/{name}", "params": params}
        for name, params in (
            ("tools/list_changed", {}),
            ("prompts/list_changed", {"_meta": {"a": 1}}),
            ("resources/list_changed", {}),
            ("progress", {"progressToken": 7, "progress": 1}),
            ("x/unknown", {"é": [1.0]}),
        )
    ]
    async with place.lines() as client:
        await client.send({"id": 1, "method": "x/say", "params": {"messages": messages}})
        heard = [json.loads(await client.line()) for _ in range(len(messages) + 1)]
    assert heard[:-1] == [{"jsonrpc": "2.0", **message} for message in messages] and heard[-1]["id"] == 1


@pytest.mark.slow
async def test_the_server_may_use_the_id_of_a_call_for_its_own_requests_and_cancel_them(place):
    requests = [
        {"id": 5, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        {"method": "notifications/cancelled", "params": {"requestId": 5, "reason": "too late"}},
    ]
    async with place.lines() as client:
        await client.call(5, "echo", {"mine": True})
        call_id = await place.waiting()
        await client.send({"id": 6, "method": "x/say", "params": {"messages": requests}})
        heard = [json.loads(await client.line()) for _ in range(3)]
        assert [message.get("method") for message in heard] == [*(one["method"] for one in requests), None]
        # The answer to the server's request 5 is no answer to call 5, which still waits.
        await client.send(b'{"jsonrpc":"2.0","id":5,"result":{"of":"the client"}}')
        await place.run("approve", call_id)
        assert (await client.until(5))["result"]["structuredContent"] == {"mine": True}
    assert b'{"jsonrpc":"2.0","id":5,"result":{"of":"the client"}}' in place.log.read_bytes().splitlines()


@pytest.mark.slow
async def test_the_words_about_tools_of_later_pages_reach_the_human(place):
    async with place.client() as client:
        await client.list_tools()
        await client.list_tools(cursor="two")
        counting = asked(client, "count", {}, progress_callback=_ignored)
        row = await place.call(lambda row: row["state"] == "waiting")
        assert row["description"] == "Count slowly"
        await place.run("approve", row["id"])
        await answer(counting)


async def _ignored(_progress: float, _total: float | None, _message: str | None) -> None:
    """Progress has to be asked for."""


@pytest.mark.slow
async def test_an_error_of_the_protocol_passes_unchanged_and_is_recorded_as_a_failure(place):
    async with place.lines() as client:
        await client.call(1, "no such tool")
        call_id = await place.waiting()
        await place.run("approve", call_id)
        assert (await client.until(1))["error"] == {"code": -32601, "message": "unknown: 'no such tool'"}
        assert (await ended(place, call_id))["exit_code"] == 1


@pytest.mark.slow
async def test_lines_reach_the_server_byte_for_byte(place):
    odd = [
        b'{"jsonrpc":"2.0" ,"id":1.50,"method":"x\\/echo","params":{"big":123456789012345678901234567890,"f":1.0e+2}}',
        b'{"id":"\\u00e4","params":{"e":"\xc3\xa9\\u0000"},"method":"x/echo","jsonrpc":"2.0","future":[null]}',
        b'{"jsonrpc":"2.0","method":"notifications/x/unknown","params":[1,2,3]}',
    ]
    async with place.lines() as client:
        for line in odd:
            await client.send(line)
        await client.until("ä")
        await client.call("c", "echo", {"n": 1})
        await place.run("approve", await place.waiting())
        await client.until("c")
    received = place.log.read_bytes().splitlines()
    assert received[:3] == odd
    assert (
        received[3]
        == json.dumps(
            {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "echo", "arguments": {"n": 1}}}
        ).encode()
    )


READ_AS_ANOTHER_CALL = (
    b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"echo"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"echo"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Arguments":{"a":2}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["echo"]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}',
    b'{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"echo"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":NaN}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call"',
    b'"tools/call"',
    b"\xff\xfe{",
    b"[" * 100_000,
)


@pytest.mark.slow
async def test_a_line_that_a_server_could_read_as_another_call_is_refused(place):
    async with place.lines() as client:
        for number, line in enumerate(READ_AS_ANOTHER_CALL, start=1):
            await client.send(line)
            assert "error" in json.loads(await client.line()), line[:100]
            await client.send({"id": f"after {number}", "method": "x/echo", "params": {}})
            await client.until(f"after {number}")
            assert len(place.log.read_bytes().splitlines()) == number, line[:100]


@pytest.mark.slow
async def test_characters_at_which_a_server_may_end_a_line_do_not_reach_it(place):
    inner = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo"}}'
    lines = [
        '{"jsonrpc":"2.0","id":1,"method":"x/echo",\r"params":{}}',
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "x/echo", "params": {"a": f"\u2028{inner}\u2029\x85"}}),
    ]
    async with place.lines() as client:
        await client.send(lines[0].encode())
        await client.send(json.dumps(json.loads(lines[1]), ensure_ascii=False).encode())
        assert (await client.until(2))["result"]["params"]["a"] == f"\u2028{inner}\u2029\x85"
    assert len(place.log.read_text().splitlines()) == 2


@pytest.mark.slow
async def test_a_call_without_an_id_and_a_second_one_with_the_same_id_are_not_forwarded(place):
    async with place.lines() as client:
        await client.send({"method": "tools/call", "params": {"name": "echo"}})
        await client.call(1, "echo")
        call_id = await place.waiting()
        await client.call(1, "echo", {"another": True})
        assert "error" in await client.until(1)
        await place.run("approve", call_id)
        await client.until(1)
    assert len(place.received("tools/call")) == 1


@pytest.mark.slow
async def test_calls_in_a_batch_are_held_like_others(place):
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "x/echo", "params": {}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}},
    ]
    async with place.lines() as client:
        await client.send(json.dumps(batch).encode())
        await client.until(1)
        call_id = await place.waiting()
        assert place.received("tools/call") == []
        await place.run("approve", call_id)
        assert "result" in await client.until(2)


@pytest.mark.slow
async def test_an_answer_to_a_call_that_the_server_was_not_sent_is_dropped(place):
    async with place.lines() as client:
        await client.call(1, "echo", {"real": True})
        call_id = await place.waiting()
        await client.send({"id": 2, "method": "x/answer", "params": {"id": 1}})
        await client.until(2)
        await place.run("approve", call_id)
        assert (await client.until(1))["result"]["structuredContent"] == {"real": True}


@pytest.mark.slow
async def test_a_misbehaving_server_reaches_the_client_as_it_is_and_breaks_nothing(place):
    async with place.lines() as client:
        tools: list[tuple[str, dict[str, Any]]] = [
            ("garbage", {}),
            ("stranger", {}),
            ("escapes", {}),
            ("huge", {"size": 20_000_000}),
        ]
        found = {}
        for number, (tool, arguments) in enumerate(tools, 1):
            await client.call(number, tool, arguments)
            await place.run("approve", await place.waiting())
            if tool in {"garbage", "stranger"}:
                found[tool] = await client.line()
            found[number] = (await client.until(number))["result"]["content"][0]["text"]
        assert found["garbage"] == b"this is {no JSON\n" and b"nobody-asked-this" in found["stranger"]
        assert found[3] == "\x1b]0;title\x07\x1b[2J\x9b31m red\u202e" and len(found[4]) == 20_000_000


@pytest.mark.parametrize("make", [os.pipe, lambda: tuple(one.detach() for one in socket.socketpair())])
async def test_a_reader_that_pauses_gets_every_line_whole_and_in_order_and_delays_nobody(make):
    one, other = make()
    reading, writing = (one, other) if make is os.pipe else (other, one)
    writer = LineWriter(writing, lambda: None)
    lines = [b"%d:" % number + b"x" * size for number, size in enumerate([10, 4096, 3_000_000, 1, 500_000, 70, 4095])]
    for line in lines:
        # Nothing reads meanwhile, so that a writer that waits would never come to the last one.
        writer.put(line)
    found = bytearray()
    while len(found) < sum(len(line) + 1 for line in lines):
        found += await asyncio.to_thread(os.read, reading, 1 << 16)
    assert found == b"".join(line + b"\n" for line in lines)
    writer.finish(PATIENCE_S)
    os.close(reading)
    os.close(writing)


async def test_a_reader_that_is_gone_is_noticed_once():
    noticed: list[None] = []
    reading, writing = os.pipe()
    writer = LineWriter(writing, lambda: noticed.append(None))
    os.close(reading)
    for line in (b"x", b"y" * 10_000, b"z"):
        writer.forward(line)
    writer.finish(PATIENCE_S)
    assert noticed == [None]
    os.close(writing)


@pytest.mark.slow
async def test_a_line_without_an_end_ends_the_server(place):
    endless = "import os\nwhile True: os.write(1, b'x' * 1000000)"
    async with place.lines(sys.executable, "-c", endless) as client:
        assert await client.line() == b""
        assert b"more than" in (await client.process.communicate())[1]


@pytest.mark.slow
async def test_a_server_that_dies_ends_the_connection_and_waiting_calls_are_withdrawn(place):
    async with place.lines() as client:
        await client.call("waits", "echo")
        waits = await place.waiting()
        await client.call("dies", "die")
        dies = (await place.call(lambda row: row["id"] != waits))["id"]
        await place.run("approve", dies)
        assert "Nothing ran" in (await client.until("waits"))["result"]["content"][0]["text"]
        assert await client.line() == b""
        assert await asyncio.wait_for(client.process.wait(), PATIENCE_S) == 7
    assert (await ended(place, waits))["ending"] == "withdrawn"
    assert (await ended(place, dies))["exit_code"] == 1


@pytest.mark.slow
async def test_the_server_ends_with_the_client_and_its_errors_are_passed_through(place):
    async with place.lines() as client:
        await client.call(1, "echo")
        call_id = await place.waiting()
        assert client.process.stdin is not None and client.process.stderr is not None
        client.process.stdin.close()
        assert await client.process.stderr.readline() == b"scripted server: started\n"
        assert await asyncio.wait_for(client.process.wait(), PATIENCE_S) == 0
    assert (await ended(place, call_id))["ending"] == "withdrawn"
    assert place.received("tools/call") == []


@pytest.mark.slow
async def test_a_server_that_ignores_its_end_is_killed(place):
    stubborn = "import os,signal,time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\n"
    async with place.lines(sys.executable, "-c", stubborn + "while True: time.sleep(1)") as client:
        pid = int(await client.line())
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert await asyncio.wait_for(client.process.wait(), PATIENCE_S) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.slow
async def test_the_calls_of_a_killed_gateway_do_not_wait_for_ever(place):
    async with place.lines() as client:
        await client.call(1, "hang")
        runs = await place.waiting()
        await place.run("approve", runs)
        async with asyncio.timeout(PATIENCE_S):
            while not place.received("tools/call"):
                await asyncio.sleep(0.02)
        await client.call(2, "echo")
        waits = (await place.call(lambda row: row["state"] == "waiting"))["id"]
        (gateway,) = psutil.Process(client.process.pid).children()
        gateway.kill()
        waiting, running = await ended(place, waits), await ended(place, runs)
        assert (waiting["ending"], running["ending"]) == ("withdrawn", "lost")
        assert await place.rows("list") == []


@pytest.mark.slow
async def test_without_a_supervisor_calls_are_refused_and_the_rest_works(place):
    async with place.lines() as client:
        await client.call(1, "echo")
        await place.run("deny", await place.waiting())
        await client.until(1)
        # Only a human may start it again now.
        await place.run("stop")
        await client.call(2, "echo")
        result = (await client.until(2))["result"]
        assert result["isError"] and "Nothing ran" in result["content"][0]["text"]
        await client.send({"id": 3, "method": "x/echo", "params": {}})
        await client.until(3)
    assert place.received("tools/call") == []


@pytest.mark.slow
async def test_a_call_whose_supervisor_is_killed_is_refused_and_the_next_one_is_asked_again(place):
    async with place.lines() as client:
        await client.call(1, "echo")
        await place.waiting()
        os.kill((await place.rows("status"))["pid"], signal.SIGKILL)
        assert (await client.until(1))["result"]["isError"]
        assert place.received("tools/call") == []
        await client.call(2, "echo", {"again": True})
        row = await place.call(lambda row: "again" in str(row["command"]))
        await place.run("approve", row["id"])
        assert (await client.until(2))["result"]["structuredContent"] == {"again": True}


@pytest.mark.slow
async def test_the_configuration_file_names_the_server(place):
    table = f'[mcp.servers.mine]\ncommand = ["{sys.executable}", "{SERVER}", "{place.log}"]\nenv = {{ MINE = "1" }}\n'
    (place.home / "config" / "config.toml").write_text(table)
    (place.home / "config" / "config.toml").chmod(0o600)
    words = place.words(through="mine")
    process = await asyncio.create_subprocess_exec(
        *words[: words.index("--")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    client = RawClient(process)
    await client.call(1, "echo")
    row = await place.call(lambda row: row["state"] == "waiting")
    assert row["tool"] == "mcp__mine__echo"
    await place.run("approve", row["id"])
    await client.until(1)
    assert process.stdin is not None
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--through", "none"], "has no [mcp.servers.none]"),
        (["--", "cat"], "--through NAME"),
        (["--through", "x", "--http", "--", "cat"], "standard input and output"),
        (["--through", "a\nb", "--", "cat"], "cannot be the name"),
        (["--through", "x", "--", "/no/such/program"], "cannot be started"),
    ],
)
async def test_a_wrong_command_line_is_explained(place, words, said):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "whisper_tui", "mcp", "--home", str(place.home), *words),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert said in err.decode() and process.returncode
