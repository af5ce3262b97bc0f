"""A terminal of the past is drawn in the sizes that it had, whatever the size of the pane."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.live import live
from tests.tui.past import history
from tests.tui.test_typing_in import asking
from whisper_tui.export.asciicast import asciicast
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import Ended
from whisper_tui.tui.output.terminal_pane import TerminalPane
from whisper_tui.tui.screens.replay import ReplayArea

TOLD = re.compile(r"^(\d+) (\d+)", re.MULTILINE)
"""Rows and columns, as `stty size` tells them."""
AT_THE_RIGHT = b"\x1b[1;%dHX"


@pytest.mark.slow
async def test_a_replay_uses_the_recorded_sizes() -> None:
    scenario = asking()
    await scenario.supervisor.resize("1", 30, 100)
    scenario.supervisor.write("1", b"\x1b[2J" + AT_THE_RIGHT % 100)
    scenario.clock.advance(10)
    await scenario.supervisor.resize("1", 5, 20)
    scenario.supervisor.write("1", b"\x1b[2J" + AT_THE_RIGHT % 100)
    scenario.supervisor.finish("1", Exited(code=0))
    async with open_cockpit(scenario) as cockpit, history(cockpit) as screen:
        terminal = screen.query_one(TerminalPane)
        await cockpit.sees("20 by 5")
        assert terminal.text() == " " * 19 + "X\n"
        screen.query_one(ReplayArea).to(5)
        await cockpit.sees("100 by 30, a part of it")
        await cockpit.until(lambda: terminal.text() == " " * 99 + "X\n")
    assert [size.rows for size in scenario.supervisor.terminals["1"]] == [24, 30, 5]


async def test_a_larger_recorded_terminal_shows_the_rows_around_its_cursor() -> None:
    scenario = asking()
    await scenario.supervisor.resize("1", 200, 80)
    scenario.supervisor.write("1", b"\x1b[1;1Hthe first row\x1b[150;1Hthe row of the cursor")
    scenario.supervisor.finish("1", Exited(code=0))
    async with open_cockpit(scenario) as cockpit, history(cockpit):
        await cockpit.sees("the row of the cursor", "a part of it")
        assert "the first row" not in cockpit.text()


@pytest.mark.slow
async def test_a_resized_terminal_is_exported_and_replayed_with_its_sizes(tmp_path: Path) -> None:
    async with live(tmp_path) as cockpit:
        call = await cockpit.start("PS1='ready> ' exec bash --norc --noprofile -i", tty=True)
        terminal = cockpit.screen.query_one(TerminalPane)
        await cockpit.until(lambda: "ready>" in terminal.text())
        before = terminal.size
        await cockpit.pilot.resize_terminal(100, 30)
        await cockpit.until(lambda: terminal.size.width != before.width)
        async with asyncio.timeout(60):
            while (await cockpit.supervisor.terminal_sizes(call))[-1].columns != terminal.size.width - 1:
                await cockpit.pilot.pause(0.02)
        await cockpit.press("T")
        await cockpit.until(lambda: terminal.typing)
        await cockpit.pilot.press(*"stty size", "enter")
        await cockpit.until(lambda: TOLD.search(terminal.text()))
        rows, columns = map(int, TOLD.search(terminal.text()).groups())
        assert columns == terminal.size.width - 1
        await cockpit.pilot.press(*"exit", "enter")
        await cockpit.until(lambda: isinstance(cockpit.board(call).state, Ended))
        assert (rows, columns) in {(size.rows, size.columns) for size in await cockpit.supervisor.terminal_sizes(call)}
        record = await cockpit.supervisor.record(call)
        exported = [line async for line in asciicast(cockpit.supervisor, record, None, 2)]
        assert any(f'"r", "{columns}x{rows}"' in line for line in exported)
