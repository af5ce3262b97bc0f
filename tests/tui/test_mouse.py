"""The mouse over a terminal: told to a command that has asked for it, while a person types into it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.events import MouseDown, MouseEvent, MouseMove, MouseScrollDown, MouseScrollUp, MouseUp

from tests.in_memory.world import RecordedStreams
from tests.rows import each_row
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.live import live
from tests.tui.test_typing_in import asking
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.output.emulator import Emulator, MouseMode, Tracking, mouse_report
from whisper_tui.tui.output.terminal_pane import TerminalPane

SGR = b"\x1b[?1006h"


def an_event(kind: type[MouseEvent], button: int = 0, *, shift: bool = False, ctrl: bool = False) -> MouseEvent:
    return kind(None, 0, 0, 0, 0, button, shift, False, ctrl)


@each_row(
    ("event", "tracking", "sgr", "older"),
    [
        (an_event(MouseDown, 1), Tracking.PRESSES, b"\x1b[<0;3;5M", b"\x1b[M \x23\x25"),
        (an_event(MouseUp, 1), Tracking.PRESSES, b"", b""),
        (an_event(MouseUp, 3), Tracking.CLICKS, b"\x1b[<2;3;5m", b"\x1b[M\x23\x23\x25"),
        (an_event(MouseDown, 2, shift=True, ctrl=True), Tracking.CLICKS, b"\x1b[<21;3;5M", b"\x1b[M\x35\x23\x25"),
        (an_event(MouseMove, 1), Tracking.CLICKS, b"", b""),
        (an_event(MouseMove, 1), Tracking.DRAGS, b"\x1b[<32;3;5M", b"\x1b[M\x40\x23\x25"),
        (an_event(MouseMove), Tracking.DRAGS, b"", b""),
        (an_event(MouseMove), Tracking.MOVES, b"\x1b[<35;3;5M", b"\x1b[M\x43\x23\x25"),
        (an_event(MouseScrollUp), Tracking.CLICKS, b"\x1b[<64;3;5M", b"\x1b[M\x60\x23\x25"),
        (an_event(MouseScrollDown), Tracking.PRESSES, b"", b""),
        (an_event(MouseDown, 1), Tracking.NOTHING, b"", b""),
    ],
)
def test_mouse_events_have_the_format_that_the_program_requested(
    event: MouseEvent, tracking: Tracking, sgr: bytes, older: bytes
) -> None:
    assert mouse_report(event, 4, 2, MouseMode(tracking, sgr=True)) == sgr
    assert mouse_report(event, 4, 2, MouseMode(tracking)) == older


def test_the_legacy_format_omits_far_cells() -> None:
    click = an_event(MouseDown, 1)
    assert mouse_report(click, 0, 222, MouseMode(Tracking.CLICKS)) == b"\x1b[M \xff\x21"
    assert mouse_report(click, 0, 223, MouseMode(Tracking.CLICKS)) == b""
    assert mouse_report(click, 0, 223, MouseMode(Tracking.CLICKS, sgr=True)) == b"\x1b[<0;224;1M"


def test_mouse_modes_are_set_and_reset() -> None:
    emulator = Emulator(5, 20)
    assert emulator.mouse == MouseMode()
    emulator.feed(b"\x1b[?1000h\x1b[?1002;1006h")
    assert emulator.mouse == MouseMode(Tracking.DRAGS, sgr=True)
    emulator.feed(b"\x1b[?1049h\x1b[?1002l\x1b[?1000l\x1b[?1006l")
    assert emulator.mouse == MouseMode(wheel_is_arrows=True)
    emulator.feed(b"\x1b[?1007l")
    assert emulator.mouse == MouseMode()
    emulator.feed(b"\x1b[?1007h\x1b[?1049l")
    assert emulator.mouse == MouseMode()


@asynccontextmanager
async def terminal_with_modes(modes: bytes) -> AsyncIterator[tuple[Cockpit, TerminalPane, RecordedStreams]]:
    """A command in its terminal, which has told the terminal what it wishes of the mouse."""
    scenario = asking()
    scenario.supervisor.write("1", modes)
    async with open_cockpit(scenario) as cockpit:
        terminal = cockpit.screen.query_one(TerminalPane)
        await cockpit.until(lambda: terminal.live)
        yield cockpit, terminal, scenario.supervisor.written["1"]


async def type_into(cockpit: Cockpit, terminal: TerminalPane) -> None:
    await cockpit.press("T")
    await cockpit.until(lambda: terminal.typing)


async def test_mouse_events_go_to_a_command_in_terminal_mode() -> None:
    async with terminal_with_modes(b"\x1b[?1002h" + SGR) as (cockpit, terminal, written):
        before = bytes(written.out)
        await cockpit.pilot.click(TerminalPane, offset=(5, 3))
        await type_into(cockpit, terminal)
        assert bytes(written.out) == before
        await cockpit.pilot.click(TerminalPane, offset=(5, 3))
        await cockpit.until(lambda: written.out.endswith(b"\x1b[<0;5;3M\x1b[<0;5;3m"))
        await cockpit.pilot.mouse_down(TerminalPane, offset=(6, 3))
        await cockpit.pilot.hover(CallList, offset=(3, 5))
        await cockpit.pilot.mouse_up(CallList, offset=(3, 5))
        await cockpit.until(lambda: written.out.endswith(b"m"))
        assert terminal.typing and cockpit.app.mouse_captured is None
        terminal.post_message(MouseScrollDown(terminal, 5, 3, 0, 1, 0, False, False, False))
        await cockpit.until(lambda: written.out.endswith(b"\x1b[<65;5;3M"))


async def test_a_click_on_the_title_leaves_terminal_mode() -> None:
    async with terminal_with_modes(b"\x1b[?1003h" + SGR) as (cockpit, terminal, written):
        for leave in ("title", "key"):
            await type_into(cockpit, terminal)
            if leave == "title":
                await cockpit.pilot.click(TerminalPane, offset=(3, 0))
            else:
                await cockpit.press("ctrl+right_square_bracket")
            await cockpit.until(lambda: not terminal.typing)
        before = bytes(written.out)
        await cockpit.pilot.click(TerminalPane, offset=(5, 3))
        await cockpit.pilot.click(CallList, offset=(3, 5))
        assert bytes(written.out) == before


@pytest.mark.parametrize(
    ("mode", "arrows"), [pytest.param(b"", b"\x1b[A" * 3, marks=pytest.mark.slow), (b"\x1b[?1h", b"\x1bOA" * 3)]
)
async def test_the_wheel_sends_arrow_keys_to_full_screen_programs(mode: bytes, arrows: bytes) -> None:
    async with terminal_with_modes(b"\x1b[?1049h" + mode) as (cockpit, terminal, written):
        await type_into(cockpit, terminal)
        terminal.post_message(MouseScrollUp(terminal, 5, 3, 0, -1, 0, False, False, False))
        await cockpit.until(lambda: written.out.endswith(arrows))


READS_THE_MOUSE = """
import os, sys, termios, tty
tty.setraw(0)
os.write(1, b"\\x1b[?1000h\\x1b[?1006hready\\r\\n")
while (got := os.read(0, 100)) != b"q":
    os.write(1, repr(got).encode() + b"\\r\\n")
"""


@pytest.mark.slow
async def test_a_real_program_receives_the_position_of_a_click(tmp_path: Path) -> None:
    (tmp_path / "mouse.py").write_text(READS_THE_MOUSE)
    async with live(tmp_path) as cockpit:
        await cockpit.start(f"python3 {tmp_path / 'mouse.py'}", tty=True)
        terminal = cockpit.screen.query_one(TerminalPane)
        await cockpit.until(lambda: "ready" in terminal.text() and terminal.live)
        await cockpit.pilot.press("T")
        # The card says so in a line of its own, and what is below moves: not between the press and the release.
        await cockpit.until(lambda: terminal.typing and "needs input" in cockpit.text())
        await cockpit.pilot.click(TerminalPane, offset=(8, 4))
        await cockpit.until(lambda: "[<0;8;4M" in terminal.text() and "[<0;8;4m" in terminal.text())
        await cockpit.pilot.press("q")
