"""When a call starts that nobody has to be asked about."""

import asyncio
import functools
import re
import time

import psutil
import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.call import Argv, CallRequest, CommandSpec
from whisper_tui.model.errors import Refused
from whisper_tui.model.event import Decided, Event, Judged, Started, Submitted
from whisper_tui.model.run import shortened_command
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
    async with asyncio.timeout(60):
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
    async def test_an_approved_call_starts_whatever_else_runs(self, bench: Bench) -> None:
        session = await with_one_worker(bench)
        await bench.ordered(await bench.submit(session, "true"))
        servers = [await bench.submit(session, "make") for _ in range(3 * scheduling.MOST)]
        for call_id in servers:
            await bench.approve(call_id)
        for call_id in servers:
            await bench.ordered(call_id)

    async def test_approved_calls_take_no_worker_from_those_that_nobody_was_asked_about(self, bench: Bench) -> None:
        session = await with_one_worker(bench)
        approved = await bench.submit(session, "make")
        # Both are queued by the pause, so that they start in the same round.
        await bench.supervisor.pause(HUMAN)
        await bench.approve(approved)
        allowed = await bench.submit(session, "true")
        await bench.supervisor.resume(HUMAN)
        await bench.ordered(approved)
        await bench.ordered(allowed)

    async def test_a_long_run_frees_its_worker(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(scheduling, "LONG_S", 0.2)
        monkeypatch.setattr(scheduling, "RECHECK_S", 0.1)
        monkeypatch.setattr(pool, "RECHECK_S", 0.1)
        session, other = await with_one_worker(bench), await bench.session("other")
        server = await bench.submit(session, "true")
        await bench.ordered(server)
        for _ in range(scheduling.MOST // 2 - 1):
            await bench.ordered(await bench.submit(session, "true"))
        last = await bench.submit(session, "true")
        # This session has its half of the unasked commands; another one may still start some.
        await bench.ordered(await bench.submit(other, "true"))
        monkeypatch.setattr(scheduling, "LONG_S", 0.0)
        assert (await self.reason(bench, last)).startswith(
            "4 of 4 commands of its agent running without approval; longest: true,"
        )
        bench.executor.finish(await bench.ordered(server))
        await bench.ordered(last)

    async def test_long_unasked_commands_of_all_sessions_have_a_limit(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(scheduling, "LONG_S", 0.0)
        sessions = [await with_one_worker(bench), await bench.session("second")]
        for number in range(scheduling.MOST):
            await bench.ordered(await bench.submit(sessions[number % 2], "true"))
        last = await bench.submit(await bench.session("third"), "true")
        assert (await self.reason(bench, last)).startswith("8 of 8 commands running without approval; longest: ")

    async def test_background_tasks_occupy_no_worker(self, bench: Bench) -> None:
        session = await with_one_worker(bench)
        spec = CommandSpec(command=Argv(program="true"), cwd=str(bench.workspace))
        for _ in range(3):
            request = CallRequest(session_id=session, tool="Bash", arguments={}, spec=spec, background=True)
            await bench.ordered(await bench.supervisor.submit(request))
        await bench.ordered(await bench.submit(session, "true"))

    async def test_the_reason_for_queueing_is_described(self, bench: Bench) -> None:
        session = await with_one_worker(bench)
        first = await bench.submit(session, "true")
        queued = await bench.submit(session, "true")
        assert re.fullmatch(r"1 of 1 workers busy; longest: true, \d+ s", await self.reason(bench, queued))
        # An agent is not told the commands of others.
        busy = (await bench.supervisor.status()).busy
        assert re.fullmatch(rf"1 of 1 workers busy; longest: call {first}, \d+ s", busy)

    async def test_a_command_in_the_reason_has_no_secrets_and_one_short_line(self, bench: Bench) -> None:
        words = ("true", "--password", "hunter2", "x" * 500)
        await bench.supervisor.close()
        await bench.open(Rules(allow=(ExactRule(name="long", argv=words),)), workers=1)
        session = await bench.session()
        await bench.submit(session, *words)
        queued = await bench.submit(session, *words)
        said = await self.reason(bench, queued)
        assert "true" in said and "hunter2" not in said and len(said) < 120
        assert shortened_command("a\n\tb") == "a b"

    async def test_after_a_restart_ages_are_right_and_queued_calls_start(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session = await with_one_worker(bench)
        running = await bench.submit(session, "true")
        key = await bench.ordered(running)
        bench.executor.spawn(key)
        await bench.state(running, "running")
        queued = await bench.submit(session, "true")
        monkeypatch.setattr(pool, "RECHECK_S", 0.05)
        await bench.supervisor.close()
        began = bench.supervisor.board.calls[running].process
        assert began is not None
        # The process tells its age, and not the supervisor, which has just started.
        monkeypatch.setattr(scheduling, "LONG_S", time.time() - began.started_at + 3600)
        await bench.open(ALLOWED, workers=1)
        assert "; longest: true, " in await self.reason(bench, queued)
        reason = (await bench.supervisor.status()).queue.unasked
        assert reason is not None and reason.lasts_s >= time.time() - began.started_at - 1
        approved = await bench.submit(session, "make")
        await bench.approve(approved)
        await bench.ordered(approved)
        # From now on the run is a long one, and nothing happens that would wake the pool.
        monkeypatch.setattr(scheduling, "LONG_S", 0.0)
        await bench.ordered(queued)

    async def reason(self, bench: Bench, call_id: str) -> str:
        """Return why a call is queued, as people are told."""
        record = await bench.state(call_id, "queued")
        reasons = (await bench.supervisor.status()).queue
        found = reasons.of(record.call.session_id, by_human=record.decided_by_human)
        assert found is not None
        return found.words()


class TestMemory:
    async def test_no_command_starts_while_too_little_memory_is_available(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        available = [100 << 20]
        session = await self.opened(bench, monkeypatch, available)
        approved, allowed = await bench.submit(session, "make"), await bench.submit(session, "true")
        await bench.approve(approved)
        await bench.state(allowed, "queued")
        await bench.state(approved, "queued")
        status = await bench.supervisor.status()
        words = "100 MiB of memory are available, and commands start above 256 MiB"
        assert status.queue.approved is not None and status.queue.approved.words() == words
        available[0] = 1 << 40
        await bench.ordered(approved)
        await bench.ordered(allowed)

    async def test_calls_that_are_approved_at_once_do_not_all_count_on_the_same_memory(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        available = [(256 << 20) + 3 * scheduling.RESERVE]
        session = await self.opened(bench, monkeypatch, available)
        monkeypatch.setattr(scheduling, "SETTLES_AFTER_S", 3600.0)
        calls = [await bench.submit(session, "make") for _ in range(6)]
        for call_id in calls:
            await bench.approve(call_id)
        await bench.ordered(calls[3])
        await bench.state(calls[4], "queued")
        monkeypatch.setattr(scheduling, "SETTLES_AFTER_S", 0.0)
        await bench.ordered(calls[5])

    async def test_a_queued_call_starts_when_a_human_says_so(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session = await self.opened(bench, monkeypatch, [0])
        call_id = await bench.submit(session, "make")
        with pytest.raises(Refused, match="is not queued"):
            await bench.supervisor.start_anyway(call_id, HUMAN)
        await bench.approve(call_id)
        await bench.state(call_id, "queued")
        await bench.supervisor.pause(HUMAN)
        with pytest.raises(Refused, match="everything is paused"):
            await bench.supervisor.start_anyway(call_id, HUMAN)
        await bench.supervisor.resume(HUMAN)
        await bench.supervisor.start_anyway(call_id, HUMAN)
        assert list(bench.executor.orders) == [await bench.ordered(call_id)]
        with pytest.raises(Refused, match="is not queued"):
            await bench.supervisor.start_anyway(call_id, HUMAN)

    async def test_a_queued_call_that_has_changed_is_asked_about_again_instead_of_started(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session = await self.opened(bench, monkeypatch, [0])
        script = bench.workspace / "build.sh"
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)
        call_id = await bench.submit(session, "./build.sh")
        await bench.approve(call_id)
        await bench.state(call_id, "queued")
        script.write_text("#!/bin/sh\nrm -rf /\n")
        with pytest.raises(Refused, match="waits for a decision again"):
            await bench.supervisor.start_anyway(call_id, HUMAN)
        assert not bench.executor.orders
        await bench.state(call_id, "waiting")

    def test_the_machine_says_how_much_memory_is_available(self) -> None:
        assert 0 < scheduling.available_memory() < psutil.virtual_memory().total

    async def opened(self, bench: Bench, monkeypatch: pytest.MonkeyPatch, available: list[int]) -> str:
        """Open a supervisor on a machine with so much memory."""
        monkeypatch.setattr(scheduling, "MEASURE_EVERY_S", 0.0)
        monkeypatch.setattr(pool, "RECHECK_S", 0.05)
        gauge = functools.partial(scheduling.MemoryGauge, available=lambda: available[0])
        monkeypatch.setattr(pool, "MemoryGauge", gauge)
        return await with_one_worker(bench)
