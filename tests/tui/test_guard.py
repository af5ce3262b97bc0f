"""Decision keys are ignored after the selection has moved by itself."""

import asyncio
from collections.abc import Callable

import pytest
from textual.events import Key

from tests.tui.cockpit import Cockpit, open_cockpit, toast_text
from tests.tui.scenes import Scenario, workday
from tests.tui.test_deciding import three_waiting
from tests.tui.test_follow import GONE, back_to
from whisper_tui.model.event import Judged
from whisper_tui.model.state import Waiting
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.commands.all_commands import DECIDE
from whisper_tui.tui.dialogs.scope_dialog import ScopeScreen

ABOUT_THE_CALL = [
    command.key for command in DECIDE if command.need in {"waiting", "waiting here", "previewable", "call"}
]
TOLD = "the selection had just changed"


async def nothing_happens(cockpit: Cockpit, key: str, call_id: str) -> None:
    before = cockpit.scenario.supervisor.board.seq
    await cockpit.press("space" if key == "space" else key)
    # What the key must not do would end the wait, too.
    await cockpit.until(
        lambda: (
            TOLD in toast_text(cockpit.app)
            or len(cockpit.app.screen_stack) > 1
            or cockpit.scenario.supervisor.board.seq != before
        )
    )
    assert TOLD in toast_text(cockpit.app)
    assert len(cockpit.app.screen_stack) == 1
    assert cockpit.scenario.supervisor.board.seq == before
    assert isinstance(cockpit.record(call_id).state, Waiting)
    assert "marked" not in cockpit.text()


@pytest.mark.slow
@pytest.mark.parametrize("key", ABOUT_THE_CALL)
@pytest.mark.few(3)
async def test_decision_keys_are_ignored_after_the_selection_moved_by_itself(key: str) -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.press("a")
        await cockpit.until(lambda: cockpit.shown.id == "2")
        await nothing_happens(cockpit, key, "2")


@pytest.mark.slow
@pytest.mark.parametrize("key", ABOUT_THE_CALL)
@pytest.mark.few(3)
async def test_decision_keys_are_ignored_for_the_first_call_that_arrives(key: str) -> None:
    async with open_cockpit(Scenario.begin()) as cockpit:
        cockpit.scenario.ask("build")
        await cockpit.until(lambda: cockpit.screen.shown is not None)
        await nothing_happens(cockpit, key, "1")


async def test_a_call_that_changed_on_the_screen_is_guarded() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        verdict = Verdict(kind="ask", reason="the program is another one now")
        resolved = Resolved(program="/opt/other", cwd="/srv")
        cockpit.scenario.supervisor.happen(
            Judged(at=cockpit.scenario.clock(), call_id="1", verdict=verdict, resolved=resolved)
        )
        await cockpit.sees("the program is another one now")
        await nothing_happens(cockpit, "a", "1")
        cockpit.scenario.clock.advance(30)
        await cockpit.press("a")
        await cockpit.until(lambda: not isinstance(cockpit.record("1").state, Waiting))


async def test_the_selection_after_a_reconnection_is_guarded() -> None:
    later, seen = workday(), asyncio.Event()
    async with open_cockpit(workday(), reconnect=back_to(later, after=seen)) as cockpit:
        await cockpit.select("8")
        cockpit.scenario.supervisor.break_down(GONE)
        await cockpit.sees("Trying again in")
        seen.set()
        await cockpit.sees("3 waiting", "● connected")
        await cockpit.until(
            lambda: cockpit.screen.shown is not None and cockpit.screen.board.seq == later.supervisor.board.seq
        )
        chosen = cockpit.shown.id
        await cockpit.press("a")
        await cockpit.sees(TOLD)
        assert isinstance(later.supervisor.board.calls[chosen].state, Waiting)


async def test_a_call_that_changed_behind_a_dialog_is_guarded() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.press("d")
        await cockpit.sees("Deny call 1")
        verdict = Verdict(kind="ask", reason="changed meanwhile")
        resolved = Resolved(program="/opt/other", cwd="/srv")
        cockpit.scenario.supervisor.happen(
            Judged(at=cockpit.scenario.clock(), call_id="1", verdict=verdict, resolved=resolved)
        )
        await cockpit.until(
            lambda: cockpit.shown.verdict is not None and cockpit.shown.verdict.reason == "changed meanwhile"
        )
        cockpit.scenario.clock.advance(5)
        await cockpit.press("escape")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        await nothing_happens(cockpit, "a", "1")


async def test_a_call_that_the_person_selected_is_decided_at_once() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.press("down", "a")
        await cockpit.until(lambda: not isinstance(cockpit.record("2").state, Waiting))


async def test_unseen_parts_are_approved_only_by_a_second_key() -> None:
    scenario = three_waiting()
    record = scenario.supervisor.board.calls["3"]
    command = record.call.spec.command.model_copy(update={"text": "\n".join(f"echo {n}" for n in range(200))})
    call = record.call.model_copy(update={"spec": record.call.spec.model_copy(update={"command": command})})
    scenario.supervisor.events[:] = [
        event.model_copy(update={"call": call}) if getattr(event, "call", None) == record.call else event
        for event in scenario.supervisor.events
    ]
    scenario.supervisor.board.calls["3"] = record.model_copy(update={"call": call})
    async with open_cockpit(scenario, size=(120, 30)) as cockpit:
        await cockpit.select("3")
        await cockpit.press("a")
        await cockpit.sees("of the command were not on the screen yet")
        assert isinstance(cockpit.record("3").state, Waiting)
        await cockpit.press("a")
        await cockpit.until(lambda: not isinstance(cockpit.record("3").state, Waiting))


async def test_a_key_right_behind_the_one_that_selects_a_call_decides_nothing_and_is_lost_to_nothing() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.can_be_seen()
        # One write of a terminal: both keys have come before the second call is drawn.
        for key in (Key("down", None), Key("a", "a")):
            cockpit.app.post_message(key)
        await cockpit.sees(TOLD)
        assert cockpit.selected == "2"
        assert all(isinstance(cockpit.record(call).state, Waiting) for call in "123")
        assert not cockpit.screen.decisions.undoing.is_pending("2")
        await cockpit.press("a")
        await cockpit.until(lambda: not isinstance(cockpit.record("2").state, Waiting))


async def test_a_key_that_came_for_the_call_before_does_not_decide_about_the_next_one_however_late() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.can_be_seen()
        late = Key("a", "a")
        cockpit.scenario.deny("1", "decided elsewhere")
        await cockpit.until(lambda: cockpit.shown.id == "2")
        await cockpit.can_be_seen()
        # All the time that the guard asks for has passed, but the key came before.
        cockpit.scenario.clock.advance(30)
        cockpit.screen.decisions.typing.forget()
        cockpit.app.post_message(late)
        await cockpit.sees(TOLD)
        assert isinstance(cockpit.record("2").state, Waiting)


async def test_a_card_that_the_terminal_has_not_taken_yet_cannot_be_decided_about() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        taken: list[Callable[[], object]] = []
        cockpit.screen._when_written = taken.append
        cockpit.screen.query_one(CallList).select("2", by_hand=True)
        await cockpit.until(lambda: taken and cockpit.shown.id == "2")
        cockpit.scenario.clock.advance(5)
        cockpit.app.post_message(Key("a", "a"))
        await cockpit.sees(TOLD)
        assert isinstance(cockpit.record("2").state, Waiting)
        taken.pop()()
        await cockpit.press("a")
        await cockpit.until(lambda: not isinstance(cockpit.record("2").state, Waiting))


async def test_a_choice_in_a_dialog_that_nobody_has_seen_is_refused() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.can_be_seen()
        for key in (Key("A", "A"), Key("ctrl+s", None)):
            cockpit.app.post_message(key)
        await cockpit.sees("the key came before the dialog was on the screen")
        assert isinstance(cockpit.app.screen, ScopeScreen)
        assert isinstance(cockpit.record("1").state, Waiting)
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: not isinstance(cockpit.record("1").state, Waiting))
