"""Commands at places on the screen: named everywhere, grey where nothing is known, and chosen in the dialog."""

import pytest

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.place_scenes import THERE, at_places
from tests.tui.scenes import ROOT
from whisper_tui.model.decision import Approve
from whisper_tui.tui.dialogs.dialog import ChoiceField


def row_of(cockpit: Cockpit, words: str) -> str:
    """The line of the list that holds these words."""
    return next(line[:38] for line in cockpit.text().splitlines() if words in line[:38])


async def known(cockpit: Cockpit) -> None:
    """Wait until the list knows the places, which are asked for every second."""
    await cockpit.until(lambda: "○ s1  @gpu2" in row_of(cockpit, "leaves.py"))


def decision_of(cockpit: Cockpit, call_id: str) -> Approve:
    decision = cockpit.record(call_id).decision
    assert isinstance(decision, Approve)
    return decision


async def test_the_row_and_the_card_name_the_place():
    async with open_cockpit(at_places()) as cockpit:
        await cockpit.sees("@gpu1", "@sim")
        assert "◆ s1  @gpu1 python3 train.py" in row_of(cockpit, "train.py")
        assert "@" not in row_of(cockpit, "git add")
        await cockpit.select("3")
        await cockpit.sees("gpu1  not on this machine; no sandbox, no preview, no undo", "bash  at gpu1")


@pytest.mark.slow
async def test_what_works_on_this_machine_only_is_not_offered_at_a_place():
    async with open_cockpit(at_places()) as cockpit:
        await cockpit.select("4")
        await cockpit.sees("s Preview")
        await cockpit.select("3")
        await cockpit.sees("a Approve", "not on this machine")
        assert "s Preview" not in cockpit.text()
        for key in ("s", "h"):
            await cockpit.press(key)
            await cockpit.sees("call 3 runs at gpu1, and sandboxes, previews and undo are for this machine")
        assert cockpit.record("3").decision is None


@pytest.mark.slow
async def test_what_runs_at_a_place_that_is_away_is_grey_and_says_why():
    async with open_cockpit(at_places()) as cockpit:
        await known(cockpit)
        await cockpit.sees("gpu2 is unreachable since", "No route to host")
        assert "▶ s1  @sim" in row_of(cockpit, "growth.py")
        await cockpit.select("1")
        await cockpit.sees("Call 1  ▶ running", "○ gpu2 is unreachable since")
        away, *others = cockpit.scenario.supervisor.places[1], *cockpit.scenario.supervisor.places
        back = away.model_copy(update={"reached": True, "problem": ""})
        cockpit.scenario.supervisor.places = tuple(back if each == away else each for each in others)
        await cockpit.until(lambda: "▶ s1  @gpu2" in row_of(cockpit, "leaves.py"))
        await cockpit.until(lambda: "unreachable" not in cockpit.text())


async def test_a_place_that_is_away_and_runs_nothing_disturbs_nobody():
    scenario = at_places()
    scenario.supervisor.places = tuple(place.model_copy(update={"running": 0}) for place in scenario.supervisor.places)
    async with open_cockpit(scenario) as cockpit:
        await known(cockpit)
        await cockpit.select("3")
        await cockpit.sees("Call 3")
        assert "unreachable" not in cockpit.text()


@pytest.mark.slow
async def test_the_filter_finds_calls_by_their_place():
    async with open_cockpit(at_places()) as cockpit:
        await cockpit.sees("@gpu1", "git add")
        await cockpit.press("slash", *"@gpu1", "enter")
        await cockpit.sees("1 of 2")
        assert "git add" not in cockpit.text()


@pytest.mark.slow
async def test_the_dialog_moves_a_call_with_its_directory_and_shows_what_changes():
    async with open_cockpit(at_places()) as cockpit:
        await known(cockpit)
        await cockpit.select("3")
        await cockpit.press("e")
        await cockpit.sees("Place: ← → choose", "gpu1")
        field = cockpit.app.screen.query_one(ChoiceField)
        assert [value for value, _ in field.choices] == ["", "gpu1", "gpu2", "sim"]
        field.choose("sim")
        await cockpit.sees("Will run: edited", f"Directory  {ROOT}", "sim")
        field.choose("gpu1")
        await cockpit.sees("Will run: as requested", THERE)
        field.choose("")
        await cockpit.sees("this machine", "Will run: edited")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: cockpit.record("3").decision is not None)
        edited = decision_of(cockpit, "3").edited
        assert edited is not None
        assert (edited.place, edited.cwd) == ("", ROOT)


@pytest.mark.slow
async def test_a_place_that_is_away_is_named_so_in_the_dialog():
    async with open_cockpit(at_places()) as cockpit:
        await known(cockpit)
        await cockpit.select("4")
        await cockpit.press("e")
        await cockpit.sees("Place: ← → choose", "this machine")
        cockpit.app.screen.query_one(ChoiceField).choose("gpu2")
        await cockpit.sees("gpu2 (unreachable)")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: cockpit.record("4").decision is not None)
        edited = decision_of(cockpit, "4").edited
        assert edited is not None
        assert edited.place == "gpu2"


async def test_without_places_there_is_nothing_to_choose():
    scenario = at_places()
    scenario.supervisor.places = ()
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("4")
        await cockpit.press("e")
        await cockpit.sees("Directory", "Will run: as requested")
        assert not cockpit.app.screen.query(ChoiceField)
