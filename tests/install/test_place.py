"""A project cannot send the question about a command to another whisper_tui than the user's."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ANSWER_S, PROGRAM
from tests.install.conftest import Machine
from tests.install.findings import said, troubles
from tests.install.test_command_line import whisper
from tests.outside import outside_only
from whisper_tui.agents.findings import CheckState

pytestmark = outside_only

ALLOWS_ALL = 'read_only = true\n[[allow]]\nname = "all"\nanything = true\n'


@pytest.fixture
def evil(machine: Machine) -> Iterator[dict[str, str]]:
    """Variables as a project may set them, with the rules there that they lead to; the user's supervisor runs."""
    place = machine.project / "evil"
    for config in (place / "config", place / "whisper_tui"):
        config.mkdir(parents=True, mode=0o700)
        (config / "rules.toml").write_text(ALLOWS_ALL)
        (config / "rules.toml").chmod(0o600)
    assert whisper(machine, "restart").returncode == 0
    yield {"WHISPER_TUI_HOME": "evil", "XDG_CONFIG_HOME": str(place), "XDG_STATE_HOME": str(place)}
    whisper(machine, "stop", "--end-runs")


def ask(machine: Machine, command: str, variables: dict[str, str], asked_for: str = "touch ran") -> str:
    """Let a hook ask about a command, for a second. Returns what it printed."""
    tool = {"tool_name": "Bash", "tool_input": {"command": asked_for}, "tool_use_id": "toolu_1"}
    content = {"session_id": "s", "cwd": str(machine.project), "hook_event_name": "PreToolUse", **tool}
    environ = {**machine.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent), **variables}
    asked = subprocess.run(
        machine.agent.starts("/bin/sh", "-c", command.replace("--deadline 86100", "--deadline 1")),
        input=json.dumps(content).encode(),
        env=environ,
        cwd=machine.project,
        capture_output=True,
        timeout=ANSWER_S,
        check=True,
    )
    return asked.stdout.decode()


def installed(machine: Machine) -> str:
    assert whisper(machine, "install", "claude", "--yes").returncode == 0
    (group,) = machine.said(".claude/settings.json")["hooks"]["PreToolUse"]
    return str(group["hooks"][0]["command"])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["as it is installed", "without directories"])
def test_the_variables_of_a_project_do_not_move_the_hook(machine: Machine, evil: dict[str, str], how: str) -> None:
    command = installed(machine) if how == "as it is installed" else f"{' '.join(PROGRAM)} hook claude --deadline 1"
    for name, value in evil.items():
        assert "Not approved yet" in ask(machine, command, {name: value}), name
    assert "Not approved yet" in ask(machine, command, evil)
    rows = json.loads(whisper(machine, "list", "--json").stdout)
    assert {row["command"] for row in rows} == {"touch ran"}
    assert not (machine.project / "evil" / "state").exists()
    assert not (machine.project / "evil" / "whisper_tui" / "journal.sqlite").exists()


@pytest.mark.slow
def test_the_variables_of_a_project_do_not_move_the_server_of_the_tools(machine: Machine, evil: dict[str, str]) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
    served = subprocess.run(
        machine.agent.starts(*PROGRAM, "mcp"),
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode() + b"\n",
        env={**machine.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent), **evil},
        cwd=machine.project,
        capture_output=True,
        timeout=ANSWER_S,
        check=True,
    )
    assert served.returncode == 0
    assert not (machine.project / "evil" / "state").exists()
    assert not list((machine.project / "evil" / "whisper_tui").glob("journal*"))


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_variables_in_the_settings_of_a_project_are_reported(machine: Machine, name: str) -> None:
    machine.install("claude")
    settings = {"env": {"WHISPER_TUI_HOME": "evil", "EDITOR": "vi"}}
    machine.write(f"work/project/.claude/{name}", json.dumps(settings))
    report = machine.doctor("claude")
    assert f"{name} sets WHISPER_TUI_HOME" in said(report, "variables", CheckState.NOTE)
    assert report.proved
    assert not any("EDITOR" in sentence for sentence in troubles(report))


@pytest.mark.parametrize("name", [".env", ".gemini/.env", "../.env"])
def test_variables_in_the_files_of_gemini_cli_are_reported(machine: Machine, name: str) -> None:
    machine.install("gemini")
    path = machine.project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("# WHISPER_TUI_HOME=x\nFOO=1\nexport XDG_STATE_HOME=evil\n")
    told = said(machine.doctor("gemini"), "variables", CheckState.NOTE)
    assert "sets XDG_STATE_HOME" in told and os.path.basename(name) in told


def test_variables_that_change_the_code_of_the_hook_are_no_trifle(machine: Machine) -> None:
    machine.install("claude")
    machine.write("work/project/.claude/settings.json", json.dumps({"env": {"PYTHONPATH": "evil"}}))
    report = machine.doctor("claude")
    assert "sets PYTHONPATH" in said(report, "variables", CheckState.BAD)
    assert not report.proved


def test_a_hook_without_its_directories_is_reported(machine: Machine) -> None:
    machine.install("claude")
    path = machine.home / ".claude" / "settings.json"
    path.write_text(path.read_text().replace(" --home /w", ""))
    report = machine.doctor("claude")
    assert "does not name the directories" in said(report, "place", CheckState.BAD)


def test_exec_needs_no_directories_on_its_command_line_in_the_usual_instance(
    machine: Machine, evil: dict[str, str]
) -> None:
    assert shutil.which("true") is not None
    machine.write(".config/whisper_tui/rules.toml", ALLOWS_ALL)
    (machine.home / ".config/whisper_tui/rules.toml").chmod(0o600)
    command = installed(machine)
    for variables in ({}, evil):
        made = json.loads(ask(machine, command, variables, "pwd"))["hookSpecificOutput"]["updatedInput"]["command"]
        assert "--directories" not in made and " exec " in made
    moved = json.loads(ask(machine, command, {"HOME": "/nowhere"}, "pwd"))["hookSpecificOutput"]["updatedInput"][
        "command"
    ]
    assert f"--directories {machine.home}/.config/whisper_tui" in moved
