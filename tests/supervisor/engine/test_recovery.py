"""A supervisor may die at any moment: no byte, no exit code and no run is lost, and none happens twice."""

import fcntl
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.supervisor.engine.conftest import Engine, alive, kill_for_good, stop_with_children, until
from whisper_tui.model.ending import Exited, Lost, Signalled
from whisper_tui.supervisor.keeper.guardian import MOST_KEEPERS
from whisper_tui.supervisor.runs.executor import HasBackground, HasEnded, HasSettled, HasSpawned, NeverRan, RunKey
from whisper_tui.system.processes import children_of


async def test_attaching_tells_everything_again_in_order(engine: Engine):
    key = await engine.start("sleep 600 & echo hi; exit 7")
    await engine.ended(key)
    await engine.reopen()
    await engine.executor.attach(key)
    assert await engine.ended(key) == Exited(code=7)
    kinds = [type(report) for report in engine.of(key)]
    assert kinds[0] is HasSpawned
    assert kinds.index(HasBackground) < kinds.index(HasEnded)
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)


async def test_a_run_that_ended_meanwhile_is_reported_with_its_exit_code(engine: Engine):
    key = await engine.start("until test -e go; do sleep 0.02; done; echo done; exit 5")
    await engine.spawned(key)
    await engine.close()
    (engine.workspace / "go").touch()
    await until((engine.runs / "1.1" / "done").exists)
    await engine.reopen()
    await engine.executor.attach(key)
    await engine.settled(key)
    assert [type(report) for report in engine.of(key)] == [HasSpawned, HasEnded, HasSettled]
    assert await engine.ended(key) == Exited(code=5)
    assert engine.out(key) == b"done\n"


async def test_an_attempt_that_nobody_took_up_is_revoked_and_never_runs(engine: Engine):
    """As if the supervisor had died between laying it out and asking for it."""
    from whisper_tui.supervisor.runs.attempt import Attempt

    order = engine.order("echo no > ran")
    attempt = Attempt(str(engine.runs), order.key)
    attempt.create(order, engine.executor._boot.now)
    await engine.executor.attach(order.key)
    await engine.settled(order.key)
    assert engine.of(order.key) == [NeverRan(order.key)]

    await engine.executor._keepers.send(attempt.directory, {})
    for _ in range(8):
        await engine.run("true")
    assert not (engine.workspace / "ran").exists()
    assert engine.executor.read_output(order.key, "out", 0, 1).ended
    await engine.reopen()
    await engine.executor.attach(order.key)
    await engine.settled(order.key)
    assert engine.of(order.key) == [NeverRan(order.key)]


async def test_an_attempt_without_any_trace_never_ran(engine: Engine):
    await engine.executor.attach(RunKey("77", 1))
    await engine.settled(RunKey("77", 1))
    assert engine.of(RunKey("77", 1)) == [NeverRan(RunKey("77", 1))]


async def test_an_attempt_without_any_trace_may_have_run_if_the_machine_restarted(engine: Engine):
    await engine.run("true")
    (engine.runs / "boot").write_text("an earlier boot")
    await engine.reopen()
    await engine.executor.attach(RunKey("77", 1))
    ending = await engine.ended(RunKey("77", 1))
    assert isinstance(ending, Lost)
    assert "may have run" in ending.why


async def test_a_run_whose_keeper_was_killed_is_lost_and_the_survivor_is_named(engine: Engine):
    key = await engine.start("echo before; exec sleep 600")
    spawned = await engine.spawned(key)
    await until(lambda: engine.out(key) == b"before\n")
    kill_for_good(spawned.process.keeper_pid)
    try:
        ending = await engine.ended(key)
        assert isinstance(ending, Lost)
        assert f"pid {spawned.process.leader.pid}" in ending.why
        await engine.settled(key)
        assert engine.out(key) == b"before\n"
        assert engine.executor.read_output(key, "out", 0, 1).ended
        await engine.reopen()
        await engine.executor.attach(key)
        assert await engine.ended(key) == ending, "the same is told for ever"
    finally:
        if alive(spawned.process.leader.pid):
            os.kill(spawned.process.leader.pid, signal.SIGKILL)


async def test_a_keeper_killed_after_the_answer_changes_no_ending(engine: Engine):
    key = await engine.start("sleep 600 & echo $!; exit 6")
    spawned = await engine.spawned(key)
    await engine.ended(key)
    kill_for_good(spawned.process.keeper_pid)
    await engine.settled(key)
    assert await engine.ended(key) == Exited(code=6)
    left = [told for told in engine.of(key) if isinstance(told, HasBackground)][-1]
    assert [(each.identity.pid, each.alive) for each in left.processes] == [(int(engine.out(key)), True)]
    os.kill(int(engine.out(key)), signal.SIGKILL)


async def test_a_run_from_before_a_restart_of_the_machine_is_lost(engine: Engine):
    key = await engine.start("exec sleep 600")
    spawned = await engine.spawned(key)
    await engine.close()
    kill_for_good(spawned.process.keeper_pid)
    os.kill(spawned.process.leader.pid, signal.SIGKILL)
    directory = engine.runs / "1.1"
    told = json.loads((directory / "pid").read_text()) | {"boot": "an earlier boot"}
    (directory / "pid").write_text(json.dumps(told))
    await until(lambda: _unlocked(directory / "lock"))
    await engine.reopen()
    await engine.executor.attach(key)
    ending = await engine.ended(key)
    assert ending == Lost(why="the machine restarted while it ran")


def _unlocked(path: Path) -> bool:
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


async def test_signals_reach_a_recovered_run(engine: Engine):
    key = await engine.start("exec sleep 600")
    await engine.spawned(key)
    await engine.reopen()
    await engine.executor.attach(key)
    await engine.executor.signal(key, signal.SIGTERM, "leader")
    assert await engine.ended(key) == Signalled(number=signal.SIGTERM, by_us=True)


async def test_lost_wakeups_lose_no_report(engine: Engine):
    """Files are the truth: with the reader of wakeups gone, the sweep still finds everything."""
    engine.executor._wakeups.close()
    key = await engine.run("sleep 0.1 & echo hi; exit 2")
    assert await engine.ended(key) == Exited(code=2)


async def test_a_run_whose_files_were_removed_is_lost_and_not_taken_for_one_that_never_ran(engine: Engine):
    key = await engine.start("exec sleep 600")
    spawned = await engine.spawned(key)
    engine.executor._runs[key].deadline = 0.0
    shutil.rmtree(engine.runs / "1.1")
    ending = await engine.ended(key)
    assert isinstance(ending, Lost)
    assert "removed" in ending.why
    os.kill(spawned.process.leader.pid, signal.SIGKILL)
    await until(lambda: not alive(spawned.process.keeper_pid))


@pytest.mark.slow
async def test_a_job_that_no_keeper_can_take_is_reported_as_never_run(engine: Engine):
    """The parent of the keepers and all that wait are killed with a job in their queue."""
    guardian = engine.executor._keepers._guardian
    assert guardian is not None
    await until(lambda: len(children_of(guardian.pid)) >= min(MOST_KEEPERS, os.cpu_count() or 1))
    stopped = await stop_with_children(guardian.pid)
    key = await engine.start("echo no > ran")
    for pid in reversed(stopped):
        os.kill(pid, signal.SIGKILL)
    await engine.settled(key)
    assert engine.of(key) == [NeverRan(key)]
    assert not (engine.workspace / "ran").exists()
    assert engine.out(await engine.run("echo fine")) == b"fine\n"
