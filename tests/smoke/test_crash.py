"""The supervisor is killed with signal 9 in the middle of everything; nothing may be lost, and nothing run twice."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.outside import outside_only
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, SessionHello
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import Ended
from whisper_tui.system.processes import find_process
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient

RUNS = 20
HUMAN = Decider(surface="library", who="tester")
CONFIG = f"[supervisor]\nworkers = {RUNS}\n[rules]\nread_only = false\n"
COMMAND = """
import os, sys, time
number, directory = int(sys.argv[1]), sys.argv[2]
with open(os.path.join(directory, f"ran-{number}"), "a") as ran:
    ran.write("x")
open(os.path.join(directory, f"started-{number}"), "w").close()
deadline = time.monotonic() + 60
for line in range(400):
    print(f"{number}: line {line} " + "." * 200, flush=True)
    if line == 200:
        print("half", file=sys.stderr, flush=True)
        while not os.path.exists(os.path.join(directory, "go")) and time.monotonic() < deadline:
            time.sleep(0.01)
sys.exit(number)
"""


def expected(number: int) -> bytes:
    return b"".join(b"%d: line %d %s\n" % (number, line, b"." * 200) for line in range(400))


class Instance:
    """A supervisor reached as users reach it: by the command line and over its socket."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "home"
        self.home = Directories(
            config=self.directory / "config", state=self.directory / "state", runtime=self.directory / "run"
        )
        (self.directory / "config").mkdir(parents=True, mode=0o700)
        (self.directory / "config" / "config.toml").write_text(CONFIG)
        self.workspace = directory / "workspace"
        self.workspace.mkdir()

    def whisper(self, *words: str) -> Any:
        command = [sys.executable, "-m", "whisper_tui", *words, "--home", str(self.directory), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def supervisor_pid(self) -> int:
        return int(self.whisper("status")["pid"])

    async def submit(self, door: SupervisorClient, session_id: str, *words: str) -> str:
        spec = CommandSpec(command=Argv(program=words[0], args=words[1:]), cwd=str(self.workspace))
        request = CallRequest(session_id=session_id, tool="execute_command", arguments={}, spec=spec)
        return await door.submit(request)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    made = Instance(tmp_path)
    yield made
    stop = [sys.executable, "-m", "whisper_tui", "stop", "--end-runs", "--home", str(made.directory)]
    subprocess.run(stop, capture_output=True, timeout=60, check=False)


async def approve(door: SupervisorClient, call_id: str) -> None:
    await door.decide(call_id, Approve(), HUMAN, (await door.record(call_id)).seen_digest())


async def all_there(directory: Path, names: list[str]) -> None:
    async with asyncio.timeout(60):
        while not all((directory / name).exists() for name in names):
            await asyncio.sleep(0.02)


async def read_all(door: SupervisorClient, call_id: str) -> bytes:
    data = b""
    while chunk := (await door.read_output(call_id, "out", len(data), 1 << 20)).data:
        data += chunk
    return data


@pytest.mark.slow
@outside_only
async def test_twenty_running_commands_and_a_waiting_call_outlive_their_supervisor(instance: Instance) -> None:
    door = await SupervisorClient.connect(instance.home)
    hello = SessionHello(name="agent", root=str(instance.workspace), environment=dict(os.environ))
    session_id = (await door.open_session(hello)).id
    arguments = ["-c", COMMAND]
    calls = [
        await instance.submit(door, session_id, sys.executable, *arguments, str(number), str(instance.workspace))
        for number in range(RUNS)
    ]
    waiting = await instance.submit(door, session_id, "touch", str(instance.workspace / "touched"))
    for call_id in calls:
        await approve(door, call_id)
    await all_there(instance.workspace, [f"started-{number}" for number in range(RUNS)])
    killed = instance.supervisor_pid()
    os.kill(killed, signal.SIGKILL)
    await door.close()
    # Its socket accepts connections until the kernel has taken the process apart.
    async with asyncio.timeout(60):
        while find_process(killed) is not None:
            await asyncio.sleep(0.02)

    (instance.workspace / "go").touch()
    rows = {row["id"]: row for row in instance.whisper("list")}
    assert instance.supervisor_pid() != killed
    assert rows[waiting]["state"] == "waiting"

    door = await SupervisorClient.connect(instance.home)
    async with asyncio.timeout(90):
        for number, call_id in enumerate(calls):
            record = await door.outcome(call_id)
            assert isinstance(record.state, Ended)
            assert record.state.ending == Exited(code=number)
            assert await read_all(door, call_id) == expected(number)
            assert (await door.read_output(call_id, "err", 0, 100)).data == b"half\n"
            assert (instance.workspace / f"ran-{number}").read_text() == "x"
    assert not (instance.workspace / "touched").exists()
    await approve(door, waiting)
    await asyncio.wait_for(door.outcome(waiting), 60)
    assert (instance.workspace / "touched").exists()
    await door.close()


@pytest.mark.slow
@outside_only
async def test_a_second_supervisor_is_refused_and_says_who_has_the_directory(instance: Instance) -> None:
    assert instance.whisper("list") == []
    words = [sys.executable, "-m", "whisper_tui", "restart", "--home", str(instance.directory)]
    subprocess.run(words, capture_output=True, timeout=60, check=True)
    pid = instance.supervisor_pid()
    command = [sys.executable, "-m", "whisper_tui", "supervise", "--home", str(instance.directory)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 3
    assert str(pid) in second.stderr and "Traceback" not in second.stderr
