"""Keys that move: in the list, between the panes, in the call and in its output."""

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import Scenario, long_output, workday
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.output.output_pane import OutputPane
from whisper_tui.tui.paragraphs_view import ParagraphsView
from whisper_tui.tui.row_list import RowList
from whisper_tui.tui.screens.past_calls import PastList

CRAWL = "6"


def first_row(pane: OutputPane) -> str:
    return pane.strips[0].text


async def test_up_and_down_select_calls() -> None:
    async with open_cockpit(workday()) as cockpit:
        assert cockpit.selected == "7"
        await cockpit.press("down")
        assert cockpit.selected == "8"
        await cockpit.press("down", "down")
        assert cockpit.selected == CRAWL
        await cockpit.press("up", "up", "up", "up", "up")
        assert cockpit.selected == "7"


async def test_pages_and_ends_of_the_list() -> None:
    scenario = Scenario.begin()
    for _ in range(100):
        scenario.ask("build")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press("end")
        assert cockpit.selected == "100"
        await cockpit.press("pageup")
        assert 75 < int(cockpit.selected or 0) < 95
        await cockpit.press("home")
        assert cockpit.selected == "1"
        await cockpit.press("pagedown")
        assert 5 < int(cockpit.selected or 0) < 25
        await cockpit.press("G")
        assert cockpit.selected == "100"
        await cockpit.press("g")
        assert cockpit.selected == "1"


async def test_j_and_k_move_in_the_lists_of_screens_and_dialogs() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.press("H")
        await cockpit.until(lambda: cockpit.app.screen.query(PastList))
        past = cockpit.app.screen.query_one(PastList)
        await cockpit.until(lambda: past.selected)
        await cockpit.press("j", "j", "k")
        assert past.row == 1
        await cockpit.press("escape")
        await cockpit.select(CRAWL)
        await cockpit.press("x")
        signals = cockpit.app.screen.query_one(RowList)
        await cockpit.press("j", "j", "j", "k")
        assert signals.highlighted == 2
        await cockpit.press("G")
        assert signals.highlighted == signals.option_count - 1
        await cockpit.press("g")
        assert signals.highlighted == 0


async def test_n_goes_from_one_waiting_call_to_the_next() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select(CRAWL)
        for expected in ("7", "8", "9", "7"):
            await cockpit.press("n")
            assert cockpit.selected == expected


async def test_n_says_that_nothing_waits() -> None:
    async with open_cockpit(long_output()) as cockpit:
        await cockpit.press("n")
        await cockpit.sees("No call is waiting.")


async def test_tab_cycles_the_focus() -> None:
    async with open_cockpit(long_output()) as cockpit:
        seen = []
        for _ in range(3):
            seen.append(type(cockpit.app.focused))
            await cockpit.press("tab")
        assert seen == [CallList, ParagraphsView, OutputPane]
        await cockpit.press("shift+tab")
        assert cockpit.app.focused is cockpit.pane("both")


async def test_shift_arrows_scroll_the_call_while_the_list_has_the_focus() -> None:
    async with open_cockpit(workday(), size=(80, 20)) as cockpit:
        await cockpit.select("3")
        text = cockpit.screen.query_one("#call-detail", ParagraphsView)
        await cockpit.press("shift+down", "shift+down")
        await cockpit.until(lambda: text.scroll_offset.y == 2)
        await cockpit.press("shift+up")
        await cockpit.until(lambda: text.scroll_offset.y == 1)
        assert isinstance(cockpit.app.focused, CallList)


async def test_g_and_capital_g_move_in_the_pane_that_has_the_focus() -> None:
    async with open_cockpit(long_output()) as cockpit:
        pane = cockpit.pane("both")
        pane.focus()
        await cockpit.press("g")
        assert first_row(pane) == "out 0"
        await cockpit.press("G")
        assert pane.strips[-1].text == "err 499"
        assert pane.view is not None and pane.view.following


async def test_arrows_and_pages_scroll_output_that_has_the_focus() -> None:
    async with open_cockpit(long_output()) as cockpit:
        await cockpit.press("o")
        pane = cockpit.pane("err")
        await cockpit.until(lambda: pane.region)
        pane.focus()
        await cockpit.press("home")
        assert first_row(pane) == "err 0"
        await cockpit.press("down", "down")
        assert first_row(pane) == "err 2"
        await cockpit.press("up")
        assert first_row(pane) == "err 1"
        await cockpit.press("pagedown")
        assert first_row(pane) == f"err {1 + pane.size.height - 2}"
        await cockpit.press("pageup")
        assert first_row(pane) == "err 1"
        await cockpit.press("end")
        assert pane.strips[-1].text == "err 499"
        assert cockpit.selected == "1"


@pytest.mark.slow
async def test_left_and_right_show_the_rest_of_long_lines() -> None:
    scenario = Scenario.begin()
    call = scenario.ask("build")
    scenario.approve(call)
    scenario.supervisor.write(call, b"a" * 200 + b"THE END\n")
    async with open_cockpit(scenario) as cockpit:
        assert "THE END" not in cockpit.text()
        cockpit.pane("out").focus()
        await cockpit.press(*["right"] * 40)
        await cockpit.sees("THE END")
        await cockpit.press(*["left"] * 40)
        await cockpit.until(lambda: cockpit.pane("out").left == 0)


async def test_f_holds_the_output_still_and_follows_it_again() -> None:
    async with open_cockpit(long_output()) as cockpit:
        pane, written = cockpit.pane("both"), cockpit.scenario.supervisor.written["1"]
        await cockpit.press("f")
        cockpit.scenario.supervisor.write("1", b"new line\n")
        await cockpit.until(lambda: pane.view is not None and pane.view.size == len(written.out) + len(written.err))
        assert "new line" not in cockpit.text()
        await cockpit.press("f")
        await cockpit.sees("new line")


@pytest.mark.slow
async def test_o_shows_merged_streams_then_both_apart_then_each_alone() -> None:
    async with open_cockpit(long_output()) as cockpit:
        shown = []
        for _ in range(5):
            shown.append([pane.id for pane in cockpit.panes])
            await cockpit.press("o")
        assert shown == [["both"], ["out", "err"], ["out"], ["err"], ["both"]]
