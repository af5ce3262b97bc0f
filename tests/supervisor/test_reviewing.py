"""What was changed unasked waits for a human's look, whatever happens meanwhile."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.outside import needs_overlays
from tests.supervisor.conftest import HUMAN
from tests.supervisor.test_previews import LiveBench
from whisper_tui.policy.rules.rule import Rules

pytestmark = needs_overlays


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveBench]:
    made = LiveBench(tmp_path)
    await made.open(Rules().at("workspace"))
    yield made
    await made.supervisor.close()


async def done(live: LiveBench, text: str) -> str:
    call_id = await live.asked(text)
    await live.over(call_id)
    return call_id


def unreviewed(live: LiveBench) -> list[str]:
    return list(live.supervisor.board.unreviewed)


async def test_calls_that_changed_files_unasked_are_to_be_reviewed_until_they_are_taken_back(live: LiveBench) -> None:
    first, second = await done(live, "echo x > a"), await done(live, "echo x > b")
    await done(live, "ls")
    await done(live, "python3 -c 'print(1)'")
    asked = await live.asked("curl -s http://127.0.0.1:9/ -o c; echo x > d")
    await live.state(asked, "waiting")
    assert unreviewed(live) == [first, second]
    await live.supervisor.undo(first, (), "undo", HUMAN)
    assert unreviewed(live) == [second] and live.files() == {"b": "x\n"}
    await live.supervisor.undo(first, (), "redo", HUMAN)
    assert sorted(unreviewed(live)) == sorted([first, second])


async def test_what_a_human_has_seen_stays_seen_after_a_restart_and_later_changes_do_not(live: LiveBench) -> None:
    first = await done(live, "echo x > a")
    ended = (await live.record(first)).state
    await live.supervisor.mark_reviewed(ended.at, HUMAN)  # type: ignore[union-attr]
    second = await done(live, "echo x > b")
    assert unreviewed(live) == [second]
    await live.supervisor.close()
    await live.open(Rules().at("workspace"))
    assert unreviewed(live) == [second]


async def test_nobody_marks_what_has_not_happened_yet(live: LiveBench) -> None:
    await live.supervisor.mark_reviewed(9e12, HUMAN)
    call_id = await done(live, "echo x > a")
    assert unreviewed(live) == [call_id]


async def test_what_a_human_has_approved_is_not_reviewed_again(live: LiveBench) -> None:
    session = await live.session()
    await live.supervisor.set_unasked("nothing", HUMAN, session)
    call_id = await live.submit(session, text="echo x > a")
    await live.approve(call_id)
    await live.over(call_id)
    assert unreviewed(live) == []
