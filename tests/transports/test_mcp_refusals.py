"""What the MCP door does with cancellations and with bad input."""

import asyncio

import pytest

from tests.transports.endpoint_server import ECHO, RESULT
from whisper_tui.model.ending import Exited
from whisper_tui.transports.mcp.mcp_session import LONGEST_LINE


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "The argument 'command' is missing"),
        ({"command": "ls", "shell": True}, "has no argument 'shell'"),
        ({"command": "ls", "timeout": True}, "The argument 'timeout' must be an integer from 1 to 120"),
        ({"command": "ls", "timeout": 1.5}, "the number 1.5 was given"),
        ({"command": "ls", "timeout": 121}, "the integer 121 was given"),
        ({"command": ["ls"]}, "The argument 'command' must be a string; an array was given"),
        ({"command": "ls", "wait_for_previous": True}, "has no argument 'wait_for_previous'"),
    ],
)
async def test_wrong_arguments_are_a_tool_error_that_names_them_and_nothing_starts(endpoint, bench, arguments, words):
    async with endpoint.client() as client:
        result = await client.call_tool("execute_command", arguments)
    assert result.is_error is True
    assert words in result.content[0].text
    assert bench.supervisor._store.board.calls == {}


async def test_an_unknown_tool_is_a_protocol_error_that_lists_the_tools(endpoint):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "rm_rf", {})
        error = (await agent.receive_answer(1))["error"]
    assert error["code"] == -32602
    assert "There are: " in error["message"]
    assert "execute_command, " in error["message"] and "run_shell_command" in error["message"]


@pytest.mark.parametrize("request_id", [7, "seven"])
async def test_a_cancelled_call_waits_on_marked_and_is_not_answered(endpoint, human, bench, request_id):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(request_id, "execute_command", ECHO)
        await human.waiting()
        agent.cancel(request_id, "AbortError: user pressed Esc")
        record = await human.left()
        assert record.state.kind == "waiting"
        assert record.agent_gave_up == "the agent cancelled it: AbortError: user pressed Esc"
        agent.request(8, "ping", {})
        assert (await agent.receive())["id"] == 8


async def test_a_cancelled_call_waits_on_in_the_era_without_a_handshake_too(endpoint, human):
    async with endpoint.client(mode="2026-07-28") as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.waiting()
        call.cancel()
        assert (await human.left()).state.kind == "waiting"


async def test_a_running_command_goes_on_when_its_agent_cancels_and_is_marked(endpoint, human, bench):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await human.waiting()
        await bench.approve("1")
        bench.executor.spawn(await bench.ordered("1"))
        await bench.state("1", "running")
        agent.cancel(1)
        record = await bench.eventually("1", lambda record: record.agent_gave_up is not None)
        assert record.state.kind == "running"
        assert bench.executor.ended == []


async def test_a_cancellation_of_an_answered_or_unknown_request_changes_nothing(endpoint, human, bench):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await human.approve_and_run()
        await agent.receive_answer(1)
        before = await bench.record("1")
        agent.cancel(1, "AbortError")
        agent.cancel(99)
        agent.call(2, "execute_command", ECHO)
        await human.approve_and_run("2")
        assert "result" in await agent.receive_answer(2)
        assert (await bench.record("1")).state.ending == before.state.ending == Exited(code=0)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("this is not JSON", -32700),
        ('{"jsonrpc": "2.0", "id": 1, "method"', -32700),
        ('{"hello": "world"}', -32600),
        ("[]", -32600),
        ("17", -32600),
    ],
)
async def test_a_line_that_is_no_message_is_answered_and_loses_nothing(endpoint, human, line, code):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await human.waiting()
        agent.send(line)
        refusal = await agent.receive()
        assert (refusal["id"], refusal["error"]["code"]) == (None, code)
        await human.approve_and_run()
        assert (await agent.receive_answer(1))["result"]["structuredContent"] == RESULT


@pytest.mark.parametrize("params", ["[1, 2]", '"\\ud800"', "7"])
async def test_a_request_with_impossible_params_is_refused_by_its_id(endpoint, params):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.send('{"jsonrpc": "2.0", "id": "x1", "method": "tools/call", "params": ' + params + "}")
        refusal = await agent.receive()
        assert (refusal["id"], refusal["error"]["code"]) == ("x1", -32600)
        agent.request(8, "ping", {})
        assert (await agent.receive())["id"] == 8


async def test_a_message_beyond_all_bounds_is_refused_and_the_connection_goes_on(endpoint, monkeypatch):
    monkeypatch.setattr("whisper_tui.transports.mcp.mcp_session.LONGEST_LINE", 1000)
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.send("x" * 600_000)
        assert "longer than" in (await agent.receive())["error"]["message"]
        agent.request(8, "ping", {})
        assert (await agent.receive())["id"] == 8
    assert LONGEST_LINE >= 16 * 1024 * 1024


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"session": {"name": "x"}}, "root: Field required"),
        ({"session": {"name": "x", "root": "/no/such/workspace"}}, "is not a directory"),
        ({"session": {"name": "x", "root": "/", "surprise": 1}}, "surprise"),
    ],
)
async def test_a_wrong_hello_is_answered_with_what_is_wrong(endpoint, bench, change, words):
    async with endpoint.lines(endpoint.hello() | change) as agent:
        error = agent.greeting["error"]
        assert error["kind"] == "invalid_request"
        assert words in error["message"]
        assert await agent.reader.read() == b""
    assert bench.supervisor._store.board.sessions == {}


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "id": "\\udfff", "method": "ping"}',
        "[" * 100_000,
        '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + '{"a":' * 5_000 + "1" + "}" * 5_001,
    ],
    ids=["half a character as id", "lists in lists", "objects in objects"],
)
async def test_a_line_that_cannot_be_answered_by_its_id_does_not_end_the_conversation(endpoint, line):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.send(line)
        assert (await agent.receive())["error"]["code"] in {-32700, -32600}
        agent.request(8, "ping", {})
        assert (await agent.receive())["id"] == 8


async def test_a_workspace_with_a_name_that_no_system_takes_is_refused(endpoint):
    async with endpoint.lines(endpoint.hello(root="/" + "x" * 4000)) as agent:
        assert "is not a directory" in agent.greeting["error"]["message"]
