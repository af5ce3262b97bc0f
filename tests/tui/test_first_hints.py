"""Hints for somebody new: each once, when it is of use, and never again."""

from pathlib import Path

from tests.tui.cockpit import Cockpit, open_cockpit, toast_text
from tests.tui.scenes import workday
from tests.tui.test_card import in_directory
from tests.tui.test_typing_in import asking
from whisper_tui.cli.cockpit_launcher import remembered_hints
from whisper_tui.tui.cockpit.call_panel import Guidance
from whisper_tui.tui.cockpit.notices import FirstHints
from whisper_tui.tui.commands.all_commands import keymap
from whisper_tui.tui.commands.undo_approval import UndoSettings

UNDO = UndoSettings("every", 3.0)


async def approve(cockpit: Cockpit) -> None:
    await cockpit.select("7")
    await cockpit.press("a")
    await cockpit.sees("Approving call 7")


async def test_the_first_approval_says_how_it_is_undone_and_the_next_one_does_not(tmp_path: Path) -> None:
    for number in range(2):
        hints = remembered_hints(tmp_path / "hints")
        async with open_cockpit(workday(), undo=UNDO, guidance=Guidance(hints=hints)) as cockpit:
            await approve(cockpit)
            if not number:
                await cockpit.sees("u undoes what was done here last")
            assert ("u undoes what was done here last" in toast_text(cockpit.app)) is (number == 0)
    assert (tmp_path / "hints").read_text() == "undo\n"


async def test_a_run_in_a_terminal_says_how_to_type_into_it_one_hint_at_a_time() -> None:
    told: list[str] = []
    async with open_cockpit(asking(), guidance=Guidance(hints=FirstHints((), told.append))) as cockpit:
        await cockpit.sees("T types into the terminal of this command; Ctrl+] comes back.")
        cockpit.screen.query_one("#decisions").show("Approving call 1 in 3 s", 0, "")  # type: ignore[attr-defined]
        assert told == ["terminal"]


async def test_the_first_rule_on_offer_says_what_it_is(tmp_path: Path) -> None:
    scenario = in_directory(tmp_path, "npm run build", ("npm", "run", "build"))
    async with open_cockpit(scenario, guidance=Guidance(hints=FirstHints(()))) as cockpit:
        await cockpit.sees("F F chooses to save the rule")


async def test_a_hint_names_the_keys_in_force() -> None:
    keys = keymap("default", {"undo": "F9"})
    async with open_cockpit(workday(), undo=UNDO, keys=keys, guidance=Guidance(hints=FirstHints(()))) as cockpit:
        await approve(cockpit)
        await cockpit.sees("F9 undoes what was done here last")


def test_a_file_of_hints_that_cannot_be_read_shows_none(tmp_path: Path) -> None:
    (tmp_path / "hints").mkdir()
    assert not remembered_hints(tmp_path / "hints").has("undo")
    assert remembered_hints(tmp_path / "new").has("undo")
