"""The doctor says of a good installation that it is good, and of a broken one what is broken."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.install.conftest import CLIENTS, HERE, Machine
from whisper_tui.install.doctor.canary import Canary, hook_input
from whisper_tui.install.doctor.report import Report, State
from whisper_tui.install.launch import Launch

FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/plugin/whisper_tui.js",
}
PROJECT_FILES = {
    "claude": ".claude/settings.local.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".opencode/plugin/whisper_tui.js",
}
WITH_TIMEOUTS = ("claude", "codex", "gemini")


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def said(report: Report, subject: str, state: State) -> str:
    """The one sentence of that kind."""
    (check,) = [one for one in report.checks if one.subject == subject and one.state is state]
    return f"{check.sentence}. {check.hint}"


def troubles(report: Report) -> list[str]:
    return [check.sentence for check in report.checks if check.state is not State.GOOD]


def change(machine: Machine, name: str, old: str, new: str) -> None:
    path = machine.home / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def without_node(machine: Machine) -> None:
    """A PATH on which there is no node, wherever this machine has its own."""
    tools = machine.home.parent / "tools"
    tools.mkdir()
    for name in ("sh", "env", "touch"):
        (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    machine.environ["PATH"] = f"{machine.bin}:{tools}"


def test_a_good_installation_is_proved(machine: Machine, client: str) -> None:
    machine.install(client)
    report = machine.doctor(client)
    assert troubles(report) == []
    assert report.proved
    assert "stopped a canary" in said(report, "gate", State.GOOD)
    assert "answers as whisper_tui" in said(report, "tools", State.GOOD)


def test_a_good_installation_of_a_project_is_proved(machine: Machine, client: str) -> None:
    if client == "codex":
        machine.write(".codex/config.toml", f'[projects."{machine.project}"]\ntrust_level = "trusted"\n')
    machine.install(client, project=True)
    report = machine.doctor(client)
    assert troubles(report) == []
    assert PROJECT_FILES[client] in said(report, "gate", State.GOOD)


def test_the_doctor_changes_no_file(machine: Machine, client: str) -> None:
    machine.install(client)
    before = machine.files()
    machine.doctor(client)
    assert machine.files() == before


def test_a_hook_that_is_gone_is_missed(machine: Machine, client: str) -> None:
    machine.install(client, hook=False)
    report = machine.doctor(client, asked_for=False)
    assert not report.proved
    assert f"Run whisper-tui install {client}" in said(report, "hook", State.BAD)


def test_a_client_without_anything_of_ours_is_no_trouble_unless_it_was_asked_for(machine: Machine, client: str) -> None:
    assert machine.doctor(client, asked_for=False).proved
    assert "run unseen" in said(machine.doctor(client), "hook", State.BAD)


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude", ".claude/settings.json", '{"permissions": {"deny": ["Bash"]}}'),
        ("codex", ".codex/config.toml", "[features]\nshell_tool = false\n"),
        ("gemini", ".gemini/settings.json", '{"tools": {"exclude": ["run_shell_command"]}}'),
        ("opencode", ".config/opencode/opencode.json", '{"permission": {"bash": "deny"}}'),
    ],
)
def test_a_client_without_a_shell_tool_needs_no_hook(machine: Machine, client: str, name: str, text: str) -> None:
    machine.write(name, text)
    machine.install(client, hook=False)
    report = machine.doctor(client)
    assert report.proved
    assert name in said(report, "hook", State.GOOD)


def test_a_launcher_that_is_gone_is_named(machine: Machine, client: str) -> None:
    machine.install(client)
    (machine.bin / "whisper-tui").unlink()
    report = machine.doctor(client)
    assert f"{machine.bin}/whisper-tui" in said(report, "launcher", State.BAD)
    assert "did not stop a canary" in said(report, "gate", State.BAD)
    assert "cannot be used" in said(report, "tools", State.BAD)


@pytest.mark.parametrize(
    ("mood", "why"),
    [
        ("allows", "canary"),
        ("crashes", "it broke"),
        ("lonely", "no supervisor can be reached"),
        ("babbles", "hello"),
    ],
)
def test_a_hook_that_answers_otherwise_is_no_gate(machine: Machine, client: str, mood: str, why: str) -> None:
    machine.install(client)
    machine.mood(mood)
    report = machine.doctor(client)
    sentence = said(report, "gate", State.BAD)
    assert why in sentence or "whisper_tui gave no answer, so nothing was run" in sentence


def test_a_hook_that_does_not_answer_is_no_gate(machine: Machine, client: str) -> None:
    machine.install(client)
    machine.mood("hangs")
    machine.canary_s = 2.0
    assert "no answer within 2 s" in said(machine.doctor(client), "gate", State.BAD)


def test_a_hook_for_the_user_and_one_for_the_project_are_one_too_many(machine: Machine, client: str) -> None:
    if client == "codex":
        machine.write(".codex/config.toml", f'[projects."{machine.project}"]\ntrust_level = "trusted"\n')
    machine.install(client)
    machine.install(client, project=True)
    sentence = said(machine.doctor(client), "hook", State.BAD)
    assert "2 times" in sentence and "--project" in sentence
    assert FILES[client] in sentence and f"work/project/{PROJECT_FILES[client]}" in sentence


def test_the_hook_of_another_installation_is_told(machine: Machine, client: str) -> None:
    machine.install(client)
    elsewhere = machine.program("whisper-tui", HERE / "fake_launcher.py", machine.home.parent / "elsewhere")
    machine.launch = Launch((str(elsewhere),))
    report = machine.doctor(client)
    assert f"{machine.bin}/whisper-tui" in said(report, "launcher", State.NOTE)
    assert report.proved


@pytest.mark.parametrize("client", WITH_TIMEOUTS)
def test_a_client_that_waits_too_short_a_time_is_told_with_the_numbers(machine: Machine, client: str) -> None:
    machine.install(client)
    change(machine, FILES[client], "86400", "600")
    sentence = said(machine.doctor(client), "timeout", State.BAD)
    assert ("600 s" in sentence or "600000" in sentence) and "86100 s" in sentence


@pytest.mark.parametrize("client", WITH_TIMEOUTS)
def test_without_a_timeout_the_clients_own_counts(machine: Machine, client: str) -> None:
    machine.install(client)
    before = json.loads((machine.home / FILES[client]).read_text())
    for groups in before["hooks"].values():
        for group in groups:
            for handler in group["hooks"]:
                del handler["timeout"]
    (machine.home / FILES[client]).write_text(json.dumps(before))
    assert f"{60 if client == 'gemini' else 600} s" in said(machine.doctor(client), "timeout", State.BAD)


@pytest.mark.parametrize("client", WITH_TIMEOUTS)
def test_a_hook_for_another_tool_is_no_gate(machine: Machine, client: str) -> None:
    machine.install(client)
    shell = "run_shell_command" if client == "gemini" else "Bash"
    path = machine.home / FILES[client]
    text = path.read_text()
    path.write_text(text.replace(f'"matcher": "{shell}"', '"matcher": "Edit"').replace(f"^{shell}$", "^Edit$"))
    assert "other tools" in said(machine.doctor(client), "hook", State.BAD)


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("claude", ".claude/settings.json"),
        ("claude", ".claude.json"),
        ("codex", ".codex/hooks.json"),
        ("codex", ".codex/config.toml"),
        ("gemini", ".gemini/settings.json"),
        ("opencode", ".config/opencode/opencode.jsonc"),
    ],
)
def test_a_broken_file_is_told_with_its_place(machine: Machine, client: str, name: str) -> None:
    machine.install(client)
    (machine.home / name).write_text("{\n  [[\n")
    report = machine.doctor(client)
    assert not report.proved
    sentence = said(report, "file", State.BAD)
    assert str(machine.home / name) in sentence and "line" in sentence


def test_a_client_that_is_not_there_is_told(machine: Machine, client: str) -> None:
    machine.install(client)
    (machine.bin / client).unlink()
    report = machine.doctor(client)
    assert "is not on PATH" in said(report, "client", State.NOTE)
    assert report.version is None


def test_a_client_that_does_not_tell_its_version_is_told(machine: Machine, client: str) -> None:
    machine.install(client)
    (machine.bin / client).write_text("#!/bin/sh\nexit 1\n")
    assert "does not tell its version" in said(machine.doctor(client), "client", State.BAD)


def test_calls_that_may_not_take_long_and_are_asked_about_twice_are_told(machine: Machine, client: str) -> None:
    machine.install(client)
    if client == "codex":
        change(machine, ".codex/config.toml", "tool_timeout_sec = 86400\n", "")
        change(machine, ".codex/config.toml", 'default_tools_approval_mode = "approve"\n', "")
    elif client == "claude":
        change(machine, ".claude.json", "86400000", "60000")
        change(machine, ".claude/settings.json", '"mcp__whisper"', '"mcp__other"')
    elif client == "gemini":
        text = json.loads((machine.home / ".gemini/settings.json").read_text())
        text["mcpServers"]["whisper"] = {"command": str(machine.bin / "whisper-tui"), "args": ["mcp"]}
        machine.write(".gemini/settings.json", json.dumps(text))
    else:
        change(machine, ".config/opencode/opencode.jsonc", "86400000", "60000")
        change(machine, ".config/opencode/opencode.jsonc", '"whisper_*": "allow"', '"*": "ask"')
    notes = [check.sentence for check in machine.doctor(client).checks if check.state is State.NOTE]
    assert len(notes) == 2
    assert "longer" in notes[0] and "second time" in notes[1]


def test_a_codex_that_does_not_trust_the_hook_is_told(machine: Machine) -> None:
    machine.install("codex")
    change(machine, ".codex/config.toml", "sha256:", "sha256:0")
    report = machine.doctor("codex")
    assert "does not trust" in said(report, "trust", State.BAD) and "/hooks" in said(report, "trust", State.BAD)
    assert said(report, "gate", State.GOOD)
    assert not report.proved


def test_a_codex_that_does_not_read_the_project_is_told(machine: Machine) -> None:
    machine.install("codex", project=True)
    assert "does not read" in said(machine.doctor("codex"), "trust", State.BAD)


def test_a_codex_that_cannot_be_asked_leaves_the_trust_unknown(machine: Machine) -> None:
    machine.install("codex")
    (machine.bin / "codex-mood").write_text("old")
    assert "not known" in said(machine.doctor("codex"), "trust", State.BAD)


def test_a_codex_whose_hooks_are_switched_off_is_told(machine: Machine) -> None:
    machine.write(".codex/config.toml", "[features]\nhooks = false\n")
    machine.install("codex")
    assert "switches all hooks off" in said(machine.doctor("codex"), "hooks", State.BAD)


def test_a_codex_without_the_rule_for_its_sandbox_is_told(machine: Machine) -> None:
    machine.install("codex")
    (machine.home / ".codex/rules/whisper_tui.rules").unlink()
    assert "sandbox" in said(machine.doctor("codex"), "sandbox", State.NOTE)


@pytest.mark.parametrize(("version", "known"), [("2.1.197", False), ("2.1.240", False), ("2.1.241", True)])
def test_a_claude_code_that_may_let_commands_pass_a_failing_hook_is_told(
    machine: Machine, version: str, known: bool
) -> None:
    machine.client("claude", f"{version} (Claude Code)")
    machine.install("claude")
    report = machine.doctor("claude")
    assert ("version" in {check.subject for check in report.checks}) is not known
    assert report.proved


def test_a_claude_code_that_is_not_told_to_block_on_failure_is_told(machine: Machine) -> None:
    machine.install("claude")
    change(machine, ".claude/settings.json", '"onFailure": "block",', "")
    assert "when the hook itself fails" in said(machine.doctor("claude"), "hook", State.NOTE)


def test_a_claude_code_whose_hooks_are_all_disabled_is_told(machine: Machine) -> None:
    machine.write(".claude/settings.json", '{"disableAllHooks": true}')
    machine.install("claude")
    assert "disables all hooks" in said(machine.doctor("claude"), "hooks", State.BAD)


def test_a_server_of_claude_code_that_is_shared_in_the_project_is_found(machine: Machine) -> None:
    server = {"command": str(machine.bin / "whisper-tui"), "args": ["mcp"], "timeout": 86_400_000}
    (machine.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"whisper": server}}))
    assert ".mcp.json" in said(machine.doctor("claude"), "tools", State.GOOD)


@pytest.mark.parametrize("setting", [{"enabled": False}, {"disabled": ["whisper_tui"]}])
def test_a_gemini_cli_whose_hook_is_switched_off_is_told(machine: Machine, setting: dict[str, Any]) -> None:
    machine.write(".gemini/settings.json", json.dumps({"hooksConfig": setting}))
    machine.install("gemini")
    assert "off" in said(machine.doctor("gemini"), "hooks", State.BAD)


def test_a_gemini_cli_that_asks_once_more_is_told(machine: Machine) -> None:
    machine.install("gemini")
    (machine.home / ".gemini/policies/whisper_tui.toml").unlink()
    assert "asks once more" in said(machine.doctor("gemini"), "policy", State.NOTE)


def test_the_plugin_of_opencode_is_proved_without_node_too(machine: Machine) -> None:
    without_node(machine)
    machine.install("opencode")
    assert machine.doctor("opencode").proved
    machine.mood("allows")
    assert "did not deny" in said(machine.doctor("opencode"), "gate", State.BAD)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
@pytest.mark.parametrize("damage", ["throw new Error", "const answer = await ask"])
def test_a_plugin_of_opencode_that_was_changed_is_no_gate(machine: Machine, damage: str) -> None:
    machine.environ["PATH"] += os.pathsep + str(Path(shutil.which("node") or "").parent)
    machine.install("opencode")
    change(machine, FILES["opencode"], damage, f"return; {damage}")
    report = machine.doctor("opencode")
    assert said(report, "gate", State.BAD)


def test_a_second_plugin_of_opencode_is_one_too_many(machine: Machine) -> None:
    machine.install("opencode")
    plugin = machine.home / FILES["opencode"]
    machine.write(".config/opencode/plugins/copy.js", plugin.read_text())
    assert "2 times" in said(machine.doctor("opencode"), "hook", State.BAD)


def test_the_canary_is_a_harmless_command_with_a_name_that_the_supervisor_knows(tmp_path: Path, client: str) -> None:
    canary = Canary("whisper-tui-canary-0123456789abcdef", tmp_path)
    given = hook_input(client, canary)
    assert given["tool_input"]["command"] == f"touch {tmp_path}/whisper-tui-canary-0123456789abcdef"
    assert given["cwd"] == str(tmp_path)


def test_a_report_can_be_read_by_programs(machine: Machine) -> None:
    report = machine.doctor("gemini").as_json()
    assert report["client"] == "gemini" and report["version"] == "0.61.0" and report["proved"] is False
    assert {"check", "state", "sentence", "hint"} == set(report["checks"][0])
    assert {check["state"] for check in report["checks"]} <= {"good", "note", "bad"}
