"""The other tools over MCP: tasks, files, tools of the user's own, and failures in each tool's own shape."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.supervisor.conftest import Bench
from tests.tools.post_tool import Post
from tests.transports.endpoint_server import EndpointServer
from whisper_tui.model.state import CallRecord
from whisper_tui.tools import standard_registry
from whisper_tui.transports.mcp.mcp_endpoint import McpEndpoint


async def some(bench: Bench, holds: Callable[[CallRecord], bool]) -> CallRecord:
    """The first call that is like this, once there is one."""
    async with asyncio.timeout(60):
        while True:
            for record in bench.supervisor._store.board.calls.values():
                if holds(record):
                    return record
            await asyncio.sleep(0.005)


async def waiting(bench: Bench, tool: str) -> CallRecord:
    return await some(bench, lambda record: record.call.tool == tool and record.state.kind == "waiting")


def asked(client: Any, tool: str, **arguments: Any) -> "asyncio.Task[Any]":
    return asyncio.create_task(client.call_tool(tool, arguments))


async def test_a_task_can_be_led_over_mcp(endpoint, human, bench):
    async with endpoint.client() as client:
        call = asked(client, "ExecCommand", cmd="cat", accepts_input=True, yield_time_ms=0)
        await human.waiting()
        await bench.approve("1")
        key = await bench.ordered("1")
        bench.executor.spawn(key)
        result = await asyncio.wait_for(call, 60)
        assert result.structured_content["result"]["task_handle"]["task_id"] == "1"
        assert result.content[0].text.startswith("Command promoted to background task\nTask: 1\n")

        again = await client.call_tool("ExecCommand", {"cmd": "cat", "accepts_input": True})
        assert again.structured_content["result"]["disposition"] == "already_running"

        typing = asked(client, "TaskInput", task_id="1", text="hi\n")
        await bench.approve((await waiting(bench, "TaskInput")).id)
        assert (await asyncio.wait_for(typing, 60)).is_error is False
        assert bench.executor.typed == [(key, b"hi\n", False)]

        bench.executor.finish(key)
        output = await client.call_tool("TaskOutput", {"task_id": "1"})
        assert output.structured_content["result"]["retrieval_status"] == "success"
        assert "Output:\nhi\n" in output.content[0].text


async def test_a_failure_is_an_error_in_the_tools_own_shape(endpoint, human, bench):
    async with endpoint.client() as client:
        wrong = await client.call_tool("ExecCommand", {"command": "ls"})
        assert wrong.is_error is True
        assert wrong.structured_content["error"]["kind"] == "invalid_tool_input"
        assert wrong.content[0].text.startswith("Command failed\ninvalid_tool_input: ")
        unknown = await client.call_tool("TaskStatus", {"task_id": "9"})
        assert unknown.is_error is True and unknown.structured_content["error"]["kind"] == "task_not_found"
        call = asked(client, "ExecCommand", cmd="ls")
        await human.waiting()
        await bench.deny("1", "ask me first")
        denied = await asyncio.wait_for(call, 60)
    assert denied.is_error is True
    assert denied.structured_content["error"]["kind"] == "approval_denied"
    assert "ask me first" in denied.content[0].text


async def test_an_edit_of_exec_command_is_told(endpoint, human, bench):
    async with endpoint.client() as client:
        call = asked(client, "ExecCommand", cmd="make")
        record = await human.waiting()
        edited = record.spec.model_copy(update={"command": record.spec.command.model_copy(update={"text": "make -n"})})
        await human.approve_and_run(edited=edited)
        result = await asyncio.wait_for(call, 60)
    assert "What ran: make -n" in result.content[0].text
    assert result.content[1].text.startswith("Process exited with code 0")


async def test_a_file_of_the_workspace_is_text_and_a_missing_one_an_error(endpoint, bench):
    (bench.workspace / "a.txt").write_text("hello")
    async with endpoint.client() as client:
        found = await client.call_tool("read_file", {"path": "a.txt"})
        missing = await client.call_tool("read_file", {"path": "b.txt"})
    assert (found.content[0].text, found.structured_content, found.is_error) == ("hello", None, False)
    assert missing.structured_content == {"error": "File not found: b.txt"} and missing.is_error is True


async def test_a_file_that_was_asked_for_and_left_is_read_when_it_is_asked_for_again(endpoint, bench, human, tmp_path):
    path = str(tmp_path / "outside.txt")
    (tmp_path / "outside.txt").write_text("from outside")
    async with endpoint.client() as client:
        call = asked(client, "read_file", path=path)
        record = await waiting(bench, "read_file")
        call.cancel()
        await human.left(record.id)
        again = asked(client, "read_file", path=path)
        await bench.eventually(record.id, lambda record: record.agent_gave_up is None)
        await bench.approve(record.id)
        result = await asyncio.wait_for(again, 60)
    assert result.content[0].text == "from outside"
    assert list(bench.supervisor._store.board.calls) == [record.id]


async def test_a_tool_of_the_users_own_is_asked_about_over_mcp(bench, tmp_path):
    def registry(context):
        made = standard_registry(context)
        made.register_tool(Post())
        return made

    door = McpEndpoint(bench.supervisor, registry=registry)
    async with EndpointServer(door, tmp_path / "own", bench.workspace).open() as endpoint, endpoint.client() as client:
        call = asked(client, "post", text="hello")
        record = await waiting(bench, "post")
        assert record.spec.command.words() == ("post", '{"text": "hello"}')
        await bench.approve(record.id)
        result = await asyncio.wait_for(call, 60)
    assert result.structured_content == {"posted": "hello"}
    assert result.meta["whisper-tui/call-id"] == record.id
