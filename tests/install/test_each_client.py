"""Each client is told what it needs, in its own words and units, in the files that it reads."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.install.conftest import Machine
from tests.install.findings import said
from tests.rows import each_row
from whisper_tui.agents.claude import MATCHER
from whisper_tui.agents.client_files import Launch
from whisper_tui.agents.codex import OFFER
from whisper_tui.agents.documents import JsonDocument
from whisper_tui.agents.findings import CheckState
from whisper_tui.agents.model_instructions import OWN_SHELL_INSTRUCTIONS
from whisper_tui.model.errors import Refused

OF_OPENCODE = "opencode/plugin/whisper_tui.js"


def test_claude_code_waits_a_day_and_blocks_when_the_hook_fails(machine: Machine) -> None:
    machine.realistic("claude")
    machine.install("claude")
    settings = machine.said(".claude/settings.json")
    theirs, ours = settings["hooks"]["PreToolUse"]
    assert theirs["matcher"] == "Edit|Write"
    assert ours == {
        "matcher": MATCHER,
        "hooks": [
            {
                "type": "command",
                "command": f"{machine.start} hook claude --home {machine.instance} --deadline 86100 || exit 2",
                "timeout": 86400,
                "onFailure": "block",
                "statusMessage": "waiting in whisper_tui",
            }
        ],
    }
    assert settings["permissions"]["allow"] == ["Bash(git diff:*)", "Read(~/.zshrc)", "mcp__whisper"]
    state = machine.said(".claude.json")
    assert state["numStartups"] == 7
    assert state["mcpServers"]["whisper"] == {
        "type": "stdio",
        "command": machine.launch.program[0],
        "args": [*machine.launch.program[1:], "mcp", *machine.launch.home, "--wait", "86100", "--own-shell"],
        "timeout": 86_400_000,
        "alwaysLoad": True,
    }


PAGES = {"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli", "qwen": "qwen-code", "kimi": "kimi"}
MATCHERS = re.compile(r"""^\W*matcher"?(?:: | = )("(?:[^"\\\n]|\\.)*")""", re.MULTILINE)


@pytest.mark.parametrize("client", PAGES)
def test_the_page_of_a_client_shows_the_matchers_that_are_installed(machine: Machine, client: str) -> None:
    machine.install(client)
    read = [path.read_text() for path in sorted(machine.home.rglob("*")) if path.suffix in {".json", ".toml"}]
    installed = [matcher for text in read for matcher in MATCHERS.findall(text)]
    page = Path(__file__).parents[2] / "docs" / "agents" / f"{PAGES[client]}.md"
    shown = MATCHERS.findall(page.read_text(encoding="utf-8"))
    assert shown and sorted(shown) == sorted(installed)


def test_claude_code_lets_the_hook_see_every_tool_but_those_that_are_known_to_be_harmless() -> None:
    sees = re.compile(MATCHER).fullmatch
    sending = ("RemoteTrigger", "Artifact", "Projects", "ClaudeDesign", "SendFeedback", "PushNotification")
    working = ("Workflow", "EnterWorktree", "ExitWorktree", "CronCreate", "ScheduleWakeup", "SendMessage")
    newer = ("SomethingNew", "Reader", "mcp__other__read", "mcp__whisperer__x", "mcp__whisper")
    assert all(map(sees, ("Bash", "Monitor", "Edit", "Agent", *sending, *working, *newer)))
    assert not any(map(sees, ("Read", "Glob", "Grep", "TodoWrite", "TaskList", "mcp__whisper__wait")))


def test_claude_code_in_a_project_keeps_absolute_paths_out_of_files_that_are_shared(machine: Machine) -> None:
    (machine.project / ".git").mkdir()  # Claude Code takes the nearest one, and some agents leave one behind in /tmp.
    machine.install("claude", project=True)
    assert set(machine.files()) == {".claude.json", "work/project/.claude/settings.local.json"}
    servers = machine.said(".claude.json")["projects"][str(machine.project)]["mcpServers"]
    assert servers["whisper"]["args"] == [
        *machine.launch.program[1:],
        "mcp",
        *machine.launch.home,
        "--wait",
        "86100",
        "--own-shell",
    ]


def test_claude_code_looks_for_the_servers_of_a_project_under_the_root_of_its_repository(machine: Machine) -> None:
    (machine.project.parent / ".git").mkdir()
    machine.install("claude", project=True)
    assert list(machine.said(".claude.json")["projects"]) == [str(machine.project.parent)]


def test_the_directory_of_claude_code_may_be_elsewhere(machine: Machine) -> None:
    machine.environ["CLAUDE_CONFIG_DIR"] = str(machine.home / "elsewhere")
    machine.install("claude")
    assert set(machine.files()) == {"elsewhere/settings.json", "elsewhere/.claude.json"}


def test_codex_trusts_the_hook_is_told_the_server_and_lets_approved_commands_out_of_its_sandbox(
    machine: Machine,
) -> None:
    machine.realistic("codex")
    assert machine.plan_install("codex").notes == [OFFER]
    machine.install("codex")
    configuration = tomllib.loads(machine.text(".codex/config.toml"))
    assert configuration["mcp_servers"]["docs"]["command"] == "npx"
    assert configuration["mcp_servers"]["whisper"] == {
        "command": machine.launch.program[0],
        "args": [*machine.launch.program[1:], "mcp", *machine.launch.home, "--wait", "86100", "--own-shell"],
        "required": True,
        "startup_timeout_sec": 30,
        "tool_timeout_sec": 86_400,
        "default_tools_approval_mode": "approve",
    }
    state = configuration["hooks"]["state"]
    hooks = f"{machine.home}/.codex/hooks.json"
    events = ("pre_tool_use", "permission_request", "post_tool_use", "session_start")
    assert list(state) == [f"{hooks}:{event}:0:0" for event in events]
    assert len({one["trusted_hash"] for one in state.values()}) == 4
    (asking,) = machine.said(".codex/hooks.json")["hooks"]["PermissionRequest"]
    assert "exit 2" not in asking["hooks"][0]["command"], "if it fails, Codex asks"
    assert machine.said(".codex/hooks.json")["hooks"]["Stop"] == []
    assert json.dumps([*machine.launch.program, "exec"]) in machine.text(".codex/rules/whisper_tui.rules")


def test_codex_keeps_all_its_hooks_in_the_file_where_they_are(machine: Machine) -> None:
    text = '[[hooks.PreToolUse]]\nmatcher = "^x$"\n\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "mine"\n'
    machine.write(".codex/config.toml", text)
    machine.install("codex")
    assert ".codex/hooks.json" not in machine.files()
    hooks = tomllib.loads(machine.text(".codex/config.toml"))["hooks"]
    assert [group["matcher"] for group in hooks["PreToolUse"]] == ["^x$", "^(Bash|apply_patch|.*spawn_agent|mcp__.*)$"]
    ours = f"{machine.home}/.codex/config.toml"
    trusted = ("pre_tool_use:1:0", "permission_request:0:0", "post_tool_use:0:0", "session_start:0:0")
    assert list(hooks["state"]) == [f"{ours}:{each}" for each in trusted]
    assert machine.install("codex") == []
    machine.uninstall("codex")
    assert machine.text(".codex/config.toml") == text


@pytest.mark.parametrize("mood", ["broken", "old", "gone"])
def test_a_codex_that_does_not_answer_leaves_the_hook_untrusted_with_a_note(machine: Machine, mood: str) -> None:
    if mood == "gone":
        (machine.bin / "codex").unlink()
    else:
        (machine.bin / "codex-mood").write_text(mood)
    note, *offer = machine.plan_install("codex").notes
    assert offer == ([] if mood == "gone" else [OFFER])
    assert "stays untrusted" in note and "/hooks" in note and "whisper-tui install codex" in note
    machine.install("codex")
    assert "trusted_hash" not in machine.text(".codex/config.toml")
    machine.program("codex", Path(__file__).with_name("fake_codex.py"))
    (machine.bin / "codex-mood").unlink(missing_ok=True)
    machine.install("codex")
    assert "trusted_hash" in machine.text(".codex/config.toml")
    machine.uninstall("codex")
    assert machine.files() == {}


def test_a_codex_that_is_gone_takes_no_trust_with_it(machine: Machine) -> None:
    machine.install("codex")
    (machine.bin / "codex").unlink()
    (note,) = machine.plan_install("codex").notes
    assert "still trusts" in note
    assert machine.install("codex") == []


def test_codex_in_a_project_is_trusted_in_the_users_configuration(machine: Machine) -> None:
    assert "trust the project" in machine.plan_install("codex", project=True).notes[0]
    machine.install("codex", project=True)
    assert set(machine.files()) == {
        ".codex/config.toml",
        "work/project/.codex/config.toml",
        "work/project/.codex/hooks.json",
        "work/project/.codex/rules/whisper_tui.rules",
    }
    assert f"{machine.project}/.codex/hooks.json:pre_tool_use:0:0" in machine.text(".codex/config.toml")


def test_a_note_says_that_later_hooks_of_codex_must_be_trusted_again(machine: Machine) -> None:
    machine.install("codex")
    text = machine.said(".codex/hooks.json")
    text["hooks"]["PreToolUse"].append({"hooks": [{"type": "command", "command": "mine"}]})
    machine.write(".codex/hooks.json", json.dumps(text))
    assert "by their position" in machine.plan_install("codex", hook=False, mcp=False).notes[0]


def test_the_directory_of_codex_may_be_elsewhere(machine: Machine) -> None:
    machine.environ["CODEX_HOME"] = str(machine.home / "elsewhere")
    machine.install("codex")
    assert all(name.startswith("elsewhere/") for name in machine.files())


def test_gemini_cli_counts_in_milliseconds_and_asks_no_second_time(machine: Machine) -> None:
    machine.install("gemini")
    settings = machine.said(".gemini/settings.json")
    (group,) = settings["hooks"]["BeforeTool"]
    assert group["matcher"] == (
        "^(run_shell_command|replace|write_file|web_fetch|google_web_search|invoke_agent|mcp_(?!whisper_).*)$"
    )
    assert group["hooks"][0]["timeout"] == 86_400_000
    assert group["hooks"][0]["command"].endswith(f"hook gemini --home {machine.instance} --deadline 86100 || exit 2")
    (after,) = settings["hooks"]["AfterTool"]
    assert after["matcher"] == group["matcher"] and after["hooks"][0]["timeout"] == 30_000
    assert after["hooks"][0]["command"].endswith(f"hook gemini --home {machine.instance} --deadline 10 --after || true")
    assert settings["mcpServers"]["whisper"]["trust"] is True
    rule, marked = tomllib.loads(machine.text(".gemini/policies/whisper_tui.toml"))["rule"]
    assert (marked["toolName"], marked["decision"]) == (["replace", "write_file", "web_fetch"], "allow")
    assert marked["argsPattern"] == '"whisper_tui":"approved"'
    assert rule["toolName"] == "run_shell_command" and rule["decision"] == "allow"
    assert rule["commandPrefix"] == f"{machine.start} exec"


def test_gemini_cli_keeps_asking_if_the_agent_runs_commands_itself(machine: Machine) -> None:
    machine.install("gemini", agent_runs=True)
    assert list(machine.files()) == [".gemini/policies/whisper_tui.toml", ".gemini/settings.json"]
    (rule,) = tomllib.loads(machine.text(".gemini/policies/whisper_tui.toml"))["rule"]
    assert "run_shell_command" not in rule["toolName"]
    assert "--agent-runs" in machine.text(".gemini/settings.json")
    assert "ask about each approved command" in machine.plan_install("gemini", agent_runs=True).notes[0]


@pytest.mark.parametrize(
    ("client", "name", "matcher"),
    [
        ("claude", ".claude/settings.json", "Bash|Monitor|PowerShell"),
        ("codex", ".codex/hooks.json", "^Bash$"),
        ("gemini", ".gemini/settings.json", "^run_shell_command$"),
    ],
)
def test_a_hook_for_commands_alone_sees_no_other_tool(machine: Machine, client: str, name: str, matcher: str) -> None:
    machine.install(client)
    machine.install(client, tools=False)
    hooks = machine.said(name)["hooks"]
    (group,) = hooks["BeforeTool" if client == "gemini" else "PreToolUse"]
    assert group["matcher"] == matcher
    if client == "gemini":
        (rule,) = tomllib.loads(machine.text(".gemini/policies/whisper_tui.toml"))["rule"]
        assert rule["toolName"] == "run_shell_command"
    machine.uninstall(client)
    assert machine.files() == {}


def test_a_plugin_for_commands_alone_asks_about_no_other_tool(machine: Machine) -> None:
    machine.install("opencode")
    assert "const COMMANDS_ONLY = false\n" in machine.text(".config/opencode/plugin/whisper_tui.js")
    machine.install("opencode", tools=False)
    assert "const COMMANDS_ONLY = true\n" in machine.text(".config/opencode/plugin/whisper_tui.js")
    machine.uninstall("opencode")
    assert machine.files() == {}


@pytest.mark.parametrize(
    ("client", "name", "seen", "unseen"),
    [
        ("claude", ".claude/settings.json", "mcp__docs__search mcp__whisper_x__run Write", "mcp__whisper__wait Read"),
        ("codex", ".codex/hooks.json", "mcp__docs__search collaborationspawn_agent", "view_image"),
        ("gemini", ".gemini/settings.json", "mcp_docs_search web_fetch", "mcp_whisper_wait read_file"),
    ],
)
def test_the_matcher_leaves_out_what_only_reads_and_our_own_tools(
    machine: Machine, client: str, name: str, seen: str, unseen: str
) -> None:
    machine.install(client)
    (group,) = machine.said(name)["hooks"]["BeforeTool" if client == "gemini" else "PreToolUse"]
    assert all(re.search(group["matcher"], tool) for tool in seen.split())
    assert not any(re.search(group["matcher"], tool) for tool in unseen.split())


def test_the_home_of_gemini_cli_may_be_elsewhere(machine: Machine) -> None:
    machine.environ["GEMINI_CLI_HOME"] = str(machine.home / "elsewhere")
    machine.install("gemini")
    assert all(name.startswith("elsewhere/.gemini/") for name in machine.files())


def test_opencode_gets_a_plugin_and_is_not_asked_twice(machine: Machine) -> None:
    machine.realistic("opencode")
    machine.install("opencode")
    text = machine.text(".config/opencode/opencode.jsonc")
    assert '"edit": "ask", // always' in text
    assert f'"bash": {{\n      "*": "ask",\n      "{machine.start} exec *": "allow"\n    }},' in text
    assert '"whisper_*": "allow",\n  },' in text
    plugin = machine.text(".config/opencode/plugin/whisper_tui.js")
    words = [*machine.launch.program, "hook", "opencode", *machine.launch.home, "--deadline", "86100"]
    assert f"const HOOK = {json.dumps(words)}\n" in plugin


def test_opencode_whose_shell_is_denied_stays_so(machine: Machine) -> None:
    text = '{\n  "permission": {\n    "bash": "deny"\n  }\n}\n'
    machine.write(".config/opencode/opencode.json", text)
    machine.install("opencode")
    assert machine.said(".config/opencode/opencode.json")["permission"]["bash"] == "deny"
    machine.uninstall("opencode")
    assert machine.text(".config/opencode/opencode.json") == text


@pytest.mark.parametrize(
    ("client", "variable", "value", "expected"),
    [
        ("opencode", "XDG_CONFIG_HOME", "moved", {"moved/opencode/opencode.jsonc", f"moved/{OF_OPENCODE}"}),
        ("opencode", "OPENCODE_CONFIG", "my.json", {"my.json", f".config/{OF_OPENCODE}"}),
        ("kilo", "KILO_CONFIG", "my.json", {"my.json", ".config/kilo/plugin/whisper_tui.js"}),
        ("kilo", "OPENCODE_CONFIG", "no.json", {".config/kilo/kilo.jsonc", ".config/kilo/plugin/whisper_tui.js"}),
    ],
)
def test_the_files_of_opencode_and_kilo_may_be_elsewhere(
    machine: Machine, client: str, variable: str, value: str, expected: set[str]
) -> None:
    machine.environ[variable] = str(machine.home / value)
    machine.install(client)
    assert set(machine.files()) == expected


def test_kilo_is_given_a_plugin_that_asks_in_its_name_in_the_file_that_it_has(machine: Machine) -> None:
    machine.write(".config/kilo/opencode.json", "{}\n")
    machine.install("kilo")
    assert ".config/kilo/kilo.jsonc" not in machine.files() and "mcp" in machine.said(".config/kilo/opencode.json")
    text = machine.text(".config/kilo/plugin/whisper_tui.js")
    assert text.startswith("// Written by whisper-tui install kilo,") and '"hook", "kilo", "--home"' in text
    machine.environ["KILO_PURE"] = "1"
    assert "KILO_PURE switches all plugins off" in {check.sentence for check in machine.doctor("kilo").checks}
    del machine.environ["KILO_PURE"]
    machine.write("work/project/.kilocode/plugin/copy.js", text)
    assert "2 times" in said(machine.doctor("kilo"), "hook", CheckState.BAD)


@each_row("client", ["claude", "codex", "gemini"])
def test_a_hook_whose_launcher_is_gone_refuses(client: str) -> None:
    text = Launch(("/nowhere/whisper-tui",)).hook_text(client)
    ran = subprocess.run(["/bin/sh", "-c", text], input=b"{}", capture_output=True, timeout=60, check=False)
    assert ran.returncode == 2


def test_claude_code_runs_no_commands_of_skills_and_lets_approved_ones_out_of_its_sandbox(machine: Machine) -> None:
    machine.install("claude", mcp=False)
    settings = machine.said(".claude/settings.json")
    assert settings["disableSkillShellExecution"] is True
    assert settings["sandbox"] == {"excludedCommands": [f"{machine.start} exec *"]}


def test_without_a_hook_claude_code_stays_unchanged(machine: Machine) -> None:
    machine.install("claude", hook=False)
    assert set(machine.said(".claude/settings.json")) == {"permissions"}


@pytest.mark.parametrize("chosen", ["true", "false"])
def test_the_users_settings_for_skills_and_the_sandbox_are_restored(machine: Machine, chosen: str) -> None:
    text = (
        f'{{\n  "disableSkillShellExecution": {chosen}, // no\n'.replace(" // no", "")
        + '  "sandbox": {"enabled": true, "excludedCommands": ["docker *"]}\n}\n'
    )
    machine.write(".claude/settings.json", text)
    machine.uninstall("claude")
    assert machine.text(".claude/settings.json") == text, "nothing was ours"
    machine.install("claude")
    assert machine.said(".claude/settings.json")["disableSkillShellExecution"] is True
    assert machine.said(".claude/settings.json")["sandbox"]["excludedCommands"][0] == "docker *"
    machine.uninstall("claude")
    assert machine.text(".claude/settings.json") == text
    machine.install("claude")
    edited = machine.text(".claude/settings.json").replace("docker *", "podman *")
    machine.write(".claude/settings.json", edited)
    machine.uninstall("claude")
    assert machine.text(".claude/settings.json") == text.replace("docker *", "podman *")


@pytest.mark.parametrize("mcp", [True, False], ids=["with the tools", "without the tools"])
def test_opencode_with_one_word_for_all_permissions_keeps_it_for_all_others(machine: Machine, mcp: bool) -> None:
    text = '{\n  "permission": "ask",\n  "model": "x/y"\n}\n'
    machine.write(".config/opencode/opencode.json", text)
    machine.install("opencode", mcp=mcp)
    permission = machine.said(".config/opencode/opencode.json")["permission"]
    assert permission["*"] == "ask"
    assert permission["bash"][f"{machine.start} exec *"] == "allow"
    assert machine.install("opencode", mcp=mcp) == []
    edited = machine.text(".config/opencode/opencode.json").replace("x/y", "x/z")
    machine.write(".config/opencode/opencode.json", edited)
    machine.uninstall("opencode")
    assert machine.said(".config/opencode/opencode.json") == {"permission": "ask", "model": "x/z"}


def test_opencode_whose_permissions_are_all_denied_by_one_word_stays_so(machine: Machine) -> None:
    machine.write(".config/opencode/opencode.json", '{"permission": "deny"}')
    machine.install("opencode", mcp=False)
    assert machine.said(".config/opencode/opencode.json")["permission"] == "deny"


def test_copilot_has_its_hook_in_a_file_of_its_own_and_waits_a_day(machine: Machine) -> None:
    machine.realistic("copilot")
    machine.install("copilot")
    assert machine.said(".copilot/hooks/whisper_tui.json") == {
        "version": 1,
        "hooks": {
            "preToolUse": [
                {
                    "type": "command",
                    "bash": f"{machine.start} hook copilot --home {machine.instance} --deadline 86100 || exit 2",
                    "timeoutSec": 86400,
                }
            ],
            "postToolUse": [
                {
                    "type": "command",
                    "bash": f"{machine.start} hook copilot --home {machine.instance} --deadline 10 --after || true",
                    "timeoutSec": 30,
                }
            ],
            "SessionStart": [
                {
                    "type": "command",
                    "bash": f"{machine.start} hook copilot --home {machine.instance} --deadline 86100",
                    "timeoutSec": 30,
                }
            ],
        },
    }
    servers = machine.said(".copilot/mcp-config.json")["mcpServers"]
    assert list(servers) == ["docs", "whisper"]
    assert servers["whisper"] == {
        "type": "local",
        "command": machine.launch.program[0],
        "args": [*machine.launch.program[1:], "mcp", *machine.launch.home, "--wait", "86100", "--own-shell"],
        "tools": ["*"],
        "timeout": 86_400_000,
    }


def test_copilot_in_a_project_has_its_files_in_github(machine: Machine) -> None:
    notes = " ".join(machine.plan_install("copilot", project=True).notes)
    assert "trust its folder" in notes and "out of version control" in notes
    machine.install("copilot", project=True)
    assert set(machine.files()) == {"work/project/.github/hooks/whisper_tui.json", "work/project/.github/mcp.json"}


def test_the_directory_of_copilot_may_be_elsewhere(machine: Machine) -> None:
    machine.environ["COPILOT_HOME"] = str(machine.home / "elsewhere")
    machine.install("copilot")
    assert set(machine.files()) == {"elsewhere/hooks/whisper_tui.json", "elsewhere/mcp-config.json"}


def test_a_hook_of_copilot_for_commands_alone_has_a_matcher(machine: Machine) -> None:
    machine.install("copilot")
    machine.install("copilot", tools=False)
    (handler,) = machine.said(".copilot/hooks/whisper_tui.json")["hooks"]["preToolUse"]
    assert handler["matcher"] == "bash|write_bash"
    machine.uninstall("copilot")
    assert machine.files() == {}


def test_a_hook_of_copilot_among_others_in_our_file_goes_alone(machine: Machine) -> None:
    theirs = {"type": "command", "bash": "mine"}
    ours = {"type": "command", "bash": "/old/bin/whisper-tui hook copilot"}
    text = json.dumps({"version": 1, "hooks": {"preToolUse": [theirs, ours]}})
    machine.write(".copilot/hooks/whisper_tui.json", text)
    machine.install("copilot")
    first, second = machine.said(".copilot/hooks/whisper_tui.json")["hooks"]["preToolUse"]
    assert first == theirs and "86100" in second["bash"]
    machine.uninstall("copilot")
    assert machine.said(".copilot/hooks/whisper_tui.json")["hooks"]["preToolUse"] == [theirs]


SETTINGS = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
}
"""The files with the hooks of the clients that have one at the start of a session."""
TOLD_BY_SERVER = tuple(client for client in SETTINGS if client != "codex")
"""Those that give their models the instructions of a server."""


@pytest.mark.parametrize("client", SETTINGS)
def test_a_hook_tells_the_model_about_whisper_tui_if_no_server_does(machine: Machine, client: str) -> None:
    before = machine.realistic(client)
    machine.install(client, mcp=False)
    settings = JsonDocument(machine.text(SETTINGS[client]), comments=True).plain()
    (group,) = settings["hooks"]["SessionStart"]
    assert f"whisper-tui hook {client}" in group["hooks"][0]["command"]
    assert "exit 2" not in group["hooks"][0]["command"], "it decides nothing"
    assert machine.install(client, mcp=False) == []
    assert [check for check in machine.doctor(client).checks if check.subject == "context"] == []
    machine.uninstall(client)
    assert machine.files() == before


@pytest.mark.parametrize("client", TOLD_BY_SERVER)
def test_with_the_server_no_hook_repeats_its_instructions(machine: Machine, client: str) -> None:
    machine.install(client)
    there = machine.files()
    assert "SessionStart" not in machine.said(SETTINGS[client])["hooks"]
    machine.install(client, mcp=False)
    machine.install(client)
    # The same lines, in another order.
    assert {name: sorted(text.split()) for name, text in machine.files().items()} == {
        name: sorted(text.split()) for name, text in there.items()
    }


@pytest.mark.parametrize("client", TOLD_BY_SERVER)
@pytest.mark.few(1)
def test_the_doctor_says_if_the_model_is_told_twice_or_not_at_all(machine: Machine, client: str) -> None:
    machine.install(client, mcp=False)
    settings = machine.said(SETTINGS[client])
    starting = settings["hooks"].pop("SessionStart")
    machine.write(SETTINGS[client], json.dumps(settings))
    (check,) = [check for check in machine.doctor(client).checks if check.subject == "context"]
    assert "does not tell its model" in check.sentence and "--no-mcp" in check.hint
    machine.install(client)
    settings = machine.said(SETTINGS[client])
    settings["hooks"]["SessionStart"] = starting
    machine.write(SETTINGS[client], json.dumps(settings))
    (check,) = [check for check in machine.doctor(client).checks if check.subject == "context"]
    assert "twice" in check.sentence
    assert machine.install(client) != []
    assert [check for check in machine.doctor(client).checks if check.subject == "context"] == []


PLUGIN = ".config/opencode/plugin/whisper_tui.js"


def test_opencodes_plugin_tells_the_model_if_no_server_does_and_the_doctor_says_if_none_does(machine: Machine) -> None:
    machine.install("opencode")
    assert 'const CONTEXT = ""\n' in machine.text(PLUGIN)
    machine.install("opencode", mcp=False)
    assert f"const CONTEXT = {json.dumps(OWN_SHELL_INSTRUCTIONS)}\n" in machine.text(PLUGIN)
    assert [check for check in machine.doctor("opencode").checks if check.subject == "context"] == []
    machine.write(PLUGIN, machine.text(PLUGIN).replace(json.dumps(OWN_SHELL_INSTRUCTIONS), '""'))
    (check,) = [check for check in machine.doctor("opencode").checks if check.subject == "context"]
    assert "does not tell its model" in check.sentence and "--no-mcp" in check.hint


@pytest.mark.parametrize(
    ("client", "path"), [("copilot", ".copilot/hooks/whisper_tui.json"), ("codex", ".codex/hooks.json")]
)
def test_the_doctor_says_if_no_hook_tells_a_model_that_the_server_does_not_reach(
    machine: Machine, client: str, path: str
) -> None:
    machine.install(client)
    assert [check for check in machine.doctor(client).checks if check.subject == "context"] == []
    settings = machine.said(path)
    del settings["hooks"]["SessionStart"]
    machine.write(path, json.dumps(settings))
    (check,) = [check for check in machine.doctor(client).checks if check.subject == "context"]
    assert "does not tell its model" in check.sentence and "--no-mcp" not in check.hint


def test_kimi_waits_ten_minutes_at_most_and_a_longer_time_anywhere_is_reported(machine: Machine) -> None:
    machine.realistic("kimi")
    machine.install("kimi")
    settings = tomllib.loads(machine.text(".kimi-code/config.toml"))
    _, ours, done, failed, telling = settings["hooks"]
    assert (done["event"], failed["event"]) == ("PostToolUse", "PostToolUseFailure")
    assert done["matcher"] == ours["matcher"] and done["command"].endswith("--deadline 10 --after || true")
    assert (ours["event"], ours["timeout"]) == ("PreToolUse", 600)
    assert ours["command"].endswith(f"hook kimi --home {machine.instance} --deadline 570 --agent-runs || exit 2")
    assert telling["event"] == "UserPromptSubmit" and "exit 2" not in telling["command"]
    assert settings["permission"]["rules"][1:] == [{"decision": "allow", "pattern": "mcp__whisper__*"}]
    text = machine.text(".kimi-code/config.toml")
    machine.write(".kimi-code/config.toml", text.replace('"notify-send done"', '"notify-send done"\ntimeout = 86400'))
    (check,) = [check for check in machine.doctor("kimi").checks if check.subject == "hooks"]
    assert "ignores all of its hooks" in check.sentence


def test_kimi_has_no_hooks_in_a_project(machine: Machine) -> None:
    with pytest.raises(Refused, match="reads no hooks of a project"):
        machine.install("kimi", project=True)
    machine.install("kimi", project=True, hook=False)
    assert "whisper" in machine.said("work/project/.kimi-code/mcp.json")["mcpServers"]
    machine.uninstall("kimi", project=True)
    assert machine.files() == {}


@pytest.mark.parametrize(("event", "name"), [("sessionStart", "session_start"), ("postToolUse", "post_tool_use")])
def test_a_codex_that_does_not_list_a_hook_that_only_informs_trusts_those_that_ask(
    machine: Machine, event: str, name: str
) -> None:
    program = machine.bin / "codex"
    program.write_text(program.read_text().replace(f'    "{event}": "{name}",\n', ""))
    machine.install("codex", mcp=False)
    text = machine.text(".codex/config.toml")
    assert "pre_tool_use:0:0" in text and "permission_request:0:0" in text and name not in text
