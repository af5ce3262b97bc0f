"""Deny and ask rules match calls of an agent's own tools, and allow rules do not."""

from typing import Any

from tests.model.build import a_grant
from tests.policy.build import a_question
from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Function
from whisper_tui.model.decision import ExactScope
from whisper_tui.model.verdict import Verdict
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.policy.tool_calls import evaluate_carried_out
from whisper_tui.policy.view import Question

PUSH = Rule(name="no pushing", prefix=("git", "push"), justification="people push here")
ALL = Rule(name="all", anything=True)


def asked(tool: str, **arguments: Any) -> tuple[Question, Function]:
    function = Function(tool=tool, arguments=arguments)
    question = a_question(CommandSpec(command=function, cwd="/srv/project"))
    return Question(**{**question.__dict__, "tool": tool, "now": 100.0}), function


def judged(rules: Rules, tool: str, *grants: Any, **arguments: Any) -> Verdict:
    return evaluate_carried_out(*asked(tool, **arguments), rules, grants)


@each_row(
    "arguments",
    [
        {"command": "git push"},
        {"command": "cd x && sudo git push -f"},
        {"cmd": "bash -c 'git push'"},
        {"command": "git", "args": ["push", "origin"]},
        {"command": ["git", "push"]},
        {"commands": ["ls", "git push"]},
        {"steps": [{"name": "one", "script": "git push"}]},
        {"Command": "git push"},
        {"command": "git push 'unfinished"},
    ],
)
def test_a_command_among_the_arguments_is_denied_by_its_own_words(arguments: dict[str, Any]) -> None:
    verdict = judged(Rules(deny=(PUSH,)), "run_elsewhere", **arguments)
    assert (verdict.kind, verdict.rule, verdict.reason) == ("refuse", "no pushing", "people push here")


@each_row("arguments", [{"text": "git push"}, {"command": "git status"}, {"command": 3}, {}])
def test_text_that_is_not_a_command_is_none(arguments: dict[str, Any]) -> None:
    assert judged(Rules(deny=(PUSH,)), "tweet", **arguments).kind == "ask"


def test_a_rule_for_a_tool_reaches_that_tool_alone() -> None:
    rules = Rules(deny=(ALL.model_copy(update={"tool": "tweet"}),))
    assert judged(rules, "tweet", text="hi").kind == "refuse"
    assert judged(rules, "post", text="hi").kind == "ask"
    narrow = Rules(deny=(PUSH.model_copy(update={"tool": "tweet"}),))
    assert judged(narrow, "tweet", command="git push").kind == "refuse"
    assert judged(narrow, "post", command="git push").kind == "ask"


def test_a_rule_about_everything_or_a_pattern_reaches_tools_too() -> None:
    assert judged(Rules(deny=(ALL,)), "tweet", text="hi").kind == "refuse"
    assert judged(Rules(deny=(Rule(name="p", pattern="tweet *secret*"),)), "tweet", text="a secret").kind == "refuse"


def test_a_rule_that_denies_has_its_time_and_its_sessions() -> None:
    assert judged(Rules(deny=(ALL.model_copy(update={"until": 100.0}),)), "tweet").kind == "ask"
    assert judged(Rules(deny=(ALL.model_copy(update={"trust": ("trusted_operator",)}),)), "tweet").kind == "ask"


def test_no_rule_allows_a_tool() -> None:
    assert judged(Rules(allow=(ALL,), read_only=True), "tweet", command="ls").kind == "ask"


def test_an_approval_is_weaker_than_rules_and_ends_like_any_other() -> None:
    grant = a_grant(
        spec=CommandSpec(command=Function(tool="tweet", arguments={"command": "git push"}), cwd="/srv/project")
    )
    ask = judged(Rules(), "tweet", grant, command="git push")
    assert (ask.kind, ask.grant_id) == ("allow", "g1")
    assert judged(Rules(ask=(PUSH,)), "tweet", grant, command="git push").rule == "no pushing"
    assert judged(Rules(deny=(PUSH,)), "tweet", grant, command="git push").kind == "refuse"
    assert judged(Rules(broken="x"), "tweet", grant, command="git push").kind == "ask"
    for gone in ({"until": 99.0}, {"revoked_at": 1.0}, {"scope": ExactScope(uses=1), "uses": 1}):
        assert judged(Rules(), "tweet", grant.model_copy(update=gone), command="git push").kind == "ask"
