"""The rules of agent clients that deny or ask are at least as strict here as in the client."""

import json
from typing import Any

import pytest

from tests.model.build import ROOT
from tests.policy.build import a_question
from tests.rows import each_row
from whisper_tui.agents import claude as claude_profile
from whisper_tui.agents import codex as codex_profile
from whisper_tui.agents import copilot as copilot_profile
from whisper_tui.agents import gemini as gemini_profile
from whisper_tui.agents import opencode as opencode_profile
from whisper_tui.agents.own_rules import OwnRules
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.rule import Rule, Rules, stricter
from whisper_tui.policy.view import Question

ALLOWS_MUCH = Rules(read_only=True, allow=tuple(Rule(name=word, prefix=(word,)) for word in ("touch", "git", "make")))
"""The user's own rules of whisper_tui, which allow what the client may deny."""


def question(command: str) -> Question:
    """A text for bash in the workspace."""
    spec = CommandSpec(command=Shell(text=command), cwd=ROOT)
    return a_question(spec, resolved=Resolved(program="/usr/bin/bash", shell="bash", cwd=ROOT))


def verdict(own: OwnRules, command: str) -> str:
    rules = stricter(ALLOWS_MUCH, own.rules("Claude Code", "settings.json"))
    return evaluate(question(command), rules, ()).kind


def claude(**permissions: list[str]) -> OwnRules:
    return claude_profile.own_rules_in(json.dumps({"permissions": permissions}))


def gemini(*rules: dict[str, Any]) -> OwnRules:
    lines = []
    for rule in rules:
        lines += ["[[rule]]", *(f"{key} = {json.dumps(value)}" for key, value in rule.items())]
    return gemini_profile.own_rules_in_policy("\n".join(lines))


def opencode(bash: Any) -> OwnRules:
    return opencode_profile.own_rules_in({"permission": {"bash": bash}})


def copilot(*words: str) -> OwnRules:
    return copilot_profile.own_rules_in_options("".join(f"{word}\0" for word in ("copilot", "-p", "do it", *words)))


SHELL = {"toolName": "run_shell_command"}


@each_row(
    "own",
    [
        claude(deny=["Bash(touch:*)", "Bash(head *)"]),
        codex_profile.own_rules_in('prefix_rule(pattern=[["touch", "head"]], decision="forbidden")'),
        gemini({**SHELL, "commandPrefix": ["touch", "head"], "decision": "deny", "priority": 950}),
        gemini_profile.own_rules_in_lists(
            '{"tools": {"exclude": ["run_shell_command(touch)", "run_shell_command(head)"]}}'
        ),
        opencode({"touch *": "deny", "head *": "deny"}),
        opencode({"*": "allow", "touch*": "deny", "head*": "deny"}),
        copilot("--deny-tool=shell(touch), shell(head:*)", "--allow-all-tools"),
        copilot("--deny-tool", "shell(touch)", "shell(head)", "--allow-tool", "shell(cargo)"),
    ],
    ids=[
        "claude",
        "codex",
        "gemini",
        "gemini lists",
        "opencode",
        "opencode without a blank",
        "copilot in one word",
        "copilot in several words",
    ],
)
def test_a_clients_denial_overrides_everything(own: OwnRules) -> None:
    for command in ("touch x", "head -1 x", "cd sub && touch x", "env A=1 touch x", "bash -c 'touch x'"):
        assert verdict(own, command) == "refuse", command
    assert verdict(own, "ls") == "allow"
    assert verdict(own, "make") == "allow"
    assert verdict(own, "cargo test") == "ask"


@each_row(
    "own",
    [
        claude(ask=["Bash(git push:*)"]),
        codex_profile.own_rules_in('prefix_rule(pattern=["git", "push"], decision="prompt")'),
        gemini({**SHELL, "commandPrefix": "git push", "decision": "ask_user"}),
        opencode({"git push *": "ask"}),
    ],
    ids=["claude", "codex", "gemini", "opencode"],
)
def test_a_clients_question_overrides_permissions(own: OwnRules) -> None:
    assert verdict(own, "git push origin") == "ask"
    assert verdict(own, "git status") == "allow"


@each_row(
    "own",
    [claude(ask=["Bash"]), gemini({**SHELL, "decision": "ask_user"}), opencode("ask"), opencode({"*": "ask"})],
    ids=["claude", "gemini", "opencode", "opencode in a table"],
)
def test_a_client_that_asks_about_all_is_not_overruled_by_the_list_of_commands_that_only_look(own: OwnRules) -> None:
    assert verdict(own, "ls") == "ask"
    assert verdict(own, "make") == "allow", "a rule of the user's own is the answer to the question"


@pytest.mark.parametrize(
    "own",
    [
        opencode({"git *": "deny", "git status": "allow"}),
        gemini(
            {**SHELL, "commandPrefix": "git", "decision": "deny", "priority": 10},
            {**SHELL, "commandPrefix": "git status", "decision": "allow", "priority": 20},
        ),
    ],
    ids=["opencode", "gemini"],
)
def test_a_denial_with_exceptions_becomes_a_question(own: OwnRules) -> None:
    assert verdict(own, "git status") == "ask"
    assert verdict(own, "git log") == "ask"
    assert verdict(own, "ls") == "allow"


def test_a_denial_of_everything_with_exceptions_asks_about_everything() -> None:
    own = opencode({"*": "deny", "git *": "allow"})
    assert verdict(own, "ls") == "ask"
    assert verdict(own, "make") == "ask"


@each_row("own", [claude(deny=["Bash"]), opencode("deny"), gemini({**SHELL, "decision": "deny"})])
def test_a_client_without_a_shell_says_nothing_about_tools_that_it_has_instead(own: OwnRules) -> None:
    assert verdict(own, "make") == "allow"


@each_row(
    "own",
    [
        opencode({"touch *": "deny", "*": "allow"}),
        gemini(
            {**SHELL, "commandPrefix": "touch", "decision": "deny", "priority": 10},
            {**SHELL, "decision": "allow", "priority": 20},
        ),
        claude(allow=["Bash"]),
        codex_profile.own_rules_in('prefix_rule(pattern=["touch"])\nhost_executable(name="git")'),
    ],
    ids=["opencode", "gemini", "claude", "codex"],
)
def test_an_overridden_denial_is_not_imported_and_allows_nothing(own: OwnRules) -> None:
    assert verdict(own, "touch x") == "allow"
    assert verdict(own, "ls") == "allow"
    assert verdict(own, "cargo test") == "ask"


@each_row(
    "own",
    [
        claude(deny=["Bash($HOME/bin/x:*)"]),
        codex_profile.own_rules_in('for x in ["a"]:\n    prefix_rule(pattern=[x], decision="forbidden")'),
        codex_profile.own_rules_in('prefix_rule(pattern=[x], decision="forbidden")'),
        gemini({**SHELL, "commandRegex": "^rm", "decision": "deny"}),
        gemini({**SHELL, "argsPattern": "x", "decision": "ask_user"}),
    ],
    ids=["claude", "a loop", "a variable", "a regular expression", "a pattern of arguments"],
)
def test_a_rule_that_cannot_be_carried_over_lets_everything_be_asked(own: OwnRules) -> None:
    rules = stricter(ALLOWS_MUCH, own.rules("Codex", "default.rules"))
    found = evaluate(question("ls"), rules, ())
    assert found.kind == "ask"
    assert "default.rules" in found.reason


def test_what_copilot_is_not_started_to_deny_is_not_denied() -> None:
    for words in (("--allow-tool", "shell(touch)"), ("-p", "--deny-tool"), ("--", "--deny-tool=shell(touch)")):
        assert verdict(copilot(*words), "touch x") == "allow", words
    own = copilot("--deny-tool", "shell(git push)")
    assert (verdict(own, "git push origin"), verdict(own, "git status")) == ("refuse", "allow")
    assert verdict(copilot("--deny-tool=shell"), "ls") == "refuse", "there is no other shell that the model could take"


def test_copilots_options_deny_edits_hosts_and_tools_of_servers() -> None:
    own = copilot(
        "--deny-tool=write(.env), write(/etc/hosts), url(https://*.evil.org/x), mine(drop)", "--deny-url=a.org"
    )
    assert [rule.subject() for rule in own.deny] == [
        "edits of **/.env", "edits of //etc/hosts", "fetches from *.evil.org", "anything of mcp__mine__drop",
        "fetches from a.org",
    ]  # fmt: skip
    assert copilot("--deny-tool=shell($HOME/x)").asks_all == ["--deny-tool=shell($HOME/x)"]


def test_the_reason_names_the_client_the_rule_and_the_file() -> None:
    own = codex_profile.own_rules_in('prefix_rule(pattern=["touch"], decision="forbidden", justification="Use make")')
    found = evaluate(question("touch x"), own.rules("Codex", "/r/default.rules"), ())
    assert found.reason == "Codex denies this command itself (touch in /r/default.rules): Use make"
    assert found.rule == "client: Codex: touch"
