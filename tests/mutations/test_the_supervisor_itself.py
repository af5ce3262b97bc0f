"""Nobody takes the place of the supervisor at its socket, and nobody of the same user looks into its memory."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outside import outside_only
from whisper_tui.model.errors import Unavailable
from whisper_tui.system.processes import FILE_LOCKS
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.light_client import connect_quickly
from whisper_tui.wire.rendezvous import connect

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these")
pytestmark = [outside_only, linux_only]

LISTENS = """
import socket, sys
from whisper_tui.system import processes
if sys.argv[2] == "marked":
    processes.mark_supervised()
if sys.argv[2] == "supervisor":
    processes.mark_supervisor()
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
print("ready", flush=True)
sys.stdin.read()
"""
PROGRAM = [sys.executable, "-m", "whisper_tui"]


@pytest.fixture
def home(tmp_path: Path) -> Directories:
    (tmp_path / "run").mkdir(mode=0o700)
    return Directories(config=tmp_path / "config", state=tmp_path / "state", runtime=tmp_path / "run")


@pytest.fixture
def listener(home: Directories, request: pytest.FixtureRequest) -> Iterator[None]:
    words = [sys.executable, "-c", LISTENS, str(home.runtime / "supervisor.sock"), request.param]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield
        process.kill()


@pytest.mark.parametrize("listener", ["marked"], indirect=True)
@pytest.mark.usefixtures("listener")
def test_a_supervised_command_that_listens_in_the_place_of_the_supervisor_is_not_talked_to(home):
    with pytest.raises(Unavailable, match="but is not a supervisor: a supervised command has started it"):
        connect(home)
    assert connect_quickly(str(home.runtime)) is None


@pytest.mark.parametrize("listener", ["unmarked", "supervisor"], indirect=True)
@pytest.mark.usefixtures("listener")
def test_a_supervisor_and_an_unmarked_process_are_accepted_by_the_quick_way_too(home):
    for connection in (connect(home), connect_quickly(str(home.runtime))):
        assert connection is not None
        connection.close()


CONNECTS_QUICKLY = """
import resource, subprocess, sys
from whisper_tui.system.processes import FILE_LOCKS
from whisper_tui.wire.light_client import connect_quickly
limit = 10**17
resource.prlimit(0, FILE_LOCKS, (limit, limit))
with subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as listener:
    listener.stdout.readline()
    print(connect_quickly(sys.argv[1]) is not None)
    listener.kill()
"""


@pytest.mark.parametrize(("mark", "talked_to"), [("marked", False), ("unmarked", True)])
def test_a_limit_of_a_whole_container_is_not_a_mark(home, mark, talked_to):
    listens = [sys.executable, "-c", LISTENS, str(home.runtime / "supervisor.sock"), mark]
    words = [sys.executable, "-c", CONNECTS_QUICKLY, str(home.runtime), *listens]
    ran = subprocess.run(words, capture_output=True, check=True, text=True, timeout=90)
    assert ran.stdout == f"{talked_to}\n"


def test_a_supervised_command_is_not_talked_to_by_an_agent_whose_limit_it_has_lowered(home):
    words = [sys.executable, "-c", LISTENS, str(home.runtime / "supervisor.sock"), "marked"]
    lowered = f"""
import resource
from whisper_tui.wire.light_client import connect_quickly
resource.prlimit(0, {FILE_LOCKS}, (0, 0))
print(connect_quickly({str(home.runtime)!r}) is not None)
"""
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None and listener.stdout.readline() == "ready\n"
        ran = subprocess.run([sys.executable, "-c", lowered], capture_output=True, check=True, text=True, timeout=90)
        listener.kill()
    assert ran.stdout == "False\n"


@pytest.fixture
def as_anybody() -> list[str]:
    """What makes a command one that may look only into what is open to its user: root may look into everything."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root cannot give up a capability here")
    return ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]


@pytest.mark.slow
def test_the_memory_of_the_supervisor_is_closed_to_its_own_user_who_is_served_as_before(tmp_path, as_anybody):
    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*as_anybody, *words], capture_output=True, text=True, timeout=90, cwd=tmp_path, check=False
        )

    def looked_into(pid: int) -> str:
        return run(sys.executable, "-c", f"open('/proc/{pid}/mem', 'r+b')").stderr

    place = ("--home", str(tmp_path))
    try:
        listed = run(*PROGRAM, "restart", *place)
        assert listed.returncode == 0, listed.stderr
        pid = int((tmp_path / "state" / "supervisor.lock").read_text())
        with subprocess.Popen([*as_anybody, "sleep", "100"]) as other:
            until_running(other.pid, b"sleep")
            assert looked_into(other.pid) == ""
            other.kill()
        assert "Permission denied" in looked_into(pid)
        called = run(*PROGRAM, "call", "run_shell_command", '{"command": "echo served"}', *place)
        assert "served" in called.stdout, called.stderr
        assert run(*PROGRAM, "pause", *place).returncode == 0
        assert run(*PROGRAM, "restart", *place).returncode == 0
    finally:
        run(*PROGRAM, "stop", *place)


def until_running(pid: int, program: bytes) -> None:
    """Wait until a process has become that program."""
    deadline = time.monotonic() + 30
    while not Path(f"/proc/{pid}/cmdline").read_bytes().startswith(program):
        assert time.monotonic() < deadline
        time.sleep(0.01)
