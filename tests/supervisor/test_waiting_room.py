"""Who watches and who waits takes no more memory than there is room for."""

import asyncio

from tests.model.build import submitted
from whisper_tui.supervisor.journal.store import RecentEvents, Waiters


async def test_cancelled_waiters_leave_nothing_behind():
    waiters = Waiters()
    tasks = [asyncio.create_task(waiters.wait("1")) for _ in range(10)]
    await asyncio.sleep(0)
    for task in tasks[1:]:
        task.cancel()
    await asyncio.gather(*tasks[1:], return_exceptions=True)
    assert len(waiters) == 1
    waiters.wake_all()
    await asyncio.wait_for(tasks[0], 60)
    assert len(waiters) == 0


def test_large_events_are_let_go_of_sooner():
    recent = RecentEvents(most=3, largest=100)
    events = [submitted(str(number)) for number in range(1, 6)]
    for event in events[:3]:
        recent.add(event, 10)
    assert recent.newest(3, 2) == tuple(events[:2])
    recent.add(events[3], 95)
    assert recent.newest(2, 9) is None
    assert recent.newest(1, 9) == (events[3],)
    recent.add(events[4], 1000)
    assert recent.newest(1, 9) == (events[4],)
