"""The settings screen lists what a person changes, writes it into the file, and says what a change needs."""

import pytest
from textual.widgets import Input

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.past import begin
from tests.tui.scenes import Play
from whisper_tui.model.api import ShownSetting
from whisper_tui.tui.screens.settings_screen import SETTINGS, SettingDialog, SettingsScreen

SHOWN = (
    ShownSetting(name="cockpit.theme", about="The colours.", value="", default="", allowed="a text", restart="cockpit"),
    ShownSetting(
        name="cockpit.undo", about="The approvals that u takes back.", value="every", default="every",
        choices=("grave", "every", "none"), allowed="grave or every or none", restart="cockpit",
    ),
    ShownSetting(
        name="retention.days", about="Days of output.", value="7", default="30", allowed="a number above 0",
        in_file=True,
    ),
)  # fmt: skip


def stage() -> Play:
    play = begin()
    play.stage.shown_settings = {setting.name: setting for setting in SHOWN}
    return play


async def settings(seat: Cockpit) -> None:
    await seat.press("comma")
    await seat.until(lambda: isinstance(seat.app.screen, SettingsScreen))
    await seat.sees("config.toml", "Recorded output")


async def test_every_command_of_the_settings_is_done_and_no_other() -> None:
    async with cockpit(stage()) as seat:
        await settings(seat)
        screen = seat.app.screen
        assert isinstance(screen, SettingsScreen)
        assert set(screen.does) == {command.id for command in SETTINGS}


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_setting_is_shown_with_its_default_its_source_and_what_a_change_needs(size: tuple[int, int]) -> None:
    async with cockpit(stage(), size=size) as seat:
        await settings(seat)
        await seat.press("end")
        await seat.sees("days                 7", "Days of output.", "Default     30", "a number above 0", "From")
        await seat.sees("whisper-tui restart")


async def test_a_number_is_typed_and_a_wrong_one_stays_in_its_field() -> None:
    play = stage()
    async with cockpit(play) as seat:
        await settings(seat)
        await seat.press("end", "enter")
        await seat.until(lambda: isinstance(seat.app.screen, SettingDialog))
        field = seat.app.screen.query_one(Input)
        field.value = "wrong"
        await seat.press("enter")
        await seat.sees("retention.days: 'wrong' is not allowed")
        assert field.value == "wrong"
        field.value = "14"
        await seat.press("enter")
        await seat.sees("retention.days is 14.", "whisper-tui restart applies it")
        assert play.stage.shown_settings["retention.days"].value == "14"
        await seat.press("x")
        await seat.sees("retention.days has its default.")
        assert not play.stage.shown_settings["retention.days"].in_file
        seat.app.clear_notifications()
        await seat.press("x")
        await seat.sees("The default holds already.")


@pytest.mark.slow
async def test_a_choice_is_made_with_the_arrows_and_a_theme_is_used_at_once() -> None:
    play = stage()
    async with cockpit(play) as seat:
        await settings(seat)
        await seat.press("down", "e", "right", "enter")
        await seat.sees("cockpit.undo is none.", "reads it when it opens the next time")
        before = seat.app.theme
        await seat.press("home", "e", "right", "enter")
        await seat.until(lambda: seat.app.theme != before)
        assert play.stage.shown_settings["cockpit.theme"].value == seat.app.theme
        await seat.press("escape")
        await seat.until(lambda: not isinstance(seat.app.screen, SettingsScreen))
