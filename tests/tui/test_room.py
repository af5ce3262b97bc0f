"""What has room on the screen, at each size: the command first, no waiting call and no bar covered, nothing empty."""

import pytest
from textual.widgets._toast import Toast

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.preview_scenes import begin_preview, end_preview, previewed
from tests.tui.scenes import Scenario, crowd, workday
from whisper_tui.model.ending import Exited
from whisper_tui.present.diff_text import unified_rows
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.cockpit.call_panel import LEAST_FOR_BLANKS, CallPanel
from whisper_tui.tui.cockpit.status_bars import DecisionBar
from whisper_tui.tui.output.output_area import OutputArea

SIZES = [
    (80, 24),
    pytest.param((120, 40), marks=pytest.mark.slow),
    pytest.param((170, 48), marks=pytest.mark.slow),
    (220, 60),
]


async def shown_toasts(cockpit: Cockpit) -> list[Toast]:
    await cockpit.until(lambda: any(toast.region for toast in cockpit.screen.query(Toast)))
    await cockpit.still()
    return list(cockpit.screen.query(Toast))


@pytest.mark.parametrize("size", SIZES)
async def test_toasts_cover_no_waiting_row_and_not_the_bar_that_undoes(size: tuple[int, int]) -> None:
    async with open_cockpit(crowd(), size=size) as cockpit:
        await cockpit.select("6")
        cockpit.screen.query_one(DecisionBar).show("Call 7 is approved in 2 s", 0, "")
        cockpit.screen.notify("word " * 30, timeout=600, severity="warning")
        cockpit.screen.notify("Call 7 is approved.", timeout=600)
        toasts = await shown_toasts(cockpit)
        calls = cockpit.screen.query_one(CallList)
        for widget in (calls, cockpit.screen.query_one(DecisionBar), cockpit.screen.query_one(CallPanel)):
            assert not any(toast.region.overlaps(widget.region) for toast in toasts)
        listed = [line[: calls.region.right] for line in cockpit.text().splitlines()]
        assert any(line.startswith("▌◆ s1  rm -rf node_modules") for line in listed)
        cockpit.app.clear_notifications()
        await cockpit.until(lambda: not any(toast.region for toast in cockpit.screen.query(Toast)))
        await cockpit.still()
        assert calls.region.bottom >= cockpit.screen.query_one("#left").region.bottom


@pytest.mark.parametrize("size", SIZES)
async def test_the_command_is_the_first_thing_on_a_card_and_then_the_verdict(size: tuple[int, int]) -> None:
    async with open_cockpit(workday(), size=size) as cockpit:
        await cockpit.select("7")
        await cockpit.settled()
        detail = cockpit.screen.query_one("#call-detail").region
        rows = [line[detail.x : detail.right] for line in cockpit.text().splitlines()[detail.y :]]
        between = [] if size[1] < LEAST_FOR_BLANKS else [""]
        command, *blank, verdict = rows[: 2 + len(between)]
        assert "rm -rf cache drafts" in command and [row.strip() for row in blank] == between
        assert "▲▲ severe  Deletes recursively" in verdict


@pytest.mark.parametrize("size", [(170, 48), (220, 60)])
async def test_a_wider_list_cuts_no_command_that_a_narrower_one_shows(size: tuple[int, int]) -> None:
    async with open_cockpit(workday(), size=size) as cockpit:
        left = cockpit.screen.query_one("#left").region
        listed = [line[: left.right] for line in cockpit.text().splitlines()]
        assert any("echo 'rate = 20' > tax.conf" in line for line in listed)


async def test_waiting_calls_have_one_line_each_where_two_do_not_fit() -> None:
    async with open_cockpit(crowd(), size=(220, 17)) as cockpit:
        await cockpit.still()
        assert "sed -i s/Fern" in cockpit.text()
        await cockpit.pilot.resize_terminal(220, 60)
        await cockpit.still()
        rows = [line[:60] for line in cockpit.text().splitlines()]
        assert not any("git push origin release" in line and "release agent" in line for line in rows)


def waits_for_input_above_ended_calls() -> Scenario:
    scenario = Scenario.begin()
    scenario.approve(scenario.ask("build"))
    for _ in range(40):
        scenario.approve(call := scenario.ask("fix"))
        scenario.supervisor.finish(call, Exited(code=0))
    return scenario


@pytest.mark.parametrize("size", SIZES)
async def test_a_run_that_needs_input_stays_in_view_over_ended_calls(size: tuple[int, int]) -> None:
    async with open_cockpit(waits_for_input_above_ended_calls(), size=size) as cockpit:
        calls = cockpit.screen.query_one(CallList)
        calls.need_input = lambda: ["1"]
        await cockpit.press("end")
        await cockpit.still()
        width = cockpit.screen.query_one("#left").region.right
        rows = [line[:width] for line in cockpit.text().splitlines()]
        assert any("▶ s1  ./build.sh" in line for line in rows)
        assert any(line.startswith("▌") for line in rows), "the selected row is in view"
        await cockpit.press("up")
        await cockpit.still()
        assert any(line[:width].startswith("▌") for line in cockpit.text().splitlines())
        pinned = next(
            y for y in range(calls.size.height) if (at := calls.on_screen(y)) and at.place and at.section == "running"
        )
        await cockpit.pilot.click(CallList, offset=(5, pinned))
        await cockpit.until(lambda: cockpit.selected == "1")


@pytest.mark.parametrize("size", [(100, 30), *SIZES])
async def test_a_call_that_begins_to_wait_is_in_view_over_ended_calls(size: tuple[int, int]) -> None:
    scenario = waits_for_input_above_ended_calls()
    async with open_cockpit(scenario, size=size) as cockpit:
        calls = cockpit.screen.query_one(CallList)
        calls.need_input = lambda: ["1"]
        await cockpit.press("end")
        selected = cockpit.selected
        asked = scenario.ask("test")
        await cockpit.sees("1 waiting")
        await cockpit.still()
        width = cockpit.screen.query_one("#left").region.right
        rows = [line[:width] for line in cockpit.text().splitlines()]
        assert any("Waiting for you" in line for line in rows)
        assert cockpit.selected == selected
        assert any(line.startswith("▌") for line in rows), "the selected row is in view"
        there = [calls.on_screen(y) for y in range(calls.size.height)]
        named = [at.place.section for at in there if at is not None and at.place is not None]
        assert list(dict.fromkeys(named))[:2] == ["waiting", "running"]
        row = next(y for y, at in enumerate(there) if at is not None and at.place is not None)
        await cockpit.pilot.click(CallList, offset=(5, row))
        await cockpit.until(lambda: cockpit.selected == asked)


async def test_rows_that_stay_leave_room_for_the_selected_one() -> None:
    scenario = Scenario.begin()
    for _ in range(4):
        scenario.approve(scenario.ask("build"))
    for _ in range(9):
        scenario.approve(call := scenario.ask("fix"))
        scenario.supervisor.finish(call, Exited(code=0))
    scenario.ask("test")
    async with open_cockpit(scenario, size=(80, 12)) as cockpit:
        calls = cockpit.screen.query_one(CallList)
        calls.need_input = lambda: ["1", "2", "3", "4"]
        await cockpit.press("end")
        await cockpit.still()
        shown = [at.place for y in range(calls.size.height) if (at := calls.on_screen(y)) is not None]
        assert calls.roster.place_of(cockpit.selected or "") in shown


async def test_a_large_screen_shows_what_came_before_a_waiting_call() -> None:
    async with open_cockpit(workday(), size=(220, 60)) as cockpit:
        await cockpit.select("7")
        await cockpit.sees("Undo ", "Last calls", "Workspace")
    async with open_cockpit(workday(), size=(120, 40)) as cockpit:
        await cockpit.select("7")
        await cockpit.sees("Undo ")
        assert "Last calls" not in cockpit.text()


async def test_details_that_are_below_the_card_come_into_view_with_their_key() -> None:
    async with open_cockpit(workday(), size=(80, 16)) as cockpit:
        await cockpit.select("7")
        await cockpit.settled()
        assert "In plain words" not in cockpit.text()
        await cockpit.press("m")
        await cockpit.sees("In plain words")


@pytest.mark.parametrize("size", [(120, 40), (170, 48)])
async def test_output_gets_no_more_rows_than_it_has_while_the_card_needs_them(size: tuple[int, int]) -> None:
    async with open_cockpit(previewed(), size=size) as cockpit:
        await cockpit.until(lambda: cockpit.screen.query_one(OutputArea).size.height == 4)
        await cockpit.still()
        assert cockpit.screen.query_one(OutputArea).size.height == 4


async def test_a_pane_without_output_collapses() -> None:
    scenario = Scenario.begin()
    call = scenario.ask("build")
    begin_preview(scenario, call)
    end_preview(scenario, call)
    async with open_cockpit(scenario, size=(120, 40)) as cockpit:
        await cockpit.sees("(no output yet)")
        await cockpit.until(lambda: cockpit.screen.query_one(OutputArea).size.height <= 2)


def test_the_difference_of_an_effect_has_the_numbers_and_marks_of_an_edit() -> None:
    text = "@@ -3,2 +3,3 @@\n a\n-b one\n+b two\n+c\n@@ -40 +41,0 @@\n-x\n\\ No newline at end of file\n"
    first, same, changed, added, folded, last = unified_rows(text, 50)
    assert (first.folded, folded.folded) == (2, 35)
    assert same.old is not None and (same.old.number, same.old.text) == (3, "a")
    assert changed.old is not None and (changed.old.number, changed.old.marked) == (4, ((2, 5),))
    assert added.new is not None and (added.new.number, added.old) == (5, None)
    assert last.old is not None and (last.old.number, last.new, last.old.note) == (40, None, "no line feed at the end")
