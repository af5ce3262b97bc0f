"""The doctor says of a good installation that it is good, and of a broken one what is broken."""

import json
import re
from pathlib import Path

import pytest

from tests.install.conftest import CLIENTS, HERE, Machine
from tests.install.findings import FILES, PROJECT_FILES, change, said, troubles
from whisper_tui.agents.client_files import Launch
from whisper_tui.agents.findings import CheckState
from whisper_tui.agents.known_clients import profile_of
from whisper_tui.agents.probe import Canary

WITH_TIMEOUTS = ("claude", "codex", "gemini", "copilot")
WITH_MATCHERS = WITH_TIMEOUTS[:3]


def trust(machine: Machine, client: str) -> None:
    """The user has trusted the project, as some clients want it."""
    if client == "codex":
        machine.write(".codex/config.toml", f'[projects."{machine.project}"]\ntrust_level = "trusted"\n')
    if client == "copilot":
        folders = json.dumps([str(machine.project)])
        machine.write(".copilot/config.json", f'// Copilot writes this\n{{"trustedFolders": {folders}}}')


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_good_installation_is_proved(machine: Machine, client: str) -> None:
    machine.install(client)
    report = machine.doctor(client)
    assert troubles(report) == []
    assert report.proved
    assert "stopped a test command" in said(report, "gate", CheckState.GOOD)
    assert "answers as whisper_tui" in said(report, "tools", CheckState.GOOD)


@pytest.mark.parametrize("client", PROJECT_FILES)
def test_a_good_installation_of_a_project_is_proved(machine: Machine, client: str) -> None:
    trust(machine, client)
    machine.install(client, project=True)
    report = machine.doctor(client)
    assert troubles(report) == []
    assert PROJECT_FILES[client] in said(report, "gate", CheckState.GOOD)


def test_the_doctor_changes_no_file(machine: Machine, client: str) -> None:
    machine.install(client)
    before = machine.files()
    machine.doctor(client)
    assert machine.files() == before


def test_a_hook_that_is_gone_is_missed(machine: Machine, client: str) -> None:
    machine.install(client, hook=False)
    report = machine.doctor(client, asked_for=False)
    assert not report.proved
    assert f"Run whisper-tui install {client}" in said(report, "hook", CheckState.BAD)


def test_an_unconnected_client_is_only_reported_if_it_was_named(machine: Machine, client: str) -> None:
    assert machine.doctor(client, asked_for=False).proved
    assert "not supervised" in said(machine.doctor(client), "hook", CheckState.BAD)


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
    assert name in said(report, "hook", CheckState.GOOD)


def test_a_launcher_that_is_gone_is_named(machine: Machine, client: str) -> None:
    machine.install(client)
    (machine.bin / "whisper-tui").unlink()
    report = machine.doctor(client)
    assert f"{machine.bin}/whisper-tui" in said(report, "launcher", CheckState.BAD)
    assert "failed the test" in said(report, "gate", CheckState.BAD)
    assert "cannot be used" in said(report, "tools", CheckState.BAD)


@pytest.mark.parametrize(
    ("mood", "why"),
    [
        ("allows", "canary"),
        ("crashes", "it broke"),
        ("lonely", "no supervisor can be reached"),
        ("babbles", "hello"),
    ],
)
@pytest.mark.one_in(2)
def test_a_hook_with_another_answer_fails_the_test(machine: Machine, client: str, mood: str, why: str) -> None:
    machine.install(client)
    machine.mood(mood)
    report = machine.doctor(client)
    sentence = said(report, "gate", CheckState.BAD)
    assert why in sentence or "whisper_tui gave no answer, so nothing was run" in sentence


@pytest.mark.slow
@pytest.mark.one_in(2)
def test_a_hook_without_an_answer_fails_the_test(machine: Machine, client: str) -> None:
    machine.install(client)
    machine.mood("hangs")
    machine.canary_s = 2.0
    assert "no answer within 2 s" in said(machine.doctor(client), "gate", CheckState.BAD)


@pytest.mark.parametrize("client", PROJECT_FILES)
def test_a_hook_for_the_user_and_one_for_the_project_are_one_too_many(machine: Machine, client: str) -> None:
    trust(machine, client)
    machine.install(client)
    machine.install(client, project=True)
    sentence = said(machine.doctor(client), "hook", CheckState.BAD)
    assert "2 times" in sentence and "--project" in sentence
    assert FILES[client] in sentence and f"work/project/{PROJECT_FILES[client]}" in sentence


def test_the_hook_of_another_installation_is_reported(machine: Machine, client: str) -> None:
    machine.install(client)
    elsewhere = machine.program("whisper-tui", HERE / "fake_launcher.py", machine.home.parent / "elsewhere")
    machine.launch = Launch((str(elsewhere),))
    report = machine.doctor(client)
    assert f"{machine.bin}/whisper-tui" in said(report, "launcher", CheckState.NOTE)
    assert report.proved


@pytest.mark.parametrize("client", WITH_TIMEOUTS)
def test_too_short_timeouts_are_reported_with_the_numbers(machine: Machine, client: str) -> None:
    machine.install(client)
    change(machine, FILES[client], "86400", "600")
    sentence = said(machine.doctor(client), "timeout", CheckState.BAD)
    assert ("600 s" in sentence or "600000" in sentence) and "86100 s" in sentence


@pytest.mark.parametrize("client", WITH_TIMEOUTS)
def test_without_a_timeout_the_clients_own_counts(machine: Machine, client: str) -> None:
    machine.install(client)
    before = json.loads((machine.home / FILES[client]).read_text())
    for group in (group for groups in before["hooks"].values() for group in groups):
        for handler in group.get("hooks", [group]):
            del handler["timeoutSec" if client == "copilot" else "timeout"]
    (machine.home / FILES[client]).write_text(json.dumps(before))
    assert f"{ {'gemini': 60, 'copilot': 30}.get(client, 600) } s" in said(
        machine.doctor(client), "timeout", CheckState.BAD
    )


@pytest.mark.parametrize("client", WITH_MATCHERS)
def test_a_hook_for_another_tool_is_reported(machine: Machine, client: str) -> None:
    machine.install(client)
    shell = "run_shell_command" if client == "gemini" else "Bash"
    path = machine.home / FILES[client]
    path.write_text(re.sub(r'"matcher": "[^"]+"', '"matcher": "^Edit$"', path.read_text()))
    assert f"does not let the hook see the tools {shell}" in said(machine.doctor(client), "hook", CheckState.BAD)


@pytest.mark.parametrize("client", WITH_MATCHERS)
def test_a_hook_that_misses_a_tool_is_reported(machine: Machine, client: str) -> None:
    machine.install(client)
    # Claude Code's hook names the tools that it does not see, the others name those that they see.
    old, new, missing = {
        "claude": ("|TodoWrite|", "|TodoWrite|WebFetch|", "WebFetch"),
        "codex": ("|apply_patch", "", "apply_patch"),
        "gemini": ("|write_file", "", "write_file"),
    }[client]
    change(machine, FILES[client], old, new)
    assert f"see the tools {missing}" in said(machine.doctor(client), "hook", CheckState.BAD)


EDITS = {
    "claude": "Write",
    "codex": "apply_patch",
    "gemini": "write_file",
    "opencode": "write",
    "copilot": "create",
    "qwen": "write_file",
    "kimi": "Write",
    "kilo": "write",
}
FETCHES = {
    "claude": "WebFetch",
    "gemini": "web_fetch",
    "opencode": "webfetch",
    "copilot": "web_fetch",
    "qwen": "web_fetch",
    "kimi": "FetchURL",
    "kilo": "webfetch",
}


def test_an_edit_and_a_fetch_are_sent_as_canaries_too(machine: Machine, client: str) -> None:
    machine.install(client)
    gate = said(machine.doctor(client), "gate", CheckState.GOOD)
    sent = (machine.bin / "asked").read_text().split()
    others = [tool for tool in (EDITS[client], FETCHES.get(client)) if tool]
    assert sent[1:] == others and all(tool in gate for tool in others)


def test_a_hook_that_lets_an_edit_pass_is_reported(machine: Machine, client: str) -> None:
    machine.install(client)
    machine.mood("commands")
    assert "failed the test" in said(machine.doctor(client), "gate", CheckState.BAD)


def test_a_hook_for_commands_alone_is_proved_with_a_note(machine: Machine, client: str) -> None:
    machine.install(client, tools=False)
    machine.mood("commands")
    report = machine.doctor(client)
    assert report.proved
    assert "only commands" in said(report, "hook", CheckState.NOTE)


def test_gemini_cli_without_hooks_in_editors_is_reported(machine: Machine) -> None:
    machine.install("gemini")
    assert "--acp" in said(machine.doctor("gemini"), "acp", CheckState.NOTE)


def test_a_hook_for_bash_alone_does_not_cover_monitor(machine: Machine) -> None:
    machine.install("claude")
    machine.install("claude", tools=False)
    change(machine, FILES["claude"], "Bash|Monitor|PowerShell", "Bash")
    assert "see the tools Monitor, PowerShell" in said(machine.doctor("claude"), "hook", CheckState.BAD)


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
def test_a_broken_file_is_reported_with_the_line(machine: Machine, client: str, name: str) -> None:
    machine.install(client)
    (machine.home / name).write_text("{\n  [[\n")
    report = machine.doctor(client)
    assert not report.proved
    sentence = said(report, "file", CheckState.BAD)
    assert str(machine.home / name) in sentence and "line" in sentence


def test_a_missing_client_is_reported(machine: Machine, client: str) -> None:
    machine.install(client)
    (machine.bin / client).unlink()
    report = machine.doctor(client)
    assert "is not on PATH" in said(report, "client", CheckState.NOTE)
    assert report.version is None


def test_a_client_without_a_version_is_reported(machine: Machine, client: str) -> None:
    machine.install(client)
    (machine.bin / client).write_text("#!/bin/sh\nexit 1\n")
    assert "does not print its version" in said(machine.doctor(client), "client", CheckState.BAD)


def test_short_call_timeouts_and_second_questions_are_reported(machine: Machine, client: str) -> None:
    machine.install(client)
    if client == "codex":
        change(machine, ".codex/config.toml", "tool_timeout_sec = 86400\n", "")
        change(machine, ".codex/config.toml", 'default_tools_approval_mode = "approve"\n', "")
    elif client == "claude":
        change(machine, ".claude.json", "86400000", "60000")
        change(machine, ".claude/settings.json", '"mcp__whisper"', '"mcp__other"')
    elif client in {"gemini", "qwen"}:
        text = json.loads((machine.home / FILES[client]).read_text())
        text["mcpServers"]["whisper"] = {"command": str(machine.bin / "whisper-tui"), "args": ["mcp", "--own-shell"]}
        machine.write(FILES[client], json.dumps(text))
    elif client == "kimi":
        change(machine, ".kimi-code/mcp.json", "86400000", "60000")
        change(machine, FILES[client], '"mcp__whisper__*"', '"mcp__other__*"')
    elif client == "copilot":
        change(machine, ".copilot/mcp-config.json", "86400000", "60000")
        change(machine, FILES[client], '"type"', '"matcher": "(?!whisper).*", "type"')
    else:
        change(machine, f".config/{client}/{client}.jsonc", "86400000", "60000")
        change(machine, f".config/{client}/{client}.jsonc", '"whisper_*": "allow"', '"*": "ask"')
    notes = [check.sentence for check in machine.doctor(client).checks if check.state is CheckState.NOTE]
    notes = [sentence for sentence in notes if "--acp" not in sentence and "--safe-mode" not in sentence]
    assert len(notes) == 2
    assert "longer" in notes[0] and "second time" in notes[1]


def test_the_canary_is_a_harmless_command_with_a_name_that_the_supervisor_knows(tmp_path: Path, client: str) -> None:
    canary = Canary("whisper-tui-canary-0123456789abcdef", tmp_path)
    given = profile_of(client).hook.question(canary.command, str(canary.directory), canary.name)
    arguments = given["toolArgs" if client == "copilot" else "tool_input"]
    assert arguments["command"] == f"touch {tmp_path}/whisper-tui-canary-0123456789abcdef"
    assert given["cwd"] == str(tmp_path)


def test_a_report_can_be_read_by_programs(machine: Machine) -> None:
    report = machine.doctor("gemini").as_json()
    assert report["client"] == "gemini" and report["version"] == "0.61.0" and report["proved"] is False
    assert {"check", "state", "sentence", "hint"} == set(report["checks"][0])
    assert {check["state"] for check in report["checks"]} <= {"good", "note", "bad"}
