"""Whoever orders runs is killed, and another one takes back what runs: every byte, every exit code, nothing twice."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.supervisor.engine.conftest import until
from tests.supervisor.engine.restartable import Plan
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.runs.output_files import OutputFiles

CRASH_COMMANDS = int(os.environ.get("WHISPER_TUI_CRASH_COMMANDS", "150"))
CRASH_SECONDS = float(os.environ.get("WHISPER_TUI_CRASH_SECONDS", "90"))
CRASH_SEED = int(os.environ.get("WHISPER_TUI_CRASH_SEED", "0")) or time.time_ns()
TWENTY = 20
ENDS = [0, 0, 0, 1, 2, 126, 127, 137, 143, 255, "TERM", "KILL", "INT", "PIPE"]


class Restarted:
    """The engine in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.plan = Plan(directory)
        self.process: subprocess.Popen[str] | None = None

    def lay_out(self, commands: dict[str, str]) -> None:
        for path in (self.plan.started, self.plan.ended):
            path.mkdir(parents=True)
        (self.plan.directory / "plan.json").write_text(json.dumps(commands))

    def start(self) -> None:
        script = Path(__file__).with_name("restartable.py")
        argv = [sys.executable, str(script), str(self.plan.directory)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    async def ready(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        line = await asyncio.wait_for(asyncio.to_thread(self.process.stdout.readline), 60)
        assert line == "ready\n"

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def end_of(self, call: str) -> dict:
        return json.loads((self.plan.ended / call).read_text())


@pytest.fixture
def restarted(tmp_path: Path):
    restarted = Restarted(tmp_path / "plan")
    yield restarted
    restarted.kill()


def counted(call: str, rest: str) -> str:
    """A command that leaves one mark for each time that it is run."""
    return f"echo x >> ran.{call}; {rest}"


@pytest.mark.slow
async def test_twenty_running_commands_are_recovered_exactly(restarted: Restarted):
    line = "for i in $(seq 400); do echo out $i; echo err $i >&2; if test $i = 200; then "
    wait = "touch half.{call}; until test -e go; do sleep 0.02; done; fi; done; exit {call}"
    restarted.lay_out({str(n): counted(str(n), line + wait.format(call=n)) for n in range(1, TWENTY + 1)})
    directory = restarted.plan.directory
    restarted.start()
    await restarted.ready()
    await until(lambda: all((directory / f"half.{n}").exists() for n in range(1, TWENTY + 1)))

    restarted.kill()
    (directory / "go").touch()
    restarted.start()
    await until(lambda: not restarted.running)

    executor = LocalExecutor(directory / "runs")
    for n in range(1, TWENTY + 1):
        told = restarted.end_of(str(n))
        assert told["ending"] == {"kind": "exited", "code": n, "problem": ""}
        key = RunKey(str(n), told["attempt"])
        for stream, word in (("out", "out"), ("err", "err")):
            expected = "".join(f"{word} {i}\n" for i in range(1, 401)).encode()
            assert executor.read_output(key, stream, 0, 1 << 20).data == expected
        assert (directory / f"ran.{n}").read_text() == "x\n"


def random_command(chance: random.Random, call: str) -> tuple[str, bytes, int | str]:
    size, end = chance.choice([0, 10, 5_000, 300_000]), chance.choice(ENDS)
    pause = chance.choice([0, 0.05, 0.4, 1.5])
    text = f"{call}-" * 8
    repeated = (text.encode() * (size // len(text) + 1))[:size]
    finish = f"kill -{end} $$" if isinstance(end, str) else f"exit {end}"
    print_it = (
        f"yes {text} | tr -d '\\n' | head -c {size}; sleep {pause}; yes {text} | tr -d '\\n' | head -c {size} >&2"
    )
    return counted(call, f"{print_it}; {finish}"), repeated, end


@pytest.mark.slow
@pytest.mark.timeout(max(400, 3 * CRASH_SECONDS))
async def test_every_command_runs_once_however_often_the_supervisor_is_killed(restarted: Restarted):
    chance = random.Random(CRASH_SEED)
    cases = {str(n): random_command(chance, str(n)) for n in range(1, CRASH_COMMANDS + 1)}
    restarted.lay_out({call: command for call, (command, _, _) in cases.items()})
    deadline, kills = time.monotonic() + CRASH_SECONDS, 0
    while time.monotonic() < deadline and len(list(restarted.plan.ended.iterdir())) < CRASH_COMMANDS:
        restarted.start()
        if chance.random() < 0.8:
            await restarted.ready()
        await asyncio.sleep(chance.uniform(0.05, 0.3))
        kills += restarted.running
        restarted.kill()
    restarted.start()
    async with asyncio.timeout(120):
        await asyncio.to_thread(restarted.process.wait)

    for call, (_, expected, end) in cases.items():
        check_case(restarted, call, expected, end)
    print(f"seed {CRASH_SEED}: {kills} kills, {CRASH_COMMANDS} commands")


def difference(data: bytes, expected: bytes) -> str:
    """Say where output differs from what was expected: it is too long to be printed whole."""
    at = next((at for at, (one, other) in enumerate(zip(data, expected, strict=False)) if one != other), None)
    at = min(len(data), len(expected)) if at is None else at
    return f"{len(data)} bytes for {len(expected)}, other ones at {at}: {data[at : at + 200]!r}"


def check_case(restarted: Restarted, call: str, expected: bytes, end: int | str) -> None:
    where = f"call {call}, seed {CRASH_SEED}"
    told = restarted.end_of(call)
    ending = told["ending"]
    if isinstance(end, str):
        assert (ending["kind"], ending.get("number")) == ("signalled", signal.Signals[f"SIG{end}"]), where
    else:
        assert ending == {"kind": "exited", "code": end, "problem": ""}, where
    directory = restarted.plan.directory
    assert (directory / f"ran.{call}").read_text() == "x\n", where
    files = OutputFiles(directory / "runs")
    for stream in ("out", "err"):
        data = files.read_output(RunKey(call, told["attempt"]), stream, 0, 1 << 20).data
        assert data == expected, f"{where}, {stream}: {difference(data, expected)}"
    assert told["output"] == {"out": len(expected), "err": len(expected)}, where
