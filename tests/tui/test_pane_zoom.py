"""One pane has the whole right side, or the whole screen, and gives it back."""

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.past import a_month, history
from tests.tui.scenes import long_output, workday
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.output.output_area import OutputArea


@pytest.mark.slow
async def test_plus_enlarges_the_output_to_the_right_side_then_the_screen_then_restores_it() -> None:
    async with open_cockpit(long_output()) as cockpit:
        area, calls = cockpit.screen.query_one(OutputArea), cockpit.screen.query_one(CallList)
        usual = area.region
        await cockpit.press("plus")
        await cockpit.until(lambda: area.region.height > usual.height and not cockpit.screen.query_one("#call").display)
        assert area.region.width == usual.width and calls.region
        await cockpit.press("plus")
        await cockpit.until(lambda: area.region.width == 120 and not calls.region)
        await cockpit.sees("err 499")
        assert cockpit.pane("both").has_focus
        await cockpit.press("underscore")
        await cockpit.until(lambda: area.region.width == usual.width and calls.has_focus)
        await cockpit.press("plus", "plus")
        await cockpit.until(lambda: area.region == usual)


@pytest.mark.slow
async def test_escape_ends_the_zoom_at_once() -> None:
    async with open_cockpit(long_output()) as cockpit:
        area = cockpit.screen.query_one(OutputArea)
        usual = area.region
        await cockpit.press("underscore")
        await cockpit.until(lambda: area.region.width == 120)
        await cockpit.press("escape")
        await cockpit.until(lambda: area.region == usual and cockpit.screen.query_one(CallList).has_focus)


@pytest.mark.slow
async def test_a_waiting_call_is_in_view_whatever_was_enlarged() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("6")
        await cockpit.press("plus")
        await cockpit.until(lambda: not cockpit.screen.query_one("#call").display)
        await cockpit.press("n")
        await cockpit.until(
            lambda: cockpit.screen.query_one("#call").region and not cockpit.screen.query_one("#output").region
        )
        await cockpit.select("6")
        await cockpit.until(
            lambda: cockpit.screen.query_one("#output").region and not cockpit.screen.query_one("#call").region
        )


@pytest.mark.slow
async def test_recorded_output_has_the_whole_screen_in_the_history_too() -> None:
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        await cockpit.press("down")
        await cockpit.sees("step 5 of 5")
        await cockpit.press("z", "z")
        await cockpit.until(lambda: screen.query_one(OutputArea).region.width == 120)
        await cockpit.press("space")
        await cockpit.sees("playing")
        await cockpit.press("escape")
        await cockpit.until(lambda: screen.query_one("#past").region and cockpit.app.screen is screen)
