"""`whisper-tui demo` as a program: it does its work anywhere, and leaves no process and no file behind."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from pathlib import Path

import psutil
import pytest

COMMAND = [sys.executable, "-m", "whisper_tui", "demo"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Almost nothing, as in a job of continuous integration; temporary files go to a directory of their own."""
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}


def processes_of(place: Path) -> list[psutil.Process]:
    """The living processes whose environment names a directory."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(place) in value for value in process.environ().values()):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def nothing_is_left(place: Path) -> None:
    """Neither files nor, within a moment, processes."""
    _, alive = psutil.wait_procs(processes_of(place), timeout=30)
    assert alive == []
    assert list((place / "tmp").iterdir()) == []
    assert list((place / "home").iterdir()) == []


def start(environment: dict[str, str], **streams: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        COMMAND,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        **streams,
    )


def read_until(demo: subprocess.Popen[str], wanted: Callable[[str], bool]) -> None:
    assert demo.stdout is not None
    assert any(wanted(line) for line in demo.stdout)


@pytest.mark.slow
def test_without_a_terminal_it_plays_the_story_and_exits_with_0(environment: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        COMMAND, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    assert done.stdout.decode().endswith("Everything happened as the story says.\n")
    nothing_is_left(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_demos_commands_end_with_it(environment: dict[str, str], tmp_path: Path, number: signal.Signals) -> None:
    with start(environment, stderr=subprocess.PIPE) as demo:
        read_until(demo, lambda line: "in the background" in line)
        demo.send_signal(number)
        _, complaints = demo.communicate(timeout=60)
    assert demo.returncode == 128 + number
    assert "Traceback" not in complaints
    nothing_is_left(tmp_path)


def test_when_nobody_reads_any_more_it_ends_quietly(environment: dict[str, str], tmp_path: Path) -> None:
    with start(environment, stderr=subprocess.PIPE) as demo:
        read_until(demo, lambda line: line.startswith(" 2."))
        assert demo.stdout is not None and demo.stderr is not None
        demo.stdout.close()
        complaints = demo.stderr.read()
        demo.wait(timeout=60)
    assert (demo.returncode, complaints) == (141, "")
    nothing_is_left(tmp_path)


@pytest.mark.slow
def test_in_a_terminal_it_opens_the_cockpit_with_calls_that_wait(environment: dict[str, str], tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    demo = subprocess.Popen(
        COMMAND,
        env={**environment, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    with os.fdopen(ours, "rb+", buffering=0) as terminal:
        read_screen_until(terminal, b"./build.sh")
        terminal.write(b"q")
        read_screen_until(terminal, b"The demo is over, and all that it ran with it.")
        while demo.poll() is None:
            drain(terminal)
    assert demo.returncode == 0
    nothing_is_left(tmp_path)


def read_screen_until(terminal: FileIO, wanted: bytes) -> None:
    """Read what is drawn until it holds some bytes; the limit of the test bounds it."""
    drawn = b""
    while wanted not in drawn:
        try:
            drawn += terminal.read(65_536) or b""
        except OSError:
            pytest.fail(f"the program ended before it drew {wanted!r}; its last words: {drawn[-2000:]!r}")


def drain(terminal: FileIO) -> None:
    """Take what is drawn for a moment, so that a program that draws does not wait for a reader."""
    readable, _, _ = select.select([terminal], [], [], 0.1)
    if readable:
        with suppress(OSError):
            terminal.read(65_536)
