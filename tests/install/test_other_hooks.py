"""The doctor, and the look at a session, name each hook and plugin that may replace an approved call."""

import json
import subprocess
import time

import pytest

from tests.agent_process import AgentProcess
from tests.cli.conftest import ANSWER_S, PROGRAM
from tests.install.conftest import Machine
from tests.install.test_command_line import whisper
from tests.install.test_gaps import started
from tests.outside import outside_only
from whisper_tui.agents import claude
from whisper_tui.agents.doctor import gaps, rivals
from whisper_tui.agents.findings import CheckState
from whisper_tui.agents.known_clients import profiles
from whisper_tui.agents.other_hooks import LONGEST_COMMAND, MOST_NAMED

PROFILES = {profile.name: profile for profile in profiles()}
SESSION_NAMES = {name: profile.hook.name for name, profile in PROFILES.items()}
RUNS = {"type": "command", "command": "save-tokens --all"}


def group(event: str, matcher: str | None = None, **handler: object) -> str:
    named = {} if matcher is None else {"matcher": matcher}
    return json.dumps({"hooks": {event: [{**named, "hooks": [{**RUNS, **handler}]}]}})


TOML_HOOK = '[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "save-tokens --all"\n'
INSTALLED = json.dumps({"version": 2, "plugins": {"saver@shop": [{"installPath": "HOME/.claude/plugins/cache/saver"}]}})
COPILOT = json.dumps({"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "save-tokens --all"}]}})
FRONT = "---\nname: saver\nhooks:\n  PreToolUse:\n    - hooks: []\n---\nText\n"
PLUGIN = "export const Saver = async () => ({})\n"

PLACES = [
    (
        "claude",
        "work/project/.claude/settings.json",
        group("PreToolUse", "Bash"),
        "hooks.PreToolUse[0].hooks[0]",
        "later",
    ),
    ("claude", "work/project/.claude/settings.local.json", group("PreToolUse"), "hooks.PreToolUse[0]", "later"),
    ("claude", "work/project/.claude/settings.json", group("PreToolUse", "Write|Edit"), "hooks.PreToolUse[0]", "later"),
    ("claude", "work/project/.claude/settings.json", group("PreToolUse", "mcp__notes__.*"), "PreToolUse[0]", "later"),
    ("claude", "work/project/.claude/settings.json", group("PermissionRequest"), "hooks.PermissionRequest[0]", "later"),
    ("claude", ".claude/agents/saver.md", FRONT, "hooks.PreToolUse", "later"),
    ("claude", "work/project/.claude/skills/saver/SKILL.md", FRONT, "hooks.PreToolUse", "later"),
    ("codex", "work/project/.codex/hooks.json", group("PreToolUse"), "hooks.PreToolUse[0].hooks[0]", "later"),
    ("codex", "work/project/.codex/config.toml", TOML_HOOK, "hooks.PreToolUse[0].hooks[0]", "later"),
    ("codex", ".codex/plugins/cache/saver/hooks/hooks.json", group("PreToolUse"), "hooks.PreToolUse[0]", "later"),
    ("gemini", "work/project/.gemini/settings.json", group("BeforeTool"), "hooks.BeforeTool[0].hooks[0]", "behind"),
    ("gemini", ".gemini/extensions/saver/hooks/hooks.json", group("BeforeTool"), "hooks.BeforeTool[0]", "behind"),
    ("copilot", "work/project/.github/hooks/other.json", COPILOT, "hooks.preToolUse[0]", "behind"),
    ("copilot", ".copilot/installed-plugins/shop/saver/hooks.json", COPILOT, "hooks.preToolUse[0]", "behind"),
    ("opencode", "work/project/.opencode/plugin/saver.js", PLUGIN, "saver.js", "loaded later"),
    ("opencode", ".config/opencode/plugin/saver.ts", PLUGIN, "saver.ts", "loaded later"),
    ("opencode", "work/project/opencode.json", '{"plugin": ["saver@1"]}', "plugin[0]", "loaded later"),
    ("kilo", "work/project/.kilo/plugin/saver.js", PLUGIN, "saver.js", "loaded later"),
]


@pytest.mark.parametrize(("client", "name", "text", "place", "wins"), PLACES)
@pytest.mark.few(5)
def test_another_hook_is_named_with_its_file_its_place_and_when_it_wins(
    machine: Machine, client: str, name: str, text: str, place: str, wins: str
) -> None:
    machine.install(client)
    assert rivals(SESSION_NAMES[client], machine.project, machine.environ) == []
    machine.write(name, text)
    (sentence,) = rivals(SESSION_NAMES[client], machine.project, machine.environ)
    assert str(machine.home / name) in sentence and place in sentence and wins in sentence
    report = machine.doctor(client)
    (check,) = [check for check in report.checks if check.subject == "other hook"]
    assert check.state is CheckState.NOTE and check.sentence in sentence
    assert report.proved, "another hook need not change anything"
    assert gaps(SESSION_NAMES[client], machine.project, machine.environ) == []


@pytest.mark.parametrize("field", ["command", "url", "prompt"])
def test_whatever_a_hook_starts_is_data(machine: Machine, field: str) -> None:
    machine.install("claude")
    handler = {"type": field, "command": None, field: "x\x1b[2J" * 1000}
    machine.write("work/project/.claude/settings.json", group("PreToolUse", **handler))
    (sentence,) = rivals("claude-code", machine.project, machine.environ)
    assert "\x1b" not in sentence and len(sentence) < LONGEST_COMMAND * 3 + len(str(machine.home)) * 2 + 300


@pytest.mark.parametrize(
    "text",
    [
        group("PreToolUse", "Read"),
        group("PreToolUse", "Bash", **{"async": True}),
        group("PostToolUse"),
        group("Stop"),
        '{"hooks": []}',
        '{"hooks": {"PreToolUse": "x"}}',
        '{"hooks": {"PreToolUse": [7, {"hooks": [7]}]}}',
        "no json",
    ],
)
def test_what_cannot_change_a_call_is_not_named(machine: Machine, text: str) -> None:
    machine.install("claude")
    machine.write("work/project/.claude/settings.json", text)
    assert rivals("claude-code", machine.project, machine.environ) == []


def test_a_plugin_of_claude_code_is_named_unless_it_is_switched_off(machine: Machine) -> None:
    machine.install("claude")
    machine.write(".claude/plugins/installed_plugins.json", INSTALLED.replace("HOME", str(machine.home)))
    machine.write(".claude/plugins/cache/saver/hooks/hooks.json", group("PreToolUse", "Bash"))
    (sentence,) = rivals("claude-code", machine.project, machine.environ)
    assert "plugins/cache/saver/hooks/hooks.json" in sentence and "save-tokens --all" in sentence
    settings = machine.said(".claude/settings.json")
    machine.write(".claude/settings.json", json.dumps({**settings, "enabledPlugins": {"saver@shop": False}}))
    assert rivals("claude-code", machine.project, machine.environ) == []


def test_a_hook_of_the_machines_settings_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.install("claude")
    machine.write("managed-settings.json", group("PreToolUse"))
    machine.write("managed-settings.d/more.json", group("PreToolUse"))
    monkeypatch.setattr(claude, "MANAGED", machine.home / "managed-settings.json")
    found = rivals("claude-code", machine.project, machine.environ)
    assert [each for each in found if "managed-settings.json" in each] and len(found) == 2


def test_a_hook_behind_ours_in_one_file_is_said_to_win(machine: Machine) -> None:
    machine.install("gemini")
    settings = machine.said(".gemini/settings.json")
    settings["hooks"]["BeforeTool"].append({"hooks": [RUNS]})
    machine.write(".gemini/settings.json", json.dumps(settings))
    (sentence,) = rivals("gemini-cli", machine.project, machine.environ)
    assert "it stands behind ours and wins" in sentence


@pytest.mark.parametrize("client", ["qwen", "kimi"])
def test_clients_that_take_no_change_have_no_rivals(machine: Machine, client: str) -> None:
    machine.install(client)
    machine.write(f"work/project/.{client}/settings.json", group("PreToolUse"))
    assert rivals(SESSION_NAMES[client], machine.project, machine.environ) == []


def test_of_very_many_other_hooks_the_rest_is_counted(machine: Machine) -> None:
    machine.install("claude")
    groups = [{"hooks": [{**RUNS, "command": f"hook-{number}"}]} for number in range(MOST_NAMED + 7)]
    machine.write("work/project/.claude/settings.json", json.dumps({"hooks": {"PreToolUse": groups}}))
    found = rivals("claude-code", machine.project, machine.environ)
    assert len(found) == MOST_NAMED + 1 and found[-1].endswith("7 more")


def test_without_a_hook_of_ours_nothing_is_named(machine: Machine) -> None:
    machine.install("claude", hook=False)
    machine.write("work/project/.claude/settings.json", group("PreToolUse"))
    assert rivals("claude-code", machine.project, machine.environ) == []


@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "copilot", "qwen", "kimi", "opencode"])
@pytest.mark.few(2)
def test_an_installation_of_an_earlier_version_that_compares_nothing_is_noted(machine: Machine, client: str) -> None:
    machine.install(client)
    assert not [check for check in machine.doctor(client).checks if check.subject == "comparison"]
    path = {
        "claude": ".claude/settings.json",
        "codex": ".codex/hooks.json",
        "gemini": ".gemini/settings.json",
        "copilot": ".copilot/hooks/whisper_tui.json",
        "qwen": ".qwen/settings.json",
        "kimi": ".kimi-code/config.toml",
        "opencode": ".config/opencode/plugin/whisper_tui.js",
    }[client]
    text = machine.text(path)
    for old in ("PostToolUse", "AfterTool", "postToolUse", "tool.execute.after"):
        text = text.replace(f'"{old}', '"Elsewhere')
    machine.write(path, text)
    (check,) = [check for check in machine.doctor(client).checks if check.subject == "comparison"]
    assert "Nobody notices if something else runs" in check.sentence and "install" in check.hint


@pytest.mark.slow
@outside_only
@pytest.mark.parametrize("by_hook", [False, True], ids=["by the tools", "by the hook"])
def test_when_a_session_begins_the_other_hooks_are_in_status_and_in_the_log(machine: Machine, by_hook: bool) -> None:
    machine.install("claude")
    machine.write("work/project/.claude/settings.json", group("PreToolUse", "Bash"))
    content = {**PROFILES["claude"].hook.question("touch x", str(machine.project), "toolu_1"), "session_id": "s"}
    try:
        if by_hook:
            asking = AgentProcess().starts(*PROGRAM, "hook", "claude", "--deadline", "600")
            hook = subprocess.Popen(asking, env=machine.environ, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            assert hook.stdin is not None
            hook.stdin.write(json.dumps(content).encode())
            hook.stdin.close()
            look(machine)
            hook.kill()
            hook.wait()
        else:
            with started(machine, "claude-code"):
                look(machine)
    finally:
        whisper(machine, "stop", "--end-runs")


def unguarded(machine: Machine) -> list[str]:
    text = whisper(machine, "status", "--json").stdout
    # The supervisor is about to start.
    return list(json.loads(text)["unguarded"]) if text else []


def look(machine: Machine) -> None:
    """Wait until the other hook is named."""
    deadline = time.monotonic() + ANSWER_S
    while not (found := unguarded(machine)) and time.monotonic() < deadline:
        time.sleep(0.05)
    (sentence,) = found
    assert "Another hook may replace what you have approved" in sentence and "save-tokens" in sentence
    assert sentence in whisper(machine, "list").stderr
