"""The gate, which takes the place of a client's shell: it is installed, proved, and undone."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.install.conftest import Machine
from whisper_tui.agents.claude import PROFILE as CLAUDE
from whisper_tui.agents.doctor import gaps
from whisper_tui.agents.findings import CheckState

SETTINGS = {"claude": ".claude/settings.json", "opencode": ".config/opencode/opencode.jsonc"}
EACH = pytest.mark.parametrize("client", SETTINGS)


def gates(machine: Machine) -> list[Path]:
    return sorted((machine.instance / "state" / "gates").glob("*"))


def named(machine: Machine, client: str) -> Any:
    settings = machine.said(SETTINGS[client])
    return settings["env"]["CLAUDE_CODE_SHELL"] if client == "claude" else settings["shell"]


def behind(gate: Path) -> str:
    return gate.read_text().partition("--shell ")[2].split()[0]


def shell_checks(machine: Machine, client: str) -> list[tuple[CheckState, str]]:
    return [(check.state, check.sentence) for check in machine.doctor(client).checks if check.subject == "shell"]


def settings_with(client: str, shell: str) -> str:
    return json.dumps({"env": {"CLAUDE_CODE_SHELL": shell}} if client == "claude" else {"shell": shell})


@EACH
def test_the_gate_is_a_private_program_that_stands_for_the_users_shell(machine: Machine, client: str) -> None:
    machine.environ["SHELL"] = "/usr/bin/zsh"
    machine.install(client)
    (gate,) = gates(machine)
    assert named(machine, client) == str(gate)
    assert gate.name.endswith("-zsh")
    assert stat.S_IMODE(gate.stat().st_mode) == 0o700
    assert stat.S_IMODE((machine.instance / "state").stat().st_mode) == 0o700
    assert behind(gate) == "/usr/bin/zsh"


@EACH
def test_without_the_hook_or_with_agent_runs_there_is_no_gate(machine: Machine, client: str) -> None:
    machine.install(client)
    machine.install(client, agent_runs=True)
    assert gates(machine) == []
    machine.install(client, hook=False)
    assert gates(machine) == []
    assert "gates" not in machine.text(SETTINGS[client])


@EACH
def test_a_shell_that_the_user_had_set_is_behind_the_gate_and_comes_back(machine: Machine, client: str) -> None:
    machine.write(SETTINGS[client], settings_with(client, "/opt/own/bash"))
    before = machine.files()
    for _ in range(2):
        machine.install(client)
        (gate,) = gates(machine)
        assert behind(gate) == "/opt/own/bash"
    machine.uninstall(client)
    assert machine.files() == before
    assert gates(machine) == []


@EACH
def test_a_user_with_another_shell_gets_another_gate(machine: Machine, client: str) -> None:
    machine.install(client)
    machine.environ["SHELL"] = "/usr/bin/zsh"
    machine.install(client)
    (gate,) = gates(machine)
    assert named(machine, client) == str(gate)
    assert gate.name.endswith("-zsh")
    machine.environ["SHELL"] = "/bin/bash"
    machine.uninstall(client)
    assert gates(machine) == []


@EACH
def test_a_project_has_a_gate_of_its_own(machine: Machine, client: str) -> None:
    machine.install(client)
    machine.install(client, project=True)
    assert len(gates(machine)) == 2
    machine.uninstall(client, project=True)
    assert [str(gate) for gate in gates(machine)] == [named(machine, client)]


@EACH
def test_the_doctor_proves_the_gate_with_a_canary(machine: Machine, client: str) -> None:
    machine.install(client)
    ((state, sentence),) = shell_checks(machine, client)
    assert (state, "stopped a test command" in sentence) == (CheckState.GOOD, True)


@EACH
@pytest.mark.parametrize("broken", ["removed", "opened", "unreachable"])
@pytest.mark.few(2)
def test_a_gate_that_does_not_stop_the_canary_is_reported(machine: Machine, client: str, broken: str) -> None:
    machine.install(client)
    (gate,) = gates(machine)
    if broken == "removed":
        gate.unlink()
    elif broken == "opened":
        gate.write_text('#!/bin/sh\nexec /bin/sh "$@"\n')
    else:
        machine.mood("crashes")
    checks = shell_checks(machine, client)
    assert [state for state, _ in checks] == [CheckState.BAD]
    assert ("the canary ran" in checks[0][1]) == (broken == "opened")


@EACH
def test_an_installation_without_the_gate_is_told_what_can_happen(machine: Machine, client: str) -> None:
    machine.install(client)
    machine.write(SETTINGS[client], machine.text(SETTINGS[client]).replace(named(machine, client), "/bin/bash"))
    ((state, sentence),) = shell_checks(machine, client)
    assert state is CheckState.NOTE
    assert "in the place of an approved command" in sentence


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_a_project_that_names_another_shell_to_claude_code_is_reported(machine: Machine, name: str) -> None:
    machine.install("claude")
    path = machine.write(f"work/project/.claude/{name}", settings_with("claude", "/tmp/evil-bash"))
    ((state, sentence),) = shell_checks(machine, "claude")
    assert state is CheckState.BAD
    assert str(path) in sentence
    told = gaps("claude-code", machine.project, machine.environ)
    assert any("names another shell" in sentence for sentence in told)


RIVALS = [
    ("opencode", "work/project/opencode.json"),
    ("opencode", "work/project/.opencode/opencode.jsonc"),
    ("opencode", "work/opencode.json"),
    ("kilo", "work/project/.kilocode/kilo.json"),
    ("kilo", "work/project/opencode.json"),
]
OTHERS_SHELL = pytest.mark.parametrize(("client", "rival"), RIVALS)


def with_rival(machine: Machine, client: str, rival: str) -> Path:
    (machine.home / "work" / ".git").mkdir()
    machine.install(client)
    return machine.write(rival, json.dumps({"shell": "/tmp/evil-bash"}))


@OTHERS_SHELL
def test_a_project_can_name_another_shell_only_to_a_client_without_the_plugin(
    machine: Machine, client: str, rival: str
) -> None:
    path = with_rival(machine, client, rival)
    (state, sentence), proved = shell_checks(machine, client)
    assert state is CheckState.NOTE
    assert sentence.startswith(f"{path} names another shell. The gate wins, except over ") and "--pure" in sentence
    assert proved[0] is CheckState.GOOD
    assert gaps(client, machine.project, machine.environ) == []
    plugin = machine.text(f".config/{client}/plugin/whisper_tui.js")
    (gate,) = gates(machine)
    assert f"const GATE = {json.dumps(str(gate))}" in plugin


@OTHERS_SHELL
def test_a_shell_of_the_project_is_reported_where_the_plugin_is_off(machine: Machine, client: str, rival: str) -> None:
    path = with_rival(machine, client, rival)
    variable = f"{client.upper()}_PURE"
    machine.environ[variable] = "1"
    ((state, sentence),) = shell_checks(machine, client)
    assert state is CheckState.BAD
    assert sentence == f"{path} names another shell, and {variable} is set: its commands run without a question"
    assert any(sentence in told for told in gaps(client, machine.project, machine.environ))


def test_the_gate_is_proved_where_the_plugin_is_off_and_nothing_names_another_shell(machine: Machine) -> None:
    machine.install("opencode")
    machine.environ["OPENCODE_PURE"] = "1"
    ((state, _),) = shell_checks(machine, "opencode")
    assert state is CheckState.GOOD


def test_the_gate_is_not_taken_for_the_shell_of_a_call(machine: Machine) -> None:
    machine.environ["SHELL"] = "/usr/bin/zsh"
    machine.install("claude")
    assert CLAUDE.shell is not None
    environment = {"CLAUDE_CODE_SHELL": named(machine, "claude"), "SHELL": "/bin/bash"}
    assert CLAUDE.shell(environment) == "/usr/bin/zsh"
    os.unlink(named(machine, "claude"))
    assert CLAUDE.shell(environment) == "/bin/bash"
