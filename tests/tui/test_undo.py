"""Approvals that are held back: taken back in time, sent when it is over, and never sent by a cockpit that is gone."""

import pytest

from tests.tui.cockpit import cockpit
from tests.tui.scenes import Play, workday
from tests.tui.test_follow import GONE, back_to
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Withdrawn
from whisper_tui.model.event import Decided
from whisper_tui.model.state import Ended, Queued, Running, Waiting
from whisper_tui.tui.commands.undo_approval import WITHDRAWN_REASON, UndoSettings

GRAVE = UndoSettings("grave", 3.0)
RISKY, PLAIN = "7", "8"


@pytest.mark.slow
async def test_the_approval_of_a_grave_risk_is_sent_when_its_time_is_over() -> None:
    async with cockpit(workday(), undo=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees(f"Approving call {RISKY} in 3 s")
        await seat.until(lambda: seat.selected == PLAIN)
        assert isinstance(seat.record(RISKY).state, Waiting)
        seat.play.clock.advance(2)
        await seat.sees(f"Approving call {RISKY} in 1 s")
        assert isinstance(seat.record(RISKY).state, Waiting)
        seat.play.clock.advance(1)
        await seat.until(lambda: isinstance(seat.record(RISKY).state, Running))
        await seat.until(lambda: "Approving call" not in seat.text())


async def test_u_undoes_an_approval_before_it_is_sent() -> None:
    async with cockpit(workday(), undo=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("F")
        await seat.sees("Approving call")
        await seat.press("u")
        await seat.sees(f"Call {RISKY} is not approved")
        await seat.until(lambda: seat.selected == RISKY)
        seat.play.clock.advance(60)
        await seat.until(lambda: "Approving call" not in seat.text())
        assert isinstance(seat.record(RISKY).state, Waiting)
        assert not seat.play.stage.board.grants


async def test_a_click_undoes_an_approval() -> None:
    async with cockpit(workday(), undo=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("u Undo")
        await seat.click("#now-undo")
        await seat.sees(f"Call {RISKY} is not approved")


async def test_the_palette_undoes_an_approval() -> None:
    async with cockpit(workday(), undo=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("Approving call")
        await seat.choose("Undo  (u)")
        await seat.sees(f"Call {RISKY} is not approved")


async def test_other_approvals_are_sent_at_once_unless_configured() -> None:
    async with cockpit(workday(), undo=GRAVE) as seat:
        await seat.select(PLAIN)
        await seat.press("a")
        await seat.until(lambda: isinstance(seat.record(PLAIN).state, Running))
    async with cockpit(workday(), undo=UndoSettings("every", 1.0)) as seat:
        await seat.select(PLAIN)
        await seat.press("a")
        await seat.sees(f"Approving call {PLAIN} in 1 s")


@pytest.mark.parametrize(
    ("key", "call", "seconds"),
    [
        ("a", PLAIN, 1.5),
        pytest.param("a", RISKY, 3.0, marks=pytest.mark.slow),
        pytest.param("F", PLAIN, 5.0, marks=pytest.mark.slow),
        ("F", RISKY, 5.0),
    ],
)
async def test_a_standing_approval_can_be_undone_longest_and_an_ordinary_one_shortest(
    key: str, call: str, seconds: float
) -> None:
    async with cockpit(workday(), undo=UndoSettings()) as seat:
        await seat.select(call)
        await seat.press(key)
        await seat.sees("Approving call")
        seat.play.clock.advance(seconds - 0.1)
        await seat.sees(f"Approving call {call} in 1 s")
        assert isinstance(seat.record(call).state, Waiting)
        seat.play.clock.advance(0.2)
        await seat.until(lambda: isinstance(seat.record(call).state, Running))


async def test_letters_as_fast_as_typed_text_approve_nothing() -> None:
    async with cockpit(workday(), undo=UndoSettings()) as seat:
        await seat.select(PLAIN)
        for typed in ("la", "aF", "lsa"):
            await seat.type_fast(typed)
            await seat.sees("Nothing was decided: the keys came as fast as typed text.")
            seat.play.clock.advance(60)
            await seat.until(lambda: "Approving call" not in seat.text())
            assert isinstance(seat.record(PLAIN).state, Waiting)
        await seat.press("a")
        await seat.sees("Approving call")


async def test_x_revokes_the_standing_approval_that_was_given_last() -> None:
    async with cockpit(workday(), undo=UndoSettings("none")) as seat:
        await seat.press("X")
        await seat.sees("No standing approval is left to revoke.")
        await seat.select(PLAIN)
        await seat.press("F")
        await seat.until(lambda: seat.play.stage.board.grants)
        await seat.press("X")
        await seat.sees(f"Revoked the standing approval of call {PLAIN}")
        await seat.until(lambda: all(grant.revoked_at for grant in seat.play.stage.board.grants.values()))


async def test_approving_twice_does_not_end_the_undo_window() -> None:
    async with cockpit(workday(), undo=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("Approving call")
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("u undoes it")
        assert isinstance(seat.record(RISKY).state, Waiting)


async def test_a_changed_view_of_a_call_undoes_its_approval() -> None:
    async with cockpit(workday(), undo=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("Approving call")
        await seat.select(RISKY)
        await seat.press("d")
        await seat.sees(f"Deny call {RISKY}")
        seat.play.clock.advance(60)
        await seat.press("escape")
        await seat.until(lambda: "Approving call" not in seat.text())
        assert isinstance(seat.record(RISKY).state, Waiting)


async def test_a_cockpit_that_is_closed_in_the_countdown_has_decided_nothing() -> None:
    play = workday()
    async with cockpit(play, undo=GRAVE) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("Approving call")
        await seat.press("q")
        await seat.until(lambda: seat.app._exit_renderables)
        assert "1 approval not sent" in str(seat.app._exit_renderables)
    play.clock.advance(60)
    assert isinstance(play.stage.board.calls[RISKY].state, Waiting)


async def test_a_lost_connection_drops_what_was_not_sent_and_says_so() -> None:
    later = workday()
    async with cockpit(workday(), undo=GRAVE, reconnect=back_to(later)) as seat:
        await seat.select(RISKY)
        await seat.press("a")
        await seat.sees("Approving call")
        seat.play.stage.break_down(GONE)
        await seat.sees("1 approval not sent: the connection was lost. Nothing was decided.")
        seat.play.clock.advance(60)
        await seat.sees("● connected")
        assert isinstance(later.stage.board.calls[RISKY].state, Waiting)


async def test_a_call_that_has_not_started_can_be_withdrawn() -> None:
    play = Play.begin()
    call = play.ask("build")
    async with cockpit(play) as seat:
        play.stage.happen(Decided(at=play.clock(), call_id=call, decision=Approve(), by=seat.screen.me))
        await seat.until(lambda: isinstance(seat.shown.state, Queued))
        await seat.press("u")
        await seat.sees("Call 1 will not run")
        state = seat.record(call).state
        assert isinstance(state, Ended) and state.ending == Withdrawn(why=WITHDRAWN_REASON)


@pytest.mark.slow
async def test_u_says_that_there_is_nothing_to_undo() -> None:
    async with cockpit(workday(), undo=GRAVE) as seat:
        await seat.press("u")
        await seat.sees("Nothing to undo")
