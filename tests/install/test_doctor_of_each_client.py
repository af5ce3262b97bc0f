"""What can be wrong with one client alone, and what the doctor says about it."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.install.conftest import Machine
from tests.install.findings import FILES, change, said
from whisper_tui.agents.findings import CheckState


def without_node(machine: Machine) -> None:
    """A PATH on which there is no node, wherever this machine has its own."""
    tools = machine.home.parent / "tools"
    tools.mkdir()
    for name in ("sh", "env", "touch"):
        (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    machine.environ["PATH"] = f"{machine.bin}:{tools}"


def test_an_untrusted_hook_of_codex_is_reported(machine: Machine) -> None:
    machine.install("codex")
    change(machine, ".codex/config.toml", "sha256:", "sha256:0")
    report = machine.doctor("codex")
    assert "does not trust" in said(report, "trust", CheckState.BAD) and "/hooks" in said(
        report, "trust", CheckState.BAD
    )
    assert said(report, "gate", CheckState.GOOD)
    assert not report.proved


@pytest.mark.parametrize(("client", "file"), [("codex", ".codex/hooks.json"), ("claude", ".claude/settings.json")])
def test_a_client_that_asks_a_second_time_is_reported(machine: Machine, client: str, file: str) -> None:
    machine.install(client)
    assert "question" not in {check.subject for check in machine.doctor(client).checks}
    change(machine, file, "PermissionRequest", "Stop")
    assert "a second time" in said(machine.doctor(client), "question", CheckState.NOTE)


@pytest.mark.parametrize(
    ("client", "file"),
    [
        ("claude", ".claude.json"),
        ("codex", ".codex/config.toml"),
        ("gemini", ".gemini/settings.json"),
        ("opencode", ".config/opencode/opencode.jsonc"),
        ("copilot", ".copilot/mcp-config.json"),
        ("qwen", ".qwen/settings.json"),
        ("kimi", ".kimi-code/mcp.json"),
        ("kilo", ".config/kilo/kilo.jsonc"),
    ],
)
@pytest.mark.few(2)
def test_a_server_that_an_earlier_version_wrote_is_reported_beside_the_hook(
    machine: Machine, client: str, file: str
) -> None:
    machine.install(client)
    text = machine.text(file)
    changed = re.sub(r',\s*"--own-shell"', "", text)
    assert changed != text
    machine.write(file, changed)
    assert "written by an earlier version" in said(machine.doctor(client), "tools", CheckState.NOTE)
    machine.install(client)
    assert all("earlier version" not in check.sentence for check in machine.doctor(client).checks)
    machine.uninstall(client)
    machine.install(client, hook=False)
    assert all("earlier version" not in check.sentence for check in machine.doctor(client).checks)


def test_a_codex_that_does_not_read_the_project_is_reported(machine: Machine) -> None:
    machine.install("codex", project=True)
    assert "does not read" in said(machine.doctor("codex"), "trust", CheckState.BAD)


def test_a_codex_that_does_not_answer_leaves_the_trust_unknown(machine: Machine) -> None:
    machine.install("codex")
    (machine.bin / "codex-mood").write_text("old")
    assert "unknown" in said(machine.doctor("codex"), "trust", CheckState.BAD)


def test_disabled_hooks_of_codex_are_reported(machine: Machine) -> None:
    machine.write(".codex/config.toml", "[features]\nhooks = false\n")
    machine.install("codex")
    assert "switches all hooks off" in said(machine.doctor("codex"), "hooks", CheckState.BAD)


def test_a_missing_sandbox_rule_of_codex_is_reported(machine: Machine) -> None:
    machine.install("codex")
    (machine.home / ".codex/rules/whisper_tui.rules").unlink()
    assert "sandbox" in said(machine.doctor("codex"), "sandbox", CheckState.NOTE)


@pytest.mark.parametrize(("version", "known"), [("2.1.197", False), ("2.1.240", False), ("2.1.241", True)])
def test_a_claude_code_that_may_ignore_failing_hooks_is_reported(machine: Machine, version: str, known: bool) -> None:
    machine.client("claude", f"{version} (Claude Code)")
    machine.install("claude")
    report = machine.doctor("claude")
    assert ("version" in {check.subject for check in report.checks}) is not known
    assert report.proved


def test_a_claude_code_hook_without_block_on_failure_is_reported(machine: Machine) -> None:
    machine.install("claude")
    change(machine, ".claude/settings.json", '"onFailure": "block",', "")
    assert "when the hook itself fails" in said(machine.doctor("claude"), "hook", CheckState.NOTE)


def test_disabled_hooks_of_claude_code_are_reported(machine: Machine) -> None:
    machine.write(".claude/settings.json", '{"disableAllHooks": true}')
    machine.install("claude")
    assert "disables all hooks" in said(machine.doctor("claude"), "hooks", CheckState.BAD)


def test_a_server_of_claude_code_that_is_shared_in_the_project_is_found(machine: Machine) -> None:
    server = {"command": str(machine.bin / "whisper-tui"), "args": ["mcp"], "timeout": 86_400_000}
    (machine.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"whisper": server}}))
    assert ".mcp.json" in said(machine.doctor("claude"), "tools", CheckState.GOOD)


@pytest.mark.parametrize("setting", [{"enabled": False}, {"disabled": ["whisper_tui"]}])
def test_a_disabled_hook_of_gemini_cli_is_reported(machine: Machine, setting: dict[str, Any]) -> None:
    machine.write(".gemini/settings.json", json.dumps({"hooksConfig": setting}))
    machine.install("gemini")
    assert "off" in said(machine.doctor("gemini"), "hooks", CheckState.BAD)


def test_a_gemini_cli_that_asks_again_is_reported(machine: Machine) -> None:
    machine.install("gemini")
    (machine.home / ".gemini/policies/whisper_tui.toml").unlink()
    assert "asks again" in said(machine.doctor("gemini"), "policy", CheckState.NOTE)


def test_servers_about_whose_tools_gemini_cli_asks_again_are_named(machine: Machine) -> None:
    servers = {"docs": {"command": "npx"}, "far": {"httpUrl": "http://example.org"}, "own": {"url": "x", "trust": True}}
    machine.write(".gemini/settings.json", json.dumps({"mcpServers": servers}))
    machine.install("gemini")
    assert "of the tools of docs, far" in said(machine.doctor("gemini"), "servers", CheckState.NOTE)
    machine.install("gemini", gateway=True)
    assert "of the tools of far" in said(machine.doctor("gemini"), "servers", CheckState.NOTE)


def test_the_plugin_of_opencode_is_proved_without_node_too(machine: Machine) -> None:
    without_node(machine)
    machine.install("opencode")
    assert machine.doctor("opencode").proved
    machine.mood("allows")
    assert "did not deny" in said(machine.doctor("opencode"), "gate", CheckState.BAD)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
@pytest.mark.parametrize("damage", ["throw new Error", "const answer = await ask"])
def test_a_changed_plugin_of_opencode_fails_the_test(machine: Machine, damage: str) -> None:
    machine.environ["PATH"] += os.pathsep + str(Path(shutil.which("node") or "").parent)
    machine.install("opencode")
    change(machine, FILES["opencode"], damage, f"return; {damage}")
    report = machine.doctor("opencode")
    assert said(report, "gate", CheckState.BAD)


def test_a_second_plugin_of_opencode_is_one_too_many(machine: Machine) -> None:
    machine.install("opencode")
    plugin = machine.home / FILES["opencode"]
    machine.write(".config/opencode/plugins/copy.js", plugin.read_text())
    assert "2 times" in said(machine.doctor("opencode"), "hook", CheckState.BAD)


@pytest.mark.parametrize(
    ("name", "value", "is_told"),
    [
        (".claude/settings.json", None, True),
        ("work/project/.claude/settings.json", False, True),
        ("work/project/.claude/settings.local.json", False, True),
        ("work/project/.claude/settings.json", True, False),
    ],
)
def test_a_claude_code_that_runs_commands_of_skills_is_reported(
    machine: Machine, name: str, value: bool | None, is_told: bool
) -> None:
    machine.install("claude")
    if value is None:
        change(machine, name, '"disableSkillShellExecution": true', '"other": true')
    else:
        machine.write(name, json.dumps({"disableSkillShellExecution": value}))
    report = machine.doctor("claude")
    assert report.proved is not is_told
    if is_told:
        assert "skills and slash commands" in said(report, "skills", CheckState.BAD)


def test_a_claude_code_sandbox_that_breaks_approved_commands_is_reported(machine: Machine) -> None:
    machine.write("work/project/.claude/settings.json", '{"sandbox": {"enabled": true}}')
    machine.install("claude")
    assert machine.doctor("claude").proved
    change(machine, ".claude/settings.json", "whisper-tui exec *", "other *")
    assert "every approved command fails" in said(machine.doctor("claude"), "sandbox", CheckState.BAD)


def test_an_opencode_with_one_word_for_all_permissions_is_proved(machine: Machine) -> None:
    machine.write(".config/opencode/opencode.json", '{"permission": "ask"}')
    machine.install("opencode")
    assert machine.doctor("opencode").proved


def test_a_hook_of_a_project_that_copilot_does_not_trust_is_reported(machine: Machine) -> None:
    machine.install("copilot", project=True)
    assert "you have not trusted its folder" in said(machine.doctor("copilot"), "trust", CheckState.BAD)
    machine.write(".copilot/config.json", json.dumps({"trustedFolders": [str(machine.project.parent)]}))
    assert machine.doctor("copilot").proved


@pytest.mark.parametrize("name", ["settings.json", "hooks/other.json"])
@pytest.mark.parametrize("grouped", [False, True], ids=["alone", "in a group"])
@pytest.mark.few(1)
def test_a_second_hook_of_copilot_is_found_wherever_it_reads_hooks(machine: Machine, name: str, grouped: bool) -> None:
    machine.install("copilot")
    handler = {
        "type": "command",
        "command": f"{machine.bin}/whisper-tui hook copilot --home {machine.instance}",
        "timeout": 5,
    }
    listed = [{"matcher": "*", "hooks": [handler]}] if grouped else [handler]
    machine.write(f".copilot/{name}", json.dumps({"version": 1, "hooks": {"PreToolUse": listed}}))
    report = machine.doctor("copilot")
    assert "2 times" in said(report, "hook", CheckState.BAD)
    assert "waits 5 s" in said(report, "timeout", CheckState.BAD)


def test_a_matcher_of_copilot_has_to_match_all_of_a_name(machine: Machine) -> None:
    machine.install("copilot")
    change(machine, FILES["copilot"], '"type"', '"matcher": "bash|create|edi", "type"')
    sentence = said(machine.doctor("copilot"), "hook", CheckState.BAD)
    assert "write_bash, edit, apply_patch, task" in sentence
