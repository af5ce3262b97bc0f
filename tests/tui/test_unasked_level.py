"""One key sets how much runs unasked, another shows what that has changed, and the header says both."""

from pathlib import Path

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import Scenario, workday
from tests.tui.test_edits_on_the_card import editing
from whisper_tui.model.call import WriteFile
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.ending import HandedOver
from whisper_tui.model.event import Decided, Finished


async def test_a_level_is_chosen_for_the_session_of_the_call_and_stands_on_its_card() -> None:
    scenario = workday()
    async with open_cockpit(scenario) as cockpit:
        session = cockpit.shown.call.session_id
        await cockpit.press("left_parenthesis")
        await cockpit.sees("It holds in")
        await cockpit.press("down", "enter")
        await cockpit.until(lambda: scenario.supervisor.board.sessions[session].unasked is not None)
        level = scenario.supervisor.board.sessions[session].unasked
        assert level is not None and (level.level, level.until) == ("workspace", None)
        await cockpit.sees("workspace unasked")


async def test_u_sets_the_level_from_before_again() -> None:
    scenario = workday()
    async with open_cockpit(scenario) as cockpit:
        sessions, session = scenario.supervisor.board.sessions, cockpit.shown.call.session_id
        await cockpit.press("left_parenthesis", "up", "enter")
        await cockpit.until(lambda: sessions[session].unasked is not None)
        await cockpit.press("left_parenthesis")
        await cockpit.sees("It holds in")
        await cockpit.press("down", "enter")
        await cockpit.until(lambda: getattr(sessions[session].unasked, "level", "") == "workspace")
        await cockpit.press("u")
        await cockpit.sees("Again in this session: nothing unasked.")
        await cockpit.until(lambda: getattr(sessions[session].unasked, "level", "") == "nothing")
        await cockpit.press("u")
        await cockpit.sees("Again in this session: what your files say.")
        await cockpit.until(lambda: sessions[session].unasked is None)


@pytest.mark.slow
async def test_a_level_of_all_sessions_holds_for_an_hour_and_stands_in_the_header() -> None:
    scenario = workday()
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press("left_parenthesis", "tab", "tab")
        await cockpit.sees("in all sessions, for one hour")
        await cockpit.press("up", "enter")
        await cockpit.until(lambda: scenario.supervisor.board.unasked is not None)
        level = scenario.supervisor.board.unasked
        assert level is not None and level.level == "nothing" and level.until is not None
        await cockpit.sees("nothing unasked until")


async def test_leaving_the_dialog_sets_nothing() -> None:
    scenario = workday()
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press("left_parenthesis", "escape")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        assert scenario.supervisor.board.unasked is None


def changed(scenario: Scenario) -> str:
    """An edit that a rule has let its agent make."""
    at, call_id = scenario.clock(), next(iter(scenario.supervisor.board.waiting))
    by = Decider(surface="rule", who="built-in: edits in the workspace")
    scenario.supervisor.happen(
        Decided(at=at, call_id=call_id, decision=Approve(), by=by),
        Finished(at=at, call_id=call_id, ending=HandedOver()),
    )
    return call_id


async def test_what_was_changed_unasked_is_counted_shown_and_marked_as_seen(tmp_path: Path) -> None:
    scenario = editing(tmp_path, WriteFile(path=str(tmp_path / "app.py"), content="x\n"))
    call_id = changed(scenario)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("1 to review")
        await cockpit.press("right_parenthesis")
        await cockpit.sees("1 call of 1 session changed files, and nobody was asked.")
        await cockpit.sees("app.py")
        await cockpit.press("enter")
        await cockpit.until(lambda: not scenario.supervisor.board.unreviewed)
        assert cockpit.record(call_id).reverted_by is None


async def test_a_chosen_call_is_taken_back_and_nothing_is_marked_by_mistake(tmp_path: Path) -> None:
    scenario = editing(tmp_path, WriteFile(path=str(tmp_path / "app.py"), content="x\n"))
    call_id = changed(scenario)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press("right_parenthesis")
        await cockpit.sees("Enter Looks good")
        await cockpit.press("space")
        await cockpit.sees("Enter Undo chosen")
        assert list(scenario.supervisor.board.unreviewed) == [call_id]
        await cockpit.press("enter")
        await cockpit.sees("1 call undone.")
        await cockpit.until(lambda: not scenario.supervisor.board.unreviewed)


async def test_u_shows_again_what_was_marked_as_seen(tmp_path: Path) -> None:
    scenario = editing(tmp_path, WriteFile(path=str(tmp_path / "app.py"), content="x\n"))
    call_id = changed(scenario)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press("right_parenthesis", "enter")
        await cockpit.sees("Marked as seen.")
        await cockpit.press("u")
        await cockpit.sees("1 call of 1 session changed files, and nobody was asked.")
        await cockpit.press("space", "enter")
        await cockpit.sees("1 call undone.")
        await cockpit.until(lambda: cockpit.record(call_id).reverted_by is not None)


async def test_u_makes_the_changes_of_calls_that_a_review_has_undone_again(tmp_path: Path) -> None:
    scenario = editing(tmp_path, WriteFile(path=str(tmp_path / "app.py"), content="x\n"))
    call_id = changed(scenario)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press("right_parenthesis", "space", "enter")
        await cockpit.sees("1 call undone.")
        await cockpit.until(lambda: cockpit.record(call_id).reverted_by is not None)
        await cockpit.press("u")
        await cockpit.sees("The changes of 1 call are made again.")
