"""`whisper-tui` as people run it: a process for each command, on an instance of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.warm_process import WarmProcess
from whisper_tui.model.errors import WhisperError
from whisper_tui.system.processes import peer_process
from whisper_tui.system.state_directory import Directories, is_occupied
from whisper_tui.wire.light_client import light_client
from whisper_tui.wire.rendezvous import connect

PROGRAM = [sys.executable, "-m", "whisper_tui"]
ANSWER_S = 90


class Instance:
    """One home, and what is done with it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Directories(config=root / "config", state=root / "state", runtime=root / "run")
        self.workspace = root / "workspace"
        self.workspace.mkdir()
        (root / "config").mkdir(mode=0o700)
        (root / "config" / "rules.toml").write_text("read_only = false\n")
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *words: str, **how: Any) -> "subprocess.Popen[str]":
        """Begin a command and do not wait for it."""
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.workspace, **how}
        process = WarmProcess([*words, "--home", str(self.root)], **how)
        self._started.append(process)
        return process

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Carry out a command."""
        process = self.start(*words, stdin=subprocess.DEVNULL)
        out, err = process.communicate(timeout=ANSWER_S)
        assert "Traceback" not in err
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def rows(self, *words: str) -> Any:
        """What a command prints with --json."""
        answer = self.run(*words, "--json")
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    def seen(self, kind: str, **about: Any) -> Any:
        """The same without a program that has to start: for looking again and again."""
        with light_client(self.home) as supervisor:
            return supervisor.ask("rows", kind=kind, **about)

    def ready(self) -> None:
        """Have a supervisor run, if one can."""
        with suppress(WhisperError), light_client(self.home):
            pass

    def call(self, tool: str, **arguments: Any) -> "subprocess.Popen[str]":
        """Begin a tool call, and wait until it waits for a human."""
        known = {row["id"] for row in self.seen("list")}
        process = self.start("call", tool, json.dumps(arguments))
        self.until(lambda: {row["id"] for row in self.seen("list") if row["state"] == "waiting"} - known)
        return process

    def until(self, holds: Callable[[], Any]) -> Any:
        """Wait for a condition, bounded, and return what it gave."""
        deadline = time.monotonic() + ANSWER_S
        while not (found := holds()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return found

    def kill_supervisor(self, number: int) -> None:
        """End the supervisor, and wait until it is gone."""
        connection = connect(self.home)
        if connection is not None:
            with connection:
                os.kill(peer_process(connection)[0], number)
        self.until(lambda: not is_occupied(self.home.state))

    def close(self) -> None:
        """End everything: first those who would start another supervisor for what they wait for."""
        for process in self._started:
            process.kill()
            process.communicate()
        if connect(self.home) is not None:
            with light_client(self.home, start=False) as supervisor:
                supervisor.ask("shutdown", end_runs=True)
                supervisor.until_closed()
        self.kill_supervisor(signal.SIGTERM)


@pytest.fixture
def instance(tmp_path: Path, warm: None) -> Iterator[Instance]:
    made = Instance(tmp_path)
    yield made
    made.close()


@pytest.fixture
def changed(instance: Instance) -> Instance:
    """An instance in which two calls have changed files unasked."""
    (instance.root / "config" / "rules.toml").write_text('unasked = "workspace"\n')
    for command in ("echo one > a.txt", "echo two >> a.txt; echo > b.txt"):
        arguments = json.dumps({"command": command, "description": "a step"})
        assert instance.run("call", "run_shell_command", arguments).returncode == 0
    return instance
