"""The program of the recipe in docs/clients.md, which asks about the commands of clients that are not known."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.agent_shell import Shell, shell
from tests.cli.conftest import ANSWER_S, PROGRAM
from tests.client_table import PAGE
from tests.outside import outside_only

__all__ = ["shell"]
pytestmark = outside_only


def adapter(directory: Path) -> Path:
    """The program of the recipe, as the page prints it."""
    (text,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    path = directory / "ask_whisper.py"
    path.write_text(text)
    return path


REQUESTS = {
    "cursor": {
        "conversation_id": "c1",
        "command": "make all",
        "cwd": "PLACE",
        "hook_event_name": "beforeShellExecution",
    },
    "droid": {"session_id": "d1", "cwd": "PLACE", "tool_name": "Execute", "tool_input": {"command": "make all"}},
    "windsurf": {"trajectory_id": "w1", "tool_info": {"command_line": "make all", "cwd": "PLACE"}},
    "amp": {"command": "make all"},
}


def asking(shell: Shell, directory: Path, text: str) -> "subprocess.Popen[str]":
    """The program of the recipe, with a whisper-tui on PATH that uses the instance of the test."""
    program = directory / "whisper-tui"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@" --home {shlex.quote(str(shell.instance.root))}\n')
    program.chmod(0o755)
    process = subprocess.Popen(
        shell.agent.starts(sys.executable, str(adapter(directory))),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=shell.instance.workspace,
        env={**os.environ, "PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"},
    )
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.close()
    process.stdin = None
    return process


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    _, err = process.communicate(timeout=ANSWER_S)
    return process.returncode, err


@pytest.mark.parametrize("client", REQUESTS)
@pytest.mark.few(1)
def test_the_program_of_the_recipe_asks_in_every_format(shell: Shell, tmp_path: Path, client: str) -> None:
    text = json.dumps(REQUESTS[client]).replace("PLACE", str(shell.instance.workspace))
    process = asking(shell, tmp_path, text)
    call_id = shell.waiting()
    assert shell.row(call_id)["command"] == "make all"
    shell.approve(call_id)
    assert ended(process) == (0, "")


@pytest.mark.slow
def test_the_program_of_the_recipe_denies_with_the_reason_and_takes_no_change(shell: Shell, tmp_path: Path) -> None:
    text = json.dumps(REQUESTS["amp"])
    process = asking(shell, tmp_path, text)
    shell.deny(shell.waiting(), "use make test")
    code, reason = ended(process)
    assert code == 2 and "use make test" in reason
    process = asking(shell, tmp_path, text)
    shell.approve(shell.waiting(), "make test")
    assert ended(process) == (2, "a human wants another command. Run this one instead: make test")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"command": 1}'])
def test_the_program_of_the_recipe_denies_what_it_cannot_read(shell: Shell, tmp_path: Path, text: str) -> None:
    code, reason = ended(asking(shell, tmp_path, text))
    assert code == 2 and reason
