"""Deciding about several calls at once: marked one by one or all that are alike, and seen in full before."""

import pytest

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import Play
from tests.tui.test_deciding import three_waiting
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import Withdrawn
from whisper_tui.model.event import Finished, Judged
from whisper_tui.model.state import Ended, Running, Waiting
from whisper_tui.model.verdict import Resolved, Verdict


def builds_and_a_test() -> Play:
    """Calls 1, 2 and 4 build, call 3 tests, all of one session; call 5 is of another."""
    play = Play.begin()
    for scene in ("build", "build", "test", "build", "release"):
        play.ask(scene)
    play.clock.advance(10)
    return play


async def mark(seat: Cockpit, *call_ids: str) -> None:
    for call_id in call_ids:
        await seat.select(call_id)
        await seat.press("space")
    await seat.sees(f"{len(call_ids)} call")


def waits(seat: Cockpit, call_id: str) -> bool:
    return isinstance(seat.record(call_id).state, Waiting)


async def test_space_marks_and_unmarks_a_row() -> None:
    async with cockpit(three_waiting()) as seat:
        await mark(seat, "1", "3")
        await seat.sees("2 calls marked", "✓◆ ./build.sh", "✓◆ echo")
        await seat.press("space")
        await seat.sees("1 call marked")
        await seat.select("1")
        await seat.press("space")
        await seat.until(lambda: "marked" not in seat.text())


@pytest.mark.slow
async def test_marked_calls_are_shown_in_full_and_approved_by_one_confirmation() -> None:
    async with cockpit(three_waiting()) as seat:
        await mark(seat, "3", "1")
        await seat.press("R")
        await seat.sees("Decide about 2 calls", "1. Call 3", "echo 'rate = 20' > tax.conf", "2. Call 1", "./build.sh")
        assert waits(seat, "1") and waits(seat, "3")
        await seat.press("ctrl+s")
        await seat.until(lambda: all(isinstance(seat.record(id_).state, Running) for id_ in "13"))
        assert seat.record("1").decision == Approve()
        assert waits(seat, "2")
        await seat.sees("2 calls approved.")
        await seat.until(lambda: "marked" not in seat.text())


async def test_r_marks_similar_calls_of_the_session_and_no_others() -> None:
    async with cockpit(builds_and_a_test()) as seat:
        await seat.select("2")
        await seat.press("r")
        await seat.sees("3 calls marked", "Marked 3 similar calls of this session: ./build.sh")
        await seat.press("R", "ctrl+s")
        await seat.until(lambda: all(isinstance(seat.record(id_).state, Running) for id_ in "124"))
        assert waits(seat, "3") and waits(seat, "5")


@pytest.mark.slow
async def test_r_again_unmarks_similar_calls() -> None:
    async with cockpit(builds_and_a_test()) as seat:
        await seat.select("2")
        await seat.press("r")
        await seat.sees("3 calls marked")
        await seat.press("r")
        await seat.until(lambda: "calls marked" not in seat.text())


@pytest.mark.slow
async def test_marked_calls_are_denied_with_one_reason() -> None:
    async with cockpit(three_waiting()) as seat:
        await mark(seat, "1", "2")
        await seat.press("R", "d")
        await seat.sees("Deny 2 marked calls")
        await seat.press(*"later", "enter")
        await seat.until(lambda: all(isinstance(seat.record(id_).state, Ended) for id_ in "12"))
        assert seat.record("1").decision == seat.record("2").decision == Deny(reason="later")
        assert waits(seat, "3")


@pytest.mark.slow
async def test_calls_that_changed_behind_the_table_are_listed_and_not_approved() -> None:
    async with cockpit(three_waiting()) as seat:
        await mark(seat, "1", "2", "3")
        await seat.press("R")
        await seat.sees("Decide about 3 calls")
        verdict, resolved = Verdict(kind="ask", reason="changed"), Resolved(program="/opt/other", cwd="/srv")
        stage = seat.play.stage
        stage.happen(Judged(at=seat.play.clock(), call_id="2", verdict=verdict, resolved=resolved))
        stage.happen(Finished(at=seat.play.clock(), call_id="3", ending=Withdrawn(why="the agent left")))
        await seat.until(lambda: seat.screen.board.seq == stage.board.seq)
        await seat.press("ctrl+s")
        await seat.sees("Not approved", "Call 2: Call 2 has changed since it was shown", "Call 3: Call 3 is decided")
        assert isinstance(seat.record("1").state, Running)
        assert waits(seat, "2")


@pytest.mark.slow
async def test_rows_that_were_never_visible_need_a_second_key() -> None:
    async with cockpit(builds_and_a_test(), size=(100, 20)) as seat:
        await mark(seat, "1", "2", "3", "4", "5")
        await seat.press("R")
        await seat.sees("Decide about 5 calls", "more lines")
        await seat.press("ctrl+s")
        await seat.sees("of the commands not shown. Press again")
        assert all(waits(seat, id_) for id_ in "12345")
        await seat.press("ctrl+s")
        await seat.until(lambda: not any(waits(seat, id_) for id_ in "12345"))


@pytest.mark.slow
async def test_rows_that_were_read_to_the_end_are_approved_at_once() -> None:
    async with cockpit(builds_and_a_test(), size=(100, 20)) as seat:
        await mark(seat, "1", "2", "3", "4", "5")
        await seat.press("R")
        await seat.sees("more lines")
        for _ in range(20):
            await seat.press("pagedown")
            if "more lines" not in seat.text():
                break
        await seat.press("ctrl+s")
        await seat.until(lambda: not any(waits(seat, id_) for id_ in "12345"))


async def test_a_call_that_no_longer_waits_loses_its_mark() -> None:
    async with cockpit(three_waiting()) as seat:
        await mark(seat, "1", "2")
        seat.play.stage.happen(Finished(at=seat.play.clock(), call_id="1", ending=Withdrawn(why="the agent left")))
        await seat.sees("1 call marked")
        await seat.press("R")
        await seat.sees("Decide about 1 call")


async def test_capital_r_says_that_nothing_is_marked() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.press("R")
        await seat.sees("No call is marked.")


async def test_u_in_the_table_clears_the_marks_and_decides_nothing() -> None:
    async with cockpit(three_waiting()) as seat:
        await mark(seat, "1", "2")
        await seat.press("R", "u")
        await seat.until(lambda: "marked" not in seat.text())
        assert waits(seat, "1") and waits(seat, "2")


@pytest.mark.slow
async def test_clicks_mark_and_confirm() -> None:
    async with cockpit(three_waiting(), size=(200, 60)) as seat:
        await seat.select("1")
        await seat.click("#do-mark")
        await seat.sees("1 call marked")
        await seat.click("#do-mark-alike")
        await seat.until(lambda: "marked" not in seat.text())
        await seat.click("#do-mark-alike")
        await seat.sees("1 call marked")
        await seat.click("#now-review")
        await seat.sees("Decide about 1 call")
        await seat.click("#choose-approve")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))


@pytest.mark.slow
async def test_the_palette_marks_and_reviews() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.choose("Mark similar  (r)")
        await seat.sees("1 call marked")
        await seat.choose("Review marked  (R)")
        await seat.sees("Decide about 1 call")


async def test_the_last_button_opens_the_palette() -> None:
    async with cockpit(three_waiting(), size=(80, 24)) as seat:
        await seat.select("1")
        await seat.click("#call-actions .bar-more")
        await seat.sees("Approve more…  (A)")
