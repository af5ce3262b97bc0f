"""A cockpit that is open all day holds what it shows, and not what it has shown."""

import asyncio
import gc
from collections import Counter

import pytest
from textual.message_pump import MessagePump
from textual.timer import Timer

from tests.in_memory.world import RecordedStreams
from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import Play
from whisper_tui.model.board import ENDED_KEPT
from whisper_tui.model.state import CallRecord

SCENES = ("build", "test", "tag", "crawl")


async def some_calls(seat: Cockpit, number: int) -> None:
    """Calls that are asked, decided and over, each seen on the screen while it waits."""
    for step in range(number):
        scene = SCENES[step % len(SCENES)]
        call_id = seat.play.ask(scene)
        await seat.until(lambda call_id=call_id: seat.selected == call_id)
        if step % 5:
            seat.play.approve(call_id)
            seat.play.print(call_id, scene)
            seat.play.end(call_id)
        else:
            seat.play.deny(call_id, "no")
        await seat.until(lambda call_id=call_id: not seat.screen.board.calls[call_id].is_open)
        await asyncio.sleep(0.02)


async def parts_alive(seat: Cockpit) -> Counter[str]:
    """Widgets, timers and tasks in memory, once everything that is under way is over."""
    await seat.settled()
    await seat.pilot.pause(0.5)
    gc.collect()
    alive = (part for part in gc.get_objects() if isinstance(part, MessagePump | Timer | asyncio.Task))
    return Counter(type(part).__name__ for part in alive)


def records_alive() -> int:
    """Calls in memory, those of other tests too; messages that are under way may still hold some."""
    gc.collect()
    return sum(isinstance(part, CallRecord) for part in gc.get_objects())


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_closed_parts_of_the_screen_are_garbage_collected():
    async with cockpit(Play.begin()) as seat:
        await some_calls(seat, 8)
        before = await parts_alive(seat)
        await some_calls(seat, 32)
        grown = {name: number for name, number in (await parts_alive(seat) - before).items() if number > 8}
        assert not grown


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_dropped_calls_are_garbage_collected():
    play = Play.begin()
    before = records_alive()
    async with cockpit(play) as seat:
        for number in range(ENDED_KEPT + 300):
            call_id = play.ask("build")
            play.deny(call_id, "no")
            if number % 50 == 0:
                await seat.until(lambda: seat.screen.board.seq >= len(play.stage.events))
        await seat.until(lambda: seat.screen.board.seq >= len(play.stage.events))
        await seat.settled()
        play.stage.events.clear()
        play.stage.board.calls.clear()
        play.stage.written = {call_id: RecordedStreams()}
        await seat.until(lambda: records_alive() - before <= ENDED_KEPT + 50)
