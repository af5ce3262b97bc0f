"""One pane has the whole right side, or the whole screen, and gives it back."""

import pytest

from tests.tui.cockpit import cockpit
from tests.tui.past import a_month, history
from tests.tui.scenes import long_output, workday
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.output.output_area import OutputArea


@pytest.mark.slow
async def test_z_gives_the_output_the_right_side_then_the_screen_then_its_usual_room() -> None:
    async with cockpit(long_output()) as seat:
        area, calls = seat.screen.query_one(OutputArea), seat.screen.query_one(CallList)
        usual = area.region
        await seat.press("z")
        await seat.until(lambda: area.region.height > usual.height and not seat.screen.query_one("#call").display)
        assert area.region.width == usual.width and calls.region
        await seat.press("z")
        await seat.until(lambda: area.region.width == 120 and not calls.region)
        await seat.sees("err 499")
        assert seat.pane("both").has_focus
        await seat.press("underscore")
        await seat.until(lambda: area.region.width == usual.width and calls.has_focus)
        await seat.press("plus", "plus")
        await seat.until(lambda: area.region == usual)


@pytest.mark.slow
async def test_escape_gives_the_room_back_at_once() -> None:
    async with cockpit(long_output()) as seat:
        area = seat.screen.query_one(OutputArea)
        usual = area.region
        await seat.press("underscore")
        await seat.until(lambda: area.region.width == 120)
        await seat.press("escape")
        await seat.until(lambda: area.region == usual and seat.screen.query_one(CallList).has_focus)


async def test_a_waiting_call_is_in_view_whatever_was_enlarged() -> None:
    async with cockpit(workday()) as seat:
        await seat.select("6")
        await seat.press("z")
        await seat.until(lambda: not seat.screen.query_one("#call").display)
        await seat.press("n")
        await seat.until(lambda: seat.screen.query_one("#call").region and not seat.screen.query_one("#output").region)
        await seat.select("6")
        await seat.until(lambda: seat.screen.query_one("#output").region and not seat.screen.query_one("#call").region)


async def test_recorded_output_has_the_whole_screen_in_the_history_too() -> None:
    async with cockpit(a_month()) as seat, history(seat) as screen:
        await seat.press("down")
        await seat.sees("step 5 of 5")
        await seat.press("z", "z")
        await seat.until(lambda: screen.query_one(OutputArea).region.width == 120)
        await seat.press("space")
        await seat.sees("playing")
        await seat.press("escape")
        await seat.until(lambda: screen.query_one("#past").region and seat.app.screen is screen)
