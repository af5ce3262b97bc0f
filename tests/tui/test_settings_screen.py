"""The settings screen lists what a person changes, writes it into the file, and says what a change needs."""

import pytest
from textual.widgets import Input

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.past import begin
from tests.tui.scenes import Scenario
from whisper_tui.model.api import ShownSetting
from whisper_tui.tui.screens.settings_screen import SETTINGS, SettingDialog, SettingsScreen, setting_paragraphs

SHOWN = (
    ShownSetting(name="cockpit.theme", about="The colours.", value="", default="", allowed="a text", restart="cockpit"),
    ShownSetting(
        name="cockpit.undo", about="The approvals that u undoes.", value="every", default="every",
        choices=("grave", "every", "none"), allowed="grave or every or none", restart="cockpit",
    ),
    ShownSetting(
        name="retention.days", title="Days of output", about="Days of output.",
        value="7", default="30", allowed="a number above 0",
        in_file=True,
    ),
)  # fmt: skip


def test_a_number_has_its_unit_and_a_setting_its_title() -> None:
    memory = ShownSetting(
        name="supervisor.min_memory_bytes", title="Free memory to start", about="…", value="268435456", default="0",
        in_file=True,
    )  # fmt: skip
    wait = ShownSetting(name="calling.away_after_s", title="Away after", about="…", value="90", default="120")
    shown = [
        "".join(span.text for span in each.spans) for one in (memory, wait) for each in setting_paragraphs(one, "/c")
    ]
    assert [text for text in shown if "B" in text or "min" in text] == [
        "Free memory to start  supervisor.min_memory_bytes", "268 MB", "0 B", "2 min",
    ]  # fmt: skip


def supervisor() -> Scenario:
    scenario = begin()
    scenario.supervisor.shown_settings = {setting.name: setting for setting in SHOWN}
    return scenario


async def settings(cockpit: Cockpit) -> None:
    await cockpit.press("comma")
    await cockpit.until(lambda: isinstance(cockpit.app.screen, SettingsScreen))
    await cockpit.sees("config.toml", "Recorded output")


async def test_every_command_of_the_settings_is_done_and_no_other() -> None:
    async with open_cockpit(supervisor()) as cockpit:
        await settings(cockpit)
        screen = cockpit.app.screen
        assert isinstance(screen, SettingsScreen)
        assert set(screen.does) == {command.id for command in SETTINGS}


async def test_settings_are_searched_for_words_and_all_of_them_come_back() -> None:
    async with open_cockpit(supervisor()) as cockpit:
        await settings(cockpit)
        await cockpit.press("slash", *"output day")
        await cockpit.until(lambda: "The colours" not in cockpit.text() and "Approvals" not in cockpit.text())
        await cockpit.sees("Recorded output", "Days of output             7", "Default     30")
        await cockpit.press("enter", "e")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, SettingDialog))
        await cockpit.press("escape")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, SettingsScreen))
        await cockpit.press("slash", *"xyz")
        await cockpit.sees("no setting has these words")
        await cockpit.press("escape")
        await cockpit.sees("Recorded output", "theme")
        assert cockpit.app.screen.focused is cockpit.app.screen.query_one("#settings-list")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_setting_is_shown_with_its_default_its_source_and_what_a_change_needs(size: tuple[int, int]) -> None:
    async with open_cockpit(supervisor(), size=size) as cockpit:
        await settings(cockpit)
        await cockpit.press("end")
        await cockpit.sees(
            "Days of output             7", "Days of output.", "Default     30", "a number above 0", "From"
        )
        await cockpit.sees("whisper-tui restart")


async def test_a_number_is_typed_and_a_wrong_one_stays_in_its_field() -> None:
    scenario = supervisor()
    async with open_cockpit(scenario) as cockpit:
        await settings(cockpit)
        await cockpit.press("end", "enter")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, SettingDialog))
        field = cockpit.app.screen.query_one(Input)
        field.value = "wrong"
        await cockpit.press("enter")
        await cockpit.sees("retention.days: 'wrong' is not allowed")
        assert field.value == "wrong"
        field.value = "14"
        await cockpit.press("enter")
        await cockpit.sees("retention.days is 14.", "whisper-tui restart applies it")
        assert scenario.supervisor.shown_settings["retention.days"].value == "14"
        await cockpit.press("x")
        await cockpit.sees("retention.days has its default.")
        assert not scenario.supervisor.shown_settings["retention.days"].in_file
        cockpit.app.clear_notifications()
        await cockpit.press("x")
        await cockpit.sees("The default is in force already.")


@pytest.mark.slow
async def test_a_choice_is_made_with_the_arrows_and_a_theme_is_used_at_once() -> None:
    scenario = supervisor()
    async with open_cockpit(scenario) as cockpit:
        await settings(cockpit)
        await cockpit.press("down", "e")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, SettingDialog))
        await cockpit.press("right", "enter")
        await cockpit.sees("cockpit.undo is none.", "reads it when it opens the next time")
        before = cockpit.app.theme
        await cockpit.press("home", "e")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, SettingDialog))
        await cockpit.press("right", "enter")
        await cockpit.until(lambda: cockpit.app.theme != before)
        assert scenario.supervisor.shown_settings["cockpit.theme"].value == cockpit.app.theme
        await cockpit.press("escape")
        await cockpit.until(lambda: not isinstance(cockpit.app.screen, SettingsScreen))
