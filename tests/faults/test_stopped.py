"""What stands between the supervisor and a command hangs: a keeper, or what forks them."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.instance import HUMAN, PATIENCE_S, Instance
from tests.outside import outside_only
from tests.supervisor.engine.conftest import Engine, alive, stop_with_children, until
from whisper_tui.model.ending import Exited, Signalled
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.state import Ended, Running
from whisper_tui.supervisor.runs.executor import NeverRan
from whisper_tui.system.processes import children_of, is_stopped


async def stop(instance: Instance, pid: int) -> None:
    """Stop a process. On a busy machine it is stopped some time after the signal was sent."""
    os.kill(pid, signal.SIGSTOP)
    await instance.until(lambda: is_stopped(pid))


@outside_only
async def test_an_order_to_a_stopped_keeper_fails_now_and_is_executed_later(
    instance: Instance,
) -> None:
    call_id = await instance.start_long()
    state = (await instance.door.record(call_id)).state
    assert isinstance(state, Running)
    keeper = state.process.keeper_pid
    await stop(instance, keeper)
    was_stopped = f"call {call_id} was stopped"
    with pytest.raises(Unavailable, match=was_stopped) as told:
        await instance.door.signal(call_id, signal.SIGTERM, "leader", HUMAN)
    assert f"kill -CONT {keeper}" in told.value.hint
    with pytest.raises(Unavailable, match=was_stopped):
        await instance.door.pause(HUMAN)
    with pytest.raises(Unavailable, match=was_stopped):
        await instance.door.resume(HUMAN)
    os.kill(keeper, signal.SIGCONT)
    record = await asyncio.wait_for(instance.door.outcome(call_id), PATIENCE_S)
    assert isinstance(record.state, Ended)
    assert record.state.ending == Signalled(number=signal.SIGTERM, by_us=True)


@outside_only
async def test_a_run_whose_keeper_hangs_for_a_while_ends_as_if_nothing_had_been(instance: Instance) -> None:
    call_id = await instance.start_long()
    state = (await instance.door.record(call_id)).state
    assert isinstance(state, Running)
    await stop(instance, state.process.keeper_pid)
    instance.may_end.touch()
    await instance.works_again()
    assert isinstance((await instance.door.record(call_id)).state, Running)
    os.kill(state.process.keeper_pid, signal.SIGCONT)
    record = await asyncio.wait_for(instance.door.outcome(call_id), PATIENCE_S)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=7)
    assert await instance.output(call_id) == b"begun\ndone\n"


async def test_a_start_that_nobody_takes_up_is_given_to_others(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    await engine.open()
    parent = engine.executor._keepers._guardian
    assert parent is not None
    await until(lambda: children_of(parent.pid))
    hanging = await stop_with_children(parent.pid)
    try:
        key = await engine.start("touch ran")
        engine.executor._runs[key].deadline = 0.0
        await engine.seen(key, NeverRan)
        assert f"no keeper has claimed the start of call {key.call_id}" in (engine.executor.problem or "")
        assert await engine.ended(await engine.run("exit 4")) == Exited(code=4)
    finally:
        for pid in hanging:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        await engine.close()
    await until(lambda: not any(map(alive, hanging)))
    assert not (engine.workspace / "ran").exists()
