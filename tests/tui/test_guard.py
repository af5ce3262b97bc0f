"""Decision keys are ignored after the selection has moved by itself."""

import asyncio

import pytest

from tests.tui.cockpit import Cockpit, cockpit, toast_text
from tests.tui.scenes import Play, workday
from tests.tui.test_deciding import three_waiting
from tests.tui.test_follow import GONE, back_to
from whisper_tui.model.event import Judged
from whisper_tui.model.state import Waiting
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.tui.commands.all_commands import DECIDE

ABOUT_THE_CALL = [command.key for command in DECIDE if command.need in {"waiting", "call"}]
TOLD = "the selection had just changed"


async def nothing_happens(seat: Cockpit, key: str, call_id: str) -> None:
    before = seat.play.stage.board.seq
    await seat.press("space" if key == "space" else key)
    # What the key must not do would end the wait, too.
    await seat.until(
        lambda: TOLD in toast_text(seat.app) or len(seat.app.screen_stack) > 1 or seat.play.stage.board.seq != before
    )
    assert TOLD in toast_text(seat.app)
    assert len(seat.app.screen_stack) == 1
    assert seat.play.stage.board.seq == before
    assert isinstance(seat.record(call_id).state, Waiting)
    assert "marked" not in seat.text()


@pytest.mark.slow
@pytest.mark.parametrize("key", ABOUT_THE_CALL)
async def test_decision_keys_are_ignored_after_the_selection_moved_by_itself(key: str) -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.press("a")
        await seat.until(lambda: seat.shown.id == "2")
        await nothing_happens(seat, key, "2")


@pytest.mark.slow
@pytest.mark.parametrize("key", ABOUT_THE_CALL)
async def test_decision_keys_are_ignored_for_the_first_call_that_arrives(key: str) -> None:
    async with cockpit(Play.begin()) as seat:
        seat.play.ask("build")
        await seat.until(lambda: seat.screen.shown is not None)
        await nothing_happens(seat, key, "1")


async def test_a_call_that_changed_on_the_screen_is_guarded() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        verdict = Verdict(kind="ask", reason="the program is another one now")
        resolved = Resolved(program="/opt/other", cwd="/srv")
        seat.play.stage.happen(Judged(at=seat.play.clock(), call_id="1", verdict=verdict, resolved=resolved))
        await seat.sees("the program is another one now")
        await nothing_happens(seat, "a", "1")
        seat.play.clock.advance(0.31)
        await seat.press("a")
        await seat.until(lambda: not isinstance(seat.record("1").state, Waiting))


async def test_the_selection_after_a_reconnection_is_guarded() -> None:
    later, seen = workday(), asyncio.Event()
    async with cockpit(workday(), reconnect=back_to(later, after=seen)) as seat:
        await seat.select("8")
        seat.play.stage.break_down(GONE)
        await seat.sees("Trying again in")
        seen.set()
        await seat.sees("3 waiting", "● connected")
        await seat.until(lambda: seat.screen.shown is not None and seat.screen.board.seq == later.stage.board.seq)
        chosen = seat.shown.id
        await seat.press("a")
        await seat.sees(TOLD)
        assert isinstance(later.stage.board.calls[chosen].state, Waiting)


async def test_a_call_that_changed_behind_a_dialog_is_guarded() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.press("d")
        await seat.sees("Deny call 1")
        verdict = Verdict(kind="ask", reason="changed meanwhile")
        resolved = Resolved(program="/opt/other", cwd="/srv")
        seat.play.stage.happen(Judged(at=seat.play.clock(), call_id="1", verdict=verdict, resolved=resolved))
        await seat.until(lambda: seat.shown.verdict is not None and seat.shown.verdict.reason == "changed meanwhile")
        seat.play.clock.advance(5)
        await seat.press("escape")
        await seat.until(lambda: len(seat.app.screen_stack) == 1)
        await nothing_happens(seat, "a", "1")


async def test_a_call_that_the_person_selected_is_decided_at_once() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.press("down", "a")
        await seat.until(lambda: not isinstance(seat.record("2").state, Waiting))


async def test_unseen_parts_are_approved_only_by_a_second_key() -> None:
    play = three_waiting()
    record = play.stage.board.calls["3"]
    command = record.call.spec.command.model_copy(update={"text": "\n".join(f"echo {n}" for n in range(200))})
    call = record.call.model_copy(update={"spec": record.call.spec.model_copy(update={"command": command})})
    play.stage.events[:] = [
        event.model_copy(update={"call": call}) if getattr(event, "call", None) == record.call else event
        for event in play.stage.events
    ]
    play.stage.board.calls["3"] = record.model_copy(update={"call": call})
    async with cockpit(play, size=(120, 30)) as seat:
        await seat.select("3")
        await seat.press("a")
        await seat.sees("of the command were not on the screen yet")
        assert isinstance(seat.record("3").state, Waiting)
        await seat.press("a")
        await seat.until(lambda: not isinstance(seat.record("3").state, Waiting))
