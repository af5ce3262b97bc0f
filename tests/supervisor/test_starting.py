"""When a call starts that nobody has to be asked about."""

import asyncio

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.event import Decided, Event, Judged, Started, Submitted
from whisper_tui.model.state import Queued, Starting
from whisper_tui.policy.rules import ExactRule, Rules

ALLOWED = Rules(allow=(ExactRule(name="harmless", argv=("true",)),))


async def with_one_worker(bench: Bench) -> str:
    await bench.supervisor.close()
    await bench.open(ALLOWED, workers=1)
    return await bench.session()


async def test_an_allowed_call_starts_with_its_submission_while_a_worker_is_free(bench: Bench) -> None:
    session = await with_one_worker(bench)
    first, second = await bench.submit(session, "true"), await bench.submit(session, "true")
    assert isinstance((await bench.record(first)).state, Starting)
    assert isinstance((await bench.record(second)).state, Queued)
    key = await bench.ordered(first)
    bench.executor.finish(key)
    await bench.ordered(second)


async def test_such_a_call_is_looked_at_once_and_one_that_waited_for_its_turn_again(bench: Bench) -> None:
    session = await with_one_worker(bench)
    first, second = await bench.submit(session, "true"), await bench.submit(session, "true")
    facts: list[Event] = []
    async for batch in bench.supervisor.watch(0):
        facts += batch
        break
    assert [type(fact) for fact in facts if getattr(fact, "call_id", None) == first] == [Judged, Decided, Started]
    assert [type(fact) for fact in facts if isinstance(fact, Submitted)] == [Submitted, Submitted]
    bench.supervisor.rules = Rules(deny=(ExactRule(name="never", argv=("true",), justification="not today"),))
    bench.executor.finish(await bench.ordered(first))
    assert (await bench.supervisor.outcome(second)).attempt is None


async def test_nobody_overtakes_a_call_that_has_waited(bench: Bench) -> None:
    session = await with_one_worker(bench)
    await bench.supervisor.pause(HUMAN)
    early = await bench.submit(session, "true")
    assert isinstance((await bench.record(early)).state, Queued)
    await bench.supervisor.resume(HUMAN)
    late = await bench.submit(await bench.session("another"), "true")
    await bench.ordered(early)
    assert isinstance((await bench.record(late)).state, Queued)


async def test_a_call_that_is_ended_at_once_is_ended_and_not_forgotten(bench: Bench) -> None:
    session = await with_one_worker(bench)
    call_id = await bench.submit(session, "true")
    await bench.supervisor.withdraw(call_id, "not wanted any more", stop_running=True)
    assert bench.executor.ended == [await bench.ordered(call_id)]


async def test_whoever_goes_away_before_the_start_is_ordered_takes_nothing_with_it(bench: Bench) -> None:
    session = await with_one_worker(bench)
    bench.executor.room = asyncio.Event()
    asking = asyncio.create_task(bench.submit(session, "true"))
    async with asyncio.timeout(10):
        while not bench.supervisor.board.running:
            await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not bench.executor.orders
    bench.executor.room.set()
    (call_id,) = bench.supervisor.board.running
    await bench.ordered(call_id)
