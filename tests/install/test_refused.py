"""What cannot be read or written is named, and then nothing is changed."""

import stat

import pytest

from tests.install.conftest import CLIENTS, Machine
from whisper_tui.agents.client_files import Change, apply_changes, backup_of, changes, difference
from whisper_tui.model.errors import BadConfiguration, Refused

BROKEN = [
    ("claude", ".claude/settings.json", '{\n  "model": "x",\n  "permissions": {\n}\n', "line 5"),
    ("claude", ".claude.json", "{\n  // no comments here\n}", "line 2"),
    ("codex", ".codex/config.toml", 'model = "x"\n[tui\n', "line 2"),
    ("codex", ".codex/hooks.json", '{\n"hooks": nothing}', "line 2"),
    ("gemini", ".gemini/settings.json", '{\n\n  "ui": {,}\n}', "line 3"),
    ("opencode", ".config/opencode/opencode.json", "[\n1]", "line 1"),
    ("opencode", ".config/opencode/opencode.jsonc", '{\n  "mcp": {\n', "line 3"),
    ("copilot", ".copilot/mcp-config.json", '{\n  "mcpServers": {,}\n}', "line 2"),
]
OF_ANOTHER_SHAPE = [
    ("claude", ".claude/settings.json", '{"hooks": {"PreToolUse": "x"}}', "hooks.PreToolUse"),
    ("gemini", ".gemini/settings.json", '{"mcpServers": []}', "mcpServers"),
    ("codex", ".codex/config.toml", "mcp_servers = 1", "mcp_servers"),
    ("codex", ".codex/hooks.json", '{"hooks": {"PreToolUse": 1}}', "hooks.PreToolUse"),
    ("copilot", ".copilot/hooks/whisper_tui.json", '{"hooks": {"preToolUse": "x"}}', "hooks.preToolUse"),
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


def test_a_file_that_is_not_text_is_not_touched(machine: Machine) -> None:
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
    before = machine.realistic(client)
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
    planned = changes(machine.plan_install("claude").files)
    path.write_text('{"model": "new"}')
    with pytest.raises(Refused, match="has changed in the meantime"):
        apply_changes(planned)
    assert machine.files() == {".claude/settings.json": b'{"model": "new"}'}


def test_if_one_file_cannot_be_written_those_before_it_are_as_they_were(machine: Machine) -> None:
    there = machine.write("there.json", "{}")
    there.chmod(0o640)
    unwritable = machine.home / ("x" * 254)  # a name to which nothing can be added while it is written
    planned = [
        Change(there, "{}", '{"a": 1}', backup="{}"),
        Change(machine.home / "new.json", None, "{}"),
        Change(unwritable, None, "{}"),
    ]
    with pytest.raises(Refused, match="nothing was changed"):
        apply_changes(planned)
    assert machine.files() == {"there.json": b"{}"}
    assert stat.S_IMODE(there.stat().st_mode) == 0o640
    assert not backup_of(there).exists()


def test_a_file_where_install_needs_a_directory_changes_nothing(machine: Machine) -> None:
    machine.realistic("gemini")
    machine.write(".gemini/policies", "a file, no directory")
    before = machine.files()
    with pytest.raises((Refused, BadConfiguration)):
        machine.install("gemini")
    assert machine.files() == before


def test_hidden_letters_of_a_file_are_shown_and_not_obeyed(machine: Machine) -> None:
    machine.write(".claude/settings.json", '{"a": "\u202e"}')
    (change,) = [
        change for change in changes(machine.plan_install("claude").files) if change.path.name == "settings.json"
    ]
    shown = "\n".join(difference(change))
    assert "⟨U+202E⟩" in shown and "\u202e" not in shown
