"""Each state of a task, and what brings it about."""

import pytest

from tests.tools.exec_command.conftest import Shop
from tests.tools.recorded import HUMAN
from whisper_tui.model.ending import Denied, Exited, FailedToStart, HandedOver, Lost, Signalled, TimedOut, Withdrawn
from whisper_tui.model.state import Ended
from whisper_tui.tools.task import task_state
from whisper_tui.tools.task_tools import TaskStatusTool


async def shown(shop: Shop, task_id: str) -> str:
    return (await TaskStatusTool(shop.context).execute(task_id=task_id))["result"]["task"]["status"]


async def over(shop: Shop, ending, *, stopped: bool = False) -> str:
    record = await shop.bench.record((await shop.task()).call_id)
    return task_state(record.model_copy(update={"state": Ended(at=1.0, ending=ending), "stopping": stopped}))


async def test_a_task_that_waits_or_is_about_to_start_is_queued(shop: Shop):
    answer = shop.call(yield_time_ms=0)
    call_id = (await shop.submitted()).id
    assert await shown(shop, call_id) == "queued"
    await shop.bench.approve(call_id)
    key = await shop.bench.ordered(call_id)
    assert await shown(shop, call_id) == "queued"
    shop.bench.executor.spawn(key)
    await answer


async def test_a_task_with_a_process_is_running(shop: Shop):
    assert await shown(shop, (await shop.task()).call_id) == "running"


async def test_a_task_that_its_agent_ends_is_cancelling_while_its_process_lives(shop: Shop):
    key = await shop.task()
    await shop.bench.supervisor.withdraw(key.call_id, "stop", stop_running=True)
    assert await shown(shop, key.call_id) == "cancelling"
    shop.bench.executor.finish(key, Signalled(number=15, by_us=True))
    await shop.bench.state(key.call_id, "ended")
    assert await shown(shop, key.call_id) == "cancelled"


@pytest.mark.parametrize("stopped", [False, True])
async def test_a_task_that_exited_with_0_is_completed_even_if_it_was_being_ended(shop: Shop, stopped):
    assert await over(shop, Exited(code=0), stopped=stopped) == "completed"


@pytest.mark.parametrize(
    "ending",
    [
        Exited(code=1),
        Signalled(number=11, by_us=False),
        TimedOut(after_s=1),
        FailedToStart(problem="other", subject="x", message="x"),
    ],
)
async def test_a_task_that_ended_badly_by_itself_has_failed(shop: Shop, ending):
    assert await over(shop, ending) == "failed"


@pytest.mark.parametrize(
    ("ending", "stopped"),
    [
        (Exited(code=143), True),
        (Signalled(number=15, by_us=True), True),
        (Denied(by=HUMAN, reason=""), False),
        (Withdrawn(why=""), False),
    ],
)
async def test_a_task_that_was_not_to_run_on_is_cancelled(shop: Shop, ending, stopped):
    assert await over(shop, ending, stopped=stopped) == "cancelled"


async def test_a_task_that_the_user_ended_is_interrupted(shop: Shop):
    assert await over(shop, Signalled(number=15, by_us=True)) == "interrupted"


@pytest.mark.parametrize("ending", [Lost(why=""), HandedOver()])
async def test_a_task_whose_end_cannot_be_known_is_lost(shop: Shop, ending):
    assert await over(shop, ending) == "lost"
