"""Any number of runs in one process, each with its own output, ending and processes."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.engine.conftest import PATIENCE_S
from whisper_tui.supervisor.keeper.attempt_files import AttemptFiles
from whisper_tui.system.processes import boot_id

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nothing is adopted")
PROGRAM = """
import os, signal, sys
from whisper_tui.supervisor.keeper.channels import pack, take
from whisper_tui.supervisor.keeper.keeper import Keeper, KeeperSetup
from whisper_tui.supervisor.keeper.keeper_loop import KeeperLoop
from whisper_tui.supervisor.keeper.sandbox import Sandboxes
from whisper_tui.supervisor.keeper.warm_up import adoption, wakeup_pipe
from whisper_tui.system.processes import boot_id

loop = KeeperLoop(wakeup_pipe(signal.SIGCHLD, signal.SIGTERM))
setup = KeeperSetup(boot_id(), loop, adoption().begin(), Sandboxes())
keepers = [Keeper(take(pack(directory, dict(os.environ))), setup) for directory in sys.argv[1:]]
before = set(os.listdir("/proc/self/fd"))
for each in keepers:
    loop.add(each)
while not all(each.over for each in keepers):
    loop.turn()
# Before the runs, each had its lock only.
sys.exit(len(os.listdir("/proc/self/fd")) + len(keepers) > len(before))
"""
LEAVES_ITS_SESSION = "(setsid sh -c 'until test -e {0}; do sleep 0.05; done; echo late' &); echo soon; exit {1}"


class Runs:
    """The attempts of one process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.process: subprocess.Popen[bytes]

    def start(self, *texts: str, **settings: Any) -> None:
        """Start a process with a run for each text of shell; their numbers begin with 1."""
        directories = []
        for number, text in enumerate(texts, 1):
            attempt = AttemptFiles(str(self.root / f"{number}.1"))
            attempt.make({**self._spec(text), **settings}, boot_id())
            directories.append(attempt.directory)
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, *directories])

    def _spec(self, text: str) -> dict[str, Any]:
        return {
            "argv": ["sh", "-c", text],
            "program": shutil.which("sh"),
            "cwd": str(self.root),
            "real_cwd": None,
            "files": {},
            "tty": False,
            "input": False,
            "timeout": None,
            "grace": 5,
            "max_bytes": None,
            "min_free": 0,
            "cpu": None,
            "memory": None,
            "processes": None,
            "sandbox": None,
        }

    def has(self, number: int, name: str) -> bool:
        return (self.root / f"{number}.1" / name).exists()

    def text(self, number: int, name: str) -> str:
        return (self.root / f"{number}.1" / name).read_text()

    def told(self, number: int, name: str) -> Any:
        return json.loads(self.text(number, name))

    def background(self, number: int) -> list[dict[str, Any]]:
        return self.told(number, "exit")["background"]["processes"]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    with ExitStack() as ended:
        made = Runs(tmp_path)
        yield made
        ended.callback(made.process.wait)
        ended.callback(made.process.kill)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def test_each_run_has_its_own_output_and_ending(runs: Runs) -> None:
    runs.start(*(f"echo {number}; echo error {number} >&2; exit {number}" for number in range(1, 31)))
    assert runs.process.wait(PATIENCE_S) == 0
    for number in range(1, 31):
        assert (runs.text(number, "out"), runs.text(number, "err")) == (f"{number}\n", f"error {number}\n")
        assert runs.told(number, "exit")["code"] == number
        assert runs.has(number, "done")


def test_a_run_ends_although_others_go_on(runs: Runs) -> None:
    runs.start("until test -e go; do sleep 0.05; done", "exit 3")
    until(lambda: runs.has(2, "done"))
    assert not runs.has(1, "exit")
    (runs.root / "go").touch()
    assert runs.process.wait(PATIENCE_S) == 0


def test_what_has_left_its_session_belongs_to_the_run_that_left_it_behind(runs: Runs) -> None:
    runs.start(LEAVES_ITS_SESSION.format("go1", 1), LEAVES_ITS_SESSION.format("go2", 2), "exit 3")
    until(lambda: all(runs.has(number, "exit") for number in (1, 2, 3)))
    for number in (1, 2):
        assert any(f"go{number}" in each["command"] for each in runs.background(number)), runs.background(number)
        assert not any(f"go{3 - number}" in each["command"] for each in runs.background(number))
    assert runs.background(3) == []
    until(lambda: runs.has(3, "done"))
    (runs.root / "go2").touch()
    until(lambda: runs.has(2, "done"))
    assert not runs.has(1, "done")
    assert runs.text(2, "out") == "soon\nlate\n"
    (runs.root / "go1").touch()
    assert runs.process.wait(PATIENCE_S) == 0
    assert runs.text(1, "out") == "soon\nlate\n"


def test_what_takes_off_the_mark_of_its_run_stays_watched(runs: Runs) -> None:
    takes_off = LEAVES_ITS_SESSION.format("go", 0).replace("'", '"')
    runs.start(f"bash -c 'ulimit -S -x 1; {takes_off}'", "until test -e end; do sleep 0.05; done")
    until(lambda: runs.has(1, "exit"))
    (runs.root / "end").touch()
    until(lambda: runs.has(2, "exit"))
    left = [each["command"] for number in (1, 2) for each in runs.background(number)]
    assert len([command for command in left if "test -e go" in command]) == 1, left
    (runs.root / "go").touch()
    assert runs.process.wait(PATIENCE_S) == 0


def test_the_timeout_of_a_run_ends_what_it_left_behind_and_nothing_else(runs: Runs) -> None:
    runs.start("setsid sleep 600 & sleep 600", timeout=0.1)
    until(lambda: runs.has(1, "done"))
    assert runs.told(1, "exit")["timed_out"] == 0.1
    assert runs.process.wait(PATIENCE_S) == 0


def test_starts_that_fail_leave_nothing_behind(runs: Runs) -> None:
    runs.start("sleep 600", *["true"] * 20, files={str(runs.root / "changed"): "before"})
    assert runs.process.wait(PATIENCE_S) == 0
    assert runs.told(21, "exit")["failed"]["subject"] == str(runs.root / "changed")


def test_a_signal_to_the_process_ends_all_of_its_runs(runs: Runs) -> None:
    runs.start("sleep 600", "setsid sleep 600 & wait")
    until(lambda: runs.has(1, "pid") and runs.has(2, "pid"))
    os.kill(runs.process.pid, 15)
    assert runs.process.wait(PATIENCE_S) == 0
    assert [runs.told(number, "exit")["signal"] for number in (1, 2)] == [15, 15]
