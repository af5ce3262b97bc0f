"""What the mouse reaches: a button for every command about output, and everything else behind the last one."""

from pathlib import Path

import pytest
from textual.widgets import Button
from textual.widgets._toast import Toast

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.past import a_month, history
from tests.tui.scenes import Scenario, long_output, workday
from whisper_tui.model.call import Function
from whisper_tui.model.state import Waiting
from whisper_tui.tui.cockpit import call_panel
from whisper_tui.tui.cockpit.call_panel import CallPanel
from whisper_tui.tui.command_definition import available, why_not
from whisper_tui.tui.commands.all_commands import COMMANDS
from whisper_tui.tui.dialogs.file_dialogs import SaveScreen
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.output.output_bars import BUTTONS, OutputBar, SearchBar
from whisper_tui.tui.screens.replay import BUTTONS as REPLAY_BUTTONS
from whisper_tui.tui.screens.replay import ReplayArea

ALL_BUTTONS = (460, 40)
"""Columns for every button there is, and rows."""


def buttons(cockpit: Cockpit) -> set[str]:
    """The commands that have a button on the screen."""
    return {(button.id or "").removeprefix("do-") for button in cockpit.screen.query(Button) if button.region}


@pytest.mark.parametrize(
    "size", [(80, 24), pytest.param((120, 40), marks=pytest.mark.slow), pytest.param((200, 60), marks=pytest.mark.slow)]
)
async def test_toasts_cover_no_button_and_no_command(size: tuple[int, int]) -> None:
    async with open_cockpit(workday(), size=size) as cockpit:
        for call_id in ("7", "6"):
            await cockpit.select(call_id)
            cockpit.screen.notify("word " * 30, timeout=600)
            await cockpit.until(lambda: any(toast.region for toast in cockpit.screen.query(Toast)))
            others = [widget.region for widget in (*cockpit.screen.query(Button), cockpit.screen.query_one(CallPanel))]
            for toast in cockpit.screen.query(Toast):
                assert not any(toast.region.overlaps(region) for region in others)
            cockpit.app.clear_notifications()


@pytest.mark.slow
async def test_output_is_searched_with_the_mouse() -> None:
    async with open_cockpit(long_output(), size=ALL_BUTTONS) as cockpit:
        await cockpit.click("#do-search")
        await cockpit.until(lambda: cockpit.screen.query_one(SearchBar).has_focus)
        await cockpit.press(*"out 7", "enter")
        await cockpit.sees("of 11 “out 7”")
        finder = cockpit.pane("both").finder
        assert finder is not None
        first = finder.rank
        await cockpit.click("#do-next-match")
        await cockpit.until(lambda: finder.rank == first % 11 + 1)
        await cockpit.click("#do-previous-match")
        await cockpit.until(lambda: finder.rank == first)
        cockpit.scenario.supervisor.write("1", b"fatal: no ferns\n", "err")
        await cockpit.click("#do-errors")
        await cockpit.sees("1 of 1 “errors”")


@pytest.mark.slow
async def test_the_output_layout_changes_with_the_mouse() -> None:
    async with open_cockpit(long_output(), size=ALL_BUTTONS) as cockpit:
        area, out = cockpit.screen.query_one(OutputArea), cockpit.pane("out")
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
            await cockpit.click(f"#do-{command}")
            await cockpit.until(changed)


@pytest.mark.slow
async def test_output_is_copied_and_saved_with_the_mouse(monkeypatch: pytest.MonkeyPatch) -> None:
    paged: list[str] = []
    monkeypatch.setattr(
        "whisper_tui.tui.commands.output_commands.page", lambda _app, path: paged.append(Path(path).read_text())
    )
    async with open_cockpit(long_output(), size=ALL_BUTTONS) as cockpit:
        await cockpit.click("#do-pager")
        await cockpit.until(lambda: paged)
        assert paged[0].startswith("out 0\n") and paged[0].endswith("err 499\n")
        await cockpit.click("#do-save")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, SaveScreen))
        await cockpit.press("escape")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        await cockpit.click("#do-copy")
        await cockpit.sees("Copied ")
        assert cockpit.app.clipboard.endswith("err 499\n")


async def test_every_command_about_output_has_its_button() -> None:
    async with open_cockpit(long_output(), size=ALL_BUTTONS) as cockpit:
        assert set(BUTTONS) <= buttons(cockpit)


async def test_a_small_pane_keeps_its_rows_and_one_button_for_all_commands() -> None:
    async with open_cockpit(long_output(), size=(80, 24)) as cockpit:
        await cockpit.until(lambda: not cockpit.screen.query_one(OutputBar).display)
        await cockpit.click("#call-actions .bar-more")
        await cockpit.press(*"pause")
        await cockpit.sees("Pause  (p)")
        await cockpit.press(*["backspace"] * 5, *"pager")
        await cockpit.sees("Pager  (v)")


@pytest.mark.slow
async def test_an_ended_call_can_be_rerun_with_the_mouse() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("2")
        before = len(cockpit.scenario.supervisor.board.calls)
        await cockpit.click("#do-retry")
        await cockpit.until(lambda: len(cockpit.scenario.supervisor.board.calls) == before + 1)
        assert isinstance(cockpit.record(str(before + 1)).state, Waiting)


def test_what_its_agent_has_run_itself_offers_no_retry() -> None:
    retry = next(command for command in COMMANDS if command.id == "retry")
    board = workday().supervisor.board
    command, tool = board.calls["2"], Function(tool="mail", arguments={})
    call = command.call.model_copy(update={"spec": command.spec.model_copy(update={"command": tool})})
    by_agent = command.model_copy(update={"call": call})
    assert available(retry, command)
    assert not available(retry, by_agent)
    assert why_not(retry, by_agent).endswith("was run by its agent, and only the agent can repeat it.")


async def test_a_cockpit_without_calls_offers_its_other_screens() -> None:
    async with open_cockpit(Scenario.begin()) as cockpit:
        await cockpit.until(lambda: buttons(cockpit) >= {"history", "rules", "background"})
        assert not buttons(cockpit) & {"approve", "signal", "retry", "export"}
        await cockpit.click("#do-history")
        await cockpit.sees("No matching calls.")


@pytest.mark.slow
async def test_buttons_step_through_recorded_output() -> None:
    async with open_cockpit(a_month(), size=(200, 40)) as cockpit, history(cockpit) as screen:
        await cockpit.press("down")
        await cockpit.sees("step 5 of 5")
        for command, seen in (
            ("begin", "0:00.0 of 1:00"),
            ("ahead", "0:05.0 of 1:00"),
            ("back", "0:00.0 of 1:00"),
            ("faster", "speed 2"),
            ("slower", "speed 1 "),
            ("play", "playing"),
            ("finish", "at the end"),
        ):
            await cockpit.click(f"#do-history-{command}")
            await cockpit.sees(seen)
        await cockpit.click("#do-history-layout")
        await cockpit.until(lambda: screen.query_one(OutputArea).choice == "both")
        assert {f"do-{id_}" for id_ in REPLAY_BUTTONS} == {
            button.id for button in screen.query_one(ReplayArea).query(".bar-buttons Button")
        }


def test_no_command_has_two_buttons() -> None:
    every = (*call_panel.BUTTONS, *BUTTONS)
    assert len(set(every)) == len(every)
