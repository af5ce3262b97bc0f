"""Every dialog can be finished with the mouse: its buttons are whole in the smallest terminal and do what they say."""

from collections.abc import Callable
from functools import partial

import pytest
from textual.widgets import Button
from textual.widgets._toast import Toast

from tests.in_memory.world import InMemoryRules
from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import Play, workday
from tests.tui.test_rules_screen import Book, a_day, with_a_project
from tests.tui.test_settings_screen import stage as with_settings
from tests.tui.test_talking import talkative
from tests.tui.test_typing_in import asking
from whisper_tui.tui.dialogs.dialog import Dialog

SMALLEST = (80, 24)
WAITS, RUNS = "8", "6"


async def buttons_do_what_they_say(seat: Cockpit, *keys: str) -> set[str]:
    """Open a dialog, click each of its buttons while a toast is shown, and leave.

    Returns the names of what they do.
    """
    below = seat.app.screen
    await seat.press(*keys)
    await seat.until(lambda: isinstance(seat.app.screen, Dialog))
    dialog, done = seat.app.screen, []
    names = set()
    await seat.until(lambda: all(button.region for button in dialog.query(Button) if button.display))
    dialog.notify("word " * 30, timeout=600)
    await seat.until(lambda: any(toast.region for toast in dialog.query(Toast)))
    for button in dialog.query(".dialog-buttons Button").results(Button):
        if button.display:
            place = dialog.find_widget(button)
            assert place.visible_region == place.region, f"{button.label} is cut"
            name = (button.id or "").removeprefix("choose-")
            setattr(dialog, f"action_{name}", partial(done.append, name))
            await seat.pilot.click(button)
            await seat.until(lambda: done)
            assert done == [name]
            done.clear()
            names.add(name)
    seat.app.clear_notifications()
    dialog.dismiss(None)
    await seat.until(lambda: seat.app.screen is below)
    return names


@pytest.mark.slow
async def test_every_dialog_about_a_call_has_whole_buttons() -> None:
    async with cockpit(workday(), size=SMALLEST) as seat:
        for call_id, key, does in (
            (WAITS, "e", {"approve", "approve_session", "approve_scope"}),
            (WAITS, "d", {"deny"}),
            (WAITS, "A", {"approve", "sandbox", "suggest"}),
            (WAITS, "N", {"deny"}),
            (RUNS, "x", {"send", "target"}),
            (RUNS, "k", {"term", "kill"}),
            (RUNS, "S", {"save", "source"}),
            (RUNS, "E", {"write", "name"}),
            (RUNS, "b", {"go", "kill"}),
            (RUNS, "ctrl+t", {"keep"}),
            (RUNS, "question_mark", {"run"}),
        ):
            await seat.select(call_id)
            assert await buttons_do_what_they_say(seat, key) == does | {"leave"}
        await seat.select(WAITS)
        await seat.press("space")
        assert await buttons_do_what_they_say(seat, "R") == {"approve", "deny", "unmark", "leave"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("play", "rule_book", "screen", "keys", "does"),
    [
        (asking, None, "", "i", {"send", "end", "hide"}),
        (talkative, None, "", "P", {"say"}),
        (a_day, None, "H", "i", set()),
        (a_day, Book(), "L", "x", {"remove"}),
        (a_day, Book(), "L", "a", {"save"}),
        (a_day, Book(), "L", "e", {"save", "save_new"}),
        (a_day, Book(), "", "Y", set()),
        (a_day, Book(), "H", "Y", set()),
        (with_settings, None, "comma", "e", {"save"}),
        (a_day, with_a_project(), "L", "t", {"trust"}),
    ],
)
async def test_every_other_dialog_has_whole_buttons(
    play: Callable[[], Play], rule_book: InMemoryRules | None, screen: str, keys: str, does: set[str]
) -> None:
    async with cockpit(play(), size=SMALLEST, rule_book=rule_book) as seat:
        if screen:
            await seat.press(screen)
            await seat.until(lambda: len(seat.app.screen_stack) == 2)
            await seat.pilot.pause()
            await seat.press("end")
        assert await buttons_do_what_they_say(seat, *keys) == does | {"leave"}
