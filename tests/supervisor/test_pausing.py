"""Everything is paused: nothing starts and every run is held, whatever restarts, until it is told to go on."""

import asyncio

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.call import CallRequest, CommandSpec, Function
from whisper_tui.model.errors import Refused
from whisper_tui.model.event import Paused, Resumed


async def running(bench: Bench, call_id: str) -> None:
    bench.executor.spawn(await bench.ordered(call_id))
    await bench.state(call_id, "running")


async def approved(bench: Bench, session_id: str, word: str = "make") -> str:
    call_id = await bench.submit(session_id, word)
    await bench.approve(call_id)
    return call_id


async def held(bench: Bench, count: int) -> None:
    async with asyncio.timeout(60):
        while len(bench.executor.held) < count:
            await asyncio.sleep(0.005)


async def test_a_pause_freezes_runs_and_delays_approved_calls(bench: Bench) -> None:
    session = await bench.session()
    first = await approved(bench, session)
    await running(bench, first)
    await bench.supervisor.pause(HUMAN)
    assert bench.executor.held == [((first, 1), True)]
    second = await approved(bench, session, "test")
    status = await bench.supervisor.status()
    assert (status.paused_by, status.queued) == (HUMAN, 1)
    assert (second, 1) not in bench.executor.orders
    await bench.supervisor.resume(HUMAN)
    assert bench.executor.held[1:] == [((first, 1), False)]
    await bench.ordered(second)
    assert (await bench.supervisor.status()).paused_since is None


async def test_a_starting_run_is_frozen_once_it_has_a_process(bench: Bench) -> None:
    call_id = await approved(bench, await bench.session())
    await bench.ordered(call_id)
    await bench.supervisor.pause(HUMAN)
    assert bench.executor.held == []
    await running(bench, call_id)
    await held(bench, 1)
    assert bench.executor.held == [((call_id, 1), True)]


async def test_a_pause_survives_a_restart(bench: Bench) -> None:
    session = await bench.session()
    call_id = await approved(bench, session)
    await running(bench, call_id)
    await bench.supervisor.pause(HUMAN)
    waiting = await approved(bench, session, "test")
    await bench.restart()
    await held(bench, 1)
    assert bench.executor.held == [((call_id, 1), True)]
    assert (await bench.supervisor.status()).paused_by == HUMAN
    assert (waiting, 1) not in bench.executor.orders
    await bench.supervisor.resume(HUMAN)
    await bench.ordered(waiting)
    await bench.restart()
    assert (await bench.supervisor.status()).paused_since is None
    await held(bench, 1)
    assert all(still is False for _, still in bench.executor.held)


async def test_an_attempt_that_never_ran_is_replaced_after_the_pause(bench: Bench) -> None:
    call_id = await approved(bench, await bench.session())
    key = await bench.ordered(call_id)
    other = await approved(bench, await bench.session("other"))
    await bench.ordered(other)
    await bench.supervisor.pause(HUMAN)
    bench.executor.never_ran(key)
    await running(bench, other)  # reports are taken in order, so the one before was taken, too
    assert (call_id, 2) not in bench.executor.orders
    await bench.supervisor.resume(HUMAN)
    await bench.ordered(call_id, attempt=2)


async def test_pausing_twice_is_one_fact_and_late_watchers_see_it(bench: Bench) -> None:
    for _ in range(2):
        await bench.supervisor.pause(HUMAN)
    watching = bench.supervisor.watch()
    facts = [event for event in await anext(watching) if isinstance(event, Paused | Resumed)]
    assert [type(fact) for fact in facts] == [Paused]
    assert await anext(watching) == ()
    for _ in range(2):
        await bench.supervisor.resume(HUMAN)
    later = [event for event in await anext(watching) if isinstance(event, Paused | Resumed)]
    assert [(type(fact), fact.by) for fact in later] == [(Resumed, HUMAN)]


async def test_an_agent_is_not_handed_a_command_while_everything_is_paused(bench: Bench) -> None:
    await bench.supervisor.pause(HUMAN)
    with pytest.raises(Refused, match="paused"):
        await bench.supervisor.hand_over("1", "any ticket")


async def test_a_function_does_not_begin_during_a_pause(bench: Bench) -> None:
    spec = CommandSpec(command=Function(tool="tweet", arguments={}), cwd=str(bench.workspace))
    call_id = await bench.supervisor.submit(
        CallRequest(session_id=await bench.session(), tool="tweet", arguments={}, spec=spec)
    )
    await bench.supervisor.pause(HUMAN)
    begun = asyncio.create_task(bench.supervisor.begin_function(call_id))
    await bench.approve(call_id)
    assert (await bench.record(call_id)).state.kind == "queued"
    done, _ = await asyncio.wait([begun], timeout=0.1)
    assert not done
    await bench.supervisor.resume(HUMAN)
    async with asyncio.timeout(60):
        assert (await begun).state.kind == "starting"
