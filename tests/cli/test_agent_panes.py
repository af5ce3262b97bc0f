"""Agents in panes of tmux: the status bar names the panes in which they wait, and `jump` shows one."""

import os
import pty
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ANSWER_S, Instance

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


class Tmux:
    """A server of tmux of its own, with a terminal attached to it."""

    def __init__(self, directory: Path, instance: Instance) -> None:
        self._instance = instance
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("TMUX")}
        self._environment |= {"TMUX_TMPDIR": str(directory), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        self("-f", "/dev/null", "new-session", "-d", "-s", "work", "-x", "80", "-y", "24", "cat")
        self.inside = {**self._environment, "TMUX": self("display-message", "-p", "#{socket_path},#{pid},0")}
        ours, theirs = pty.openpty()
        words = ["tmux", "attach", "-t", "work"]
        self._attached = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=self._environment)
        os.close(theirs)
        self._terminal = ours

    def __call__(self, *words: str) -> str:
        done = subprocess.run(["tmux", *words], env=self._environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def agent(self, command: str) -> None:
        """Have an agent ask for a command, in a window of its own that is not shown."""
        call = [sys.executable, "-m", "whisper_tui", "call", "run_shell_command", f'{{"command": "{command}"}}']
        self("new-window", "-d", "-c", str(self._instance.workspace), *call, "--home", str(self._instance.root))

    def whisper_tui(self, *words: str) -> "subprocess.CompletedProcess[str]":
        process = self._instance.start(*words, env=self.inside, stdin=subprocess.DEVNULL)
        out, err = process.communicate(timeout=ANSWER_S)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def shown(self) -> str:
        """The pane that the attached terminal shows. Empty: it is not attached yet."""
        return self("list-clients", "-F", "#{session_name}:#{window_index}.#{pane_index}")

    def close(self) -> None:
        self("kill-server")
        self._attached.wait()
        os.close(self._terminal)


@pytest.fixture
def tmux(tmp_path: Path, instance: Instance) -> Iterator[Tmux]:
    tmux = Tmux(tmp_path, instance)
    yield tmux
    tmux.close()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + ANSWER_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_status_bar_names_the_panes_and_jump_shows_that_of_the_agent_that_waits_longest(
    tmux: Tmux,
    instance: Instance,
) -> None:
    for number, command in enumerate(("touch first", "touch second"), 1):
        tmux.agent(command)
        until(lambda n=number: len(instance.rows("list")) == n)
    assert tmux.whisper_tui("status", "--short", "--panes").stdout == "2 waiting in work:1.0, work:2.0\n"
    assert tmux.whisper_tui("status", "--short").stdout == "2 waiting\n"
    until(lambda: tmux.shown() == "work:0.0")
    assert tmux.whisper_tui("jump").returncode == 0
    assert tmux.shown() == "work:1.0"
    assert tmux.whisper_tui("jump", "2").returncode == 0
    assert tmux.shown() == "work:2.0"
    instance.run("deny", "1", "2")
    assert "No call waits" in tmux.whisper_tui("jump").stderr


def test_an_agent_elsewhere_is_in_no_pane(tmux: Tmux, instance: Instance) -> None:
    asking = instance.start("call", "run_shell_command", '{"command": "touch x"}')
    until(lambda: len(instance.rows("list")) == 1)
    assert tmux.whisper_tui("status", "--short", "--panes").stdout == "1 waiting\n"
    assert "is in no pane of this tmux" in tmux.whisper_tui("jump").stderr
    instance.run("deny", "1")
    asking.communicate(timeout=ANSWER_S)


def test_outside_of_tmux_there_is_nowhere_to_jump(instance: Instance) -> None:
    process = instance.start("jump", env={name: value for name, value in os.environ.items() if name != "TMUX"})
    _, err = process.communicate(timeout=ANSWER_S)
    assert process.returncode == 2 and "This is not in tmux" in err
