"""The MCP door: both eras of the protocol, exact answers, decisions told, cancellations and bad input."""

import asyncio
import json

import pytest

from whisper_tui.model.command import Argv, CommandSpec
from whisper_tui.model.ending import Exited, FailedToStart, Withdrawn
from whisper_tui.transports.goodbye import METHOD as GOODBYE_METHOD
from whisper_tui.transports.mcp_lines import LONGEST_LINE

ECHO = {"command": "echo", "args": ["hi"]}
RESULT = {"stdout": "hi\n", "stderr": "", "return_code": 0, "timed_out": False}


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_a_call_waits_for_the_human_and_is_answered_in_every_era(doorway, desk, mode):
    async with doorway.client(mode=mode) as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await desk.waiting()
        assert not call.done()
        await desk.approve_and_run()
        result = await asyncio.wait_for(call, 30)
    assert result.is_error is False
    assert result.structured_content == RESULT
    assert list(result.structured_content) == ["stdout", "stderr", "return_code", "timed_out"]
    assert json.loads(result.content[0].text) == RESULT


async def test_a_null_return_code_reaches_the_client_as_a_key_with_null(doorway, desk, bench):
    async with doorway.client() as client:
        call = asyncio.create_task(client.call_tool("execute_command", {"command": "no-such-program-here"}))
        await desk.waiting()
        await bench.approve("1")
        key = await bench.ordered("1")
        bench.executor.finish(
            key, FailedToStart(problem="program_not_found", subject="no-such-program-here", message="not found")
        )
        result = await asyncio.wait_for(call, 30)
    assert result.structured_content["return_code"] is None
    assert result.structured_content["stderr"] == "Error: Command not found: no-such-program-here"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_tools_are_listed_truthfully_and_at_once(doorway, mode):
    async with doorway.client(mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"execute_command", "run_shell_command"}
    for tool in tools.values():
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is None
        assert tool.meta["anthropic/alwaysLoad"] is True
        assert not tool.annotations.read_only_hint
        assert tool.annotations.destructive_hint
        assert tool.annotations.open_world_hint


async def test_the_server_says_how_it_works(doorway):
    async with doorway.lines() as agent:
        result = (await agent.initialize())["result"]
    assert result["serverInfo"]["name"] == "whisper_tui"
    assert "human" in result["instructions"]
    assert result["protocolVersion"] == "2025-06-18"


async def test_the_session_learns_which_client_it_is(doorway, bench):
    async with doorway.client(name="codex-mcp-client", mode="legacy") as client:
        await client.list_tools()
        (session,) = bench.supervisor._ledger.board.sessions.values()
        assert (session.client.name, session.client.version) == ("codex-mcp-client", "1.0")


async def test_a_denial_reaches_the_client_word_for_word_as_an_error(doorway, desk, bench):
    reason = 'Not on "prod" — use the staging\tcluster <first> & ask me.'
    async with doorway.client() as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await desk.waiting()
        await bench.deny("1", reason)
        result = await asyncio.wait_for(call, 30)
    assert result.is_error is True
    assert result.structured_content is None
    assert reason in result.content[0].text
    assert "Nothing ran" in result.content[0].text


async def test_an_edited_run_is_told_in_text_that_every_client_shows(doorway, desk, bench):
    async with doorway.client() as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        edited = CommandSpec(command=Argv(program="echo", args=("safer",)), cwd=str(bench.workspace), timeout_s=60)
        await desk.approve_and_run(edited=edited)
        result = await asyncio.wait_for(call, 30)
    assert result.structured_content is None
    note, body = (part.text for part in result.content)
    assert note == "The human changed the command before it ran. What ran: echo safer."
    assert json.loads(body) == RESULT
    assert result.meta["whisper-tui/told"] == note


async def test_a_remembered_approval_is_told(doorway, desk, bench):
    async with doorway.client() as client:
        first = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await desk.approve_and_run(remember="exact_for_session")
        await asyncio.wait_for(first, 30)
        second = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await desk.run("2")
        result = await asyncio.wait_for(second, 30)
    assert "had approved this same command for the session" in result.content[0].text


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
async def test_wrong_arguments_are_a_tool_error_that_names_them_and_nothing_starts(doorway, bench, arguments, words):
    async with doorway.client() as client:
        result = await client.call_tool("execute_command", arguments)
    assert result.is_error is True
    assert words in result.content[0].text
    assert bench.supervisor._ledger.board.calls == {}


async def test_the_key_that_gemini_adds_is_dropped_for_gemini(doorway, desk, bench):
    async with doorway.client(name="gemini-cli-mcp-client", mode="legacy") as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO | {"wait_for_previous": True}))
        await desk.approve_and_run()
        assert (await asyncio.wait_for(call, 30)).is_error is False
    assert (await bench.record("1")).call.arguments == ECHO


async def test_an_unknown_tool_is_a_protocol_error_that_lists_the_tools(doorway):
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.call(1, "rm_rf", {})
        error = (await agent.receive_answer(1))["error"]
    assert error["code"] == -32602
    assert "execute_command, run_shell_command" in error["message"]


async def test_progress_grows_and_says_how_many_are_ahead_and_what_runs(doorway, desk, bench):
    seen: list[tuple[float, str]] = []

    async def note(progress, _total, message):
        seen.append((progress, message))

    async def said(words):
        async with asyncio.timeout(30):
            while not any(words in message for _, message in seen):
                await asyncio.sleep(0.01)

    async with doorway.client() as client:
        first = asyncio.create_task(client.call_tool("execute_command", {"command": "first"}))
        await desk.waiting("1")
        second = asyncio.create_task(client.call_tool("execute_command", ECHO, progress_callback=note))
        await desk.waiting("2")
        await said("waiting for a human (1 ahead)")
        await bench.deny("1", "no")
        await said("waiting for a human (0 ahead)")
        await bench.approve("2")
        bench.executor.spawn(await bench.ordered("2"), pid=777)
        await said("running, pid 777, ")
        bench.executor.finish(await bench.ordered("2"))
        await asyncio.wait_for(second, 30)
        await first
    numbers = [progress for progress, _ in seen]
    assert numbers == sorted(set(numbers))


async def test_no_progress_is_sent_to_a_client_that_did_not_ask_for_it(doorway, desk):
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await desk.approve_and_run()
        assert (await agent.receive())["id"] == 1


@pytest.mark.parametrize("request_id", [7, "seven"])
async def test_a_cancellation_withdraws_a_waiting_call_and_is_not_answered(doorway, desk, request_id):
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.call(request_id, "execute_command", ECHO)
        await desk.waiting()
        agent.cancel(request_id, "AbortError: user pressed Esc")
        record = await desk.withdrawn()
        assert record.state.ending == Withdrawn(why="the agent cancelled it: AbortError: user pressed Esc")
        agent.request(8, "ping", {})
        assert (await agent.receive())["id"] == 8


async def test_a_cancellation_in_the_era_without_a_handshake_withdraws_too(doorway, desk):
    async with doorway.client(mode="2026-07-28") as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await desk.waiting()
        call.cancel()
        assert isinstance((await desk.withdrawn()).state.ending, Withdrawn)


async def test_a_running_command_goes_on_when_its_agent_cancels_and_is_marked(doorway, desk, bench):
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await desk.waiting()
        await bench.approve("1")
        bench.executor.spawn(await bench.ordered("1"))
        await bench.state("1", "running")
        agent.cancel(1)
        record = await bench.eventually("1", lambda record: record.agent_gave_up is not None)
        assert record.state.kind == "running"
        assert bench.executor.ended == []


async def test_a_cancellation_of_an_answered_or_unknown_request_changes_nothing(doorway, desk, bench):
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await desk.approve_and_run()
        await agent.receive_answer(1)
        before = await bench.record("1")
        agent.cancel(1, "AbortError")
        agent.cancel(99)
        agent.call(2, "execute_command", ECHO)
        await desk.approve_and_run("2")
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
async def test_a_line_that_is_no_message_is_answered_and_loses_nothing(doorway, desk, line, code):
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await desk.waiting()
        agent.send(line)
        refusal = await agent.receive()
        assert (refusal["id"], refusal["error"]["code"]) == (None, code)
        await desk.approve_and_run()
        assert (await agent.receive_answer(1))["result"]["structuredContent"] == RESULT


@pytest.mark.parametrize("params", ["[1, 2]", '"\\ud800"', "7"])
async def test_a_request_with_impossible_params_is_refused_by_its_id(doorway, params):
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.send('{"jsonrpc": "2.0", "id": "x1", "method": "tools/call", "params": ' + params + "}")
        refusal = await agent.receive()
        assert (refusal["id"], refusal["error"]["code"]) == ("x1", -32600)
        agent.request(8, "ping", {})
        assert (await agent.receive())["id"] == 8


async def test_a_message_beyond_all_bounds_is_refused_and_the_connection_goes_on(doorway, monkeypatch):
    monkeypatch.setattr("whisper_tui.transports.mcp_lines.LONGEST_LINE", 1000)
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.send("x" * 600_000)
        assert "longer than" in (await agent.receive())["error"]["message"]
        agent.request(8, "ping", {})
        assert (await agent.receive())["id"] == 8
    assert LONGEST_LINE > 16 * 1024 * 1024


async def test_a_command_longer_than_any_pipe_arrives_whole(doorway, desk, bench):
    text = "echo " + "ä" * 1_000_000
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.call(1, "run_shell_command", {"command": text})
        await desk.waiting()
    assert (await bench.record("1")).call.spec.command.text == text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "speaks version 1"),
        ({"session": {"name": "x"}}, "root: Field required"),
        ({"session": {"name": "x", "root": "/no/such/workspace"}}, "is not a directory"),
        ({"session": {"name": "x", "root": "/", "surprise": 1}}, "surprise"),
    ],
)
async def test_a_wrong_hello_is_answered_with_what_is_wrong(doorway, bench, change, words):
    async with doorway.lines(doorway.hello() | change) as agent:
        error = agent.greeting["error"]
        assert error["kind"] == "invalid_request"
        assert words in error["message"]
        assert await agent.reader.read() == b""
    assert bench.supervisor._ledger.board.sessions == {}


async def test_a_session_ends_with_its_connection_and_its_waiting_call_goes_on_waiting(doorway, desk, bench):
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await desk.waiting()
    sessions = bench.supervisor._ledger.board.sessions
    async with asyncio.timeout(30):
        while sessions["s1"].closed_at is None:
            await asyncio.sleep(0.01)
    assert sessions["s1"].closed_because == "the agent disconnected"
    assert (await bench.record("1")).state.kind == "waiting"


async def test_an_agent_that_comes_back_and_asks_again_gets_the_answer_of_the_same_call(doorway, desk, bench):
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await desk.waiting()
        session_id = agent.greeting["session_id"]
        async with doorway.lines(doorway.hello(resume=session_id)) as again:
            assert again.greeting["session_id"] == session_id
            await again.initialize()
            again.call(1, "execute_command", ECHO)
            await desk.approve_and_run()
            assert (await again.receive_answer(1))["result"]["structuredContent"] == RESULT
    assert list(bench.supervisor._ledger.board.calls) == ["1"]


async def test_the_old_connection_does_not_end_the_session_that_a_new_one_took_over(doorway, bench):
    async with doorway.lines() as old, doorway.lines(doorway.hello(resume=old.greeting["session_id"])) as new:
        await new.initialize()
        old.writer.close()
        new.request(2, "ping", {})
        await new.receive_answer(2)
        assert bench.supervisor._ledger.board.sessions["s1"].closed_at is None


async def test_a_reused_request_id_is_a_new_call(doorway, desk, bench):
    async with doorway.lines() as agent:
        await agent.initialize()
        for call_id in ("1", "2"):
            agent.call(5, "execute_command", ECHO)
            await desk.approve_and_run(call_id)
            assert "result" in await agent.receive_answer(5)
    assert set(bench.supervisor._ledger.board.calls) == {"1", "2"}


async def test_a_supervisor_that_stops_says_goodbye_answers_nothing_and_keeps_the_session(doorway, desk, bench):
    async with doorway.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await desk.waiting()
        await doorway.stop()
        assert (await agent.receive())["method"] == GOODBYE_METHOD
        assert await agent.reader.read() == b""
    assert bench.supervisor._ledger.board.sessions["s1"].closed_at is None


async def test_background_processes_are_in_the_structured_answer_and_in_the_text(doorway, desk, bench):
    async with doorway.client() as client:
        call = asyncio.create_task(client.call_tool("run_shell_command", {"command": "sleep 30 & echo hi"}))
        await desk.waiting()
        await bench.approve("1")
        key = await bench.ordered("1")
        bench.executor.spawn(key)
        bench.executor.leave_behind(key, 4711)
        bench.executor.finish(key, settle=False)
        result = await asyncio.wait_for(call, 30)
    assert list(result.structured_content) == [
        "stdout",
        "stderr",
        "exitCode",
        "signal",
        "error",
        "pid",
        "backgroundPids",
    ]
    assert result.structured_content["backgroundPids"] == [4711]
    assert "Background PIDs: 4711" in result.content[0].text
