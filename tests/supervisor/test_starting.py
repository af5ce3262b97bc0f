"""When a call starts that nobody has to be asked about."""

import asyncio

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.call import Argv, CallRequest, CommandSpec
from whisper_tui.model.event import Decided, Event, Judged, Started, Submitted
from whisper_tui.model.state import Queued, Starting
from whisper_tui.policy.rules.rule import ExactRule, Rules
from whisper_tui.supervisor.runs import pool, scheduling

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


async def test_a_call_that_starts_at_once_is_judged_once_and_a_queued_call_twice(bench: Bench) -> None:
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


async def test_a_caller_that_leaves_before_the_start_cancels_nothing(bench: Bench) -> None:
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


class TestWorkers:
    async def test_approved_calls_do_not_wait_for_automatically_allowed_ones(self, bench: Bench) -> None:
        session = await with_one_worker(bench)
        allowed = await bench.submit(session, "true")
        await bench.ordered(allowed)
        approved, second = await bench.submit(session, "make"), await bench.submit(session, "make")
        await bench.approve(approved)
        await bench.ordered(approved)
        await bench.approve(second)
        assert isinstance((await bench.record(second)).state, Queued)
        bench.executor.finish(await bench.ordered(approved))
        await bench.ordered(second)

    async def test_a_long_run_frees_its_worker(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (scheduling, pool):
            monkeypatch.setattr(module, "LONG_S", 0.2)
        session = await with_one_worker(bench)
        server = await bench.submit(session, "true")
        await bench.ordered(server)
        for _ in range(scheduling.MOST - 1):
            await bench.ordered(await bench.submit(session, "true"))
        last = await bench.submit(session, "true")
        await asyncio.sleep(0.5)
        assert isinstance((await bench.record(last)).state, Queued)
        bench.executor.finish(await bench.ordered(server))
        await bench.ordered(last)

    async def test_background_tasks_occupy_no_worker(self, bench: Bench) -> None:
        session = await with_one_worker(bench)
        spec = CommandSpec(command=Argv(program="serve"), cwd=str(bench.workspace))
        for _ in range(4):
            request = CallRequest(session_id=session, tool="Bash", arguments={}, spec=spec, background=True)
            server = await bench.supervisor.submit(request)
            await bench.approve(server)
            await bench.ordered(server)
        await bench.ordered(await bench.submit(session, "true"))

    async def test_the_reason_for_queueing_is_described(self, bench: Bench) -> None:
        session = await with_one_worker(bench)
        first = await bench.submit(session, "true")
        await bench.submit(session, "true")
        assert (await bench.supervisor.status()).busy == (f"1 command runs on 1 worker; longest: call {first}, for 0 s")
