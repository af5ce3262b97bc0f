"""Deciding in the cockpit: always about the call that is on the screen."""

import pytest
from textual.widgets import Input, TextArea

from tests.tui.cockpit import cockpit
from tests.tui.scenes import ME, Play, workday
from whisper_tui.model.call import Argv, CommandSpec, Shell
from whisper_tui.model.decision import Approve, Decider, Deny
from whisper_tui.model.ending import Denied
from whisper_tui.model.event import Judged
from whisper_tui.model.state import Ended, Running, Waiting
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.tui.dialogs.decision_dialogs import NO_REASON


def three_waiting() -> Play:
    """Calls 1, 2 and 3 of the same session wait; the clock has moved on."""
    play = Play.begin()
    for scene in ("build", "test", "fix"):
        play.ask(scene)
        play.clock.advance(10)
    return play


async def test_a_approves_the_call_as_it_is() -> None:
    async with cockpit(three_waiting()) as seat:
        seat.play.clock.advance(1)
        await seat.press("a")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        assert seat.record("1").decision == Approve()
        assert seat.record("1").decided_by == Decider(surface="cockpit", who="me")
        assert not seat.play.stage.board.grants


async def test_s_approves_and_remembers_it_for_the_session() -> None:
    async with cockpit(three_waiting()) as seat:
        seat.play.clock.advance(1)
        await seat.press("F")
        await seat.until(lambda: seat.play.stage.board.grants)
        assert seat.record("1").decision == Approve(remember="exact_for_session")


async def test_the_next_waiting_call_is_selected_after_a_decision() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("2")
        await seat.press("a")
        await seat.until(lambda: seat.selected == "3")
        seat.play.clock.advance(1)
        await seat.press("a")
        await seat.until(lambda: seat.selected == "1")
        seat.play.clock.advance(1)
        await seat.press("a")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        assert seat.selected == "1"


async def test_a_call_that_was_just_selected_by_itself_is_not_approved() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.press("a")
        await seat.until(lambda: seat.selected == "2")
        await seat.press("a", "F")
        await seat.sees("the selection had just changed")
        assert isinstance(seat.record("2").state, Waiting)
        seat.play.clock.advance(0.31)
        await seat.press("a")
        await seat.until(lambda: isinstance(seat.record("2").state, Running))


async def test_the_first_call_that_arrives_is_selected_but_guarded() -> None:
    async with cockpit(Play.begin()) as seat:
        assert seat.selected is None
        await seat.press("a")
        seat.play.ask("build")
        await seat.until(lambda: seat.selected == "1")
        await seat.press("a")
        assert isinstance(seat.record("1").state, Waiting)


async def test_a_call_that_arrives_does_not_take_the_selection() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("2")
        seat.play.ask("preview")
        await seat.until(lambda: len(seat.screen.board.waiting) == 4)
        assert seat.selected == "2"


async def test_a_call_that_somebody_else_decided_is_reported() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        stage = seat.play.stage
        record = stage.board.calls["1"]
        denied = Ended(at=1.0, ending=Denied(by=ME, reason="no"))
        stage.board.calls["1"] = record.model_copy(update={"state": denied})
        assert seat.shown == record
        await seat.press("a")
        await seat.sees("Call 1 is decided already")


async def test_a_call_that_changed_since_it_was_seen_is_not_approved() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        stage = seat.play.stage
        verdict = Verdict(kind="ask", reason="another reason")
        stage.board.calls["1"] = stage.board.calls["1"].model_copy(
            update={"verdict": verdict, "resolved": Resolved(program="/usr/bin/other", cwd="/")}
        )
        await seat.press("a")
        await seat.sees("has changed since it was shown")
        assert isinstance(seat.record("1").state, Waiting)


async def test_a_changed_call_is_redrawn() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        verdict = Verdict(kind="ask", reason="the program is another one now")
        resolved = Resolved(program="/opt/other", cwd="/srv")
        seat.play.stage.happen(Judged(at=seat.play.clock(), call_id="1", verdict=verdict, resolved=resolved))
        await seat.sees("the program is another one now", "/opt/other")


async def test_d_denies_with_the_reason_word_for_word() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.press("d", *"use make", "enter")
        await seat.until(lambda: isinstance(seat.record("1").state, Ended))
        assert seat.record("1").decision == Deny(reason="use make")
        assert isinstance(seat.record("2").state, Waiting)
        await seat.until(lambda: seat.selected == "2")


async def test_denying_without_a_reason_needs_a_second_enter() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.press("d", "enter")
        await seat.sees(NO_REASON)
        assert isinstance(seat.record("1").state, Waiting)
        await seat.press("enter")
        await seat.until(lambda: seat.record("1").decision == Deny(reason=""))


async def test_capital_d_denies_the_other_waiting_calls_of_the_session_too() -> None:
    play = three_waiting()
    play.ask("release")
    async with cockpit(play) as seat:
        await seat.select("2")
        await seat.press("D")
        await seat.sees("2 other waiting calls of the session site builder will be denied")
        await seat.press(*"stop", "enter")
        await seat.until(lambda: all(isinstance(seat.record(id_).state, Ended) for id_ in "123"))
        assert isinstance(seat.record("4").state, Waiting)


async def test_escape_leaves_a_dialog_and_decides_nothing() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        for key in ("d", "D", "e"):
            await seat.press(key)
            await seat.until(lambda: len(seat.app.screen_stack) == 2)
            await seat.press("escape")
            await seat.until(lambda: len(seat.app.screen_stack) == 1)
        assert isinstance(seat.record("1").state, Waiting)


@pytest.mark.slow
async def test_e_edits_the_shell_text_and_the_original_stays_visible() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("3")
        await seat.press("e", "end", *" # mine")
        await seat.sees("Your changes to the request", "Will run: edited", "echo 'rate = 20' > tax.conf # mine")
        await seat.press("ctrl+s")
        await seat.until(lambda: isinstance(seat.record("3").state, Running))
        edited = seat.record("3").spec.command
        assert edited == Shell(text="echo 'rate = 20' > tax.conf # mine")
        assert seat.record("3").call.spec.command == Shell(text="echo 'rate = 20' > tax.conf")
        assert not seat.play.stage.board.grants


@pytest.mark.slow
async def test_an_edited_argv_directory_and_timeout_run_for_the_session() -> None:
    play = Play.begin()
    play.ask("release")
    async with cockpit(play) as seat:
        await seat.select("1")
        await seat.press("e")
        await seat.until(lambda: len(seat.app.screen_stack) == 2)
        seat.app.screen.query_one(TextArea).text = "two words"
        await seat.press("enter", *"$X")
        await seat.press("tab", "end", *"/x", "tab", "end", "backspace", "backspace", "5")
        await seat.press("ctrl+r")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        asked = seat.record("1").call.spec
        assert seat.record("1").spec == CommandSpec(
            command=Argv(program="./release.sh", args=("two words", "$X")),
            cwd=f"{asked.cwd}/x",
            timeout_s=5,
        )
        assert len(seat.play.stage.board.grants) == 1


async def test_an_unchanged_edit_is_a_plain_approval() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.press("e")
        await seat.sees("Will run: as requested")
        await seat.press("ctrl+s")
        await seat.until(lambda: seat.record("1").decision == Approve())


async def test_a_wrong_edit_says_why_and_approves_nothing() -> None:
    play = Play.begin()
    play.ask("release")
    async with cockpit(play) as seat:
        await seat.select("1")
        await seat.press("e")
        seat.app.screen.query_one("#timeout", Input).focus()
        await seat.press("end", *"soon")
        await seat.sees("The timeout must be a number of seconds above 0", "Will run: nothing until")
        await seat.press("ctrl+s")
        assert len(seat.app.screen_stack) == 2
        assert isinstance(seat.record("1").state, Waiting)


async def test_unbound_keys_do_nothing() -> None:
    async with cockpit(workday()) as seat:
        await seat.select("1")
        before = seat.play.stage.board.seq
        await seat.press("a", "F", "e", "d", "D", "x", "k")
        assert len(seat.app.screen_stack) == 1
        assert seat.play.stage.board.seq == before


async def test_a_click_on_a_button_decides_like_its_key() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.click("#do-approve")
        await seat.until(lambda: seat.selected == "2")
        seat.play.clock.advance(1)
        await seat.click("#do-deny")
        await seat.sees("Deny call 2")
        await seat.press("n", "o")
        await seat.click("#choose-deny")
        await seat.until(lambda: seat.record("2").decision == Deny(reason="no"))


async def test_denying_a_session_names_it_and_the_number_of_calls_in_its_title() -> None:
    play = Play.begin()
    play.ask("build"), play.ask("test"), play.ask("clean")
    async with cockpit(play) as seat:
        await seat.select("2")
        await seat.press("D")
        await seat.sees("Deny 3 waiting calls of site builder", "2 other waiting calls")


async def test_other_calls_are_not_mentioned_if_the_session_has_none_that_wait() -> None:
    play = Play.begin()
    play.ask("build")
    async with cockpit(play) as seat:
        await seat.select("1")
        await seat.press("D")
        await seat.sees("Deny 1 waiting call of site builder", "word for word")
        assert "other waiting" not in seat.text()


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("k", "Kill is not possible: call 1 has no running process."),
        ("i", "Type is not possible: call 1 does not run, or takes no input."),
        ("S", "Save is not possible: call 1 has not run."),
    ],
)
async def test_a_key_that_does_not_apply_says_why(key: str, reason: str) -> None:
    play = Play.begin()
    play.ask("build")
    async with cockpit(play) as seat:
        await seat.press(key)
        await seat.sees(reason)


async def test_a_terminal_that_is_too_small_says_so() -> None:
    play = Play.begin()
    play.ask("build")
    async with cockpit(play, size=(39, 12)) as seat:
        await seat.sees("This terminal is too small", "40 columns and 12 rows")
        assert "waiting" not in seat.text()
        await seat.press("a", "a")
        await seat.pilot.resize_terminal(40, 12)
        await seat.sees("site builder", "Approve")
        assert "too small" not in seat.text() and isinstance(seat.record("1").state, Waiting)
