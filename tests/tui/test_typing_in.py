"""Typing into a running command."""

import sys
from pathlib import Path

import pytest
from textual.widgets import Input

from tests.rows import each_row
from tests.tui.cockpit import open_cockpit
from tests.tui.live import live
from tests.tui.scenes import ROOT, Scenario
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.errors import NotRunning, Unavailable
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.tui.commands.run_commands import is_secret, keystrokes, last_line
from whisper_tui.tui.dialogs.run_dialogs import InputRequest


def asking(*, accepts_input: bool = True) -> Scenario:
    """Call 1 runs and has asked a question."""
    scenario = Scenario.begin()
    spec = CommandSpec(command=Shell(text="read name"), cwd=ROOT, tty=accepts_input, accepts_input=accepts_input)
    request = CallRequest(session_id="s1", tool="run_shell_command", arguments={}, spec=spec)
    call = scenario.supervisor.ask(
        request, Verdict(kind="ask", reason="it is new"), Resolved(program="/bin/bash", cwd=ROOT)
    )
    scenario.approve(call)
    scenario.supervisor.write(call, b"Welcome\n\x1b[1mName of this release:\x1b[0m ")
    return scenario


def test_a_terminal_gets_what_its_keys_send_and_a_pipe_gets_a_line() -> None:
    assert keystrokes(InputRequest("spring"), tty=True) == (b"spring\r", False)
    assert keystrokes(InputRequest("spring", ends=True), tty=True) == (b"spring\x04", False)
    assert keystrokes(InputRequest("spring"), tty=False) == (b"spring\n", False)
    assert keystrokes(InputRequest("", ends=True), tty=False) == (b"", True)


def test_the_question_is_the_last_line_without_colours() -> None:
    assert last_line(b"one\r\n\x1b[31mPassword:\x1b[0m ") == "Password:"
    assert last_line(b"half \xff\x1b]0;title\x07 line\n\n") == "half \ufffd line"
    assert last_line(b"") == ""


async def test_i_shows_the_question_and_sends_a_line() -> None:
    async with open_cockpit(asking()) as cockpit:
        await cockpit.press("i")
        await cockpit.sees("Type into call 1", "Name of this release:", "never written to the journal")
        await cockpit.press(*"spring", "enter")
        await cockpit.until(lambda: cockpit.scenario.supervisor.written["1"].out.endswith(b"spring\r"))
        await cockpit.sees("Sent a line to call 1.")


async def test_an_empty_line_is_sent_and_escape_sends_nothing() -> None:
    async with open_cockpit(asking()) as cockpit:
        before = bytes(cockpit.scenario.supervisor.written["1"].out)
        await cockpit.press("i", "x", "escape")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        assert cockpit.scenario.supervisor.written["1"].out == before
        await cockpit.press("i")
        await cockpit.sees("Type into call 1")
        await cockpit.press("enter")
        await cockpit.until(lambda: cockpit.scenario.supervisor.written["1"].out == before + b"\r")


async def test_typed_text_can_be_hidden() -> None:
    async with open_cockpit(asking()) as cockpit:
        await cockpit.press("i")
        await cockpit.sees("Type into call 1")
        await cockpit.press("ctrl+t", *"secret")
        await cockpit.sees("••••••")
        assert "secret" not in cockpit.text()
        await cockpit.press("ctrl+d")
        await cockpit.until(lambda: cockpit.scenario.supervisor.written["1"].out.endswith(b"secret\x04"))


@each_row(
    ("echo", "question", "hidden"),
    [
        ("hides", "Continue?", True),
        ("shows", "Password:", False),
        ("raw", "Enter passphrase for key:", True),
        ("raw", "Your name:", False),
        (None, "[sudo] password for me:", True),
        (None, "Spinning:", False),
    ],
)
def test_typed_text_is_hidden_where_the_terminal_hides_it_or_the_question_is_for_a_secret(echo, question, hidden):  # type: ignore[no-untyped-def]
    assert is_secret(echo, question) is hidden


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the terminal of another process is found through /proc")
@pytest.mark.parametrize("quiet", [True, False])
async def test_a_password_is_hidden_as_the_terminal_of_the_command_has_no_echo(tmp_path: Path, quiet: bool) -> None:
    async with live(tmp_path) as cockpit:
        await cockpit.start(f"read {'-s ' if quiet else ''}-p 'Say friend: ' word; sleep 60", tty=True)
        await cockpit.sees("Say friend:", "waits for input")
        await cockpit.pilot.press("i")
        await cockpit.sees("Type into call", *(["is hidden"] if quiet else ["never written to the journal"]))
        await cockpit.pilot.press(*"mellon")
        await cockpit.sees("••••••" if quiet else "mellon")
        assert ("mellon" in cockpit.text()) is not quiet


async def test_a_password_that_is_typed_into_the_terminal_itself_is_not_drawn(tmp_path: Path) -> None:
    async with live(tmp_path) as cockpit:
        await cockpit.start("read -s -p 'Say friend: ' word; echo \"${#word} letters\"; sleep 60", tty=True)
        await cockpit.sees("Say friend:")
        await cockpit.pilot.press("T")
        await cockpit.sees("TERMINAL MODE")
        await cockpit.pilot.press(*"mellon", "enter")
        await cockpit.sees("6 letters")
        assert "mellon" not in cockpit.text()


@pytest.mark.slow
async def test_a_person_who_shows_a_secret_is_not_overruled() -> None:
    async with open_cockpit(asking()) as cockpit:
        cockpit.scenario.supervisor.write("1", b"\nPassword: ")
        await cockpit.press("i")
        await cockpit.sees("is hidden", "Ctrl+T Show")
        await cockpit.press("ctrl+t", *"secret")
        await cockpit.sees("secret", "Ctrl+T Hide")
        await cockpit.pilot.pause(0.6)
        assert "secret" in cockpit.text()


async def test_a_command_without_input_cannot_be_typed_to() -> None:
    async with open_cockpit(asking(accepts_input=False)) as cockpit:
        await cockpit.press("i")
        await cockpit.pilot.pause()
        assert len(cockpit.app.screen_stack) == 1
        await cockpit.sees("Type is not possible: call 1")


async def test_failed_input_is_reported(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    async def refuse(*_: object, **__: object) -> None:
        raise NotRunning("call 1 takes no input any more")

    async with open_cockpit(asking()) as cockpit:
        monkeypatch.setattr(cockpit.scenario.supervisor, "write_stdin", refuse)
        await cockpit.press("i")
        await cockpit.sees("Type into call 1")
        await cockpit.press("enter")
        await cockpit.sees("Call 1 takes no input any more.")


async def test_a_line_that_could_not_be_sent_is_there_again_for_this_call_only(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    async with open_cockpit(asking()) as cockpit:
        supervisor = cockpit.scenario.supervisor
        with monkeypatch.context() as patched:
            patched.setattr(supervisor, "write_stdin", _lose)
            await cockpit.press("i")
            await cockpit.sees("Type into call 1")
            await cockpit.press(*"spring", "enter")
            await cockpit.sees("The connection was lost.")
        await cockpit.press("i")
        await cockpit.sees("Type into call 1", "spring")
        await cockpit.press("enter")
        await cockpit.until(lambda: supervisor.written["1"].out.endswith(b"spring\r"))
        await cockpit.press("i")
        await cockpit.sees("Type into call 1")
        assert cockpit.app.screen.query_one(Input).value == ""


async def _lose(*_: object, **__: object) -> None:
    raise Unavailable("the connection was lost")
