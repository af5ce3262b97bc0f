"""Calls of which the supervisor starts nothing: their callers carry them out, once, when they may."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Function
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Denied, Exited, Lost, Withdrawn
from whisper_tui.model.errors import InvalidRequest, NotRunning, Refused
from whisper_tui.model.event import Event
from whisper_tui.model.state import Ended, Starting
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.present.ending_text import ending_sentence

TWEET = Function(tool="tweet", arguments={"text": "hello", "count": 1})
TWEETS = Rules(allow=(Rule(name="tweets", tool="tweet", anything=True),))


def asked(bench: Bench, session: str, function: Function = TWEET, **more: object) -> CallRequest:
    spec = CommandSpec(command=function, cwd=str(bench.workspace))
    made = {"session_id": session, "tool": function.tool, "arguments": function.arguments, "spec": spec, **more}
    return CallRequest.model_validate(made)


async def submit(bench: Bench, session: str, function: Function = TWEET) -> str:
    return await bench.supervisor.submit(asked(bench, session, function))


async def test_a_function_waits_for_a_human_who_sees_its_arguments(bench: Bench) -> None:
    call = await submit(bench, await bench.session())
    record = await bench.record(call)
    assert record.state.kind == "waiting"
    assert record.spec.command.words() == ("tweet", '{"count": 1, "text": "hello"}')


async def test_an_approved_one_is_carried_out_by_its_caller_and_never_by_the_executor(bench: Bench) -> None:
    call = await submit(bench, await bench.session())
    begun = asyncio.create_task(bench.supervisor.begin_function(call))
    await bench.approve(call)
    async with asyncio.timeout(60):
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
    record = await bench.record(call)
    assert record.state.ending == Exited(code=1, problem="it failed")
    assert ending_sentence(record.state.ending, record.call.spec.command) == "The tool failed: it failed"


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
    async with asyncio.timeout(60):
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


async def test_a_call_that_a_rule_allows_is_submitted_and_begun_in_one_write(bench: Bench) -> None:
    await bench.restart(TWEETS)
    session, written = await bench.session(), list[tuple[str, ...]]()
    journal = bench.supervisor._store.journal
    append, flush = journal.append, journal.flush

    def noted(events: Sequence[Event], *, durable: bool = False) -> tuple[Event, ...]:
        written.append(tuple(event.kind for event in events))
        return append(events, durable=durable)

    def flushed() -> None:
        flush()
        written.append(("flushed",))

    journal.append, journal.flush = noted, flushed  # type: ignore[method-assign]
    submission = await bench.supervisor.submit_and_begin(asked(bench, session))
    assert submission.begun and isinstance((await bench.record(submission.call_id)).state, Starting)
    assert written == [("submitted", "judged", "decided", "started"), ("flushed",)]
    with pytest.raises(Refused, match="already"):
        await bench.supervisor.begin_function(submission.call_id)
    await bench.supervisor.end_function(submission.call_id)
    assert (await bench.record(submission.call_id)).state.ending == Exited(code=0)


async def test_a_call_that_is_asked_begins_only_after_its_approval(bench: Bench) -> None:
    submission = await bench.supervisor.submit_and_begin(asked(bench, await bench.session()))
    assert not submission.begun and (await bench.record(submission.call_id)).state.kind == "waiting"
    with pytest.raises(NotRunning):
        await bench.supervisor.end_function(submission.call_id)
    await bench.approve(submission.call_id)
    assert isinstance((await bench.supervisor.begin_function(submission.call_id)).state, Starting)


async def test_a_call_that_a_rule_denies_is_not_begun(bench: Bench) -> None:
    await bench.restart(Rules(deny=TWEETS.allow))
    submission = await bench.supervisor.submit_and_begin(asked(bench, await bench.session()))
    assert not submission.begun
    assert isinstance((await bench.supervisor.begin_function(submission.call_id)).state.ending, Denied)


async def test_a_call_that_another_one_joins_is_begun_for_the_first_alone(bench: Bench) -> None:
    await bench.restart(TWEETS)
    request = asked(bench, await bench.session(), key="k")
    first, second = [await bench.supervisor.submit_and_begin(request) for _ in range(2)]
    assert first.call_id == second.call_id and (first.begun, second.begun) == (True, False)
    with pytest.raises(Refused, match="already"):
        await bench.supervisor.begin_function(second.call_id)


async def test_an_allowed_call_does_not_begin_while_everything_is_paused(bench: Bench) -> None:
    await bench.restart(TWEETS)
    session = await bench.session()
    await bench.supervisor.pause(HUMAN)
    submission = await bench.supervisor.submit_and_begin(asked(bench, session))
    assert not submission.begun and (await bench.record(submission.call_id)).state.kind == "queued"
    await bench.supervisor.resume(HUMAN)
    assert isinstance((await bench.supervisor.begin_function(submission.call_id)).state, Starting)


async def test_a_command_cannot_be_begun_by_its_caller(bench: Bench) -> None:
    spec = CommandSpec(command=Argv(program="true"), cwd=str(bench.workspace))
    request = CallRequest(session_id=await bench.session(), tool="execute_command", arguments={}, spec=spec)
    with pytest.raises(InvalidRequest):
        await bench.supervisor.submit_and_begin(request)
    assert await bench.supervisor.history(HistoryQuery()) == ()


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


async def test_when_the_session_closes_waiting_functions_are_withdrawn_and_begun_ones_lost(bench: Bench) -> None:
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
    async with asyncio.timeout(60):
        await bench.supervisor.shutdown(end_runs=True)
    assert bench.executor.ended == []
