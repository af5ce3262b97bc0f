"""What tasks and tools of the agent's side need of the port, in process and through the socket."""

import asyncio
from pathlib import Path

import pytest

from tests.port.conftest import Desk
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.call import CallRequest, CommandSpec, Function, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import NotRunning, Refused


async def function(desk: Desk, **arguments: object) -> str:
    command = Function(tool="post", arguments=arguments)
    spec = CommandSpec(command=command, cwd=desk.session.root)
    request = CallRequest(session_id=desk.session.id, tool="post", arguments=arguments, spec=spec)
    return await desk.port.submit(request)


async def line(desk: Desk, text: str, **dedup_key: object) -> str:
    spec = CommandSpec(command=Shell(text=text), cwd=desk.session.root)
    request = CallRequest(session_id=desk.session.id, tool="ExecCommand", arguments={}, spec=spec, **dedup_key)
    return await desk.port.submit(request)


async def test_a_start_is_waited_for_and_not_the_end(desk: Desk) -> None:
    call_id = await line(desk, "exec sleep 60")
    waiting = asyncio.create_task(desk.port.started(call_id))
    await desk.decide(call_id, Approve())
    async with asyncio.timeout(30):
        assert (await waiting).state.kind == "running"


async def test_the_file_of_a_stream_holds_all_of_it(desk: Desk) -> None:
    call_id = await line(desk, "printf 'a\\0b'; printf error >&2")
    assert await desk.port.output_file(call_id, "out") is None
    await desk.decide(call_id, Approve())
    await desk.port.outcome(call_id)
    paths = [await desk.port.output_file(call_id, stream) for stream in ("out", "err")]
    assert [Path(path or "").read_bytes() for path in paths] == [b"a\0b", b"error"]


async def test_a_call_with_the_same_deduplication_key_joins_the_open_one(desk: Desk) -> None:
    first = await line(desk, "true", dedup_key="t", join_open=True)
    assert await line(desk, "true", dedup_key="t", join_open=True) == first
    assert await line(desk, "true", dedup_key="t") != first
    open_ones = await desk.port.history(HistoryQuery(open_only=True))
    assert len(open_ones) == 2


async def test_a_tool_of_the_agents_side_is_let_through_once_and_ended_once(desk: Desk) -> None:
    call_id = await function(desk, text="hello")
    beginning = asyncio.create_task(desk.port.begin_function(call_id))
    await desk.decide(call_id, Approve())
    async with asyncio.timeout(30):
        begun = await beginning
    assert begun.function == Function(tool="post", arguments={"text": "hello"})
    with pytest.raises(Refused):
        await desk.port.begin_function(call_id)
    await desk.port.end_function(call_id, "it raised")
    assert (await desk.port.outcome(call_id)).state.ending.code == 1
    with pytest.raises(NotRunning):
        await desk.port.end_function(call_id)


async def test_a_run_that_its_agent_has_stopped_is_marked(desk: Desk) -> None:
    call_id = await line(desk, "exec sleep 60")
    await desk.decide(call_id, Approve())
    await desk.port.started(call_id)
    await desk.port.withdraw(call_id, "enough", stop_running=True)
    async with asyncio.timeout(30):
        record = await desk.port.outcome(call_id)
    assert record.stopping and record.agent_gave_up == "enough"
    assert record.state.ending.kind == "signalled"
