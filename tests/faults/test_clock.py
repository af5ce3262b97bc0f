"""The clock of the system jumps: order, endings and approvals do not."""

from itertools import cycle
from pathlib import Path

from tests.faults.scenario import everything, problems
from tests.faults.world import World
from whisper_tui.model.decision import Approve, ExactScope
from whisper_tui.model.state import Waiting

NOON = 1_800_000_000.0


async def test_a_clock_that_jumps_to_and_fro_changes_nothing_about_what_is_done(tmp_path: Path) -> None:
    jumps = cycle((NOON, NOON - 86_400.0, NOON + 3_600.0, 0.0, NOON + 1e9))
    world = World(tmp_path / "world", clock=lambda: next(jumps))
    await world.open()
    calls = await everything(world)
    assert problems(world, calls) == []
    await world.replace()
    assert not any(record.is_open for record in world.supervisor.board.calls.values())
    await world.supervisor.close()


async def test_an_approval_for_some_minutes_is_not_made_longer_by_a_clock_that_was_set_back(tmp_path: Path) -> None:
    now = NOON
    world = World(tmp_path / "world", clock=lambda: now)
    await world.open()
    agent = await world.session("agent")
    first = await world.submit(agent, "true", "1")
    await world.decide(first, Approve(remember=ExactScope(minutes=10)))
    await world.settled(first)

    async def is_asked_at(moment: float) -> bool:
        nonlocal now
        now = moment
        call_id = await world.submit(agent, "true", "1")
        return isinstance((await world.supervisor.record(call_id)).state, Waiting)

    asked = [await is_asked_at(NOON + minutes * 60) for minutes in (9, 11, -1)]
    assert asked == [False, True, True]
    await world.supervisor.close()
