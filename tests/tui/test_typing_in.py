"""Typing into a running command."""

import sys
from pathlib import Path

import pytest

from tests.tui.cockpit import cockpit
from tests.tui.live import live
from tests.tui.scenes import ROOT, Play
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.errors import NotRunning
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.tui.commands.run_commands import is_secret, keystrokes, last_line
from whisper_tui.tui.dialogs.run_dialogs import InputRequest


def asking(*, accepts_input: bool = True) -> Play:
    """Call 1 runs and has asked a question."""
    play = Play.begin()
    spec = CommandSpec(command=Shell(text="read name"), cwd=ROOT, tty=accepts_input, accepts_input=accepts_input)
    request = CallRequest(session_id="s1", tool="run_shell_command", arguments={}, spec=spec)
    call = play.stage.ask(request, Verdict(kind="ask", reason="it is new"), Resolved(program="/bin/bash", cwd=ROOT))
    play.approve(call)
    play.stage.write(call, b"Welcome\n\x1b[1mName of this release:\x1b[0m ")
    return play


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
    async with cockpit(asking()) as seat:
        await seat.press("i")
        await seat.sees("Type into call 1", "Name of this release:", "never written to the journal")
        await seat.press(*"spring", "enter")
        await seat.until(lambda: seat.play.stage.written["1"].out.endswith(b"spring\r"))
        await seat.sees("Sent a line to call 1.")


async def test_an_empty_line_is_sent_and_escape_sends_nothing() -> None:
    async with cockpit(asking()) as seat:
        before = bytes(seat.play.stage.written["1"].out)
        await seat.press("i", "x", "escape")
        await seat.until(lambda: len(seat.app.screen_stack) == 1)
        assert seat.play.stage.written["1"].out == before
        await seat.press("i")
        await seat.sees("Type into call 1")
        await seat.press("enter")
        await seat.until(lambda: seat.play.stage.written["1"].out == before + b"\r")


async def test_typed_text_can_be_hidden() -> None:
    async with cockpit(asking()) as seat:
        await seat.press("i")
        await seat.sees("Type into call 1")
        await seat.press("ctrl+t", *"secret")
        await seat.sees("••••••")
        assert "secret" not in seat.text()
        await seat.press("ctrl+d")
        await seat.until(lambda: seat.play.stage.written["1"].out.endswith(b"secret\x04"))


@pytest.mark.parametrize(
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
    async with live(tmp_path) as seat:
        await seat.start(f"read {'-s ' if quiet else ''}-p 'Say friend: ' word; sleep 60", tty=True)
        await seat.sees("Say friend:", "waits for input")
        await seat.pilot.press("i")
        await seat.sees("Type into call", *(["is hidden"] if quiet else ["never written to the journal"]))
        await seat.pilot.press(*"mellon")
        await seat.sees("••••••" if quiet else "mellon")
        assert ("mellon" in seat.text()) is not quiet


async def test_a_password_that_is_typed_into_the_terminal_itself_is_not_drawn(tmp_path: Path) -> None:
    async with live(tmp_path) as seat:
        await seat.start("read -s -p 'Say friend: ' word; echo \"${#word} letters\"; sleep 60", tty=True)
        await seat.sees("Say friend:")
        await seat.pilot.press("T")
        await seat.sees("TERMINAL MODE")
        await seat.pilot.press(*"mellon", "enter")
        await seat.sees("6 letters")
        assert "mellon" not in seat.text()


@pytest.mark.slow
async def test_a_person_who_shows_a_secret_is_not_overruled() -> None:
    async with cockpit(asking()) as seat:
        seat.play.stage.write("1", b"\nPassword: ")
        await seat.press("i")
        await seat.sees("is hidden", "Ctrl+T Show")
        await seat.press("ctrl+t", *"secret")
        await seat.sees("secret", "Ctrl+T Hide")
        await seat.pilot.pause(0.6)
        assert "secret" in seat.text()


async def test_a_command_without_input_cannot_be_typed_to() -> None:
    async with cockpit(asking(accepts_input=False)) as seat:
        await seat.press("i")
        await seat.pilot.pause()
        assert len(seat.app.screen_stack) == 1
        await seat.sees("Type is not possible: call 1")


async def test_failed_input_is_reported(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    async def refuse(*_: object, **__: object) -> None:
        raise NotRunning("call 1 takes no input any more")

    async with cockpit(asking()) as seat:
        monkeypatch.setattr(seat.play.stage, "write_stdin", refuse)
        await seat.press("i")
        await seat.sees("Type into call 1")
        await seat.press("enter")
        await seat.sees("Call 1 takes no input any more.")
