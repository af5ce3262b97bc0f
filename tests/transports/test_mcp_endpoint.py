"""The MCP door in both eras of the protocol: what it lists, answers, tells and reports."""

import asyncio
import json
import time

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from tests.rows import each_row
from tests.supervisor.conftest import HUMAN
from tests.transports.endpoint_server import ECHO, RESULT
from whisper_tui.agents.model_instructions import WORK_RUNS
from whisper_tui.model.call import Argv, CommandSpec
from whisper_tui.model.ending import FailedToStart
from whisper_tui.supervisor.runs.scheduling import MemoryGauge
from whisper_tui.transports.mcp.relay import initialize_answer


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_a_call_waits_for_the_human_and_is_answered_in_every_era(endpoint, human, mode):
    async with endpoint.client(mode=mode) as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.waiting()
        assert not call.done()
        await human.approve_and_run()
        result = await asyncio.wait_for(call, 60)
    assert result.is_error is False
    assert result.structured_content == RESULT
    assert list(result.structured_content) == ["stdout", "stderr", "return_code", "timed_out"]
    assert json.loads(result.content[0].text) == RESULT


async def test_a_null_return_code_reaches_the_client_as_a_key_with_null(endpoint, human, bench):
    async with endpoint.client() as client:
        call = asyncio.create_task(client.call_tool("execute_command", {"command": "no-such-program-here"}))
        await human.waiting()
        await bench.approve("1")
        key = await bench.ordered("1")
        bench.executor.finish(
            key, FailedToStart(problem="program_not_found", subject="no-such-program-here", message="not found")
        )
        result = await asyncio.wait_for(call, 60)
    assert result.structured_content["return_code"] is None
    assert result.structured_content["stderr"] == "Error: Command not found: no-such-program-here"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_tools_are_listed_truthfully_and_at_once(endpoint, mode):
    async with endpoint.client(mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"execute_command", "run_shell_command", "ExecCommand", "TaskOutput", "read_file"} <= set(tools)
    looking = {"TaskList", "TaskStatus", "TaskOutput", "read_file", "wait"}
    for tool in tools.values():
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is None
        assert tool.meta["anthropic/alwaysLoad"] is True
        assert tool.annotations.read_only_hint is (tool.name in looking)
        assert tool.annotations.destructive_hint is (tool.name not in looking)
        assert tool.annotations.open_world_hint is (tool.name not in looking)
        assert tool.title and tool.annotations.title == tool.title
    assert len({tool.title for tool in tools.values()}) == len(tools)


async def test_the_server_says_how_it_works(endpoint):
    async with endpoint.lines() as agent:
        result = (await agent.initialize())["result"]
    assert result["serverInfo"]["name"] == "whisper_tui"
    assert "human" in result["instructions"]
    assert result["protocolVersion"] == "2025-06-18"


async def test_a_denial_reaches_the_client_word_for_word_as_an_error(endpoint, human, bench):
    reason = 'Not on "prod" — use the staging\tcluster <first> & ask me.'
    async with endpoint.client() as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.waiting()
        await bench.deny("1", reason)
        result = await asyncio.wait_for(call, 60)
    assert result.is_error is True
    assert result.structured_content is None
    assert reason in result.content[0].text
    assert "Nothing ran" in result.content[0].text


async def test_an_edited_run_is_told_in_text_that_every_client_shows(endpoint, human, bench):
    async with endpoint.client() as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO))
        edited = CommandSpec(command=Argv(program="echo", args=("safer",)), cwd=str(bench.workspace), timeout_s=60)
        await human.approve_and_run(edited=edited)
        result = await asyncio.wait_for(call, 60)
    assert result.structured_content is None
    note, body = (part.text for part in result.content)
    assert note == "The human changed the command before it ran. What ran: echo safer."
    assert json.loads(body) == RESULT
    assert result.meta["whisper-tui/told"] == note


async def test_a_remembered_approval_is_reported(endpoint, human, bench):
    async with endpoint.client() as client:
        first = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.approve_and_run(remember="exact_for_session")
        await asyncio.wait_for(first, 60)
        second = asyncio.create_task(client.call_tool("execute_command", ECHO))
        await human.run("2")
        result = await asyncio.wait_for(second, 60)
    assert "No human was asked this time" in result.content[0].text


async def test_the_key_that_gemini_adds_is_dropped_for_gemini(endpoint, human, bench):
    async with endpoint.client(name="gemini-cli-mcp-client", mode="legacy") as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO | {"wait_for_previous": True}))
        await human.approve_and_run()
        assert (await asyncio.wait_for(call, 60)).is_error is False
    assert (await bench.record("1")).call.arguments == ECHO


async def test_progress_says_why_a_call_is_queued_without_the_commands_of_others(endpoint, human, bench, monkeypatch):
    said: list[str] = []

    async def note(_progress, _total, message):
        said.append(message)

    full = MemoryGauge(1 << 60)
    monkeypatch.setattr(bench.supervisor._parts.pool.workers, "_memory", full)
    async with endpoint.client() as client:
        call = asyncio.create_task(client.call_tool("execute_command", ECHO, progress_callback=note))
        await human.waiting("1")
        await bench.approve("1")
        async with asyncio.timeout(60):
            while not any("MiB of memory are available" in message for message in said):
                await asyncio.sleep(0.01)
        await bench.supervisor.start_anyway("1", HUMAN)
        bench.executor.finish(await bench.ordered("1"))
        await asyncio.wait_for(call, 60)


async def test_progress_grows_and_says_how_many_are_ahead_and_what_runs(endpoint, human, bench):
    seen: list[tuple[float, str]] = []

    async def note(progress, _total, message):
        seen.append((progress, message))

    async def said(words):
        async with asyncio.timeout(60):
            while not any(words in message for _, message in seen):
                await asyncio.sleep(0.01)

    async with endpoint.client() as client:
        first = asyncio.create_task(client.call_tool("execute_command", {"command": "first"}))
        await human.waiting("1")
        second = asyncio.create_task(client.call_tool("execute_command", ECHO, progress_callback=note))
        await human.waiting("2")
        await said("waiting for a human (1 ahead)")
        await bench.deny("1", "no")
        await said("waiting for a human (0 ahead)")
        await bench.approve("2")
        bench.executor.spawn(await bench.ordered("2"), pid=777)
        await said("running, pid 777, ")
        bench.executor.finish(await bench.ordered("2"))
        await asyncio.wait_for(second, 60)
        await first
    numbers = [progress for progress, _ in seen]
    assert numbers == sorted(set(numbers))


async def test_no_progress_is_sent_to_a_client_that_did_not_ask_for_it(endpoint, human):
    async with endpoint.lines() as agent:
        await agent.initialize()
        agent.call(1, "execute_command", ECHO)
        await human.approve_and_run()
        assert (await agent.receive())["id"] == 1


async def test_background_processes_are_in_the_structured_answer_and_in_the_text(endpoint, human, bench):
    async with endpoint.client() as client:
        call = asyncio.create_task(client.call_tool("run_shell_command", {"command": "sleep 30 & echo hi"}))
        await human.waiting()
        await bench.approve("1")
        key = await bench.ordered("1")
        bench.executor.spawn(key)
        bench.executor.leave_behind(key, 4711)
        bench.executor.finish(key, settle=False)
        result = await asyncio.wait_for(call, 60)
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


@pytest.mark.parametrize("own_shell", [False, True])
@pytest.mark.parametrize("wanted", [*HANDSHAKE_PROTOCOL_VERSIONS, "2026-07-28", "none"])
@pytest.mark.parametrize("request_id", [0, "ö\u2028\t"])
async def test_a_relay_answers_initialize_byte_for_byte_as_the_supervisor(endpoint, own_shell, wanted, request_id):
    params = {"protocolVersion": wanted, "capabilities": {"roots": {}}, "clientInfo": {"name": "x", "version": "1"}}
    opening = {"jsonrpc": "2.0", "id": request_id, "method": "initialize", "params": params}
    async with endpoint.lines(endpoint.hello() | {"own_shell": own_shell}) as agent:
        agent.send(opening)
        assert initialize_answer(opening, own_shell=own_shell) == (await agent.reader.readline()).rstrip(b"\n")


async def test_a_model_is_told_that_ordinary_work_runs_unasked(bench, endpoint):
    await bench.supervisor.set_unasked("workspace", HUMAN, until=time.time() + 3600)
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    async with endpoint.lines(endpoint.hello()) as agent:
        agent.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        assert (await agent.receive())["result"]["instructions"].endswith(WORK_RUNS)


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
DISCOVER = {"jsonrpc": "2.0", "method": "server/discover", "params": {"_meta": META}}
CANCELLED = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}}


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_client_that_did_not_wait_for_what_it_discovers_may_initialize(endpoint, cancelled):
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    async with endpoint.lines(endpoint.hello()) as agent:
        agent.send(DISCOVER | {"id": 0})
        if cancelled:
            agent.send(CANCELLED)
        agent.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        agent.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        agent.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        answers = [await agent.receive() for _ in range(3)]
    assert [answer["id"] for answer in answers] == [0, 1, 2]
    assert answers[0]["result"]["supportedVersions"] and answers[1]["result"]["protocolVersion"] == "2025-11-25"
    assert "execute_command" in {tool["name"] for tool in answers[2]["result"]["tools"]}


async def test_a_client_may_discover_twice_and_go_on_without_initializing(endpoint):
    async with endpoint.lines(endpoint.hello()) as agent:
        agent.send(DISCOVER | {"id": 0})
        agent.send(DISCOVER | {"id": 1})
        agent.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": META}})
        agent.send(DISCOVER | {"id": 3})
        answers = [await agent.receive() for _ in range(4)]
    assert sorted(answer["id"] for answer in answers) == [0, 1, 2, 3]
    assert all("result" in answer for answer in answers)


@each_row(
    "changed",
    [
        {"jsonrpc": "1.0"},
        {"id": None},
        {"id": True},
        {"id": "\ud800"},
        {"method": "server/discover"},
        {"params": {"protocolVersion": "2025-06-18"}},
        {"params": {"protocolVersion": 1, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}},
        {"params": {"protocolVersion": "1", "capabilities": {"roots": 1}, "clientInfo": {"name": "x", "version": "1"}}},
    ],
)
def test_a_relay_leaves_a_request_that_may_be_refused_to_the_supervisor(changed):
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    assert initialize_answer(opening, own_shell=False) is not None
    assert initialize_answer(opening | changed, own_shell=False) is None


async def test_a_model_with_a_supervised_shell_is_told_little(endpoint):
    """At four characters a token, all that a conversation holds of this server is below 150 tokens."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    async with endpoint.lines(endpoint.hello() | {"own_shell": True}) as agent:
        agent.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        told = (await agent.receive())["result"]["instructions"]
        agent.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        agent.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        assert (await agent.receive())["result"]["tools"] == []
    assert "until a human has decided" in told and len(f"{told} {WORK_RUNS}") < 600
