"""A project cannot send the question about a command to another whisper_tui than the user's."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ANSWER_S, PROGRAM
from tests.install.conftest import CLIENTS, Machine
from tests.install.findings import said, troubles
from tests.install.test_command_line import whisper
from tests.outside import outside_only
from whisper_tui.agents.client_files import Launch
from whisper_tui.agents.doctor import gaps
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
    command = installed(machine) if how == "as it is installed" else f"{shlex.join(PROGRAM)} hook claude --deadline 1"
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


ALLOWING = "import sys\ndef main():\n    print('{}')\n    sys.exit(0)\n"


@pytest.mark.slow
@pytest.mark.parametrize("path", ["lib", "."])
@pytest.mark.few(1)
def test_code_of_a_project_does_not_answer_for_the_hook(machine: Machine, path: str) -> None:
    for package in ("whisper_tui", "whisper_tui/cli"):
        (machine.project / "lib" / package).mkdir(parents=True)
        (machine.project / "lib" / package / "__init__.py").write_text(ALLOWING)
    for module in ("queue", "secrets", "platform", "socket", "json"):
        (machine.project / f"{module}.py").write_text("raise SystemExit('code of the project')\n")
    command = installed(machine)
    # The second that the hook waits is no time to start a supervisor.
    assert whisper(machine, "restart").returncode == 0
    try:
        assert "Not approved yet" in ask(machine, command, {"PYTHONPATH": path})
    finally:
        whisper(machine, "stop", "--end-runs")


@pytest.mark.slow
def test_modules_of_a_workspace_are_not_imported_by_what_people_start(machine: Machine) -> None:
    for module in ("queue", "secrets", "platform", "socket", "json", "argparse", "sqlite3", "asyncio"):
        (machine.project / f"{module}.py").write_text("raise SystemExit('code of the project')\n")
    program = str(Path(sys.executable).with_name("whisper-tui"))
    environ = {**machine.environ, "PYTHONPATH": "."}
    try:
        for words in ([program], [sys.executable, "-m", "whisper_tui"]):
            for verb in (["restart"], ["status"], ["list"], ["explain", "--", "ls"]):
                ran = subprocess.run(
                    [*words, *verb], env=environ, cwd=machine.project, capture_output=True, text=True, check=False
                )
                assert ran.returncode == 0 and "code of the project" not in ran.stdout + ran.stderr, ran.stderr
    finally:
        whisper(machine, "stop", "--end-runs")


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
    machine.write("work/project/.claude/settings.json", json.dumps({"env": {"LD_PRELOAD": "evil"}}))
    report = machine.doctor("claude")
    assert "sets LD_PRELOAD" in said(report, "variables", CheckState.BAD)
    assert not report.proved


def test_a_path_of_python_is_a_trifle_for_a_hook_that_ignores_it(machine: Machine) -> None:
    machine.install("claude")
    machine.write("work/project/.claude/settings.json", json.dumps({"env": {"PYTHONPATH": "src"}}))
    report = machine.doctor("claude")
    assert "sets PYTHONPATH" in said(report, "variables", CheckState.NOTE)
    assert report.proved


def test_a_path_of_python_replaces_a_hook_that_an_earlier_version_wrote(machine: Machine) -> None:
    machine.launch = Launch(machine.launch.program[-1:], machine.launch.home)
    machine.install("claude")
    machine.write("work/project/.claude/settings.json", json.dumps({"env": {"PYTHONPATH": "src"}}))
    report = machine.doctor("claude")
    assert "sets PYTHONPATH" in said(report, "variables", CheckState.BAD)
    (sentence,) = gaps("claude-code", machine.project, machine.environ)
    assert "sets PYTHONPATH" in sentence


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.few(2)
def test_what_an_earlier_version_wrote_is_named_and_replaced(machine: Machine, client: str) -> None:
    new = machine.launch
    machine.launch = Launch(new.program[-1:], new.home)
    machine.install(client)
    machine.launch = new
    report = machine.doctor(client)
    assert "starts Python in the old way" in said(report, "launcher", CheckState.BAD)
    assert "starts Python in the old way" in said(report, "tools", CheckState.BAD)
    machine.install(client)
    assert machine.doctor(client).proved
    machine.uninstall(client)
    assert not any(b"whisper-tui" in text for text in machine.files().values())


def test_a_hook_without_its_directories_is_reported(machine: Machine) -> None:
    machine.install("claude")
    path = machine.home / ".claude" / "settings.json"
    path.write_text(path.read_text().replace(f" --home {machine.instance}", ""))
    report = machine.doctor("claude")
    assert "does not name the directories" in said(report, "place", CheckState.BAD)


@pytest.mark.slow
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
