"""A run is held still with all its processes, and goes on as if nothing had been."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.supervisor.conftest import HUMAN
from tests.supervisor.engine.conftest import Engine, kill_for_good, until
from tests.wire.conftest import waiting_call
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Exited, Lost, Signalled
from whisper_tui.supervisor.runs.executor import HasBackground, RunKey
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.processes import Descendants, is_stopped
from whisper_tui.system.state_directory import Directories

COUNTING = "i=0; while :; do i=$((i+1)); echo $i > {}; done"


def pids(engine: Engine, *names: str) -> list[int]:
    return [int((engine.workspace / name).read_text()) for name in names]


async def written(engine: Engine, *names: str) -> None:
    paths = [engine.workspace / name for name in names]
    await until(lambda: all(path.exists() and path.read_text().strip() for path in paths))


async def frozen(engine: Engine, key: RunKey, of: list[int]) -> None:
    await engine.executor.set_frozen(key, frozen=True)
    await until(lambda: all(is_stopped(pid) for pid in of))


async def test_every_process_of_a_run_is_frozen_even_in_other_sessions(engine: Engine) -> None:
    counter, stranger = f"echo $BASHPID > b; {COUNTING.format('n')}", "echo $$ > c; exec sleep 1000"
    line = f"echo $$ > a; ({counter}) & setsid bash -c '{stranger}' & wait"
    key = await engine.start(line)
    await written(engine, "a", "b", "c", "n")
    family = pids(engine, "a", "b", "c")
    await frozen(engine, key, family)
    before = (engine.workspace / "n").read_bytes()
    await asyncio.sleep(0.2)
    assert (engine.workspace / "n").read_bytes() == before
    await engine.executor.set_frozen(key, frozen=False)
    await until(lambda: not any(map(is_stopped, family)))
    await until(lambda: (engine.workspace / "n").read_bytes() not in {before, b""})
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)


async def test_processes_that_were_stopped_before_stay_stopped(engine: Engine) -> None:
    key = await engine.start("echo $$ > a; sleep 1000 & echo $! > b; kill -STOP $!; wait")
    await written(engine, "a", "b")
    (leader, child) = pids(engine, "a", "b")
    await until(lambda: is_stopped(child))
    await frozen(engine, key, [leader])
    await engine.executor.set_frozen(key, frozen=False)
    await until(lambda: not is_stopped(leader))
    assert is_stopped(child)
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)


@pytest.mark.slow
async def test_a_frozen_run_does_not_time_out(engine: Engine) -> None:
    key = await engine.start("echo $$ > a; while [ ! -e go ]; do sleep 0.05; done; exit 5", timeout_s=5.0)
    await written(engine, "a")
    await frozen(engine, key, pids(engine, "a"))
    await asyncio.sleep(5.5)
    assert not Path(engine.runs / f"{key.call_id}.1" / "exit").exists()
    (engine.workspace / "go").touch()
    await engine.executor.set_frozen(key, frozen=False)
    assert await engine.ended(key) == Exited(code=5)


async def test_a_frozen_run_can_be_ended(engine: Engine) -> None:
    key = await engine.start("echo $$ > a; sleep 1000")
    await written(engine, "a")
    await frozen(engine, key, pids(engine, "a"))
    await engine.executor.end(key, 30.0)
    assert await engine.ended(key) == Signalled(number=signal.SIGTERM, by_us=True)
    await engine.settled(key)


async def test_a_run_stays_frozen_across_a_restart_of_the_supervisor(engine: Engine) -> None:
    key = await engine.start("echo $$ > a; while :; do sleep 0.01; done")
    await written(engine, "a")
    (leader,) = pids(engine, "a")
    await frozen(engine, key, [leader])
    await engine.reopen()
    await engine.executor.attach(key)
    await engine.spawned(key)
    assert is_stopped(leader)
    await engine.executor.set_frozen(key, frozen=False)
    await until(lambda: not is_stopped(leader))
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)


async def test_background_processes_are_frozen_too(engine: Engine) -> None:
    key = await engine.start("sleep 1000 > /dev/null 2>&1 &")
    found = await engine.background(key, lambda told: any(process.alive for process in told.processes))
    (process,) = found.processes
    await frozen(engine, key, [process.identity.pid])
    await engine.executor.set_frozen(key, frozen=False)
    await until(lambda: not is_stopped(process.identity.pid))
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.seen(key, HasBackground, lambda told: not any(each.alive for each in told.processes))
    await engine.settled(key)


async def test_a_forking_run_is_frozen_completely(engine: Engine) -> None:
    key = await engine.start("echo $$ > a; while :; do sleep 1000 & echo x >> n; sleep 0.001; done")
    await written(engine, "a", "n")
    keeper = (await engine.spawned(key)).process.keeper_pid
    await engine.executor.set_frozen(key, frozen=True)

    def still() -> bool:
        family = Descendants(keeper, adopts=False).now()
        return bool(family) and all(is_stopped(seen.pid) for seen in family)

    await until(still)
    before = (engine.workspace / "n").read_bytes()
    await asyncio.sleep(0.2)
    assert still() and (engine.workspace / "n").read_bytes() == before
    await engine.executor.signal(key, signal.SIGKILL, "tree")
    await engine.settled(key)


async def test_a_run_that_lost_its_keeper_during_a_pause_continues_with_the_rest(
    tmp_path: Path, home: Directories
) -> None:
    supervisor = Supervisor(home, LocalExecutor(tmp_path / "state" / "runs"))
    await supervisor.open()
    call_id = await waiting_call(supervisor, tmp_path, "sleep", "1000")
    await supervisor.decide(call_id, Approve(), HUMAN, (await supervisor.record(call_id)).seen_digest())
    process = (await supervisor.started(call_id)).process
    assert process is not None
    try:
        await supervisor.pause(HUMAN)
        await until(lambda: is_stopped(process.leader.pid))
        kill_for_good(process.keeper_pid)
        assert isinstance((await supervisor.outcome(call_id)).state.ending, Lost)
        assert is_stopped(process.leader.pid)
        await supervisor.resume(HUMAN)
        await until(lambda: not is_stopped(process.leader.pid))
    finally:
        os.kill(process.leader.pid, signal.SIGKILL)
        await supervisor.close()
