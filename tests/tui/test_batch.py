"""Deciding about several calls at once: marked one by one or all that are alike, and seen in full before."""

import pytest

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import Scenario
from tests.tui.test_deciding import three_waiting
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import Withdrawn
from whisper_tui.model.event import Finished, Judged
from whisper_tui.model.state import Ended, Running, Waiting
from whisper_tui.model.verdict import Resolved, Verdict


def builds_and_a_test() -> Scenario:
    """Calls 1, 2 and 4 build, call 3 tests, all of one session; call 5 is of another."""
    scenario = Scenario.begin()
    for scene in ("build", "build", "test", "build", "release"):
        scenario.ask(scene)
    scenario.clock.advance(10)
    return scenario


async def mark(cockpit: Cockpit, *call_ids: str) -> None:
    for call_id in call_ids:
        await cockpit.select(call_id)
        await cockpit.press("space")
    await cockpit.sees(f"{len(call_ids)} call")


def waits(cockpit: Cockpit, call_id: str) -> bool:
    return isinstance(cockpit.record(call_id).state, Waiting)


async def test_space_marks_and_unmarks_a_row() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await mark(cockpit, "1", "3")
        await cockpit.sees("2 calls marked", "✓◆ s1  ./build.sh", "✓◆ s1  echo")
        await cockpit.press("space")
        await cockpit.sees("1 call marked")
        await cockpit.select("1")
        await cockpit.press("space")
        await cockpit.until(lambda: "marked" not in cockpit.text())


@pytest.mark.slow
async def test_marked_calls_are_shown_in_full_and_approved_by_one_confirmation() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await mark(cockpit, "3", "1")
        await cockpit.press("R")
        await cockpit.sees(
            "Decide about 2 calls", "1. Call 3", "echo 'rate = 20' > tax.conf", "2. Call 1", "./build.sh"
        )
        assert waits(cockpit, "1") and waits(cockpit, "3")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: all(isinstance(cockpit.record(id_).state, Running) for id_ in "13"))
        assert cockpit.record("1").decision == Approve()
        assert waits(cockpit, "2")
        await cockpit.sees("2 calls approved.")
        await cockpit.until(lambda: "marked" not in cockpit.text())


async def test_r_marks_similar_calls_of_the_session_and_no_others() -> None:
    async with open_cockpit(builds_and_a_test()) as cockpit:
        await cockpit.select("2")
        await cockpit.press("r")
        await cockpit.sees("3 calls marked", "Marked 3 similar calls of this session: ./build.sh")
        await cockpit.press("R", "ctrl+s")
        await cockpit.until(lambda: all(isinstance(cockpit.record(id_).state, Running) for id_ in "124"))
        assert waits(cockpit, "3") and waits(cockpit, "5")


@pytest.mark.slow
async def test_r_again_unmarks_similar_calls() -> None:
    async with open_cockpit(builds_and_a_test()) as cockpit:
        await cockpit.select("2")
        await cockpit.press("r")
        await cockpit.sees("3 calls marked")
        await cockpit.press("r")
        await cockpit.until(lambda: "calls marked" not in cockpit.text())


@pytest.mark.slow
async def test_marked_calls_are_denied_with_one_reason() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await mark(cockpit, "1", "2")
        await cockpit.press("R", "d")
        await cockpit.sees("Deny 2 marked calls")
        await cockpit.press(*"later", "enter")
        await cockpit.until(lambda: all(isinstance(cockpit.record(id_).state, Ended) for id_ in "12"))
        assert cockpit.record("1").decision == cockpit.record("2").decision == Deny(reason="later")
        assert waits(cockpit, "3")


@pytest.mark.slow
async def test_calls_that_changed_behind_the_table_are_listed_and_not_approved() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await mark(cockpit, "1", "2", "3")
        await cockpit.press("R")
        await cockpit.sees("Decide about 3 calls")
        verdict, resolved = Verdict(kind="ask", reason="changed"), Resolved(program="/opt/other", cwd="/srv")
        supervisor = cockpit.scenario.supervisor
        supervisor.happen(Judged(at=cockpit.scenario.clock(), call_id="2", verdict=verdict, resolved=resolved))
        supervisor.happen(Finished(at=cockpit.scenario.clock(), call_id="3", ending=Withdrawn(why="the agent left")))
        await cockpit.until(lambda: cockpit.screen.board.seq == supervisor.board.seq)
        await cockpit.press("ctrl+s")
        await cockpit.sees("Not approved", "Call 2: Call 2 has changed since it was shown", "Call 3: Call 3 is decided")
        assert isinstance(cockpit.record("1").state, Running)
        assert waits(cockpit, "2")


@pytest.mark.slow
async def test_rows_that_were_never_visible_need_a_second_key() -> None:
    async with open_cockpit(builds_and_a_test(), size=(100, 20)) as cockpit:
        await mark(cockpit, "1", "2", "3", "4", "5")
        await cockpit.press("R")
        await cockpit.sees("Decide about 5 calls", "more lines")
        await cockpit.press("ctrl+s")
        await cockpit.sees("of the commands not shown. Press again")
        assert all(waits(cockpit, id_) for id_ in "12345")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: not any(waits(cockpit, id_) for id_ in "12345"))


@pytest.mark.slow
async def test_rows_that_were_read_to_the_end_are_approved_at_once() -> None:
    async with open_cockpit(builds_and_a_test(), size=(100, 20)) as cockpit:
        await mark(cockpit, "1", "2", "3", "4", "5")
        await cockpit.press("R")
        await cockpit.sees("more lines")
        for _ in range(20):
            await cockpit.press("pagedown")
            if "more lines" not in cockpit.text():
                break
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: not any(waits(cockpit, id_) for id_ in "12345"))


async def test_a_call_that_no_longer_waits_loses_its_mark() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await mark(cockpit, "1", "2")
        cockpit.scenario.supervisor.happen(
            Finished(at=cockpit.scenario.clock(), call_id="1", ending=Withdrawn(why="the agent left"))
        )
        await cockpit.sees("1 call marked")
        await cockpit.press("R")
        await cockpit.sees("Decide about 1 call")


async def test_capital_r_says_that_nothing_is_marked() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.press("R")
        await cockpit.sees("No call is marked.")


async def test_u_in_the_table_clears_the_marks_and_decides_nothing() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await mark(cockpit, "1", "2")
        await cockpit.press("R", "u")
        await cockpit.until(lambda: "marked" not in cockpit.text())
        assert waits(cockpit, "1") and waits(cockpit, "2")


@pytest.mark.slow
async def test_clicks_mark_and_confirm() -> None:
    async with open_cockpit(three_waiting(), size=(260, 60)) as cockpit:
        await cockpit.select("1")
        await cockpit.click("#do-mark")
        await cockpit.sees("1 call marked")
        await cockpit.click("#do-mark-alike")
        await cockpit.until(lambda: "marked" not in cockpit.text())
        await cockpit.click("#do-mark-alike")
        await cockpit.sees("1 call marked")
        await cockpit.click("#now-review")
        await cockpit.sees("Decide about 1 call")
        await cockpit.click("#choose-approve")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))


@pytest.mark.slow
async def test_the_palette_marks_and_reviews() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.choose("Mark similar  (r)")
        await cockpit.sees("1 call marked")
        await cockpit.choose("Review marked  (R)")
        await cockpit.sees("Decide about 1 call")


async def test_the_last_button_opens_the_palette() -> None:
    async with open_cockpit(three_waiting(), size=(80, 24)) as cockpit:
        await cockpit.select("1")
        await cockpit.click("#call-actions .bar-more")
        await cockpit.sees("Approve more…  (A)")
