"""A place is connected when a call needs it, and let go once nobody uses it; it runs as many commands as it may."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.supervisor.conftest import HUMAN
from tests.supervisor.engine.conftest import until
from tests.supervisor.places.test_supervised_there import PlacedBench
from whisper_tui.model.ending import Exited
from whisper_tui.model.errors import InvalidRequest, Unavailable
from whisper_tui.model.state import Ended, PlaceState, Queued

WAITS = "until test -e go; do sleep 0.02; done; echo went"


class RestingBench(PlacedBench):
    """A supervisor whose place is connected when a call needs it, and let go after a moment."""

    def settle(self, idle_s: float = 600.0, workers: int = 0) -> None:
        self.places = tuple(
            replace(place, connect="first use", idle_s=idle_s, workers=workers) for place in self.places
        )

    @property
    def place(self) -> PlaceState:
        return self.placed.states()[0]

    @property
    def rests(self) -> bool:
        return not self.place.reached and self.place.problem == ""

    async def runs_to_its_end(self, text: str) -> bytes:
        call_id = await self.asked(text)
        record = await self.supervisor.outcome(call_id)
        assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
        return await self.out(call_id)


@pytest.fixture
async def resting(tmp_path: Path) -> AsyncIterator[RestingBench]:
    made = RestingBench(tmp_path)
    made.settle()
    await made.open()
    yield made
    await made.end()


async def test_nothing_runs_at_a_place_before_a_call_needs_it(resting: RestingBench) -> None:
    assert resting.rests and not resting.there.exists()
    assert await resting.runs_to_its_end("echo there") == b"there\n"
    assert resting.place.reached


async def test_a_place_that_nobody_uses_is_let_go_and_reached_again_by_the_next_call(resting: RestingBench) -> None:
    resting.settle(idle_s=0.3)
    await resting.restart()
    for _ in range(2):
        assert await resting.runs_to_its_end("echo there") == b"there\n"
        await until(lambda: resting.rests)


async def test_a_place_that_is_away_is_not_tried_for_ever_for_nobody(resting: RestingBench) -> None:
    resting.settle(idle_s=0.3)
    resting.gate.unlink()
    await resting.restart()
    call_id = await resting.submitted("echo there")
    assert "no route" in resting.place.problem
    await until(lambda: resting.rests)
    resting.gate.touch()
    await resting.approve(call_id)
    # Nobody could look at it there before: what was approved is asked once more, now that it is known.
    await resting.eventually(
        call_id, lambda record: record.state.kind == "waiting" and record.resolved.program is not None
    )
    await resting.approve(call_id)
    await resting.supervisor.outcome(call_id)
    assert await resting.out(call_id) == b"there\n"


async def test_a_command_that_runs_keeps_its_place(resting: RestingBench) -> None:
    resting.settle(idle_s=0.1)
    await resting.restart()
    call_id = await resting.asked(f"{WAITS}; sleep 0.5; echo end")
    await resting.state(call_id, "running")
    with pytest.raises(InvalidRequest, match="gpu1 is in use: 1 of its commands are not over"):
        await resting.supervisor.connect_place("gpu1", HUMAN, connected=False)
    (resting.workspace / "go").touch()
    await resting.supervisor.outcome(call_id)
    assert await resting.out(call_id) == b"went\nend\n"
    await until(lambda: resting.rests)


async def test_a_run_of_an_earlier_supervisor_is_followed_without_any_call(resting: RestingBench) -> None:
    call_id = await resting.asked(WAITS)
    await resting.state(call_id, "running")
    await resting.restart()
    (resting.workspace / "go").touch()
    await resting.supervisor.outcome(call_id)
    assert await resting.out(call_id) == b"went\n"


async def test_an_approved_call_reaches_its_place_after_the_place_was_let_go(resting: RestingBench) -> None:
    call_id = await resting.submitted("echo there")
    let_go = await resting.supervisor.connect_place("gpu1", HUMAN, connected=False)
    assert not let_go.reached and let_go.problem == ""
    await resting.approve(call_id)
    await resting.supervisor.outcome(call_id)
    assert await resting.out(call_id) == b"there\n"


async def test_a_place_can_be_tried_and_says_what_is_wrong(resting: RestingBench) -> None:
    tried = await resting.supervisor.connect_place("gpu1", HUMAN, connected=True)
    assert tried.reached and tried.host
    await resting.supervisor.connect_place("gpu1", HUMAN, connected=False)
    resting.gate.unlink()
    failed = await resting.supervisor.connect_place("gpu1", HUMAN, connected=True)
    assert (failed.reached, failed.problem) == (False, "no route to host")
    with pytest.raises(Unavailable, match="there is no place gpu9 in the configuration"):
        await resting.supervisor.connect_place("gpu9", HUMAN, connected=True)


async def test_no_more_commands_run_at_a_place_than_its_workers(resting: RestingBench) -> None:
    resting.settle(workers=1)
    await resting.restart()
    first = await resting.asked(WAITS)
    await resting.state(first, "running")
    second = await resting.asked("echo second")
    here = await resting.asked("echo here", place="")
    await resting.supervisor.outcome(here)
    assert isinstance((await resting.record(second)).state, Queued)
    reason = (await resting.supervisor.status()).queue.of("", by_human=True, place="gpu1")
    assert reason is not None and (reason.why, reason.call_id) == ("1 of 1 commands of gpu1 running", first)
    (resting.workspace / "go").touch()
    await resting.supervisor.outcome(second)
    assert await resting.out(second) == b"second\n"
