"""One key sets how much runs unasked, and the header and the card of the session say it."""

from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import workday


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
