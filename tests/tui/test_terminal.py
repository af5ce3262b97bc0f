"""A command in a terminal: seen as its screen, typed into, resized."""

import time
from pathlib import Path

import pytest
from textual.widgets import Input

from tests.tui.cockpit import cockpit
from tests.tui.live import live
from tests.tui.test_typing_in import asking
from whisper_tui.model.errors import NotRunning
from whisper_tui.model.state import Ended
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.output.terminal_pane import TYPED_AHEAD_S, TerminalPane


async def test_a_terminal_is_shown_as_its_screen_and_o_shows_its_lines() -> None:
    play = asking()
    play.stage.write("1", b"\x1b[2J\x1b[3;10Hhere\x1b[1;1H")
    async with cockpit(play) as seat:
        terminal = seat.screen.query_one(TerminalPane)
        await seat.until(lambda: terminal.display and "         here" in terminal.text())
        await seat.sees("T types into it", "         here")
        assert not seat.pane("out").display
        await seat.press("o")
        await seat.until(lambda: seat.pane("out").display and not terminal.display)
        await seat.sees("Welcome", "following")
        await seat.press("o")
        await seat.until(lambda: terminal.display)


@pytest.mark.slow
async def test_every_key_but_the_exit_key_goes_to_the_command() -> None:
    async with cockpit(asking()) as seat:
        await seat.press("T")
        await seat.sees("TERMINAL MODE", "Ctrl+] exits")
        await seat.until(lambda: "Quit" not in seat.text().splitlines()[-1])
        await seat.press("q", "a", "question_mark", "ctrl+c", "ctrl+p", "ctrl+q", "escape", "tab", "up", "enter")
        sent = b"qa?\x03\x10\x11\x1b\t\x1b[A\r"
        await seat.until(lambda: seat.play.stage.written["1"].out.endswith(sent))
        assert len(seat.app.screen_stack) == 1
        await seat.press("ctrl+right_square_bracket")
        await seat.sees("T types into it")
        await seat.press("question_mark")
        await seat.sees("Keys and signs")


async def test_an_ended_command_discards_typed_keys_and_any_key_returns() -> None:
    async with cockpit(asking()) as seat:
        terminal = seat.screen.query_one(TerminalPane)
        await seat.press("T", "y")
        await seat.until(lambda: seat.play.stage.written["1"].out.endswith(b"y"))
        seat.play.end("1")
        await seat.until(lambda: "ended · any key returns" in seat.text())
        assert "TERMINAL MODE" not in seat.text()
        terminal._last_lost = time.monotonic()
        await seat.press("q", "q")
        assert terminal.typing and seat.app.is_running
        terminal._last_lost -= TYPED_AHEAD_S
        await seat.press("question_mark")
        await seat.sees("ended · o shows its lines", "Quit")
        assert not terminal.typing and len(seat.app.screen_stack) == 1
        assert seat.play.stage.written["1"].out.endswith(b"y")


async def test_pasted_text_goes_to_the_command_too() -> None:
    async with cockpit(asking()) as seat:
        await seat.press("T")
        await seat.sees("TERMINAL MODE")
        from textual.events import Paste

        seat.app.post_message(Paste("two\nlines"))
        await seat.until(lambda: seat.play.stage.written["1"].out.endswith(b"two\rlines"))


async def test_a_click_elsewhere_leaves_terminal_mode() -> None:
    async with cockpit(asking()) as seat:
        terminal = seat.screen.query_one(TerminalPane)
        await seat.press("T")
        await seat.until(lambda: terminal.typing)
        await seat.pilot.click(CallList, offset=(3, 5))
        await seat.until(lambda: not terminal.typing)
        await seat.press("T")
        await seat.until(lambda: terminal.typing)
        await seat.pilot.click(TerminalPane, offset=(3, 0))
        await seat.until(lambda: not terminal.typing)


@pytest.mark.slow
async def test_the_button_and_the_palette_enter_terminal_mode_too() -> None:
    async with cockpit(asking()) as seat:
        terminal = seat.screen.query_one(TerminalPane)
        await seat.pilot.click("#do-terminal")
        await seat.until(lambda: terminal.typing)
        await seat.press("ctrl+right_square_bracket", "ctrl+p")
        await seat.sees("Terminal  (T)")
        await seat.press(*"every key", "enter")
        await seat.until(lambda: terminal.typing)


@pytest.mark.slow
async def test_a_failed_write_is_reported_and_leaves_terminal_mode(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    async def refuse(*_: object, **__: object) -> None:
        raise NotRunning("call 1 takes no input any more")

    async with cockpit(asking()) as seat:
        monkeypatch.setattr(seat.play.stage, "write_stdin", refuse)
        await seat.press("T", "x")
        await seat.sees("Call 1 takes no input any more.", "T types into it")


async def test_a_search_is_in_the_lines_of_a_terminal() -> None:
    play = asking()
    play.stage.write("1", b"one needle\r\n" * 50)
    async with cockpit(play) as seat:
        await seat.sees("one needle")
        await seat.press("ctrl+f")
        await seat.until(lambda: isinstance(seat.app.focused, Input))
        await seat.press(*"needle", "enter")
        await seat.sees("1 of 50", "one needle")
        assert seat.pane("out").display


async def test_c_copies_the_screen_of_a_terminal() -> None:
    async with cockpit(asking()) as seat:
        await seat.sees("Name of this release:")
        await seat.press("c")
        await seat.until(lambda: seat.app.clipboard == "Welcome\n       Name of this release:\n")


@pytest.mark.slow
async def test_a_flooded_terminal_shows_its_end() -> None:
    play = asking()
    play.stage.write("1", b"flood of lines\r\n" * 500_000 + b"the end")
    async with cockpit(play) as seat:
        terminal = seat.screen.query_one(TerminalPane)
        await seat.until(lambda: "the end" in terminal.text())
        play.stage.write("1", b"more and more\r\n" * 500_000 + b"the very end")
        await seat.until(lambda: "the very end" in terminal.text())


@pytest.mark.slow
async def test_a_real_shell_is_typed_into_and_learns_the_size_of_its_pane(tmp_path: Path) -> None:
    async with live(tmp_path) as seat:
        call = await seat.start("PS1='ready> ' exec bash --norc --noprofile -i", tty=True)
        terminal = seat.screen.query_one(TerminalPane)
        await seat.until(lambda: "ready>" in terminal.text())
        await seat.pilot.press("T", *"echo sum is $((19+23))", "enter")
        await seat.until(lambda: "sum is 42" in terminal.text())
        await seat.pilot.press(*"stty size", "enter")
        rows, columns = terminal.size.height - 1, terminal.size.width - 1
        await seat.until(lambda: f"{rows} {columns}" in terminal.text())
        await seat.pilot.resize_terminal(100, 30)
        await seat.until(lambda: terminal.size.width - 1 != columns)
        await seat.pilot.press(*"stty size", "enter")
        await seat.until(lambda: f"{terminal.size.height - 1} {terminal.size.width - 1}" in terminal.text())
        await seat.pilot.press(*"sleep 1000", "enter", "ctrl+c", *"exit 7", "enter")
        await seat.until(lambda: isinstance(seat.board(call).state, Ended))
        await seat.sees("exit 7")


async def test_a_terminal_query_is_answered_in_terminal_mode(tmp_path: Path) -> None:
    ask = (
        r"stty raw -echo; until [ -e go ]; do sleep 0.05; done; printf '\033[6n'; "
        """IFS= read -r -d R answer; stty sane; printf 'it is %q' "$answer\""""
    )
    async with live(tmp_path) as seat:
        await seat.start(ask, tty=True)
        terminal = seat.screen.query_one(TerminalPane)
        await seat.until(lambda: terminal.display and terminal.live)
        await seat.pilot.press("T")
        await seat.until(lambda: terminal.typing)
        (seat.workspace / "go").touch()
        await seat.until(lambda: "it is $'\\E[1;1'" in terminal.text())


async def test_an_earlier_terminal_query_is_never_answered() -> None:
    play = asking()
    async with cockpit(play) as seat:
        terminal = seat.screen.query_one(TerminalPane)
        await seat.until(lambda: terminal.live)
        play.stage.write("1", b"\x1b[6nasked early")
        await seat.until(lambda: "asked early" in terminal.text())
        await seat.press("T", "x")
        await seat.until(lambda: "asked earlyx" in terminal.text())
        play.stage.write("1", b" and on")
        await seat.until(lambda: "asked earlyx and on" in terminal.text())
        assert bytes(play.stage.written["1"].out).endswith(b"asked earlyx and on")
