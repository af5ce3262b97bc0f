"""The files in which clients have rules of their own, as they are found and as they change."""

import json
import os
from pathlib import Path

import pytest

from whisper_tui.cli.client_rules import ClientRules
from whisper_tui.model.call import ClientInfo, Session
from whisper_tui.policy.rules.rule import NO_RULES, Rules

FILES = {
    "claude-code": [
        ("home/.claude/settings.json", '{"permissions": {"deny": ["Bash(touch:*)"]}}'),
        ("project/.claude/settings.json", '{"permissions": {"deny": ["Bash(touch:*)"]}}'),
        ("project/.claude/settings.local.json", '{"permissions": {"deny": ["Bash(touch:*)"]}}'),
    ],
    "codex": [
        ("home/.codex/rules/default.rules", 'prefix_rule(pattern=["touch"], decision="forbidden")'),
        ("project/.codex/rules/mine.rules", 'prefix_rule(pattern=["touch"], decision="forbidden")'),
    ],
    "gemini-cli": [
        (
            "home/.gemini/policies/mine.toml",
            '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "touch"\ndecision = "deny"',
        ),
        ("home/.gemini/settings.json", '{/* no */ "tools": {"exclude": ["run_shell_command(touch)"]}}'),
        ("project/.gemini/settings.json", '{"excludeTools": ["run_shell_command(touch)"]}'),
    ],
    "opencode": [
        ("home/.config/opencode/opencode.jsonc", '{"permission": {"bash": {"touch *": "deny"}}} // no'),
        ("home/.config/opencode/opencode.json", '{"permission": {"bash": {"touch *": "deny"}}}'),
        ("project/opencode.json", '{"permission": {"bash": {"touch *": "deny",}}}'),
    ],
}
ALL = [(client, name, text) for client, files in FILES.items() for name, text in files]


class Place:
    """A home, a project, and the rules of clients there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rules = ClientRules(root / "home")
        (root / "home").mkdir()
        (root / "project").mkdir()

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def of(self, client: str, **environment: str) -> Rules:
        session = Session(
            id="1", name="x", root=str(self.root / "project"), client=ClientInfo(name=client), opened_at=1.0
        )
        return self.rules.of(session, environment)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(("client", "name", "text"), ALL, ids=[f"{client} {name}" for client, name, _ in ALL])
def test_a_rule_applies_from_the_next_call_until_it_is_removed(place: Place, client: str, name: str, text: str) -> None:
    assert place.of(client).deny == ()
    path = place.write(name, text)
    (rule,) = place.of(client).deny
    assert rule.prefix == ("touch",)
    assert str(path) in rule.justification
    assert place.of(client) is place.of(client), "nothing is read twice"
    path.write_text(text.replace("touch", "head"))
    assert [rule.prefix for rule in place.of(client).deny] == [("head",)]
    path.unlink()
    assert place.of(client).deny == ()


@pytest.mark.parametrize("name", ["codex-mcp-client", "gemini-cli-mcp-client"])
def test_a_client_that_comes_for_the_tools_has_the_same_rules(place: Place, name: str) -> None:
    for _, file, text in ALL:
        place.write(file, text)
    assert place.of(name).deny


def test_other_clients_have_no_rules_of_their_own(place: Place) -> None:
    for _, file, text in ALL:
        place.write(file, text)
    assert place.of("my-agent") is NO_RULES


@pytest.mark.parametrize(
    ("client", "variable", "name"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "rules/x.rules"),
        ("gemini-cli", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
    ],
)
def test_files_that_were_moved_count_beside_those_in_the_usual_place(
    place: Place, client: str, variable: str, name: str
) -> None:
    usual, text = FILES[client][-2 if client == "gemini-cli" else 0]
    place.write(usual, text)
    assert len(place.of(client, **{variable: str(place.root / "moved")}).deny) == 1
    place.write(f"moved/{name}", text.replace("touch", "head").replace(" // no", ""))
    assert len(place.of(client, **{variable: str(place.root / "moved")}).deny) == 2


@pytest.mark.parametrize("client", FILES)
def test_a_file_that_cannot_be_read_lets_everything_be_asked(place: Place, client: str) -> None:
    name, _ = FILES[client][0]
    path = place.write(name, "{ = (")
    broken = place.of(client).broken or ""
    assert str(path) in broken and "cannot be read" in broken


def test_a_fifo_is_not_waited_for(place: Place) -> None:
    path = place.write("project/.claude/settings.json", "{}")
    path.unlink()
    os.mkfifo(path)
    assert "it is not a regular file" in (place.of("claude-code").broken or "")


def test_a_symbolic_link_is_followed(place: Place) -> None:
    target = place.write("dotfiles/settings.json", json.dumps({"permissions": {"deny": ["Bash(touch:*)"]}}))
    link = place.root / "home" / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(target)
    assert place.of("claude-code").deny
