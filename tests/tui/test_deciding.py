"""Deciding in the cockpit: always about the call that is on the screen."""

import pytest
from textual.events import Key
from textual.widgets import Input, TextArea

from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import ME, Scenario, workday
from whisper_tui.model.call import Argv, CommandSpec, Shell
from whisper_tui.model.decision import Approve, Decider, Deny
from whisper_tui.model.ending import Denied
from whisper_tui.model.event import Judged
from whisper_tui.model.state import Ended, Running, Waiting
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.dialogs.decision_dialogs import NO_REASON


def three_waiting() -> Scenario:
    """Calls 1, 2 and 3 of the same session wait; the clock has moved on."""
    scenario = Scenario.begin()
    for scene in ("build", "test", "fix"):
        scenario.ask(scene)
        scenario.clock.advance(10)
    return scenario


async def test_a_approves_the_call_as_it_is() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(30)
        await cockpit.press("a")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        assert cockpit.record("1").decision == Approve()
        assert cockpit.record("1").decided_by == Decider(surface="cockpit", who="me")
        assert not cockpit.scenario.supervisor.board.grants


async def test_f_chooses_to_remember_it_for_the_session() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(30)
        await cockpit.press("F", "a")
        await cockpit.until(lambda: cockpit.scenario.supervisor.board.grants)
        assert cockpit.record("1").decision == Approve(remember="exact_for_session")


async def test_the_next_waiting_call_is_selected_after_a_decision() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("2")
        await cockpit.press("a")
        await cockpit.until(lambda: cockpit.selected == "3")
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(30)
        await cockpit.press("a")
        await cockpit.until(lambda: cockpit.selected == "1")
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(30)
        await cockpit.press("a")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        assert cockpit.selected == "1"


async def test_a_call_that_was_just_selected_by_itself_is_not_approved() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.press("a")
        await cockpit.until(lambda: cockpit.selected == "2")
        await cockpit.press("a", "F")
        await cockpit.sees("the selection had just changed")
        assert isinstance(cockpit.record("2").state, Waiting)
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(30)
        await cockpit.press("a")
        await cockpit.until(lambda: isinstance(cockpit.record("2").state, Running))


async def test_the_first_call_that_arrives_is_selected_but_guarded() -> None:
    async with open_cockpit(Scenario.begin()) as cockpit:
        assert cockpit.selected is None
        await cockpit.press("a")
        cockpit.scenario.ask("build")
        await cockpit.until(lambda: cockpit.selected == "1")
        await cockpit.press("a")
        assert isinstance(cockpit.record("1").state, Waiting)


async def test_a_call_that_arrives_does_not_take_the_selection() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("2")
        cockpit.scenario.ask("preview")
        await cockpit.until(lambda: len(cockpit.screen.board.waiting) == 4)
        assert cockpit.selected == "2"


async def test_a_call_that_somebody_else_decided_is_reported() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        supervisor = cockpit.scenario.supervisor
        record = supervisor.board.calls["1"]
        denied = Ended(at=1.0, ending=Denied(by=ME, reason="no"))
        supervisor.board.calls["1"] = record.model_copy(update={"state": denied})
        assert cockpit.shown == record
        await cockpit.press("a")
        await cockpit.sees("Call 1 is decided already")


async def test_a_call_that_changed_since_it_was_seen_is_not_approved() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        supervisor = cockpit.scenario.supervisor
        verdict = Verdict(kind="ask", reason="another reason")
        supervisor.board.calls["1"] = supervisor.board.calls["1"].model_copy(
            update={"verdict": verdict, "resolved": Resolved(program="/usr/bin/other", cwd="/")}
        )
        await cockpit.press("a")
        await cockpit.sees("has changed since it was shown")
        assert isinstance(cockpit.record("1").state, Waiting)


async def test_a_changed_call_is_redrawn() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        verdict = Verdict(kind="ask", reason="the program is another one now")
        resolved = Resolved(program="/opt/other", cwd="/srv")
        cockpit.scenario.supervisor.happen(
            Judged(at=cockpit.scenario.clock(), call_id="1", verdict=verdict, resolved=resolved)
        )
        await cockpit.sees("the program is another one now", "/opt/other")


async def test_d_denies_with_the_reason_word_for_word() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.press("d", *"use make", "enter")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Ended))
        assert cockpit.record("1").decision == Deny(reason="use make")
        assert isinstance(cockpit.record("2").state, Waiting)
        await cockpit.until(lambda: cockpit.selected == "2")


async def test_denying_without_a_reason_needs_a_second_enter() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.press("d", "enter")
        await cockpit.sees(NO_REASON)
        assert isinstance(cockpit.record("1").state, Waiting)
        await cockpit.press("enter")
        await cockpit.until(lambda: cockpit.record("1").decision == Deny(reason=""))


async def test_capital_d_denies_the_other_waiting_calls_of_the_session_too() -> None:
    scenario = three_waiting()
    scenario.ask("release")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("2")
        await cockpit.press("D")
        await cockpit.sees("2 other waiting calls of the session s1 site builder will be denied")
        await cockpit.press(*"stop", "enter")
        await cockpit.until(lambda: all(isinstance(cockpit.record(id_).state, Ended) for id_ in "123"))
        assert isinstance(cockpit.record("4").state, Waiting)


async def test_escape_leaves_a_dialog_and_decides_nothing() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        for key in ("d", "D", "e"):
            await cockpit.press(key)
            await cockpit.until(lambda: len(cockpit.app.screen_stack) == 2)
            await cockpit.press("escape")
            await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        assert isinstance(cockpit.record("1").state, Waiting)


@pytest.mark.slow
async def test_e_edits_the_shell_text_and_the_original_stays_visible() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("3")
        await cockpit.press("e", "end", *" # mine")
        await cockpit.sees("Your changes to the request", "Will run: edited", "echo 'rate = 20' > tax.conf # mine")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record("3").state, Running))
        edited = cockpit.record("3").spec.command
        assert edited == Shell(text="echo 'rate = 20' > tax.conf # mine")
        assert cockpit.record("3").call.spec.command == Shell(text="echo 'rate = 20' > tax.conf")
        assert not cockpit.scenario.supervisor.board.grants


@pytest.mark.slow
async def test_an_edited_argv_directory_and_timeout_run_for_the_session() -> None:
    scenario = Scenario.begin()
    scenario.ask("release")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("1")
        await cockpit.press("e")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 2)
        cockpit.app.screen.query_one(TextArea).text = "two words"
        await cockpit.press("enter", *"$X")
        await cockpit.press("tab", "end", *"/x", "tab", "end", "backspace", "backspace", "5")
        await cockpit.press("ctrl+r")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        asked = cockpit.record("1").call.spec
        assert cockpit.record("1").spec == CommandSpec(
            command=Argv(program="./release.sh", args=("two words", "$X")),
            cwd=f"{asked.cwd}/x",
            timeout_s=5,
        )
        assert len(cockpit.scenario.supervisor.board.grants) == 1


async def test_an_unchanged_edit_is_a_plain_approval() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.press("e")
        await cockpit.sees("Will run: as requested")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: cockpit.record("1").decision == Approve())


async def test_a_wrong_edit_says_why_and_approves_nothing() -> None:
    scenario = Scenario.begin()
    scenario.ask("release")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("1")
        await cockpit.press("e")
        cockpit.app.screen.query_one("#timeout", Input).focus()
        await cockpit.press("end", *"soon")
        await cockpit.sees("The timeout must be a number of seconds above 0", "Will run: nothing until")
        await cockpit.press("ctrl+s")
        assert len(cockpit.app.screen_stack) == 2
        assert isinstance(cockpit.record("1").state, Waiting)


async def test_unbound_keys_do_nothing() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("1")
        before = cockpit.scenario.supervisor.board.seq
        await cockpit.press("a", "F", "e", "d", "D", "x", "k")
        assert len(cockpit.app.screen_stack) == 1
        assert cockpit.scenario.supervisor.board.seq == before


async def test_a_click_on_a_button_decides_like_its_key() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.click("#do-approve")
        await cockpit.until(lambda: cockpit.selected == "2")
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(30)
        await cockpit.click("#do-deny")
        await cockpit.sees("Deny call 2")
        await cockpit.press("n", "o")
        await cockpit.click("#choose-deny")
        await cockpit.until(lambda: cockpit.record("2").decision == Deny(reason="no"))


async def test_denying_a_session_names_it_and_the_number_of_calls_in_its_title() -> None:
    scenario = Scenario.begin()
    scenario.ask("build"), scenario.ask("test"), scenario.ask("clean")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("2")
        await cockpit.press("D")
        await cockpit.sees("Deny 3 waiting calls of s1 site builder", "2 other waiting calls")


async def test_other_calls_are_not_mentioned_if_the_session_has_none_that_wait() -> None:
    scenario = Scenario.begin()
    scenario.ask("build")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("1")
        await cockpit.press("D")
        await cockpit.sees("Deny 1 waiting call of s1 site builder", "word for word")
        assert "other waiting" not in cockpit.text()


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("x", "End is not possible: call 1 has no running process."),
        ("i", "Type is not possible: call 1 does not run, or takes no input."),
        ("S", "Save is not possible: call 1 has not run."),
    ],
)
async def test_a_key_that_does_not_apply_says_why(key: str, reason: str) -> None:
    scenario = Scenario.begin()
    scenario.ask("build")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press(key)
        await cockpit.sees(reason)


async def test_a_terminal_that_is_too_small_says_so() -> None:
    scenario = Scenario.begin()
    scenario.ask("build")
    async with open_cockpit(scenario, size=(39, 12)) as cockpit:
        await cockpit.sees("This terminal is too small", "40 columns and 12 rows")
        assert "waiting" not in cockpit.text()
        await cockpit.press("a", "a")
        await cockpit.pilot.resize_terminal(40, 12)
        await cockpit.sees("site builder", "Approve")
        assert "too small" not in cockpit.text() and isinstance(cockpit.record("1").state, Waiting)


async def test_the_next_question_comes_up_by_itself_after_the_last_one_was_answered() -> None:
    scenario = Scenario.begin()
    first = scenario.ask("build")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.can_be_seen()
        scenario.clock.advance(30)
        await cockpit.press("d", *"no", "enter")
        await cockpit.until(lambda: isinstance(cockpit.record(first).state, Ended))
        await cockpit.until(lambda: cockpit.screen.query_one(CallList).is_left_over)
        second = scenario.ask("fix")
        await cockpit.until(lambda: cockpit.selected == second)
        await cockpit.press("a")
        await cockpit.sees("the selection had just changed")
        assert isinstance(cockpit.record(second).state, Waiting)


async def test_the_next_question_takes_no_call_away_that_the_person_went_to() -> None:
    scenario = Scenario.begin()
    first, second = scenario.ask("build"), scenario.ask("test")
    async with open_cockpit(scenario) as cockpit:
        for call_id in (first, second):
            await cockpit.select(call_id)
            await cockpit.press("d", *"no", "enter")
            await cockpit.until(lambda id_=call_id: isinstance(cockpit.record(id_).state, Ended))
        await cockpit.until(lambda: cockpit.screen.query_one(CallList).is_left_over)
        await cockpit.select(first)
        scenario.ask("fix")
        await cockpit.sees("1 waiting")
        assert cockpit.selected == first


@pytest.mark.parametrize("key", ["enter", "ctrl+s"])
async def test_a_key_that_confirms_does_not_overtake_what_is_typed_before_it(key: str) -> None:
    scenario = Scenario.begin()
    call_id = scenario.ask("build")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select(call_id)
        await cockpit.press("d")
        await cockpit.can_be_seen()
        for letter in "not now":
            cockpit.app.post_message(Key("space" if letter == " " else letter, letter))
        cockpit.app.post_message(Key(key, None))
        await cockpit.until(lambda: isinstance(cockpit.record(call_id).state, Ended))
        assert cockpit.record(call_id).decision == Deny(reason="not now")
