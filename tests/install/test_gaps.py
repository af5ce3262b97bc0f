"""A project that switches a client's hooks off is noticed when the client starts whisper_tui's tools there."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ANSWER_S, PROGRAM
from tests.install.conftest import CLIENTS, Machine
from tests.install.findings import said, troubles
from tests.install.test_command_line import whisper
from tests.outside import outside_only
from whisper_tui.agents.doctor import gaps
from whisper_tui.agents.findings import CheckState
from whisper_tui.agents.known_clients import profiles

SESSION_NAMES = {profile.name: profile.hook.name for profile in profiles()}

SWITCHES = [
    ("claude", ".claude/settings.json", '{"disableAllHooks": true}', "disables all hooks"),
    ("claude", ".claude/settings.local.json", '{"disableAllHooks": true}', "disables all hooks"),
    ("claude", ".claude/settings.json", '{"disableSkillShellExecution": false}', "skills and slash commands"),
    ("claude", ".claude/settings.json", '{"env": {"LD_PRELOAD": "evil"}}', "LD_PRELOAD"),
    ("claude", ".claude/settings.json", '{"env": {"BASH_ENV": "evil"}}', "BASH_ENV"),
    ("claude", ".claude/settings.local.json", '{"env": {"ENV": "evil"}}', "sets ENV"),
    ("claude", ".claude/settings.json", '{"env": {"CLAUDE_CODE_SHELL_PREFIX": "/x/evil"}}', "CLAUDE_CODE_SHELL_PREFIX"),
    ("gemini", ".env", "BASH_ENV=evil\n", "BASH_ENV"),
    ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "switches all hooks off"),
    ("gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "switches all hooks off"),
    ("gemini", ".gemini/settings.json", '{"hooksConfig": {"disabled": ["whisper_tui"]}}', "switches the hook off"),
    ("qwen", ".qwen/settings.json", '{"disableAllHooks": true}', "switches all hooks off"),
    ("copilot", ".github/copilot/settings.json", '{"disableAllHooks": true}', "switches hooks off"),
    ("copilot", ".github/hooks/other.json", '{"version": 1, "disableAllHooks": true}', "switches hooks off"),
]


@pytest.mark.parametrize(("client", "name", "text", "why"), SWITCHES)
def test_settings_that_bypass_the_hook_are_reported_with_client_and_file(
    machine: Machine, client: str, name: str, text: str, why: str
) -> None:
    machine.install(client)
    assert gaps(SESSION_NAMES[client], machine.project, machine.environ) == []
    machine.write(f"work/project/{name}", text)
    (sentence,) = gaps(SESSION_NAMES[client], machine.project, machine.environ)
    assert sentence.startswith("Some commands of ") and f" in {machine.project} bypass the hook: " in sentence
    assert why in sentence and name in sentence


def test_an_opencode_without_plugins_is_reported(machine: Machine) -> None:
    machine.install("opencode")
    environ = {**machine.environ, "OPENCODE_PURE": "1"}
    (sentence,) = gaps("opencode", machine.project, environ)
    assert "OPENCODE_PURE switches all plugins off" in sentence


@pytest.mark.parametrize(("client", "name", "text", "why"), SWITCHES)
def test_nothing_is_reported_without_an_installed_hook(
    machine: Machine, client: str, name: str, text: str, why: str
) -> None:
    machine.install(client, hook=False)
    machine.write(f"work/project/{name}", text)
    assert gaps(SESSION_NAMES[client], machine.project, machine.environ) == [], why


def test_other_clients_have_no_hooks(machine: Machine) -> None:
    assert gaps("my-agent", machine.project, machine.environ) == []


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.few(2)
def test_in_the_users_own_directory_one_hook_is_one_hook(machine: Machine, client: str) -> None:
    machine.install(client)
    machine.project = machine.home
    report = machine.doctor(client)
    assert "times" not in " ".join(troubles(report))
    assert report.proved, troubles(report)
    assert said(report, "gate", CheckState.GOOD)


@contextmanager
def started(machine: Machine, name: str) -> Iterator[None]:
    """A client that has started the MCP server in the project, and stays."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
    server = subprocess.Popen(
        machine.agent.starts(*PROGRAM, "mcp"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**machine.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
        cwd=machine.project,
    )
    assert server.stdin is not None and server.stdout is not None
    try:
        for message in (
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        ):
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
        assert b"whisper_tui" in server.stdout.readline()
        # The first answer comes before the supervisor has started.
        assert json.loads(server.stdout.readline()) == {"jsonrpc": "2.0", "id": 2, "result": {}}
        yield
    finally:
        server.communicate(timeout=ANSWER_S)


def status(machine: Machine) -> Any:
    return json.loads(whisper(machine, "status", "--json").stdout)


@pytest.mark.slow
@outside_only
def test_a_bypassed_hook_is_reported_while_the_client_is_connected(machine: Machine) -> None:
    machine.install("claude")
    machine.write("work/project/.claude/settings.local.json", '{"disableAllHooks": true}')
    try:
        with started(machine, "claude-code"):
            for _ in range(50):
                if status(machine)["unguarded"]:
                    break
            (sentence,) = status(machine)["unguarded"]
            assert "settings.local.json disables all hooks" in sentence
            assert sentence in whisper(machine, "status").stdout
            assert sentence in whisper(machine, "list").stderr
        for _ in range(50):
            if not status(machine)["unguarded"]:
                break
        assert status(machine)["unguarded"] == []
    finally:
        whisper(machine, "stop", "--end-runs")
