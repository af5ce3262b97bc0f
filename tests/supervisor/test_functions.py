"""Calls of which the supervisor starts nothing: their callers carry them out, once, when they may."""

import asyncio

import pytest

from tests.supervisor.conftest import Bench
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Function
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Denied, Exited, Lost, Withdrawn
from whisper_tui.model.errors import InvalidRequest, NotRunning, Refused
from whisper_tui.model.state import Ended, Starting

TWEET = Function(tool="tweet", arguments={"text": "hello", "count": 1})


async def submit(bench: Bench, session: str, function: Function = TWEET) -> str:
    spec = CommandSpec(command=function, cwd=str(bench.workspace))
    request = CallRequest(session_id=session, tool=function.tool, arguments=function.arguments, spec=spec)
    return await bench.supervisor.submit(request)


async def test_a_function_waits_for_a_human_who_sees_its_arguments(bench: Bench) -> None:
    call = await submit(bench, await bench.session())
    record = await bench.record(call)
    assert record.state.kind == "waiting"
    assert record.spec.command.words() == ("tweet", '{"count": 1, "text": "hello"}')


async def test_an_approved_one_is_carried_out_by_its_caller_and_never_by_the_executor(bench: Bench) -> None:
    call = await submit(bench, await bench.session())
    begun = asyncio.create_task(bench.supervisor.begin_function(call))
    await bench.approve(call)
    async with asyncio.timeout(10):
        record = await begun
    assert isinstance(record.state, Starting)
    assert bench.executor.orders == {}
    await bench.supervisor.end_function(call)
    over = await bench.supervisor.outcome(call)
    assert isinstance(over.state, Ended) and over.state.ending == Exited(code=0)
    assert not over.is_open


async def test_a_function_that_did_not_return_is_not_a_success(bench: Bench) -> None:
    call = await submit(bench, await bench.session())
    await bench.approve(call)
    await bench.supervisor.begin_function(call)
    await bench.supervisor.end_function(call, "it failed")
    assert (await bench.record(call)).state.ending == Exited(code=1)


async def test_a_function_begins_and_ends_once(bench: Bench) -> None:
    call = await submit(bench, await bench.session())
    await bench.approve(call)
    await bench.supervisor.begin_function(call)
    with pytest.raises(Refused, match="already"):
        await bench.supervisor.begin_function(call)
    await bench.supervisor.end_function(call)
    with pytest.raises(NotRunning):
        await bench.supervisor.end_function(call)


async def test_a_denied_function_is_reported_to_its_caller(bench: Bench) -> None:
    call = await submit(bench, await bench.session())
    begun = asyncio.create_task(bench.supervisor.begin_function(call))
    await bench.deny(call, "not now")
    async with asyncio.timeout(10):
        assert isinstance((await begun).state.ending, Denied)


async def test_nothing_begins_or_ends_before_it_is_approved(bench: Bench) -> None:
    call = await submit(bench, await bench.session())
    with pytest.raises(NotRunning):
        await bench.supervisor.end_function(call)


async def test_a_command_is_not_a_function(bench: Bench) -> None:
    call = await bench.submit(await bench.session(), "true")
    with pytest.raises(InvalidRequest):
        await bench.supervisor.begin_function(call)


async def test_a_function_needs_no_worker(bench: Bench) -> None:
    await bench.supervisor.close()
    await bench.open(workers=1)
    session = await bench.session()
    call = await submit(bench, session)
    await bench.approve(call)
    await bench.supervisor.begin_function(call)
    command = await bench.submit(session, "true")
    await bench.approve(command)
    await bench.ordered(command)


async def test_the_arguments_may_be_edited_but_not_what_it_is(bench: Bench) -> None:
    session = await bench.session()
    call = await submit(bench, session)
    spec = (await bench.record(call)).spec
    for command in (Argv(program="rm"), Function(tool="other", arguments={})):
        with pytest.raises(Refused, match="cannot be edited"):
            await bench.approve(call, edited=spec.model_copy(update={"command": command}))
    softer = Function(tool="tweet", arguments={"text": "hi"})
    await bench.approve(call, edited=spec.model_copy(update={"command": softer}))
    record = await bench.supervisor.begin_function(call)
    assert record.function == softer
    argv = await bench.submit(session, "true")
    with pytest.raises(Refused, match="cannot be edited"):
        await bench.approve(argv, edited=spec)


async def test_an_approval_for_the_session_holds_for_exactly_the_same_arguments(bench: Bench) -> None:
    session = await bench.session()
    first = await submit(bench, session)
    await bench.decide(first, Approve(remember="exact_for_session"))
    reordered = Function(tool="tweet", arguments={"count": 1, "text": "hello"})
    same, other = (
        await submit(bench, session, reordered),
        await submit(bench, session, Function(tool="tweet", arguments={})),
    )
    assert (await bench.record(same)).state.kind == "queued"
    assert (await bench.record(other)).state.kind == "waiting"


async def test_a_restart_keeps_what_has_not_begun_and_gives_up_what_has(bench: Bench) -> None:
    session = await bench.session()
    waits, approved, begun = [await submit(bench, session) for _ in range(3)]
    await bench.approve(approved)
    await bench.approve(begun)
    await bench.supervisor.begin_function(begun)
    await bench.restart()
    assert (await bench.record(waits)).state.kind == "waiting"
    assert isinstance((await bench.record(begun)).state.ending, Lost)
    assert bench.executor.attached == [] and bench.executor.orders == {}
    assert isinstance((await bench.supervisor.begin_function(approved)).state, Starting)


async def test_with_its_session_goes_the_only_one_who_could_carry_it_out(bench: Bench) -> None:
    session = await bench.session()
    waits, begun = await submit(bench, session), await submit(bench, session)
    await bench.approve(begun)
    await bench.supervisor.begin_function(begun)
    await bench.supervisor.close_session(session, "gone")
    assert isinstance((await bench.record(waits)).state.ending, Withdrawn)
    assert isinstance((await bench.record(begun)).state.ending, Lost)


async def test_a_shutdown_does_not_wait_for_it(bench: Bench) -> None:
    call = await submit(bench, await bench.session())
    await bench.approve(call)
    await bench.supervisor.begin_function(call)
    async with asyncio.timeout(5):
        await bench.supervisor.shutdown(end_runs=True)
    assert bench.executor.ended == []
