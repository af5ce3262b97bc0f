"""The table of commands is the only place that says what keys do; keys for the whole screen."""

from pathlib import Path

import pytest
from textual.widgets import Input

from tests.tui.cockpit import cockpit
from tests.tui.scenes import Play, long_output, workday
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
    async with cockpit(Play.begin()) as seat:
        assert set(seat.screen.does) == set(BY_ID)


@pytest.mark.slow
async def test_slash_filters_and_escape_clears_the_filter() -> None:
    async with cockpit(workday()) as seat:
        await seat.press("slash", *"crawl")
        await seat.until(lambda: seat.selected == CRAWL)
        await seat.sees("0 of 3", "No waiting call matches.")
        await seat.press("enter")
        assert isinstance(seat.app.focused, CallList)
        await seat.press("escape")
        await seat.until(lambda: seat.screen.roster.count("waiting") == 3)
        assert "of 3" not in seat.text()
        await seat.press("slash", *"taxx", "escape")
        await seat.until(lambda: seat.screen.roster.filter == "")
        assert isinstance(seat.app.focused, CallList)


async def test_keys_are_letters_while_a_filter_is_typed() -> None:
    async with cockpit(workday()) as seat:
        await seat.press("slash", "a", "k", "q", "D")
        assert seat.screen.query_one(Input).value == "akqD"
        assert len(seat.app.screen_stack) == 1


@pytest.mark.slow
async def test_t_changes_the_theme_and_back() -> None:
    async with cockpit(long_output()) as seat:
        assert seat.app.theme == "whisper-dark"
        await seat.press("t")
        assert seat.app.theme == "whisper-light"
        await seat.press("t")
        assert seat.app.theme == "whisper-dark"


@pytest.mark.parametrize(
    "key", ["q", pytest.param("ctrl+q", marks=pytest.mark.slow), pytest.param("ctrl+c", marks=pytest.mark.slow)]
)
async def test_q_quits_and_says_that_commands_continue(key: str) -> None:
    async with cockpit(long_output()) as seat:
        await seat.press(key)
        await seat.until(lambda: seat.app._exit_renderables)
        assert "Commands keep running" in str(seat.app._exit_renderables)
        assert isinstance(seat.record("1").state, Running)


async def test_buttons_and_footer_show_what_applies_to_the_selected_call() -> None:
    async with cockpit(workday(), size=(80, 24)) as seat:
        await seat.sees("a Approve", "d Deny", "Space Mark", "n Next waiting", "Ctrl+P More")
        assert "k Kill" not in seat.text()
        await seat.select(CRAWL)
        await seat.sees("k Kill", "x Signal", "n Next waiting")
        await seat.until(lambda: "Approve" not in seat.text() and "Space Mark" not in seat.text())


@pytest.mark.slow
async def test_the_last_key_of_the_footer_opens_the_palette() -> None:
    async with cockpit(workday(), size=(80, 24)) as seat:
        await seat.click("Footer .-command-palette")
        await seat.sees("Approve  (a)")


@pytest.mark.slow
async def test_the_palette_offers_the_same_commands() -> None:
    async with cockpit(workday()) as seat:
        await seat.press("ctrl+p")
        await seat.sees("Approve  (a)")
        await seat.press(*"light", "enter")
        await seat.until(lambda: seat.app.theme == "whisper-light")
