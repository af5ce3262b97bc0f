"""Installing writes what each client needs and leaves the rest alone; uninstalling leaves nothing behind."""

import json
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.install.conftest import CLIENTS, Machine
from whisper_tui.install.files import BACKUP, JSON_WITH_COMMENTS, TOML, changes
from whisper_tui.install.launch import Launch
from whisper_tui.install.writing import carry_out, difference
from whisper_tui.model.errors import BadConfiguration, Refused

CLAUDE_SETTINGS = """{
    "$schema": "https://json.schemastore.org/claude-code-settings.json",
    "model": "opus",
    "permissions": {
        "allow": ["Bash(git diff:*)", "Read(~/.zshrc)"],
        "deny": [
            "Bash(curl:*)"
        ]
    },
    "hooks": {
        "PreToolUse": [
            {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "~/bin/lint", "timeout": 5}]}
        ],
        "Stop": []
    },
    "env": {"FOO": "bär"}
}
"""
CLAUDE_STATE = '{"numStartups":7,"projects":{"/w":{"allowedTools":[]}},"oauthAccount":{"emailAddress":"a@example.org"}}'
CODEX_CONFIG = """# my settings
model = "gpt-5"   # the good one
approval_policy = "on-request"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-server"]

[projects."/w"]
trust_level = "trusted"

[tui]
notifications = true
"""
GEMINI_SETTINGS = """{
  // how it looks
  "ui": { "theme": "GitHub" },
  "mcpServers": {
    "docs": { "command": "npx", "args": ["-y", "docs"] } // read only
  },
  /* keep */
  "security": { "auth": { "selectedType": "gemini-api-key" } }
}
"""
OPENCODE_CONFIG = """{
  "$schema": "https://opencode.ai/config.json",
  // models, and what they may do
  "model": "anthropic/claude-sonnet-4-5",
  "permission": {
    "edit": "ask", // always
    "bash": "ask",
  },
}
"""
REALISTIC = {
    "claude": {".claude/settings.json": CLAUDE_SETTINGS, ".claude.json": CLAUDE_STATE},
    "codex": {".codex/config.toml": CODEX_CONFIG, ".codex/hooks.json": '{"hooks": {"Stop": []}}\n'},
    "gemini": {".gemini/settings.json": GEMINI_SETTINGS},
    "opencode": {".config/opencode/opencode.jsonc": OPENCODE_CONFIG},
}


def realistic(machine: Machine, client: str) -> dict[str, bytes]:
    """Files as a user of the client has them."""
    for name, text in REALISTIC[client].items():
        machine.write(name, text)
    return machine.files()


def read(machine: Machine, name: str) -> Any:
    return json.loads((machine.home / name).read_text())


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("project", [False, True], ids=["user", "project"])
def test_on_an_empty_home_everything_goes_again(machine: Machine, client: str, project: bool) -> None:
    directories = machine.directories()
    assert machine.install(client, project=project)
    assert machine.files()
    machine.uninstall(client, project=project)
    assert machine.files() == {}
    assert machine.directories() - {".config"} == directories


@pytest.mark.parametrize("client", CLIENTS)
def test_files_of_a_user_are_as_they_were_to_the_letter(machine: Machine, client: str) -> None:
    before = realistic(machine, client)
    machine.install(client)
    assert machine.files() != before
    machine.uninstall(client)
    assert machine.files() == before


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("project", [False, True], ids=["user", "project"])
def test_a_second_time_there_is_nothing_to_change(machine: Machine, client: str, project: bool) -> None:
    realistic(machine, client)
    machine.install(client, project=project)
    after = machine.files()
    assert machine.install(client, project=project) == []
    assert machine.files() == after


def still_says(after: Any, before: Any) -> bool:
    """Whether all that was said is still said, in its order; a rule for everything may be one among others now."""
    if isinstance(before, dict):
        return list(before) == [key for key in after if key in before] and all(
            still_says(after[key], value) for key, value in before.items()
        )
    if isinstance(before, list):
        return len(after) >= len(before) and all(map(still_says, after, before))
    return bool(after == before) or (isinstance(after, dict) and after["*"] == before)


@pytest.mark.parametrize("client", CLIENTS)
def test_everything_that_a_user_said_is_still_said_and_every_comment_is_there(machine: Machine, client: str) -> None:
    before = realistic(machine, client)
    machine.install(client)
    for name, content in before.items():
        opener = TOML if name.endswith(".toml") else JSON_WITH_COMMENTS
        text, after = content.decode(), read_text(machine, name)
        assert still_says(opener(after).plain(), opener(text).plain())
        comments = re.findall(r"//.*|/\*.*?\*/|# .*", text)
        assert [comment for comment in comments if comment not in after] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_what_was_there_is_kept_beside_the_file_for_the_user_alone(machine: Machine, client: str) -> None:
    before = realistic(machine, client)
    machine.install(client)
    for name, content in before.items():
        backup = machine.home / (name + BACKUP)
        assert backup.read_bytes() == content
        assert stat.S_IMODE(backup.stat().st_mode) == 0o600


@pytest.mark.parametrize("client", CLIENTS)
def test_edits_made_meanwhile_stay_and_only_our_entries_go(machine: Machine, client: str) -> None:
    before = realistic(machine, client)
    machine.install(client)
    for name in before:
        path = machine.home / name
        text = path.read_text()
        if path.suffix == ".toml":
            path.write_text(text.replace('"gpt-5"', '"gpt-6"') + "\n[history]\npersistence = 'none' # mine\n")
        else:
            path.write_text(text.replace("{", '{"edited": true, ', 1))
    if client == "codex":
        machine.write(".codex/hooks.json", read_text(machine, ".codex/hooks.json").replace('"edited": true, ', ""))
    machine.uninstall(client)
    for name, content in before.items():
        after = (machine.home / name).read_text()
        if name.endswith(".toml"):
            assert (
                after == content.decode().replace('"gpt-5"', '"gpt-6"') + "\n[history]\npersistence = 'none' # mine\n"
            )
        elif client != "codex":
            assert after == content.decode().replace("{", '{"edited": true, ', 1)
        assert "whisper" not in after
    assert not [name for name in machine.files() if name.endswith(BACKUP)]


def read_text(machine: Machine, name: str) -> str:
    return (machine.home / name).read_text()


def test_claude_code_waits_a_day_and_blocks_when_the_hook_fails(machine: Machine) -> None:
    realistic(machine, "claude")
    machine.install("claude")
    settings = read(machine, ".claude/settings.json")
    theirs, ours = settings["hooks"]["PreToolUse"]
    assert theirs["matcher"] == "Edit|Write"
    assert ours == {
        "matcher": "Bash",
        "hooks": [
            {
                "type": "command",
                "command": f"{machine.bin}/whisper-tui hook claude --deadline 86100",
                "timeout": 86400,
                "onFailure": "block",
                "statusMessage": "waiting in whisper_tui",
            }
        ],
    }
    assert settings["permissions"]["allow"] == ["Bash(git diff:*)", "Read(~/.zshrc)", "mcp__whisper"]
    state = read(machine, ".claude.json")
    assert state["numStartups"] == 7
    assert state["mcpServers"]["whisper"] == {
        "type": "stdio",
        "command": f"{machine.bin}/whisper-tui",
        "args": ["mcp"],
        "timeout": 86_400_000,
        "alwaysLoad": True,
    }


def test_claude_code_in_a_project_keeps_absolute_paths_out_of_files_that_are_shared(machine: Machine) -> None:
    machine.install("claude", project=True)
    assert set(machine.files()) == {".claude.json", "work/project/.claude/settings.local.json"}
    servers = read(machine, ".claude.json")["projects"][str(machine.project)]["mcpServers"]
    assert servers["whisper"]["args"] == ["mcp"]


def test_claude_code_looks_for_the_servers_of_a_project_under_the_root_of_its_repository(machine: Machine) -> None:
    (machine.project.parent / ".git").mkdir()
    machine.install("claude", project=True)
    assert list(read(machine, ".claude.json")["projects"]) == [str(machine.project.parent)]


def test_the_directory_of_claude_code_may_be_elsewhere(machine: Machine) -> None:
    machine.environ["CLAUDE_CONFIG_DIR"] = str(machine.home / "elsewhere")
    machine.install("claude")
    assert set(machine.files()) == {"elsewhere/settings.json", "elsewhere/.claude.json"}


def test_codex_trusts_the_hook_is_told_the_server_and_lets_approved_commands_out_of_its_sandbox(
    machine: Machine,
) -> None:
    realistic(machine, "codex")
    assert machine.fulfil("codex").notes == []
    machine.install("codex")
    configuration = tomllib.loads(read_text(machine, ".codex/config.toml"))
    assert configuration["mcp_servers"]["docs"]["command"] == "npx"
    assert configuration["mcp_servers"]["whisper"] == {
        "command": f"{machine.bin}/whisper-tui",
        "args": ["mcp"],
        "required": True,
        "startup_timeout_sec": 30,
        "tool_timeout_sec": 86_400,
        "default_tools_approval_mode": "approve",
    }
    (state,) = configuration["hooks"]["state"].items()
    assert state[0] == f"{machine.home}/.codex/hooks.json:pre_tool_use:0:0"
    assert state[1]["trusted_hash"].startswith("sha256:")
    assert read(machine, ".codex/hooks.json")["hooks"]["Stop"] == []
    assert f'["{machine.bin}/whisper-tui", "exec"]' in read_text(machine, ".codex/rules/whisper_tui.rules")


def test_codex_keeps_all_its_hooks_in_the_file_where_they_are(machine: Machine) -> None:
    text = '[[hooks.PreToolUse]]\nmatcher = "^x$"\n\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "mine"\n'
    machine.write(".codex/config.toml", text)
    machine.install("codex")
    assert ".codex/hooks.json" not in machine.files()
    hooks = tomllib.loads(read_text(machine, ".codex/config.toml"))["hooks"]
    assert [group["matcher"] for group in hooks["PreToolUse"]] == ["^x$", "^Bash$"]
    assert list(hooks["state"]) == [f"{machine.home}/.codex/config.toml:pre_tool_use:1:0"]
    assert machine.install("codex") == []
    machine.uninstall("codex")
    assert read_text(machine, ".codex/config.toml") == text


@pytest.mark.parametrize("mood", ["broken", "old", "gone"])
def test_a_codex_that_cannot_be_asked_leaves_the_hook_untrusted_and_that_is_said(machine: Machine, mood: str) -> None:
    if mood == "gone":
        (machine.bin / "codex").unlink()
    else:
        (machine.bin / "codex-mood").write_text(mood)
    (note,) = machine.fulfil("codex").notes
    assert "stays untrusted" in note and "/hooks" in note and "whisper-tui install codex" in note
    machine.install("codex")
    assert "trusted_hash" not in read_text(machine, ".codex/config.toml")
    machine.program("codex", Path(__file__).with_name("fake_codex.py"))
    (machine.bin / "codex-mood").unlink(missing_ok=True)
    machine.install("codex")
    assert "trusted_hash" in read_text(machine, ".codex/config.toml")
    machine.uninstall("codex")
    assert machine.files() == {}


def test_a_codex_that_is_gone_takes_no_trust_with_it(machine: Machine) -> None:
    machine.install("codex")
    (machine.bin / "codex").unlink()
    (note,) = machine.fulfil("codex").notes
    assert "still trusts" in note
    assert machine.install("codex") == []


def test_codex_in_a_project_is_trusted_in_the_users_configuration(machine: Machine) -> None:
    assert "trust the project" in machine.fulfil("codex", project=True).notes[0]
    machine.install("codex", project=True)
    assert set(machine.files()) == {
        ".codex/config.toml",
        "work/project/.codex/config.toml",
        "work/project/.codex/hooks.json",
        "work/project/.codex/rules/whisper_tui.rules",
    }
    assert f"{machine.project}/.codex/hooks.json:pre_tool_use:0:0" in read_text(machine, ".codex/config.toml")


def test_hooks_of_codex_behind_ours_have_to_be_trusted_anew_and_that_is_said(machine: Machine) -> None:
    machine.install("codex")
    text = read(machine, ".codex/hooks.json")
    text["hooks"]["PreToolUse"].append({"hooks": [{"type": "command", "command": "mine"}]})
    machine.write(".codex/hooks.json", json.dumps(text))
    assert "by their place" in machine.fulfil("codex", hook=False, mcp=False).notes[0]


def test_the_directory_of_codex_may_be_elsewhere(machine: Machine) -> None:
    machine.environ["CODEX_HOME"] = str(machine.home / "elsewhere")
    machine.install("codex")
    assert all(name.startswith("elsewhere/") for name in machine.files())


def test_gemini_cli_counts_in_milliseconds_and_is_asked_only_for_its_own_shell(machine: Machine) -> None:
    machine.install("gemini")
    settings = read(machine, ".gemini/settings.json")
    (group,) = settings["hooks"]["BeforeTool"]
    assert group["matcher"] == "^run_shell_command$"
    assert group["hooks"][0]["timeout"] == 86_400_000
    (telling,) = settings["hooks"]["AfterTool"]
    assert telling["hooks"][0]["command"] == group["hooks"][0]["command"]
    assert settings["mcpServers"]["whisper"]["trust"] is True
    (rule,) = tomllib.loads(read_text(machine, ".gemini/policies/whisper_tui.toml"))["rule"]
    assert rule["toolName"] == "run_shell_command" and rule["decision"] == "allow"
    assert rule["commandPrefix"] == f"{machine.bin}/whisper-tui exec"


def test_gemini_cli_goes_on_asking_where_the_agent_runs_commands_itself(machine: Machine) -> None:
    machine.install("gemini", agent_runs=True)
    assert list(machine.files()) == [".gemini/settings.json"]
    assert "--agent-runs" in read_text(machine, ".gemini/settings.json")
    assert "ask about each approved command" in machine.fulfil("gemini", agent_runs=True).notes[0]


def test_the_home_of_gemini_cli_may_be_elsewhere(machine: Machine) -> None:
    machine.environ["GEMINI_CLI_HOME"] = str(machine.home / "elsewhere")
    machine.install("gemini")
    assert all(name.startswith("elsewhere/.gemini/") for name in machine.files())


def test_opencode_gets_a_plugin_and_is_not_asked_twice(machine: Machine) -> None:
    realistic(machine, "opencode")
    machine.install("opencode")
    text = read_text(machine, ".config/opencode/opencode.jsonc")
    assert '"edit": "ask", // always' in text
    assert f'"bash": {{\n      "*": "ask",\n      "{machine.bin}/whisper-tui exec *": "allow"\n    }},' in text
    assert '"whisper_*": "allow",\n  },' in text
    plugin = read_text(machine, ".config/opencode/plugin/whisper_tui.js")
    assert f'const HOOK = ["{machine.bin}/whisper-tui", "hook", "opencode", "--deadline", "86100"]\n' in plugin


def test_opencode_whose_shell_is_denied_stays_so(machine: Machine) -> None:
    text = '{\n  "permission": {\n    "bash": "deny"\n  }\n}\n'
    machine.write(".config/opencode/opencode.json", text)
    machine.install("opencode")
    assert read(machine, ".config/opencode/opencode.json")["permission"]["bash"] == "deny"
    machine.uninstall("opencode")
    assert read_text(machine, ".config/opencode/opencode.json") == text


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("XDG_CONFIG_HOME", "moved", {"moved/opencode/opencode.jsonc", "moved/opencode/plugin/whisper_tui.js"}),
        ("OPENCODE_CONFIG", "my.json", {"my.json", ".config/opencode/plugin/whisper_tui.js"}),
    ],
)
def test_the_files_of_opencode_may_be_elsewhere(
    machine: Machine, variable: str, value: str, expected: set[str]
) -> None:
    machine.environ[variable] = str(machine.home / value)
    machine.install("opencode")
    assert set(machine.files()) == expected


def test_the_instance_that_was_chosen_is_the_one_that_clients_start(machine: Machine) -> None:
    machine.launch = Launch(machine.launch.program, ("--home", "/other place"))
    machine.install("claude")
    (handler,) = read(machine, ".claude/settings.json")["hooks"]["PreToolUse"][0]["hooks"]
    assert handler["command"].endswith("whisper-tui hook claude --home '/other place' --deadline 86100")
    assert read(machine, ".claude.json")["mcpServers"]["whisper"]["args"] == ["mcp", "--home", "/other place"]


@pytest.mark.parametrize("client", CLIENTS)
def test_another_installation_takes_the_place_of_the_one_before(machine: Machine, client: str) -> None:
    before = realistic(machine, client)
    machine.install(client)
    first = machine.launch
    source = Path(__file__).with_name("fake_launcher.py")
    machine.launch = Launch((str(machine.program("whisper-tui", source, machine.home.parent / "new")),))
    machine.install(client)
    for name, content in machine.files().items():
        assert name.endswith(BACKUP) or first.program[0].encode() not in content
    machine.uninstall(client)
    assert machine.files() == before


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_not_asked_for_again_is_taken_out(machine: Machine, client: str) -> None:
    before = realistic(machine, client)
    machine.install(client)
    everything = machine.files()
    machine.install(client, mcp=False)
    assert not any(
        b"86400000" in text and b'"mcp"' in text for name, text in machine.files().items() if BACKUP not in name
    )
    machine.install(client, hook=False)
    assert not any(b" hook " in text for text in machine.files().values())
    machine.install(client)
    assert set(machine.files()) == set(everything)
    machine.uninstall(client)
    assert {name: text.split() for name, text in machine.files().items()} == {
        name: text.split() for name, text in before.items()
    }


def test_what_a_user_added_to_our_entry_is_kept(machine: Machine) -> None:
    machine.install("codex")
    path = machine.home / ".codex" / "config.toml"
    path.write_text(path.read_text() + '\n[mcp_servers.whisper.env]\nLANG = "C"\n')
    machine.launch = Launch(("/elsewhere/whisper-tui",))
    machine.install("codex")
    server = tomllib.loads(path.read_text())["mcp_servers"]["whisper"]
    assert server["command"] == "/elsewhere/whisper-tui"
    assert server["env"] == {"LANG": "C"}
    machine.uninstall("codex")
    assert machine.files() == {}


def test_a_handler_of_ours_in_a_group_of_the_users_goes_alone(machine: Machine) -> None:
    theirs = {"type": "command", "command": "mine"}
    ours = {"type": "command", "command": "/old/bin/whisper-tui hook claude"}
    machine.write(".claude/settings.json", json.dumps({"hooks": {"PreToolUse": [{"hooks": [theirs, ours]}]}}))
    machine.install("claude")
    groups = read(machine, ".claude/settings.json")["hooks"]["PreToolUse"]
    assert groups[0] == {"hooks": [theirs]}
    assert len(groups) == 2 and "86100" in groups[1]["hooks"][0]["command"]


BROKEN = [
    ("claude", ".claude/settings.json", '{\n  "model": "x",\n  "permissions": {\n}\n', "line 5"),
    ("claude", ".claude.json", "{\n  // no comments here\n}", "line 2"),
    ("codex", ".codex/config.toml", 'model = "x"\n[tui\n', "line 2"),
    ("codex", ".codex/hooks.json", '{\n"hooks": nothing}', "line 2"),
    ("gemini", ".gemini/settings.json", '{\n\n  "ui": {,}\n}', "line 3"),
    ("opencode", ".config/opencode/opencode.json", "[\n1]", "line 1"),
    ("opencode", ".config/opencode/opencode.jsonc", '{\n  "mcp": {\n', "line 3"),
]
OF_ANOTHER_SHAPE = [
    ("claude", ".claude/settings.json", '{"hooks": {"PreToolUse": "x"}}', "hooks.PreToolUse"),
    ("gemini", ".gemini/settings.json", '{"mcpServers": []}', "mcpServers"),
    ("codex", ".codex/config.toml", "mcp_servers = 1", "mcp_servers"),
    ("codex", ".codex/hooks.json", '{"hooks": {"PreToolUse": 1}}', "hooks.PreToolUse"),
]


@pytest.mark.parametrize(("client", "name", "text", "where"), BROKEN)
@pytest.mark.parametrize("wanted", [True, False], ids=["install", "uninstall"])
def test_a_broken_file_is_named_with_its_place_and_nothing_is_written(
    machine: Machine, client: str, name: str, text: str, where: str, wanted: bool
) -> None:
    path = machine.write(name, text)
    before = machine.files()
    with pytest.raises(BadConfiguration) as told:
        machine.install(client, hook=wanted, mcp=wanted)
    assert str(path) in told.value.sentence() and where in told.value.sentence()
    assert machine.files() == before


@pytest.mark.parametrize(("client", "name", "text", "where"), OF_ANOTHER_SHAPE)
def test_a_place_that_the_client_would_not_read_is_named_and_nothing_is_written(
    machine: Machine, client: str, name: str, text: str, where: str
) -> None:
    path = machine.write(name, text)
    before = machine.files()
    with pytest.raises(BadConfiguration) as told:
        machine.install(client)
    assert str(path) in told.value.sentence() and where in told.value.sentence()
    machine.uninstall(client)
    assert machine.files() == before


def test_a_file_that_is_no_text_is_not_touched(machine: Machine) -> None:
    path = machine.write(".claude/settings.json", "")
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(BadConfiguration, match="UTF-8"):
        machine.install("claude")
    assert path.read_bytes() == b'{"a": "\xff"}'


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("codex", ".codex/rules/whisper_tui.rules"),
        ("gemini", ".gemini/policies/whisper_tui.toml"),
        ("opencode", ".config/opencode/plugin/whisper_tui.js"),
    ],
)
def test_a_file_of_somebody_elses_is_not_taken_for_ours(machine: Machine, client: str, name: str) -> None:
    machine.write(name, "mine\n")
    with pytest.raises(Refused, match="not written by whisper_tui"):
        machine.install(client)
    machine.uninstall(client)
    assert machine.files() == {name: b"mine\n"}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_symbolic_link_stays_one(machine: Machine, client: str) -> None:
    before = realistic(machine, client)
    for name in before:
        path = machine.home / name
        kept = machine.home / "dotfiles" / name.replace("/", "_")
        kept.parent.mkdir(exist_ok=True)
        path.rename(kept)
        path.symlink_to(kept)
    machine.install(client)
    for name, content in before.items():
        assert (machine.home / name).is_symlink()
        assert (machine.home / "dotfiles" / name.replace("/", "_")).read_bytes() != content
    machine.uninstall(client)
    for name, content in before.items():
        assert (machine.home / name).is_symlink()
        assert (machine.home / "dotfiles" / name.replace("/", "_")).read_bytes() == content


def test_a_symbolic_link_to_a_file_that_is_not_there_is_one_again(machine: Machine) -> None:
    (machine.home / "dotfiles").mkdir()
    link = machine.home / ".claude.json"
    link.symlink_to(machine.home / "dotfiles" / "claude.json")
    machine.install("claude")
    assert (machine.home / "dotfiles" / "claude.json").exists()
    machine.uninstall("claude")
    assert link.is_symlink() and not link.exists()


def test_a_file_keeps_its_permissions_and_a_new_one_is_the_users_alone(machine: Machine) -> None:
    path = machine.write(".claude/settings.json", "{}")
    path.chmod(0o644)
    machine.install("claude")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE((machine.home / ".claude.json").stat().st_mode) == 0o600


def test_a_file_that_changed_after_it_was_shown_is_not_written(machine: Machine) -> None:
    path = machine.write(".claude/settings.json", "{}")
    planned = changes(machine.fulfil("claude").files)
    path.write_text('{"model": "new"}')
    with pytest.raises(Refused, match="changed meanwhile"):
        carry_out(planned)
    assert machine.files() == {".claude/settings.json": b'{"model": "new"}'}


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_if_one_file_cannot_be_written_none_is(machine: Machine) -> None:
    realistic(machine, "opencode")
    before = machine.files()
    blocked = machine.home / ".config" / "opencode" / "plugin"
    blocked.mkdir()
    blocked.chmod(0o500)
    with pytest.raises(Refused, match="cannot be written"):
        machine.install("opencode")
    assert machine.files() == before


def test_if_a_directory_is_in_the_way_nothing_is_changed(machine: Machine) -> None:
    realistic(machine, "gemini")
    machine.write(".gemini/policies", "a file, no directory")
    before = machine.files()
    with pytest.raises((Refused, BadConfiguration)):
        machine.install("gemini")
    assert machine.files() == before


def test_an_empty_file_is_an_empty_file_again(machine: Machine) -> None:
    machine.write(".claude/settings.json", "")
    machine.install("claude")
    assert read(machine, ".claude/settings.json")["hooks"]
    machine.uninstall("claude")
    assert machine.files() == {".claude/settings.json": b""}


def test_hidden_letters_of_a_file_are_shown_and_not_obeyed(machine: Machine) -> None:
    machine.write(".claude/settings.json", '{"a": "\u202e"}')
    (change,) = [change for change in changes(machine.fulfil("claude").files) if change.before]
    shown = "\n".join(difference(change))
    assert "⟨U+202E⟩" in shown and "\u202e" not in shown
