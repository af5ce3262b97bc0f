"""Keys that come in one piece, as over a slow line: what a key opens gets those that follow it."""

from collections.abc import Callable

import pytest
from textual.events import Key
from textual.widgets import Input

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.past import a_month, history
from tests.tui.scenes import Play, workday
from tests.tui.test_output_pane import running
from tests.tui.test_rules_screen import Book, rules
from tests.tui.test_typing_in import asking
from whisper_tui.tui.cockpit.call_list import FilterBar
from whisper_tui.tui.output.output_bars import SearchBar
from whisper_tui.tui.screens.rules_screen import RulesScreen


def at_once(seat: Cockpit, opens: str, typed: str) -> None:
    """One write of a terminal: a key, and letters after it."""
    for key in (Key(opens, None), *(Key(letter, letter) for letter in typed)):
        seat.app.post_message(key)


@pytest.mark.parametrize(
    ("play", "opens", "field"),
    [
        pytest.param(workday, "slash", FilterBar, id="filter"),
        pytest.param(lambda: running(b"ok\n"), "ctrl+f", SearchBar, id="search", marks=pytest.mark.slow),
    ],
)
async def test_letters_right_after_the_key_are_typed_and_trigger_no_command(
    play: Callable[[], Play], opens: str, field: type[Input]
) -> None:
    async with cockpit(play()) as seat:
        theme, calls = seat.app.theme, dict(seat.play.stage.board.calls)
        at_once(seat, opens, "ant?")
        await seat.until(lambda: seat.screen.query_one(field).value == "ant?")
        assert seat.app.screen is seat.screen and seat.app.theme == theme
        assert seat.play.stage.board.calls == calls
        assert not seat.screen.decisions.undoing.farewell


@pytest.mark.slow
async def test_letters_right_after_the_key_are_searched_in_the_history() -> None:
    async with cockpit(a_month()) as seat, history(seat) as screen:
        at_once(seat, "slash", "make")
        await seat.until(lambda: screen.query_one(Input).value == "make")


async def test_letters_right_after_the_key_are_tested_against_the_rules() -> None:
    async with rules(workday(), Book()) as seat:
        screen = seat.app.screen
        assert isinstance(screen, RulesScreen)
        at_once(seat, "slash", "x true")
        await seat.until(lambda: screen.query_one(Input).value == "x true")


async def test_letters_right_after_the_key_go_to_the_terminal() -> None:
    async with cockpit(asking()) as seat:
        at_once(seat, "T", "kq")
        await seat.until(lambda: seat.play.stage.written["1"].out.endswith(b"kq"))
