"""What the command line prints about a call is plain text, in a terminal as well as in a file."""

import json
import logging
import os
import pty
import re
import subprocess
import termios

import pytest

from tests.cli.conftest import PROGRAM, Instance, instance
from tests.hostile.texts import LINES, SURROGATES, TEXTS
from tests.outside import outside_only
from whisper_tui.cli.compose import MaskedLines
from whisper_tui.cli.recorded_output import TerminalText
from whisper_tui.model.text import is_hidden, visible

__all__ = ["instance"]
pytestmark = outside_only

TEXT = " ".join(TEXTS.values()).replace("\0", "")
TOKEN = "ghp_" + "a1B2" * 9
OWN_STYLES = re.compile(r"\x1b\[(?:0|1|1;31|2|32|33)m")
"""The colours of our own tables."""
COMMANDS = (
    ("list",),
    ("ps",),
    ("history",),
    ("show", "1"),
    ("show", "1", "--json"),
    ("history", "--text", TEXT),
    ("history", "--session", TEXT, "--json"),
    ("check", "--", TEXT),
    ("rules", "list"),
    ("export", "1", "--format", "markdown"),
    ("export", "--format", "jsonl"),
    ("show", TEXT),
    ("deny", "1", "--reason", TEXT),
    ("signal", "1", TEXT),
    ("call", TEXT, "{}"),
    ("call", "execute_command", TEXT),
)


def in_a_terminal(instance: Instance, *words: str) -> str:
    """What a command writes to a terminal, output and errors."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 20_000))  # so wide that nothing is cut
    command = [*PROGRAM, *words, "--home", str(instance.root)]
    if "--" in words:
        command = [*PROGRAM, words[0], "--home", str(instance.root), *words[1:]]
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, cwd=instance.workspace, env=environment
    )
    os.close(theirs)
    written = bytearray()
    try:
        while data := os.read(ours, 65_536):
            written += data
    except OSError:
        pass
    finally:
        os.close(ours)
        process.wait(90)
    return OWN_STYLES.sub("", written.decode())


@pytest.mark.slow
def test_no_command_writes_anything_that_a_terminal_obeys_or_hides(instance: Instance) -> None:
    arguments = json.dumps({"command": f"true {TOKEN} {TEXT}", "description": TEXT})
    call = instance.start("call", "run_shell_command", arguments, "--session", TEXT)
    instance.until(lambda: instance.rows("list"))
    for words in COMMANDS:
        written = in_a_terminal(instance, *words)
        assert written
        assert "Traceback" not in written
        hidden = {ascii(each) for line in written.split("\r\n") for each in line if is_hidden(each)}
        assert (words[0], hidden) == (words[0], set())
    out, err = call.communicate(timeout=90)
    assert not any(is_hidden(character) for character in (out + err).replace("\n", ""))
    assert visible(TEXT, keep_lines=True) in err
    log = (instance.home.state / "supervisor.log").read_text()
    assert not any(is_hidden(character) for character in log.replace("\n", ""))
    assert TOKEN not in log


def test_half_a_character_is_refused_in_a_sentence(instance: Instance) -> None:
    for arguments in ({"command": SURROGATES}, {"command": "true", "description": SURROGATES}):
        answer = instance.run("call", "run_shell_command", json.dumps(arguments))
        assert answer.returncode != 0
        assert "surrogate" in answer.stderr or "Unicode" in answer.stderr
    assert instance.rows("history") == []


def test_output_in_a_terminal_keeps_its_colours_and_shows_the_rest() -> None:
    for text in TEXTS.values():
        shown = TerminalText().feed(f"\x1b[31m{text}\x1b[0m\n".encode()).decode()
        plain = re.sub(r"\x1b\[[0-9;]*m|[\r\n\t]", "", shown)
        assert not any(is_hidden(character, printed=True) for character in plain)


def test_a_log_entry_cannot_fake_another_entry() -> None:
    record = logging.LogRecord("whisper_tui", logging.WARNING, "x", 1, "%s", (f"{LINES}{TEXT}",), None)
    first, *rest = MaskedLines().format(record).split("\n")
    assert first.endswith(" WARNING whisper_tui: one")
    assert rest
    assert all(line.startswith("  ") for line in rest)
    assert not any(is_hidden(character) for line in (first, *rest) for character in line)
