"""Calls that are the same to their agent, and waiting for a start instead of an ending."""

import asyncio

from tests.supervisor.conftest import Bench
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.state import Ended, Running


async def submit(
    bench: Bench, session: str, dedup_key: str | None, *, join: bool = True, key: str | None = None
) -> str:
    spec = CommandSpec(command=Shell(text="make"), cwd=str(bench.workspace))
    request = CallRequest(
        session_id=session, tool="ExecCommand", arguments={}, spec=spec, dedup_key=dedup_key, join_open=join, key=key
    )
    return await bench.supervisor.submit(request)


async def test_a_call_with_the_same_key_joins_one_that_waits_is_queued_or_runs(bench: Bench) -> None:
    session = await bench.session()
    first = await submit(bench, session, "t")
    assert await submit(bench, session, "t") == first
    await bench.approve(first)
    key = await bench.ordered(first)
    assert await submit(bench, session, "t") == first
    bench.executor.spawn(key)
    await bench.state(first, "running")
    assert await submit(bench, session, "t") == first


async def test_a_call_that_has_ended_is_not_joined(bench: Bench) -> None:
    session = await bench.session()
    first = await submit(bench, session, "t")
    await bench.deny(first, "no")
    assert await submit(bench, session, "t") != first


async def test_only_calls_with_the_same_deduplication_key_and_session_join(bench: Bench) -> None:
    one, two = await bench.session(), await bench.session()
    calls = [
        await submit(bench, one, "t"),
        await submit(bench, two, "t"),
        await submit(bench, one, "u"),
        await submit(bench, one, None),
        await submit(bench, one, None),
    ]
    assert len(set(calls)) == 5


async def test_a_call_that_does_not_want_to_join_is_new_and_can_be_joined_itself(bench: Bench) -> None:
    session = await bench.session()
    first = await submit(bench, session, "t")
    second = await submit(bench, session, "t", join=False)
    assert second != first
    await bench.deny(first, "no")
    assert await submit(bench, session, "t") == second


async def test_the_key_of_the_first_call_tells_a_joined_request_from_a_repeated_one(bench: Bench) -> None:
    session = await bench.session()
    first = await submit(bench, session, "t", key="a")
    assert await submit(bench, session, "t", key="b") == first
    assert (await bench.record(first)).call.key == "a"


async def test_deduplication_keys_are_known_after_a_restart(bench: Bench) -> None:
    session = await bench.session()
    first = await submit(bench, session, "t")
    await bench.restart()
    assert await submit(bench, session, "t") == first


async def test_a_start_is_waited_for_through_the_queue(bench: Bench) -> None:
    call = await submit(bench, await bench.session(), None)
    waiting = asyncio.create_task(bench.supervisor.started(call))
    await bench.approve(call)
    key = await bench.ordered(call)
    assert not waiting.done()
    bench.executor.spawn(key)
    async with asyncio.timeout(60):
        assert isinstance((await waiting).state, Running)


async def test_waiting_for_a_start_ends_with_a_call_that_never_starts(bench: Bench) -> None:
    call = await submit(bench, await bench.session(), None)
    waiting = asyncio.create_task(bench.supervisor.started(call))
    await bench.deny(call, "no")
    async with asyncio.timeout(60):
        assert isinstance((await waiting).state, Ended)


async def test_a_run_that_the_agent_wants_ended_is_marked_as_stopping(bench: Bench) -> None:
    call = await submit(bench, await bench.session(), None)
    await bench.approve(call)
    key = await bench.ordered(call)
    bench.executor.spawn(key)
    await bench.state(call, "running")
    await bench.supervisor.withdraw(call, "the agent left")
    assert not (await bench.record(call)).stopping
    await bench.supervisor.withdraw(call, "the agent stops it", stop_running=True)
    record = await bench.record(call)
    assert (record.stopping, record.agent_gave_up) == (True, "the agent stops it")
    assert bench.executor.ended == [key]


async def test_history_can_leave_out_what_is_over(bench: Bench) -> None:
    session = await bench.session()
    over, open_ = await submit(bench, session, "t"), await submit(bench, session, "u")
    await bench.deny(over, "no")
    found = await bench.supervisor.history(HistoryQuery(open_only=True))
    assert [record.id for record in found] == [open_]


async def test_a_stream_is_in_a_file_once_something_was_started(bench: Bench) -> None:
    call = await submit(bench, await bench.session(), None)
    assert await bench.supervisor.output_file(call, "out") is None
    await bench.approve(call)
    key = await bench.ordered(call)
    bench.executor.files[key, "out"] = "/runs/1.1/out"
    assert await bench.supervisor.output_file(call, "out") == "/runs/1.1/out"


async def test_the_trust_of_a_session_is_recorded(bench: Bench) -> None:
    for trust in ("trusted_operator", "trusted_system", "trusted_integration", "untrusted_external"):
        session_id = await bench.session(trust=trust)
        assert bench.supervisor._store.board.sessions[session_id].trust == trust
    plain = await bench.session()
    assert bench.supervisor._store.board.sessions[plain].trust == "untrusted_external"
