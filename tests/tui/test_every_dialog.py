"""Every dialog can be finished with the mouse, and is confirmed by the same keys.

Its buttons are whole in the smallest terminal and do what they say.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from textual.binding import Binding
from textual.widgets import Button, OptionList, TextArea
from textual.widgets._toast import Toast

from tests.in_memory.world import InMemoryRules
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import Scenario, workday
from tests.tui.test_rules_screen import Book, a_day, with_a_project, with_readers
from tests.tui.test_settings_screen import supervisor as with_settings
from tests.tui.test_talking import talkative
from tests.tui.test_typing_in import asking
from whisper_tui.tui.dialogs.dialog import CONFIRMS, Dialog
from whisper_tui.tui.dialogs.edit_dialog import EditScreen
from whisper_tui.tui.dialogs.review_dialog import ReviewScreen
from whisper_tui.tui.dialogs.take_back_dialog import TakeBackScreen
from whisper_tui.tui.row_list import RowList

SMALLEST = (80, 24)
INNER_COLUMNS = 72
"""Of a dialog in the smallest terminal."""
WAITS, RUNS = "8", "6"


async def buttons_do_what_they_say(cockpit: Cockpit, *keys: str) -> set[str]:
    """Open a dialog, click each of its buttons while a toast is shown, press the keys that confirm, and leave.

    Returns the names of what the buttons do.
    """
    below = cockpit.app.screen
    await cockpit.press(*keys)
    await cockpit.until(lambda: isinstance(cockpit.app.screen, Dialog))
    dialog, done = cockpit.app.screen, []
    names = set()
    await cockpit.until(lambda: all(button.region for button in dialog.query(Button) if button.display))
    assert all(isinstance(each, RowList) or not each.can_focus for each in dialog.query(OptionList))
    dialog.notify("word " * 30, timeout=600)
    await cockpit.until(lambda: any(toast.region for toast in dialog.query(Toast)))
    for button in dialog.query(".dialog-buttons Button").results(Button):
        if button.display:
            place = dialog.find_widget(button)
            assert place.visible_region == place.region, f"{button.label} is cut"
            name = (button.id or "").removeprefix("choose-")
            setattr(dialog, f"action_{name}", partial(done.append, name))
            await cockpit.pilot.click(button)
            await cockpit.until(lambda: done)
            assert done == [name]
            done.clear()
            names.add(name)
    for key in ("ctrl+s", "enter"):
        ends_a_line = key == "enter" and isinstance(dialog.focused, TextArea)
        await cockpit.press(key)
        assert done == ([dialog.confirms] if dialog.confirms and not ends_a_line else []), key
        done.clear()
    cockpit.app.clear_notifications()
    dialog.dismiss(None)
    await cockpit.until(lambda: cockpit.app.screen is below)
    return names


def all_dialogs(base: type[Dialog[Any]] = Dialog) -> Iterator[type[Dialog[Any]]]:
    for each in base.__subclasses__():
        yield each
        yield from all_dialogs(each)


def test_the_buttons_of_every_dialog_fit_into_one_row_but_those_of_an_edit() -> None:
    """Also those that a dialog only shows now and then, such as of whom to tell."""
    found = set(all_dialogs()) - {EditScreen}
    assert {ReviewScreen, TakeBackScreen} <= found
    for dialog in found:
        labels = [f"{key} {label}" for key, label, _ in (*dialog.CHOICES, ("Esc", dialog.LEAVE, "leave"))]
        # A button has a column on each side, and one between it and the next.
        assert sum(len(label) + 3 for label in labels) - 1 <= INNER_COLUMNS, (dialog.__name__, labels)


def test_no_dialog_has_its_own_keys_to_confirm() -> None:
    """One rule for all of them, so that a hand need not know in which one it is."""
    for dialog in all_dialogs():
        own = [each for each in dialog.__dict__.get("BINDINGS", ()) if isinstance(each, Binding)]
        assert not {"enter", "ctrl+s"} & {key for binding in own for key in binding.key.split(",")}, dialog.__name__
        confirming = [shown for shown, _, _ in dialog.CHOICES if shown in CONFIRMS]
        # Enter ends a line in the editor of a call.
        assert confirming in ([], ["Ctrl+S" if dialog is EditScreen else "Enter"]), dialog.__name__


@pytest.mark.slow
async def test_every_dialog_about_a_call_has_whole_buttons() -> None:
    async with open_cockpit(workday(), size=SMALLEST) as cockpit:
        for call_id, key, does in (
            (WAITS, "e", {"approve", "preview", "approve_session", "approve_scope"}),
            (WAITS, "d", {"deny"}),
            (WAITS, "A", {"approve", "sandbox", "suggest"}),
            (WAITS, "N", {"deny"}),
            (RUNS, "x", {"send", "target"}),
            (RUNS, "S", {"save", "source"}),
            (RUNS, "E", {"write", "name"}),
            (RUNS, "b", {"go", "end"}),
            (RUNS, "ctrl+t", {"keep"}),
            (RUNS, "question_mark", {"run"}),
        ):
            await cockpit.select(call_id)
            assert await buttons_do_what_they_say(cockpit, key) == does | {"leave"}
        await cockpit.select(WAITS)
        await cockpit.press("space")
        assert await buttons_do_what_they_say(cockpit, "R") == {"approve", "aside", "deny", "unmark", "leave"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "rule_book", "screen", "keys", "does"),
    [
        (asking, None, "", "i", {"send", "end", "hide"}),
        (talkative, None, "", "P", {"say"}),
        (a_day, None, "H", "i", set()),
        (a_day, Book(), "L", "x", {"remove"}),
        (a_day, Book(), "L", "a", {"save"}),
        (a_day, Book(), "L", "e", {"save", "save_new"}),
        (a_day, with_readers(), "L", "b", {"switch"}),
        (a_day, Book(), "", "Y", set()),
        (a_day, Book(), "H", "Y", set()),
        (with_settings, None, "comma", "e", {"save"}),
        (a_day, with_a_project(), "L", "t", {"trust"}),
    ],
)
async def test_every_other_dialog_has_whole_buttons(
    scenario: Callable[[], Scenario], rule_book: InMemoryRules | None, screen: str, keys: str, does: set[str]
) -> None:
    async with open_cockpit(scenario(), size=SMALLEST, rule_book=rule_book) as cockpit:
        if screen:
            await cockpit.press(screen)
            await cockpit.until(lambda: len(cockpit.app.screen_stack) == 2)
            await cockpit.pilot.pause()
            await cockpit.press("end")
        assert await buttons_do_what_they_say(cockpit, *keys) == does | {"leave"}
