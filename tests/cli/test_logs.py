"""`logs` prints what a command has printed: all of it, in order, and nothing that would control the terminal."""

import os
import pty
import subprocess

import pytest

from tests.cli.conftest import PROGRAM
from tests.outside import outside_only
from tests.rows import each_row
from whisper_tui.cli.recorded_output import TerminalText

pytestmark = outside_only

BYTES = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 5000); sys.stderr.buffer.write(b'\\xff\\x00')"


def ran(instance, script: str, *args: str) -> str:
    call = instance.call("execute_command", command=script, args=list(args))
    (row,) = instance.rows("list")
    instance.run("approve", row["id"])
    call.communicate(timeout=90)
    return row["id"]


def raw(instance, *words: str) -> tuple[bytes, bytes]:
    command = [*PROGRAM, "logs", *words, "--home", str(instance.root)]
    answer = subprocess.run(command, capture_output=True, check=True, timeout=90)
    return answer.stdout, answer.stderr


@pytest.mark.slow
def test_bytes_come_out_as_they_came(instance):
    call_id = ran(instance, "python3", "-c", BYTES)
    assert raw(instance, call_id) == (bytes(range(256)) * 5000, b"\xff\x00")
    assert raw(instance, call_id, "--stream", "out") == (bytes(range(256)) * 5000, b"")
    assert raw(instance, call_id, "--stream", "err") == (b"", b"\xff\x00")


@pytest.mark.slow
def test_both_streams_come_in_the_order_in_which_they_were_written(instance):
    call_id = ran(instance, "sh", "-c", "echo a; sleep 0.2; echo b >&2; sleep 0.2; echo c; sleep 0.2; echo d >&2")
    command = [*PROGRAM, "logs", call_id, "--home", str(instance.root)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True, timeout=90)
    assert answer.stdout == b"a\nb\nc\nd\n"


@pytest.mark.slow
def test_following_shows_what_comes_and_ends_with_the_command(instance):
    script = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended"
    call = instance.call("run_shell_command", command=script)
    shell_directory = instance.start("logs", "1", "-f")
    instance.run("approve", "1")
    assert shell_directory.stdout.readline() == "begun\n"
    (instance.workspace / "go").touch()
    assert shell_directory.communicate(timeout=90) == ("ended\n", "")
    assert shell_directory.returncode == 0
    call.communicate(timeout=90)


@pytest.mark.slow
def test_a_terminal_gets_colours_and_nothing_else_that_controls_it(instance):
    call_id = ran(instance, "printf", r"\033[31mred\033[0m \033]0;title\007\033[2Jplain\n")
    ours, theirs = pty.openpty()
    command = [*PROGRAM, "logs", call_id, "--home", str(instance.root)]
    subprocess.run(command, stdout=theirs, check=True, timeout=90)
    os.close(theirs)
    assert os.read(ours, 1000) == b"\x1b[31mred\x1b[0m plain\r\n"
    os.close(ours)


@each_row("size", [1, 2, 3, 1000])
def test_an_escape_cut_by_the_end_of_a_piece_is_still_one(size):
    text = "a\x1b[1;31mb\x1b[0mc\x1b[10;10Hd\x1b]52;c;b3duZWQ=\x07e\x1bPq#0\x1b\\f\x1b(Bg\x9b2Jh\x07i\rj\tkü\n".encode()
    shown = TerminalText()
    pieces = [shown.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert b"".join(pieces).decode() == "a\x1b[1;31mb\x1b[0mcdefg2Jhi\nj\tkü\n"


@each_row(
    ("printed", "shown"),
    [
        (b"rm -rf /\rls      \r\n", b"rm -rf /\nls      \r\n"),
        (b"a\x1b[8mhidden\x1b[0m", b"ahidden\x1b[0m"),
        (b"a\x1b[1;08;31mhidden\x1b[m", b"ahidden\x1b[m"),
        (b"\x1b[38;5;8mgrey\x1b[48;2;8;8;8mdark\x1b[m", b"\x1b[38;5;8mgrey\x1b[48;2;8;8;8mdark\x1b[m"),
    ],
)
def test_on_a_terminal_nothing_is_written_over_and_nothing_is_invisible(printed, shown):
    assert TerminalText().feed(printed) == shown
