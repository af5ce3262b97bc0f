"""Keys that come in one piece, as over a slow line: what a key opens gets those that follow it."""

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
from whisper_tui.tui.cockpit.call_list import FilterBar
from whisper_tui.tui.output.output_bars import SearchBar
from whisper_tui.tui.screens.rules_screen import RulesScreen


def at_once(cockpit: Cockpit, opens: str, typed: str) -> None:
    """One write of a terminal: a key, and letters after it."""
    for key in (Key(opens, None), *(Key(letter, letter) for letter in typed)):
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
