"""Keys that move: in the list, between the panes, in the call and in its output."""

import pytest

from tests.tui.cockpit import cockpit
from tests.tui.scenes import Play, long_output, workday
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.output.output_pane import OutputPane
from whisper_tui.tui.paragraphs_view import ParagraphsView

CRAWL = "6"


def first_row(pane: OutputPane) -> str:
    return pane.strips[0].text


async def test_up_and_down_select_calls() -> None:
    async with cockpit(workday()) as seat:
        assert seat.selected == "7"
        await seat.press("down")
        assert seat.selected == "8"
        await seat.press("down", "down")
        assert seat.selected == CRAWL
        await seat.press("up", "up", "up", "up", "up")
        assert seat.selected == "7"


async def test_pages_and_ends_of_the_list() -> None:
    play = Play.begin()
    for _ in range(100):
        play.ask("build")
    async with cockpit(play) as seat:
        await seat.press("end")
        assert seat.selected == "100"
        await seat.press("pageup")
        assert 75 < int(seat.selected or 0) < 95
        await seat.press("home")
        assert seat.selected == "1"
        await seat.press("pagedown")
        assert 5 < int(seat.selected or 0) < 25
        await seat.press("G")
        assert seat.selected == "100"
        await seat.press("g")
        assert seat.selected == "1"


async def test_n_goes_from_one_waiting_call_to_the_next() -> None:
    async with cockpit(workday()) as seat:
        await seat.select(CRAWL)
        for expected in ("7", "8", "9", "7"):
            await seat.press("n")
            assert seat.selected == expected


async def test_n_says_that_nothing_waits() -> None:
    async with cockpit(long_output()) as seat:
        await seat.press("n")
        await seat.sees("No call is waiting.")


async def test_tab_cycles_the_focus() -> None:
    async with cockpit(long_output()) as seat:
        seen = []
        for _ in range(3):
            seen.append(type(seat.app.focused))
            await seat.press("tab")
        assert seen == [CallList, ParagraphsView, OutputPane]
        await seat.press("shift+tab")
        assert seat.app.focused is seat.pane("both")


async def test_shift_arrows_scroll_the_call_while_the_list_has_the_focus() -> None:
    async with cockpit(workday(), size=(80, 24)) as seat:
        await seat.select("3")
        text = seat.screen.query_one("#call-detail", ParagraphsView)
        await seat.press("shift+down", "shift+down")
        await seat.until(lambda: text.scroll_offset.y == 2)
        await seat.press("shift+up")
        await seat.until(lambda: text.scroll_offset.y == 1)
        assert isinstance(seat.app.focused, CallList)


async def test_g_and_capital_g_move_in_the_pane_that_has_the_focus() -> None:
    async with cockpit(long_output()) as seat:
        pane = seat.pane("both")
        pane.focus()
        await seat.press("g")
        assert first_row(pane) == "out 0"
        await seat.press("G")
        assert pane.strips[-1].text == "err 499"
        assert pane.view is not None and pane.view.following


async def test_arrows_and_pages_scroll_output_that_has_the_focus() -> None:
    async with cockpit(long_output()) as seat:
        await seat.press("o")
        pane = seat.pane("err")
        await seat.until(lambda: pane.region)
        pane.focus()
        await seat.press("home")
        assert first_row(pane) == "err 0"
        await seat.press("down", "down")
        assert first_row(pane) == "err 2"
        await seat.press("up")
        assert first_row(pane) == "err 1"
        await seat.press("pagedown")
        assert first_row(pane) == f"err {1 + pane.size.height - 2}"
        await seat.press("pageup")
        assert first_row(pane) == "err 1"
        await seat.press("end")
        assert pane.strips[-1].text == "err 499"
        assert seat.selected == "1"


@pytest.mark.slow
async def test_left_and_right_show_the_rest_of_long_lines() -> None:
    play = Play.begin()
    call = play.ask("build")
    play.approve(call)
    play.stage.write(call, b"a" * 200 + b"THE END\n")
    async with cockpit(play) as seat:
        assert "THE END" not in seat.text()
        seat.pane("out").focus()
        await seat.press(*["right"] * 40)
        await seat.sees("THE END")
        await seat.press(*["left"] * 40)
        await seat.until(lambda: seat.pane("out").left == 0)


async def test_f_holds_the_output_still_and_follows_it_again() -> None:
    async with cockpit(long_output()) as seat:
        pane, written = seat.pane("both"), seat.play.stage.written["1"]
        await seat.press("f")
        seat.play.stage.write("1", b"new line\n")
        await seat.until(lambda: pane.view is not None and pane.view.size == len(written.out) + len(written.err))
        assert "new line" not in seat.text()
        await seat.press("f")
        await seat.sees("new line")


@pytest.mark.slow
async def test_o_shows_merged_streams_then_both_apart_then_each_alone() -> None:
    async with cockpit(long_output()) as seat:
        shown = []
        for _ in range(5):
            shown.append([pane.id for pane in seat.panes])
            await seat.press("o")
        assert shown == [["both"], ["out", "err"], ["out"], ["err"], ["both"]]
