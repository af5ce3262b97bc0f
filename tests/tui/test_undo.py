"""Approvals that are held back: taken back in time, sent when it is over, and never sent by a cockpit that is gone."""

from tests.tui.cockpit import cockpit
from tests.tui.scenes import Play, workday
from tests.tui.test_follow import GONE, back_to
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Withdrawn
from whisper_tui.model.event import Decided
from whisper_tui.model.state import Ended, Queued, Running, Waiting
from whisper_tui.tui.grace import Grace
from whisper_tui.tui.undoing import WHY

GRAVE = Grace("grave", 3.0)
RISKY, PLAIN = "7", "8"


async def test_the_approval_of_a_grave_risk_is_sent_when_its_time_is_over() -> None:
    async with cockpit(workday(), grace=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees(f"Call {RISKY} is approved in 3 s")
        await seat.until(lambda: seat.selected == PLAIN)
        assert isinstance(seat.record(RISKY).state, Waiting)
        seat.play.clock.advance(2)
        await seat.sees(f"Call {RISKY} is approved in 1 s")
        assert isinstance(seat.record(RISKY).state, Waiting)
        seat.play.clock.advance(1)
        await seat.until(lambda: isinstance(seat.record(RISKY).state, Running))
        await seat.until(lambda: "is approved in" not in seat.text())


async def test_u_takes_an_approval_back_before_it_is_sent() -> None:
    async with cockpit(workday(), grace=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("s")
        await seat.sees("is approved in")
        await seat.press("u")
        await seat.sees(f"Call {RISKY} is not approved")
        await seat.until(lambda: seat.selected == RISKY)
        seat.play.clock.advance(60)
        await seat.until(lambda: "is approved in" not in seat.text())
        assert isinstance(seat.record(RISKY).state, Waiting)
        assert not seat.play.stage.board.grants


async def test_a_click_takes_an_approval_back() -> None:
    async with cockpit(workday(), grace=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("u Take back")
        await seat.click("#now-undo")
        await seat.sees(f"Call {RISKY} is not approved")


async def test_the_palette_takes_an_approval_back() -> None:
    async with cockpit(workday(), grace=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("is approved in")
        await seat.choose("Take back  (u)")
        await seat.sees(f"Call {RISKY} is not approved")


async def test_other_approvals_are_sent_at_once_and_every_one_is_held_back_if_wanted() -> None:
    async with cockpit(workday(), grace=GRAVE) as seat:
        await seat.select(PLAIN)
        await seat.press("a")
        await seat.until(lambda: isinstance(seat.record(PLAIN).state, Running))
    async with cockpit(workday(), grace=Grace("every", 1.0)) as seat:
        await seat.select(PLAIN)
        await seat.press("a")
        await seat.sees(f"Call {PLAIN} is approved in 1 s")


async def test_approving_twice_does_not_end_the_grace() -> None:
    async with cockpit(workday(), grace=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("is approved in")
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("u takes it back")
        assert isinstance(seat.record(RISKY).state, Waiting)


async def test_looking_at_a_call_otherwise_takes_its_approval_back() -> None:
    async with cockpit(workday(), grace=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("is approved in")
        await seat.select(RISKY)
        await seat.press("d")
        await seat.sees(f"Deny call {RISKY}")
        seat.play.clock.advance(60)
        await seat.press("escape")
        await seat.until(lambda: "is approved in" not in seat.text())
        assert isinstance(seat.record(RISKY).state, Waiting)


async def test_a_cockpit_that_is_closed_in_the_countdown_has_decided_nothing() -> None:
    play = workday()
    async with cockpit(play, grace=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("is approved in")
        await seat.press("q")
        await seat.until(lambda: seat.app._exit_renderables)
        assert "1 approval not sent" in str(seat.app._exit_renderables)
    play.clock.advance(60)
    assert isinstance(play.stage.board.calls[RISKY].state, Waiting)


async def test_a_lost_connection_drops_what_was_not_sent_and_says_so() -> None:
    later = workday()
    async with cockpit(workday(), grace=GRAVE, reconnect=back_to(later)) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("is approved in")
        seat.play.stage.break_down(GONE)
        await seat.sees("1 approval not sent: the connection was lost. Nothing was decided.")
        seat.play.clock.advance(60)
        await seat.sees("● connected")
        assert isinstance(later.stage.board.calls[RISKY].state, Waiting)


async def test_a_call_that_has_not_started_is_taken_back_from_its_agent() -> None:
    play = Play.begin()
    call = play.ask("build")
    async with cockpit(play) as seat:
        play.stage.happen(Decided(at=play.clock(), call_id=call, decision=Approve(), by=seat.screen.me))
        await seat.until(lambda: isinstance(seat.shown.state, Queued))
        await seat.press("u")
        await seat.sees("Call 1 will not run")
        state = seat.record(call).state
        assert isinstance(state, Ended) and state.ending == Withdrawn(why=WHY)


async def test_u_says_that_there_is_nothing_to_take_back() -> None:
    async with cockpit(workday(), grace=GRAVE) as seat:
        await seat.press("u")
        await seat.sees("There is nothing to take back")
