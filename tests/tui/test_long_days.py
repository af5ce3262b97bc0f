"""A cockpit that is open all day holds what it shows, and not what it has shown."""

import asyncio
import gc
from collections import Counter

import pytest
from textual.message_pump import MessagePump
from textual.timer import Timer

from tests.in_memory.world import RecordedStreams
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import Scenario
from whisper_tui.model.board import ENDED_KEPT
from whisper_tui.model.state import CallRecord

SCENES = ("build", "test", "tag", "crawl")


async def some_calls(cockpit: Cockpit, number: int) -> None:
    """Calls that are asked, decided and over, each seen on the screen while it waits."""
    for step in range(number):
        scene = SCENES[step % len(SCENES)]
        call_id = cockpit.scenario.ask(scene)
        await cockpit.until(lambda call_id=call_id: cockpit.selected == call_id)
        if step % 5:
            cockpit.scenario.approve(call_id)
            cockpit.scenario.print(call_id, scene)
            cockpit.scenario.end(call_id)
        else:
            cockpit.scenario.deny(call_id, "no")
        await cockpit.until(lambda call_id=call_id: not cockpit.screen.board.calls[call_id].is_open)
        await asyncio.sleep(0.02)


async def parts_alive(cockpit: Cockpit) -> Counter[str]:
    """Widgets, timers and tasks in memory, once everything that is under way is over."""
    await cockpit.settled()
    await cockpit.pilot.pause(0.5)
    gc.collect()
    alive = (part for part in gc.get_objects() if isinstance(part, MessagePump | Timer | asyncio.Task))
    return Counter(type(part).__name__ for part in alive)


def records_alive() -> int:
    """Calls in memory, those of other tests too; messages that are under way may still hold some."""
    gc.collect()
    return sum(isinstance(part, CallRecord) for part in gc.get_objects())


@pytest.mark.slow
async def test_closed_parts_of_the_screen_are_garbage_collected():
    async with open_cockpit(Scenario.begin()) as cockpit:
        await some_calls(cockpit, 8)
        before = await parts_alive(cockpit)
        await some_calls(cockpit, 32)
        grown = {name: number for name, number in (await parts_alive(cockpit) - before).items() if number > 8}
        assert not grown


@pytest.mark.slow
async def test_dropped_calls_are_garbage_collected():
    scenario = Scenario.begin()
    before = records_alive()
    async with open_cockpit(scenario) as cockpit:
        for number in range(ENDED_KEPT + 300):
            call_id = scenario.ask("build")
            scenario.deny(call_id, "no")
            if number % 50 == 0:
                await cockpit.until(lambda: cockpit.screen.board.seq >= len(scenario.supervisor.events))
        await cockpit.until(lambda: cockpit.screen.board.seq >= len(scenario.supervisor.events))
        await cockpit.settled()
        scenario.supervisor.events.clear()
        scenario.supervisor.board.calls.clear()
        scenario.supervisor.written = {call_id: RecordedStreams()}
        await cockpit.until(lambda: records_alive() - before <= ENDED_KEPT + 50)
