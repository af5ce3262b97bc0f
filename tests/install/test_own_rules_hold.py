"""A command that the client itself would refuse is refused, although the client no longer sees it: real processes."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ANSWER_S, PROGRAM
from tests.install.conftest import Machine
from tests.install.test_command_line import whisper
from tests.outside import outside_only

pytestmark = outside_only

RULES: dict[str, tuple[str, str]] = {
    "claude": (".claude/settings.json", '{"permissions": {"deny": ["Bash(head:*)"]}}'),
    "codex": (".codex/rules/mine.rules", 'prefix_rule(pattern=["head"], decision="forbidden")\n'),
    "gemini": (
        ".gemini/policies/mine.toml",
        '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "head"\ndecision = "deny"\npriority = 950\n',
    ),
    "opencode": (".config/opencode/opencode.json", '{"permission": {"bash": {"head *": "deny"}}}'),
}


def ask(machine: Machine, client: str, command: str) -> str:
    """What a hook answers about a command, at once: nobody is there who could decide."""
    tool = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command", "opencode": "bash"}[client]
    event = {} if client == "opencode" else {"hook_event_name": "BeforeTool" if client == "gemini" else "PreToolUse"}
    content: dict[str, Any] = {"session_id": "s", "cwd": str(machine.project), "tool_name": tool, **event}
    asked = subprocess.run(
        machine.agent.starts(*PROGRAM, "hook", client, "--deadline", "1"),
        input=json.dumps({**content, "tool_input": {"command": command}, "tool_use_id": os.urandom(4).hex()}).encode(),
        env={**machine.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
        cwd=machine.project,
        capture_output=True,
        timeout=ANSWER_S,
        check=True,
    )
    return asked.stdout.decode()


@pytest.mark.slow
@pytest.mark.parametrize("client", RULES)
@pytest.mark.few(1)
def test_a_command_that_only_looks_is_refused_where_the_client_denies_it(machine: Machine, client: str) -> None:
    (machine.project / "notes.txt").write_text("TOP\n")
    assert whisper(machine, "restart").returncode == 0
    try:
        assert " exec " in ask(machine, client, "head -1 notes.txt")
        path = machine.write(*RULES[client])
        refused = ask(machine, client, "head -1 notes.txt")
        assert " exec " not in refused
        assert "denies this command itself" in refused and path.name in refused
        assert " exec " in ask(machine, client, "tail -1 notes.txt")
        path.unlink()
        assert " exec " in ask(machine, client, "head -1 notes.txt")
    finally:
        whisper(machine, "stop", "--end-runs")


@pytest.mark.slow
def test_the_doctor_tells_which_rules_of_the_client_hold(machine: Machine) -> None:
    assert "rules of" not in whisper(machine, "doctor", "claude").stdout
    machine.write(".claude/settings.json", '{"permissions": {"deny": ["Bash(rm:*)"], "ask": ["Bash(git push:*)"]}}')
    assert "The rules of Claude Code itself apply: 1 deny and 1 ask" in whisper(machine, "doctor", "claude").stdout
    machine.write(".claude/settings.json", '{"permissions": {"deny": ["Bash($HOME/x:*)"]}}')
    assert "cannot be imported, so every command is asked about" in whisper(machine, "doctor", "claude").stdout
