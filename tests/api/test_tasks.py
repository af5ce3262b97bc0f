"""The API for tasks and for tools that agents run, in process and through the socket."""

import asyncio
from pathlib import Path

import pytest

from tests.api.conftest import Harness
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.call import CallRequest, CommandSpec, Function, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import NotRunning, Refused


def post(harness: Harness, **arguments: object) -> CallRequest:
    command = Function(tool="post", arguments=arguments)
    spec = CommandSpec(command=command, cwd=harness.session.root)
    return CallRequest(session_id=harness.session.id, tool="post", arguments=arguments, spec=spec)


async def function(harness: Harness, **arguments: object) -> str:
    return await harness.api.submit(post(harness, **arguments))


async def line(harness: Harness, text: str, **dedup_key: object) -> str:
    spec = CommandSpec(command=Shell(text=text), cwd=harness.session.root)
    request = CallRequest(session_id=harness.session.id, tool="ExecCommand", arguments={}, spec=spec, **dedup_key)
    return await harness.api.submit(request)


async def test_a_start_is_waited_for_and_not_the_end(harness: Harness) -> None:
    call_id = await line(harness, "exec sleep 60")
    waiting = asyncio.create_task(harness.api.started(call_id))
    await harness.decide(call_id, Approve())
    async with asyncio.timeout(60):
        assert (await waiting).state.kind == "running"


async def test_the_file_of_a_stream_has_all_of_it(harness: Harness) -> None:
    call_id = await line(harness, "printf 'a\\0b'; printf error >&2")
    assert await harness.api.output_file(call_id, "out") is None
    await harness.decide(call_id, Approve())
    await harness.api.outcome(call_id)
    paths = [await harness.api.output_file(call_id, stream) for stream in ("out", "err")]
    assert [Path(path or "").read_bytes() for path in paths] == [b"a\0b", b"error"]


async def test_a_call_with_the_same_deduplication_key_joins_the_open_one(harness: Harness) -> None:
    first = await line(harness, "true", dedup_key="t", join_open=True)
    assert await line(harness, "true", dedup_key="t", join_open=True) == first
    assert await line(harness, "true", dedup_key="t") != first
    open_ones = await harness.api.history(HistoryQuery(open_only=True))
    assert len(open_ones) == 2


async def test_a_tool_of_the_agents_side_is_let_through_once_and_ended_once(harness: Harness) -> None:
    call_id = await function(harness, text="hello")
    beginning = asyncio.create_task(harness.api.begin_function(call_id))
    await harness.decide(call_id, Approve())
    async with asyncio.timeout(60):
        begun = await beginning
    assert begun.function == Function(tool="post", arguments={"text": "hello"})
    with pytest.raises(Refused):
        await harness.api.begin_function(call_id)
    await harness.api.end_function(call_id, "it raised")
    assert (await harness.api.outcome(call_id)).state.ending.code == 1
    with pytest.raises(NotRunning):
        await harness.api.end_function(call_id)


async def test_a_tool_of_the_agents_side_that_was_approved_for_the_session_begins_as_it_is_handed_in(
    harness: Harness,
) -> None:
    first = await harness.api.submit_and_begin(post(harness, text="hello"))
    assert not first.begun
    await harness.decide(first.call_id, Approve(remember="exact_for_session"))
    assert (await harness.api.begin_function(first.call_id)).state.kind == "starting"
    second = await harness.api.submit_and_begin(post(harness, text="hello"))
    assert second.begun
    for call_id in (first.call_id, second.call_id):
        await harness.api.end_function(call_id)
        assert (await harness.api.outcome(call_id)).state.ending.code == 0


async def test_a_run_that_its_agent_has_stopped_is_marked(harness: Harness) -> None:
    call_id = await line(harness, "exec sleep 60")
    await harness.decide(call_id, Approve())
    await harness.api.started(call_id)
    await harness.api.withdraw(call_id, "enough", stop_running=True)
    async with asyncio.timeout(60):
        record = await harness.api.outcome(call_id)
    assert record.stopping and record.agent_gave_up == "enough"
    assert record.state.ending.kind == "signalled"
