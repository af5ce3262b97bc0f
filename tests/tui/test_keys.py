"""The table of commands is the only place that says what keys do; keys for the whole screen."""

from pathlib import Path

import pytest
from textual.widgets import Input

from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import Scenario, long_output, workday
from whisper_tui.model.state import Running
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.commands.all_commands import BY_ID, COMMANDS, keys_page

PAGE = Path(__file__).parents[2] / "docs" / "keys.md"
CRAWL = "6"


def test_the_page_about_keys_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == keys_page(), (
        "python -m whisper_tui.tui.commands.all_commands > docs/keys.md"
    )


def test_ids_and_keys_are_unique() -> None:
    keys = [key for command in COMMANDS for key in command.key.split(",")]
    assert len(set(keys)) == len(keys)
    assert len(BY_ID) == len(COMMANDS)


async def test_every_command_has_a_handler_and_every_handler_a_command() -> None:
    async with open_cockpit(Scenario.begin()) as cockpit:
        assert set(cockpit.screen.does) == set(BY_ID)


@pytest.mark.slow
async def test_slash_filters_and_escape_clears_the_filter() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.press("slash", *"crawl")
        await cockpit.until(lambda: cockpit.selected == CRAWL)
        await cockpit.sees("0 of 3", "No waiting call matches.")
        await cockpit.press("enter")
        assert isinstance(cockpit.app.focused, CallList)
        await cockpit.press("escape")
        await cockpit.until(lambda: cockpit.screen.roster.count("waiting") == 3)
        assert "of 3" not in cockpit.text()
        await cockpit.press("slash", *"taxx", "escape")
        await cockpit.until(lambda: cockpit.screen.roster.filter == "")
        assert isinstance(cockpit.app.focused, CallList)


async def test_keys_are_letters_while_a_filter_is_typed() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.press("slash", "a", "k", "q", "D")
        assert cockpit.screen.query_one(Input).value == "akqD"
        assert len(cockpit.app.screen_stack) == 1


@pytest.mark.slow
async def test_t_changes_the_theme_and_back() -> None:
    async with open_cockpit(long_output()) as cockpit:
        assert cockpit.app.theme == "whisper-dark"
        await cockpit.press("t")
        assert cockpit.app.theme == "whisper-light"
        await cockpit.press("t")
        assert cockpit.app.theme == "whisper-dark"


@pytest.mark.parametrize(
    "key", ["q", pytest.param("ctrl+q", marks=pytest.mark.slow), pytest.param("ctrl+c", marks=pytest.mark.slow)]
)
async def test_q_quits_and_says_that_commands_continue(key: str) -> None:
    async with open_cockpit(long_output()) as cockpit:
        await cockpit.press(key)
        await cockpit.until(lambda: cockpit.app._exit_renderables)
        assert "Commands keep running" in str(cockpit.app._exit_renderables)
        assert isinstance(cockpit.record("1").state, Running)


async def test_buttons_and_footer_show_what_applies_to_the_selected_call() -> None:
    async with open_cockpit(workday(), size=(80, 24)) as cockpit:
        await cockpit.sees("a Approve", "d Deny", "Space Mark", "n Next waiting", "Ctrl+P More")
        assert "x End" not in cockpit.text()
        await cockpit.select(CRAWL)
        await cockpit.sees("x End…", "n Next waiting")
        await cockpit.until(lambda: "Approve" not in cockpit.text() and "Space Mark" not in cockpit.text())


@pytest.mark.slow
async def test_the_last_key_of_the_footer_opens_the_palette() -> None:
    async with open_cockpit(workday(), size=(80, 24)) as cockpit:
        await cockpit.click("Footer .-command-palette")
        await cockpit.sees("Approve  (a)")


@pytest.mark.slow
async def test_the_palette_offers_the_same_commands() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.press("ctrl+p")
        await cockpit.sees("Approve  (a)")
        await cockpit.press(*"light", "enter")
        await cockpit.until(lambda: cockpit.app.theme == "whisper-light")
