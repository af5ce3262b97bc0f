"""The help: begins with the keys of the place one is in, finds what is typed, and runs what is chosen."""

import inspect
import re

import pytest
from textual.widgets import OptionList

from tests.rows import each_row
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.past import a_month
from tests.tui.scenes import workday
from tests.tui.test_typing_in import asking
from whisper_tui.model.state import Waiting
from whisper_tui.tui.cockpit import call_row
from whisper_tui.tui.commands.all_commands import COMMANDS, DEFAULT_KEYMAP, OTHER_SCREENS, keymap
from whisper_tui.tui.dialogs.decision_dialogs import DenyScreen
from whisper_tui.tui.dialogs.help_dialog import SIGNS, HelpScreen, cockpit_sections, matching
from whisper_tui.tui.screens.history_screen import HistoryScreen

EVERYTHING = cockpit_sections(DEFAULT_KEYMAP, "queue", COMMANDS, lambda _: "")


def listed(cockpit: Cockpit) -> list[str]:
    """The rows of the help, without their line ends."""
    options = cockpit.app.screen.query_one(OptionList).options
    return [" ".join(str(option.prompt).split()) for option in options]


async def opened(cockpit: Cockpit, key: str = "question_mark") -> None:
    await cockpit.press(key)
    await cockpit.until(lambda: isinstance(cockpit.app.screen, HelpScreen) and listed(cockpit))


async def closed(cockpit: Cockpit) -> None:
    await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)


def headings(rows: list[str]) -> list[str]:
    return [row for row in rows if row.startswith("Here")]


async def test_question_mark_shows_every_key_with_its_description() -> None:
    async with open_cockpit(workday()) as cockpit:
        await opened(cockpit)
        text = "\n".join(listed(cockpit))
        for command in (*COMMANDS, *(command for table in OTHER_SCREENS for command in table)):
            assert f"{command.key_name} {command.label} {command.help}" in text
        assert "Signs" in text and "▲▲ Flagged" in text and "Ctrl+] Leaves the terminal" in text
        await cockpit.press("escape")
        await closed(cockpit)


async def test_help_begins_with_the_keys_that_can_be_used_here() -> None:
    async with open_cockpit(workday(), size=(120, 60)) as cockpit:
        await cockpit.select("7")
        for presses, heading, shows, hides in (
            (0, "Here: the list of calls", "a Approve Run the command", "Ctrl+F Find"),
            (1, "Here: the selected call", "' To the risk", "Ctrl+G Sort"),
        ):
            await cockpit.press(*["tab"] * presses)
            await opened(cockpit)
            rows = listed(cockpit)
            here = rows[: rows.index("Decide")]
            assert here[0] == heading
            assert any(row.startswith(shows) for row in here)
            assert not any(row.startswith((hides, "x End")) for row in here)
            await cockpit.press("question_mark")
            await closed(cockpit)


async def test_page_down_turns_one_page_from_the_top() -> None:
    async with open_cockpit(workday()) as cockpit:
        await opened(cockpit)
        rows = cockpit.app.screen.query_one(OptionList)
        await cockpit.press("pagedown")
        await cockpit.until(lambda: rows.highlighted is not None)
        assert 1 < (rows.highlighted or 0) <= rows.scrollable_content_region.height


async def test_the_terminal_of_a_run_and_its_output_have_keys_of_their_own() -> None:
    async with open_cockpit(asking(), size=(120, 60)) as cockpit:
        cockpit.screen.set_focus(cockpit.screen.query_one("TerminalPane"))
        await opened(cockpit)
        assert listed(cockpit)[0] == "Here: the terminal of the command"
        assert any(row.startswith("T Terminal") for row in listed(cockpit)[:6])


@pytest.mark.slow
async def test_typing_finds_names_keys_and_descriptions_and_enter_runs_the_first() -> None:
    async with open_cockpit(workday()) as cockpit:
        await opened(cockpit)
        await cockpit.press(*"light theme")
        await cockpit.until(lambda: listed(cockpit)[0].endswith(("match", "matches")))
        assert listed(cockpit)[1].startswith("t Theme")
        await cockpit.press("enter")
        await closed(cockpit)
        await cockpit.until(lambda: cockpit.app.theme == "whisper-light")


def test_a_key_is_found_by_itself_and_nothing_twice() -> None:
    assert matching(EVERYTHING, "x")[0].name == "End…"
    assert matching(EVERYTHING, "Ctrl+G")[0].name == "Sort"
    assert {"Undo", "Undo changes"} <= {found.name for found in matching(EVERYTHING, "undo")[:3]}
    found = matching(EVERYTHING, "approve")
    assert len(found) == len(set(found)) and found[0].name.startswith("Approve")
    assert matching(EVERYTHING, "no such words") == ()


@pytest.mark.slow
async def test_enter_without_a_search_runs_nothing_and_no_decision_is_run_from_here() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("7")
        await opened(cockpit)
        await cockpit.press("enter")
        assert isinstance(cockpit.app.screen, HelpScreen)
        await cockpit.press(*"run the command as shown", "enter")
        await cockpit.sees("a decides when the call is in view")
        assert isinstance(cockpit.app.screen, HelpScreen)
        await cockpit.press("escape")
        await closed(cockpit)
        assert isinstance(cockpit.record("7").state, Waiting)


@pytest.mark.slow
async def test_an_unavailable_command_says_why() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("7")
        await opened(cockpit)
        await cockpit.press(*"sigterm", "enter")
        await cockpit.sees("End is not possible: call 7 has no running process.")


@pytest.mark.slow
async def test_the_history_has_its_own_and_runs_its_own() -> None:
    async with open_cockpit(a_month(), size=(120, 60)) as cockpit:
        await cockpit.press("H")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, HistoryScreen))
        await opened(cockpit)
        assert headings(listed(cockpit)) == ["Here: the history"]
        await cockpit.press(*"statistics of its", "enter")
        await cockpit.sees("Statistics of session")


async def test_f1_lists_the_keys_of_a_dialog_and_runs_them() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("7")
        await cockpit.press("d")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, DenyScreen))
        await opened(cockpit, "f1")
        assert listed(cockpit)[:3] == ["Here: this dialog", "Enter Deny", "Esc Cancel"]
        await cockpit.press("f1")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, DenyScreen))
        await opened(cockpit, "f1")
        await cockpit.press(*"cancel", "enter")
        await closed(cockpit)


@pytest.mark.slow
async def test_help_of_a_dialog_has_no_rows_of_the_toolkit() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("7")
        await cockpit.press("d")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, DenyScreen))
        await opened(cockpit, "f1")
        here = listed(cockpit)
        here = here[: here.index(next(row for row in here if row.startswith("In ") or row == "Signs"))]
        assert "Enter Deny" in here and "Esc Cancel" in here
        assert not [row for row in here if "super" in row.casefold() or "Copy selected" in row or "Focus" in row]


async def test_help_names_the_keys_in_force() -> None:
    async with open_cockpit(workday(), keys=keymap("vi", {"approve": "F5"})) as cockpit:
        await opened(cockpit)
        assert any(row.startswith("F5 Approve") for row in listed(cockpit))


@pytest.mark.slow
async def test_help_fits_the_smallest_terminal_and_wraps_its_texts_in_their_column() -> None:
    async with open_cockpit(workday(), size=(80, 24)) as cockpit:
        await opened(cockpit)
        await cockpit.sees("Keys and signs", "Type to search", "Here: the list")
        widest = max(
            len(line)
            for option in cockpit.app.screen.query_one(OptionList).options
            for line in str(option.prompt).split("\n")
        )
        assert widest <= 72


@each_row(("word", "name"), [("group", "Sort"), ("batch", "Review marked"), ("vim", "Settings")])
def test_help_is_found_by_words_that_other_programs_use(word: str, name: str) -> None:
    assert name in {entry.name for entry in matching(EVERYTHING, word)}


def test_every_sign_of_a_row_is_in_the_help() -> None:
    drawn = set(re.findall(r'Span\("(.)", ', inspect.getsource(call_row._mark)))
    assert {"◆", "⊘", "!"} <= drawn
    assert drawn | {"‖", "○", "?", "+1"} <= {sign for sign, _, _ in SIGNS}
