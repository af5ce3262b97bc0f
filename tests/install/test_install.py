"""Installing leaves everything else alone, and uninstalling leaves nothing behind."""

import json
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.install.conftest import CLIENTS, Machine
from tests.install.findings import PROJECT_FILES
from whisper_tui.agents.client_files import BACKUP, JSON_WITH_COMMENTS, TOML, Launch

PLACES = [(client, project) for project in (False, True) for client in (PROJECT_FILES if project else CLIENTS)]


@pytest.mark.parametrize(("client", "project"), PLACES)
def test_uninstall_on_an_empty_home_removes_everything_that_install_made(
    machine: Machine, client: str, project: bool
) -> None:
    directories = machine.directories()
    assert machine.install(client, project=project)
    assert machine.files()
    machine.uninstall(client, project=project)
    assert machine.files() == {}
    assert machine.directories() - {".config"} == directories


@pytest.mark.parametrize("client", CLIENTS)
def test_files_of_a_user_are_as_they_were_to_the_letter(machine: Machine, client: str) -> None:
    before = machine.realistic(client)
    machine.install(client)
    assert machine.files() != before
    machine.uninstall(client)
    assert machine.files() == before


@pytest.mark.parametrize(("client", "project"), PLACES)
def test_a_second_time_there_is_nothing_to_change(machine: Machine, client: str, project: bool) -> None:
    machine.realistic(client)
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
def test_the_users_settings_and_comments_stay(machine: Machine, client: str) -> None:
    before = machine.realistic(client)
    machine.install(client)
    for name, content in before.items():
        opener = TOML if name.endswith(".toml") else JSON_WITH_COMMENTS
        text, after = content.decode(), machine.text(name)
        assert still_says(opener(after).plain(), opener(text).plain())
        comments = re.findall(r"//.*|/\*.*?\*/|# .*", text)
        assert [comment for comment in comments if comment not in after] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_a_private_backup_is_kept_beside_the_file(machine: Machine, client: str) -> None:
    before = machine.realistic(client)
    machine.install(client)
    for name, content in before.items():
        backup = machine.home / (name + BACKUP)
        assert backup.read_bytes() == content
        assert stat.S_IMODE(backup.stat().st_mode) == 0o600


@pytest.mark.parametrize("client", CLIENTS)
def test_edits_made_meanwhile_stay_and_only_our_entries_go(machine: Machine, client: str) -> None:
    before = machine.realistic(client)
    machine.install(client)
    for name in before:
        path = machine.home / name
        text = path.read_text()
        if path.suffix == ".toml":
            path.write_text(text.replace('"gpt-5"', '"gpt-6"') + "\n[history]\npersistence = 'none' # mine\n")
        else:
            path.write_text(text.replace("{", '{"edited": true, ', 1))
    if client == "codex":
        machine.write(".codex/hooks.json", machine.text(".codex/hooks.json").replace('"edited": true, ', ""))
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


def test_the_instance_that_was_chosen_is_the_one_that_clients_start(machine: Machine) -> None:
    elsewhere = machine.home.parent / "other place"
    machine.launch = Launch(machine.launch.program, ("--home", str(elsewhere)))
    machine.install("claude")
    (handler,) = machine.said(".claude/settings.json")["hooks"]["PreToolUse"][0]["hooks"]
    assert handler["command"].endswith(f"whisper-tui hook claude --home '{elsewhere}' --deadline 86100 || exit 2")
    assert machine.said(".claude.json")["mcpServers"]["whisper"]["args"] == [
        *machine.launch.program[1:],
        "mcp",
        "--home",
        str(elsewhere),
        "--wait",
        "86100",
        "--own-shell",
    ]


@pytest.mark.parametrize("client", CLIENTS)
def test_another_installation_takes_the_place_of_the_one_before(machine: Machine, client: str) -> None:
    before = machine.realistic(client)
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
def test_entries_that_are_no_longer_wanted_are_removed(machine: Machine, client: str) -> None:
    before = machine.realistic(client)
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


def test_keys_that_a_user_added_to_our_entry_are_kept(machine: Machine) -> None:
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
    groups = machine.said(".claude/settings.json")["hooks"]["PreToolUse"]
    assert groups[0] == {"hooks": [theirs]}
    assert len(groups) == 2 and "86100" in groups[1]["hooks"][0]["command"]


def test_an_empty_file_is_an_empty_file_again(machine: Machine) -> None:
    machine.write(".claude/settings.json", "")
    machine.install("claude")
    assert machine.said(".claude/settings.json")["hooks"]
    machine.uninstall("claude")
    assert machine.files() == {".claude/settings.json": b""}
