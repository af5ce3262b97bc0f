"""Keys that come in one piece, as over a slow line: what a key opens gets those that follow it."""

import asyncio
from collections.abc import Callable

import pytest
from textual.events import Key
from textual.widgets import Input

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.past import a_month, history
from tests.tui.scenes import Scenario, workday
from tests.tui.test_output_pane import running
from tests.tui.test_rules_screen import Book, rules
from tests.tui.test_typing_in import asking
from whisper_tui.tui.cockpit.call_list import CallList, FilterBar
from whisper_tui.tui.output.output_bars import SearchBar
from whisper_tui.tui.screens.rules_screen import RulesScreen


def at_once(cockpit: Cockpit, opens: str, typed: str) -> None:
    """One write of a terminal: a key, and letters after it."""
    for key in (Key(opens, None), *(Key("enter", "\r") if letter == "\r" else Key(letter, letter) for letter in typed)):
        cockpit.app.post_message(key)


@pytest.mark.parametrize(
    ("scenario", "opens", "field"),
    [
        pytest.param(workday, "slash", FilterBar, id="filter"),
        pytest.param(lambda: running(b"ok\n"), "ctrl+f", SearchBar, id="search", marks=pytest.mark.slow),
    ],
)
async def test_letters_right_after_the_key_are_typed_and_trigger_no_command(
    scenario: Callable[[], Scenario], opens: str, field: type[Input]
) -> None:
    async with open_cockpit(scenario()) as cockpit:
        theme, calls = cockpit.app.theme, dict(cockpit.scenario.supervisor.board.calls)
        at_once(cockpit, opens, "ant?")
        await cockpit.until(lambda: cockpit.screen.query_one(field).value == "ant?")
        assert cockpit.app.screen is cockpit.screen and cockpit.app.theme == theme
        assert cockpit.scenario.supervisor.board.calls == calls
        assert not cockpit.screen.decisions.undoing.farewell


@pytest.mark.slow
async def test_letters_right_after_the_key_are_searched_in_the_history() -> None:
    async with open_cockpit(a_month()) as cockpit, history(cockpit) as screen:
        at_once(cockpit, "slash", "make")
        await cockpit.until(lambda: screen.query_one(Input).value == "make")


async def test_letters_right_after_the_key_are_tested_against_the_rules() -> None:
    async with rules(workday(), Book()) as cockpit:
        screen = cockpit.app.screen
        assert isinstance(screen, RulesScreen)
        at_once(cockpit, "slash", "x true")
        await cockpit.until(lambda: screen.query_one(Input).value == "x true")


async def test_letters_right_after_the_key_go_to_the_terminal() -> None:
    async with open_cockpit(asking()) as cockpit:
        at_once(cockpit, "T", "kq")
        await cockpit.until(lambda: cockpit.scenario.supervisor.written["1"].out.endswith(b"kq"))


async def test_enter_in_the_same_read_ends_the_filter_that_was_typed_before_it() -> None:
    async with open_cockpit(workday()) as cockpit:
        at_once(cockpit, "slash", "tag\r")
        calls = cockpit.screen.query_one(CallList)
        await cockpit.until(lambda: cockpit.screen.query_one(FilterBar).value == "tag" and calls.has_focus)
        assert calls.roster.filter == "tag"


async def test_a_reason_typed_with_the_key_that_denies_goes_to_the_field_of_the_dialog() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("7")
        await cockpit.can_be_seen()
        at_once(cockpit, "d", "keep it")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 2)
        await cockpit.until(lambda: [field.value for field in cockpit.app.screen.query(Input)] == ["keep it"])


async def test_a_key_whose_widget_is_gone_holds_up_no_other() -> None:
    async with open_cockpit(workday()) as cockpit:
        turns = cockpit.app._keys
        assert turns.begins(Key("home", None))
        cockpit.app.post_message(Key("question_mark", "?"))
        await cockpit.sees("Keys and signs")


async def test_keys_keep_their_order_however_many_come_at_once() -> None:
    async with open_cockpit(workday()) as cockpit:
        text = "".join(chr(ord("a") + number % 26) for number in range(300))
        at_once(cockpit, "slash", text)
        await cockpit.until(lambda: cockpit.screen.query_one(FilterBar).value == text)


async def test_a_key_that_comes_while_the_cockpit_closes_is_for_nobody(monkeypatch) -> None:
    handled = []
    async with open_cockpit(workday()) as cockpit:
        app = cockpit.app
        close, begins = app._close_messages, app._keys.begins
        monkeypatch.setattr(app._keys, "begins", lambda key: handled.append(key) or begins(key))

        async def with_a_late_key() -> None:
            assert not app.screen_stack
            at_once(cockpit, "x", "j")
            app._keys.passed(app._keys._number)
            for _ in range(10):
                await asyncio.sleep(0)
            await close()

        await cockpit.press("j")
        app.post_message(Key("k", "k"))
        monkeypatch.setattr(app, "_close_messages", with_a_late_key)
    assert [key.key for key in handled if key.key == "x"] == []
