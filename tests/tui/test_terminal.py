"""A command in a terminal: seen as its screen, typed into, resized."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from tests.tui.cockpit import open_cockpit
from tests.tui.live import live
from tests.tui.scenes import ROOT, Scenario
from tests.tui.test_typing_in import asking
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.errors import NotRunning, Unavailable
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.commands.undo_approval import UndoSettings
from whisper_tui.tui.dialogs.run_dialogs import READY_S
from whisper_tui.tui.output import terminal_pane
from whisper_tui.tui.output.terminal_pane import TerminalPane


async def test_a_terminal_is_shown_as_its_screen_and_o_shows_its_lines() -> None:
    scenario = asking()
    scenario.supervisor.write("1", b"\x1b[2J\x1b[3;10Hhere\x1b[1;1H")
    async with open_cockpit(scenario) as cockpit:
        terminal = cockpit.screen.query_one(TerminalPane)
        await cockpit.until(lambda: terminal.display and "         here" in terminal.text())
        await cockpit.sees("T types into it", "         here")
        assert not cockpit.pane("out").display
        await cockpit.press("o")
        await cockpit.until(lambda: cockpit.pane("out").display and not terminal.display)
        await cockpit.sees("Welcome", "following")
        await cockpit.press("o")
        await cockpit.until(lambda: terminal.display)


def two_that_ask() -> Scenario:
    """A command that needs a terminal waits, and another one below it."""
    scenario = Scenario.begin()
    for text in ("./ask.sh", "./delete.sh"):
        spec = CommandSpec(command=Shell(text=text), cwd=ROOT, tty=True, accepts_input=True)
        scenario.supervisor.ask(CallRequest(session_id="s1", tool="ExecCommand", arguments={}, spec=spec))
    return scenario


async def test_the_terminal_after_an_approval_is_that_of_the_approved_call_and_no_key_decides_before_it_opens() -> None:
    async with open_cockpit(two_that_ask(), undo=UndoSettings("every", 3.0)) as cockpit:
        await cockpit.select("1")
        await cockpit.press("a")
        await cockpit.until(lambda: cockpit.selected == "2")
        await cockpit.can_be_seen()
        await cockpit.press("T")
        await cockpit.sees("Terminal of call 1", "opens as soon as the command runs")
        await cockpit.press("a", "l", "q")
        cockpit.scenario.clock.advance(4)
        await cockpit.sees("TERMINAL MODE")
        assert cockpit.selected == "1" and cockpit.screen.query_one(TerminalPane).typing
        await cockpit.press("v", "1")
        await cockpit.until(lambda: cockpit.scenario.supervisor.written["1"].out.endswith(b"v1"))
        assert isinstance(cockpit.record("2").state, Waiting)


async def test_the_terminal_is_awaited_while_the_approval_is_on_its_way_to_the_supervisor(monkeypatch) -> None:
    arrived, answers = asyncio.Event(), asyncio.Event()
    async with open_cockpit(two_that_ask(), undo=UndoSettings("every", 3.0)) as cockpit:
        decide = cockpit.scenario.supervisor.decide

        async def slowly(*decision: Any) -> None:
            arrived.set()
            await answers.wait()
            await decide(*decision)

        monkeypatch.setattr(cockpit.scenario.supervisor, "decide", slowly)
        await cockpit.select("1")
        await cockpit.press("a")
        await cockpit.until(lambda: cockpit.selected == "2")
        await cockpit.can_be_seen()
        await cockpit.press("T")
        await cockpit.sees("Terminal of call 1")
        cockpit.scenario.clock.advance(4)
        await asyncio.wait_for(arrived.wait(), 60)
        await asyncio.sleep(3 * READY_S)
        await cockpit.sees("Terminal of call 1")
        answers.set()
        await cockpit.sees("TERMINAL MODE")


async def test_an_approval_that_cannot_be_sent_opens_no_terminal(monkeypatch) -> None:
    async with open_cockpit(two_that_ask(), undo=UndoSettings("none")) as cockpit:

        async def fails(*_: Any) -> None:
            raise Unavailable("the supervisor does not answer")

        monkeypatch.setattr(cockpit.scenario.supervisor, "decide", fails)
        await cockpit.select("1")
        await cockpit.press("a")
        await cockpit.sees("The supervisor does not answer")
        await cockpit.press("T")
        await cockpit.sees("Terminal is not possible: call 1 does not run in a terminal.")


async def test_an_approval_that_is_undone_opens_no_terminal() -> None:
    async with open_cockpit(two_that_ask(), undo=UndoSettings("every", 3.0)) as cockpit:
        await cockpit.select("1")
        await cockpit.press("a")
        await cockpit.until(lambda: cockpit.selected == "2")
        await cockpit.can_be_seen()
        await cockpit.press("T")
        await cockpit.sees("Terminal of call 1")
        await cockpit.press("escape", "u", "T")
        await cockpit.sees("Terminal is not possible: call 1 does not run in a terminal.")
        assert isinstance(cockpit.record("1").state, Waiting)


@pytest.mark.slow
async def test_every_key_but_the_exit_key_goes_to_the_command() -> None:
    async with open_cockpit(asking()) as cockpit:
        await cockpit.press("T")
        await cockpit.sees("TERMINAL MODE", "Ctrl+] exits")
        await cockpit.until(lambda: "Quit" not in cockpit.text().splitlines()[-1])
        await cockpit.press("q", "a", "question_mark", "ctrl+c", "ctrl+p", "ctrl+q", "escape", "tab", "up", "enter")
        sent = b"qa?\x03\x10\x11\x1b\t\x1b[A\r"
        await cockpit.until(lambda: cockpit.scenario.supervisor.written["1"].out.endswith(sent))
        assert len(cockpit.app.screen_stack) == 1
        await cockpit.press("ctrl+right_square_bracket")
        await cockpit.sees("T types into it")
        await cockpit.press("question_mark")
        await cockpit.sees("Keys and signs")


async def test_an_ended_command_discards_typed_keys_and_any_key_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_cockpit(asking()) as cockpit:
        terminal = cockpit.screen.query_one(TerminalPane)
        await cockpit.press("T", "y")
        await cockpit.until(lambda: cockpit.scenario.supervisor.written["1"].out.endswith(b"y"))
        cockpit.scenario.end("1")
        await cockpit.until(lambda: "ended · any key returns" in cockpit.text())
        assert "TERMINAL MODE" not in cockpit.text()
        # Keys of a test come as slowly as a busy machine has them.
        monkeypatch.setattr(terminal_pane, "TYPED_AHEAD_S", 3600.0)
        terminal._last_lost = time.monotonic()
        await cockpit.press("q", "q")
        assert terminal.typing and cockpit.app.is_running
        monkeypatch.setattr(terminal_pane, "TYPED_AHEAD_S", 0.0)
        await cockpit.press("question_mark")
        await cockpit.sees("ended · o shows its lines", "Quit")
        assert not terminal.typing and len(cockpit.app.screen_stack) == 1
        assert cockpit.scenario.supervisor.written["1"].out.endswith(b"y")


async def test_pasted_text_goes_to_the_command_too() -> None:
    async with open_cockpit(asking()) as cockpit:
        await cockpit.press("T")
        await cockpit.sees("TERMINAL MODE")
        from textual.events import Paste

        cockpit.app.post_message(Paste("two\nlines"))
        await cockpit.until(lambda: cockpit.scenario.supervisor.written["1"].out.endswith(b"two\rlines"))


async def test_a_terminal_has_the_whole_screen_until_a_click_on_its_title_leaves_it() -> None:
    async with open_cockpit(asking()) as cockpit:
        terminal, calls = cockpit.screen.query_one(TerminalPane), cockpit.screen.query_one(CallList)
        await cockpit.press("T")
        await cockpit.until(lambda: terminal.typing and not calls.region)
        await cockpit.pilot.click(TerminalPane, offset=(3, 0))
        await cockpit.until(lambda: not terminal.typing and calls.region)


@pytest.mark.slow
async def test_the_button_and_the_palette_enter_terminal_mode_too() -> None:
    async with open_cockpit(asking()) as cockpit:
        terminal = cockpit.screen.query_one(TerminalPane)
        await cockpit.pilot.click("#do-terminal")
        await cockpit.until(lambda: terminal.typing)
        await cockpit.press("ctrl+right_square_bracket", "ctrl+p")
        await cockpit.sees("Terminal  (T)")
        await cockpit.press(*"every key", "enter")
        await cockpit.until(lambda: terminal.typing)


@pytest.mark.slow
async def test_a_failed_write_is_reported_and_leaves_terminal_mode(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    async def refuse(*_: object, **__: object) -> None:
        raise NotRunning("call 1 takes no input any more")

    async with open_cockpit(asking()) as cockpit:
        monkeypatch.setattr(cockpit.scenario.supervisor, "write_stdin", refuse)
        await cockpit.press("T", "x")
        await cockpit.sees("Call 1 takes no input any more.", "T types into it")


async def test_a_search_is_in_the_lines_of_a_terminal() -> None:
    scenario = asking()
    scenario.supervisor.write("1", b"one needle\r\n" * 50)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("one needle")
        await cockpit.press("ctrl+f")
        await cockpit.until(lambda: isinstance(cockpit.app.focused, Input))
        await cockpit.press(*"needle", "enter")
        await cockpit.sees("1 of 50", "one needle")
        assert cockpit.pane("out").display


async def test_c_copies_the_screen_of_a_terminal() -> None:
    async with open_cockpit(asking()) as cockpit:
        await cockpit.sees("Name of this release:")
        await cockpit.press("c")
        await cockpit.until(lambda: cockpit.app.clipboard == "Welcome\n       Name of this release:\n")


@pytest.mark.slow
async def test_a_flooded_terminal_shows_its_end() -> None:
    scenario = asking()
    scenario.supervisor.write("1", b"flood of lines\r\n" * 500_000 + b"the end")
    async with open_cockpit(scenario) as cockpit:
        terminal = cockpit.screen.query_one(TerminalPane)
        await cockpit.until(lambda: "the end" in terminal.text())
        scenario.supervisor.write("1", b"more and more\r\n" * 500_000 + b"the very end")
        await cockpit.until(lambda: "the very end" in terminal.text())


@pytest.mark.slow
async def test_a_real_shell_is_typed_into_and_learns_the_size_of_its_pane(tmp_path: Path) -> None:
    async with live(tmp_path) as cockpit:
        call = await cockpit.start("PS1='ready> ' exec bash --norc --noprofile -i", tty=True)
        terminal = cockpit.screen.query_one(TerminalPane)
        await cockpit.until(lambda: "ready>" in terminal.text())
        await cockpit.press("T")
        await cockpit.until(lambda: terminal.typing)
        await cockpit.pilot.press(*"echo sum is $((19+23))", "enter")
        await cockpit.until(lambda: "sum is 42" in terminal.text())
        await cockpit.pilot.press(*"stty size", "enter")
        rows, columns = terminal.size.height - 1, terminal.size.width - 1
        await cockpit.until(lambda: f"{rows} {columns}" in terminal.text())
        await cockpit.pilot.resize_terminal(100, 30)
        await cockpit.until(lambda: terminal.size.width - 1 != columns)
        await cockpit.pilot.press(*"stty size", "enter")
        await cockpit.until(lambda: f"{terminal.size.height - 1} {terminal.size.width - 1}" in terminal.text())
        await cockpit.pilot.press(*"sleep 1000", "enter", "ctrl+c", *"exit 7", "enter")
        await cockpit.until(lambda: isinstance(cockpit.board(call).state, Ended))
        await cockpit.sees("exit 7")


async def test_a_terminal_query_is_answered_in_terminal_mode(tmp_path: Path) -> None:
    ask = (
        r"stty raw -echo; until [ -e go ]; do sleep 0.05; done; printf '\033[6n'; "
        """IFS= read -r -d R answer; stty sane; printf 'it is %q' "$answer\""""
    )
    async with live(tmp_path) as cockpit:
        await cockpit.start(ask, tty=True)
        terminal = cockpit.screen.query_one(TerminalPane)
        await cockpit.until(lambda: terminal.display and terminal.live)
        await cockpit.pilot.press("T")
        await cockpit.until(lambda: terminal.typing)
        (cockpit.workspace / "go").touch()
        await cockpit.until(lambda: "it is $'\\E[1;1'" in terminal.text())


@pytest.mark.slow
async def test_an_earlier_terminal_query_is_never_answered() -> None:
    scenario = asking()
    async with open_cockpit(scenario) as cockpit:
        terminal = cockpit.screen.query_one(TerminalPane)
        await cockpit.until(lambda: terminal.live)
        scenario.supervisor.write("1", b"\x1b[6nasked early")
        await cockpit.until(lambda: "asked early" in terminal.text())
        await cockpit.press("T", "x")
        await cockpit.until(lambda: "asked earlyx" in terminal.text())
        scenario.supervisor.write("1", b" and on")
        await cockpit.until(lambda: "asked earlyx and on" in terminal.text())
        assert bytes(scenario.supervisor.written["1"].out).endswith(b"asked earlyx and on")
