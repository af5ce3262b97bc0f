"""Imported rules allow no more here than in their own program, and rules that were not imported are reported."""

import json
from pathlib import Path

import pytest

from tests.rows import each_row
from whisper_tui.cli.client_rules import import_rules, outside_of_system
from whisper_tui.policy.rules.rules_toml import is_about

CLAUDE = """{"permissions": {
  "allow": ["Bash(git commit:*)", "Bash(npm run test *)", "Bash(make lint)", "Bash(python:*)", "Bash", "Read(./x)"],
  "ask": ["Bash(git push:*)"], "deny": ["Bash(rm:*)", "Bash(curl * | sh)"]}}"""


def test_the_permissions_of_claude_code_are_carried_over() -> None:
    carried = import_rules("settings.json", CLAUDE)
    assert [rule.subject() for rule in carried.of("allow")] == ["git commit …", "npm run test …", "= make lint"]
    assert [rule.subject() for rule in carried.of("ask")] == ["git push …"]
    assert [rule.subject() for rule in carried.of("deny")] == ["rm …", "curl * | sh"]
    assert [sentence.partition(":")[0] for sentence in carried.left] == [
        "allow Bash(python",
        "allow Bash",
        "allow Read(./x)",
    ]


def test_the_prefix_rules_of_codex_are_carried_over_with_their_alternatives() -> None:
    text = """
prefix_rule(pattern=["git", ["status", "diff"]], decision="allow", justification="looks")
prefix_rule(pattern=["rm"], decision="forbidden")
prefix_rule(pattern=["bash", "-lc"])
host_executable(name="git")
prefix_rule(pattern=[x], decision="prompt")
"""
    carried = import_rules("default.rules", text)
    assert [rule.prefix for rule in carried.of("allow")] == [("git", "status"), ("git", "diff")]
    assert [rule.prefix for rule in carried.of("deny")] == [("rm",)]
    assert len(carried.left) == 3


def test_the_policies_of_gemini_cli_are_carried_over() -> None:
    text = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["git log", "npm test"]
decision = "allow"
priority = 100
[[rule]]
toolName = "run_shell_command"
commandRegex = "^rm"
decision = "deny"
[[rule]]
toolName = "write_file"
decision = "allow"
"""
    carried = import_rules("policy.toml", text)
    assert [(rule.prefix, rule.tool) for rule in carried.of("allow")] == [
        (("git", "log"), "run_shell_command"),
        (("npm", "test"), "run_shell_command"),
    ]
    assert len(carried.left) == 2


def permissions(**entries: list[str]) -> str:
    return json.dumps({"permissions": entries})


def test_parentheses_that_claude_code_escapes_are_those_of_the_command() -> None:
    allow, deny = (
        [r'Bash(python3 -c "print\(1\)")', r"Bash(npm run x\(y:*)"],
        [r'Bash(echo "a\(b\)")', r"Edit(src/\(a\)/**)"],
    )
    carried = import_rules("settings.json", permissions(allow=allow, deny=deny))
    (code, *_) = carried.of("allow")
    assert is_about("allow", code, 'python3 -c "print(1)"')
    assert not is_about("allow", code, 'python3 -c "print(2)"')
    assert any(is_about("deny", rule, 'echo "a(b)"') for rule in carried.of("deny"))
    assert "src/(a)/**" in {rule.path for rule in carried.of("deny")}


def test_a_denial_with_backslashes_holds_in_both_readings() -> None:
    carried = import_rules(
        "settings.json", permissions(deny=[r"Bash(grep 'a\\|b' f)"], allow=[r"Bash(grep 'a\\|b' f)"])
    )
    for text in (r"grep 'a\|b' f", r"grep 'a\\|b' f"):
        assert any(is_about("deny", rule, text) for rule in carried.of("deny")), text
    assert [rule.text for rule in carried.of("allow")] == [r"grep 'a\|b' f"]


def test_imported_rules_get_a_sandbox_in_which_their_commands_work() -> None:
    entries = ("git add:*", "mkdir:*", "npm run build:*", "ls:*", "git log:*", "npm install", "docker compose up:*")
    carried = import_rules("settings.json", permissions(allow=[f"Bash({each})" for each in entries]))
    assert {rule.name: (rule.sandbox, rule.network) for rule in carried.of("allow")} == {
        "Bash(git add:*)": ("workspace", False),
        "Bash(mkdir:*)": ("workspace", False),
        "Bash(npm run build:*)": ("workspace", False),
        "Bash(ls:*)": (None, False),
        "Bash(git log:*)": (None, False),
        "Bash(npm install)": ("workspace", True),
        "Bash(docker compose up:*)": ("workspace", False),
    }
    assert [sentence.partition(")")[0] for sentence in carried.failing] == [
        "allow Bash(npm install",
        "allow Bash(docker compose up:*",
    ]
    assert not import_rules("settings.json", permissions(deny=["Bash(mkdir:*)"])).of("deny")[0].sandbox


def test_an_import_names_the_programs_that_no_sandbox_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pytest", "tox"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    carried = import_rules(
        "settings.json",
        permissions(allow=["Bash(pytest:*)", "Bash(mkdir:*)", "Bash(CI=1 pytest -q)"], deny=["Bash(tox:*)"]),
    )
    named = [sentence.partition("; ")[0] for sentence in outside_of_system(carried.of("allow"))]
    assert named == [
        f"allow Bash({rule}): no sandbox opens {tmp_path}/pytest" for rule in ("pytest:*", "CI=1 pytest -q")
    ]


@each_row("name", ["x.json", "x.rules", "x.toml", "x.txt"])
def test_another_file_format_is_an_error(name: str) -> None:
    with pytest.raises(ValueError):
        import_rules(name, "[(")


def test_a_carried_rule_does_not_reach_further_than_its_words() -> None:
    (rule, *_) = import_rules("settings.json", CLAUDE).of("allow")
    assert is_about("allow", rule, "git commit -m x")
    assert not is_about("allow", rule, "git commit-tree")
    assert not is_about("allow", rule, "git commit -m x && rm y")


@pytest.mark.parametrize(
    "text",
    [
        """{"coreTools": ["run_shell_command(git status)", "run_shell_command(python)", "read_file", "x("],
            "excludeTools": ["ShellTool(git push)", "web_fetch"]}""",
        """{"tools": {"core": ["run_shell_command(git status)", "run_shell_command(python)", "read_file", "x("],
            "exclude": ["ShellTool(git push)", "web_fetch"]}}""",
    ],
)
def test_the_lists_of_tools_are_carried_over(text: str) -> None:
    carried = import_rules("settings.json", text)
    assert [(rule.prefix, rule.tool) for rule in carried.of("allow")] == [(("git", "status"), "run_shell_command")]
    assert [(rule.prefix, rule.anything, rule.tool) for rule in carried.of("deny")] == [
        (("git", "push"), False, "run_shell_command"),
        (None, True, "web_fetch"),
    ]
    assert len(carried.left) == 3
    with pytest.raises(ValueError, match="neither"):
        import_rules("settings.json", "{}", "lists")
