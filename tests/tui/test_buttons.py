"""What the mouse reaches: a button for every command about output, and everything else behind the last one."""

from pathlib import Path

import pytest
from textual.widgets import Button
from textual.widgets._toast import Toast

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.past import a_month, history
from tests.tui.scenes import Play, long_output, workday
from whisper_tui.model.state import Waiting
from whisper_tui.tui.cockpit import call_panel
from whisper_tui.tui.cockpit.call_panel import CallPanel
from whisper_tui.tui.dialogs.file_dialogs import SaveScreen
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.output.output_bars import BUTTONS, OutputBar, SearchBar
from whisper_tui.tui.screens.replay import BUTTONS as REPLAY_BUTTONS
from whisper_tui.tui.screens.replay import ReplayArea

ALL_BUTTONS = (460, 40)
"""Columns for every button there is, and rows."""


def buttons(seat: Cockpit) -> set[str]:
    """The commands that have a button on the screen."""
    return {(button.id or "").removeprefix("do-") for button in seat.screen.query(Button) if button.region}


@pytest.mark.parametrize(
    "size", [(80, 24), pytest.param((120, 40), marks=pytest.mark.slow), pytest.param((200, 60), marks=pytest.mark.slow)]
)
async def test_toasts_cover_no_button_and_no_command(size: tuple[int, int]) -> None:
    async with cockpit(workday(), size=size) as seat:
        for call_id in ("7", "6"):
            await seat.select(call_id)
            seat.screen.notify("word " * 30, timeout=600)
            await seat.until(lambda: any(toast.region for toast in seat.screen.query(Toast)))
            others = [widget.region for widget in (*seat.screen.query(Button), seat.screen.query_one(CallPanel))]
            for toast in seat.screen.query(Toast):
                assert not any(toast.region.overlaps(region) for region in others)
            seat.app.clear_notifications()


async def test_in_one_column_toasts_leave_the_first_line_free() -> None:
    async with cockpit(workday(), size=(80, 24)) as seat:
        seat.screen.notify("Call 7 is approved.", timeout=600)
        await seat.until(lambda: any(toast.region for toast in seat.screen.query(Toast)))
        (toast,) = seat.screen.query(Toast)
        assert (toast.region.y, toast.region.right) == (1, 80)
        assert "waiting" in seat.text().split("\n")[0]


@pytest.mark.slow
async def test_output_is_searched_with_the_mouse() -> None:
    async with cockpit(long_output(), size=ALL_BUTTONS) as seat:
        await seat.click("#do-search")
        await seat.until(lambda: seat.screen.query_one(SearchBar).has_focus)
        await seat.press(*"out 7", "enter")
        await seat.sees("of 11 “out 7”")
        finder = seat.pane("both").finder
        assert finder is not None
        first = finder.rank
        await seat.click("#do-next-match")
        await seat.until(lambda: finder.rank == first % 11 + 1)
        await seat.click("#do-previous-match")
        await seat.until(lambda: finder.rank == first)
        seat.play.stage.write("1", b"fatal: no ferns\n", "err")
        await seat.click("#do-errors")
        await seat.sees("1 of 1 “errors”")


@pytest.mark.slow
async def test_the_output_layout_changes_with_the_mouse() -> None:
    async with cockpit(long_output(), size=ALL_BUTTONS) as seat:
        area, out = seat.screen.query_one(OutputArea), seat.pane("out")
        for command, changed in (
            ("wrap", lambda: area.wraps),
            ("timestamps", lambda: area.stamps),
            ("interleave", lambda: not area.merged),
            ("arrange", lambda: not area.has_class("-side")),
            ("layout", lambda: area.choice == "out"),
            ("bytes", lambda: out.as_bytes),
            ("follow", lambda: out.view is not None and not out.view.following),
        ):
            assert not changed()
            await seat.click(f"#do-{command}")
            await seat.until(changed)


@pytest.mark.slow
async def test_output_is_copied_and_saved_with_the_mouse(monkeypatch: pytest.MonkeyPatch) -> None:
    paged: list[str] = []
    monkeypatch.setattr(
        "whisper_tui.tui.commands.output_commands.page", lambda _app, path: paged.append(Path(path).read_text())
    )
    async with cockpit(long_output(), size=ALL_BUTTONS) as seat:
        await seat.click("#do-pager")
        await seat.until(lambda: paged)
        assert paged[0].startswith("out 0\n") and paged[0].endswith("err 499\n")
        await seat.click("#do-save")
        await seat.until(lambda: isinstance(seat.app.screen, SaveScreen))
        await seat.press("escape")
        await seat.until(lambda: len(seat.app.screen_stack) == 1)
        await seat.click("#do-copy")
        await seat.sees("Copied ")
        assert seat.app.clipboard.endswith("err 499\n")


async def test_every_command_about_output_has_its_button() -> None:
    async with cockpit(long_output(), size=ALL_BUTTONS) as seat:
        assert set(BUTTONS) <= buttons(seat)


async def test_a_small_pane_keeps_its_rows_and_one_button_for_all_commands() -> None:
    async with cockpit(long_output(), size=(80, 24)) as seat:
        await seat.until(lambda: not seat.screen.query_one(OutputBar).display)
        await seat.click("#call-actions .bar-more")
        await seat.sees("Pause  (p)")
        await seat.press(*"pager")
        await seat.sees("Pager  (v)")


@pytest.mark.slow
async def test_an_ended_call_can_be_rerun_with_the_mouse() -> None:
    async with cockpit(workday()) as seat:
        await seat.select("2")
        before = len(seat.play.stage.board.calls)
        await seat.click("#do-retry")
        await seat.until(lambda: len(seat.play.stage.board.calls) == before + 1)
        assert isinstance(seat.record(str(before + 1)).state, Waiting)


async def test_a_cockpit_without_calls_offers_its_other_screens() -> None:
    async with cockpit(Play.begin()) as seat:
        await seat.until(lambda: buttons(seat) >= {"history", "rules", "background"})
        assert not buttons(seat) & {"approve", "kill", "retry", "export"}
        await seat.click("#do-history")
        await seat.sees("No matching calls.")


@pytest.mark.slow
async def test_buttons_step_through_recorded_output() -> None:
    async with cockpit(a_month(), size=(200, 40)) as seat, history(seat) as screen:
        await seat.press("down")
        await seat.sees("step 5 of 5")
        for command, seen in (
            ("begin", "0:00.0 of 1:00"),
            ("ahead", "0:05.0 of 1:00"),
            ("back", "0:00.0 of 1:00"),
            ("faster", "speed 2"),
            ("slower", "speed 1 "),
            ("play", "playing"),
            ("finish", "at the end"),
        ):
            await seat.click(f"#do-history-{command}")
            await seat.sees(seen)
        await seat.click("#do-history-layout")
        await seat.until(lambda: screen.query_one(OutputArea).choice == "both")
        assert {f"do-{id_}" for id_ in REPLAY_BUTTONS} == {
            button.id for button in screen.query_one(ReplayArea).query(".bar-buttons Button")
        }


def test_no_command_has_two_buttons() -> None:
    every = (*call_panel.BUTTONS, *BUTTONS)
    assert len(set(every)) == len(every)
