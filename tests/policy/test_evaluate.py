"""The verdict: deny beats ask, ask beats allow, and a call without any match is asked."""

import pytest

from tests.model.build import HUMAN, ROOT, a_grant, a_shell, a_spec
from tests.policy.build import FOUND, a_question
from tests.rows import each_row
from whisper_tui.model.call import Argv, CommandSpec, Shell
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.risks.call_risks import ALWAYS_ASKED, LONGEST_JUDGED
from whisper_tui.policy.rules.rule import NO_RULES, ExactRule, Rule, Rules

STATUS = ExactRule(name="status", argv=("git", "status"))
LIST = ExactRule(name="list", text="ls -l | wc -l")
DOUBTFUL = {
    "control-characters": a_shell("ls \x1b[2K"),
    "deceptive-characters": a_shell("ls \u202etxt.exe"),
    "outside-workspace": a_shell("ls", cwd="/etc"),
    "several-lines": a_spec(Argv(program="ls", args=("a\nb",))),
    "substitution": a_shell("ls $(id)"),
    "too-long": a_shell("ls " + "x" * LONGEST_JUDGED),
    "unknown-shell": a_spec(Shell(text="ls", shell="/tmp/bash")),
}


def test_every_risk_that_is_always_asked_has_an_example_here() -> None:
    assert {*DOUBTFUL, "sensitive-write"} == ALWAYS_ASKED


def test_a_file_that_decides_what_runs_later_is_asked_whatever_is_allowed() -> None:
    found = FOUND.model_copy(update={"sensitive": {"/root/.bashrc": "a start-up file"}})
    rules = Rules(allow=(ExactRule(name="status", argv=("git", "status")),))
    assert evaluate(a_question(a_spec(), resolved=FOUND), rules, ()).kind == "allow"
    verdict = evaluate(a_question(a_spec(), resolved=found), rules, (a_grant(),))
    assert verdict.kind == "ask"
    assert verdict.reason.startswith("May change a start-up file")


def test_a_command_that_nothing_is_known_about_is_asked() -> None:
    verdict = evaluate(a_question(), NO_RULES, ())
    assert verdict.kind == "ask"
    assert (verdict.rule, verdict.grant_id) == (None, None)


@pytest.mark.parametrize(
    ("spec", "rule"), [(a_spec(), "status"), (a_shell("ls -l | wc -l"), "list")], ids=["argv", "shell"]
)
def test_a_rule_allows_exactly_its_words(spec: CommandSpec, rule: str) -> None:
    verdict = evaluate(a_question(spec), Rules(allow=(STATUS, LIST)), ())
    assert (verdict.kind, verdict.rule) == ("allow", rule)


@each_row(
    "spec",
    [
        a_spec(Argv(program="git", args=("status", "--short"))),
        a_spec(Argv(program="git")),
        a_spec(Argv(program="git status")),
        a_spec(Argv(program="/usr/bin/git", args=("status",))),
        a_spec(Argv(program="Git", args=("status",))),
        a_shell("git status"),
        a_shell("ls -l | wc -l "),
        a_shell("ls -l|wc -l"),
        a_shell("ls -l | wc -l; id"),
        a_shell("ls -l | wc -l\n"),
        a_spec(Argv(program="ls", args=("-l", "|", "wc", "-l"))),
    ],
)
def test_a_rule_allows_nothing_that_differs_by_a_character(spec: CommandSpec) -> None:
    assert evaluate(a_question(spec), Rules(allow=(STATUS, LIST)), ()).kind == "ask"


def test_an_added_variable_is_never_allowed_by_a_rule() -> None:
    spec = a_spec(environment={"GIT_EXTERNAL_DIFF": "/tmp/x"})
    assert evaluate(a_question(spec), Rules(allow=(STATUS,)), ()).kind == "ask"


def test_deny_beats_allow_and_memory() -> None:
    deny = STATUS.model_copy(update={"name": "never", "justification": "not on Fridays"})
    verdict = evaluate(a_question(), Rules(deny=(deny,), allow=(STATUS,)), (a_grant(),))
    assert (verdict.kind, verdict.rule, verdict.reason) == ("refuse", "never", "not on Fridays")


def test_a_rule_without_a_justification_is_named_instead() -> None:
    assert "'status'" in evaluate(a_question(), Rules(deny=(STATUS,)), ()).reason
    assert "'status'" in evaluate(a_question(), Rules(allow=(STATUS,)), ()).reason


@each_row("risk", DOUBTFUL)
def test_deny_beats_every_doubt(risk: str) -> None:
    spec = DOUBTFUL[risk]
    words = spec.command.words()
    exactly = {"argv": words} if isinstance(spec.command, Argv) else {"text": words[-1]}
    rule = ExactRule.model_validate({"name": "never", **exactly})
    assert evaluate(a_question(spec), Rules(deny=(rule,)), ()).kind == "refuse"


@each_row("risk", DOUBTFUL)
def test_uncertain_commands_are_asked_despite_rules_and_approvals(risk: str) -> None:
    spec = DOUBTFUL[risk]
    rule = ExactRule(name="always", text=spec.command.words()[-1])
    verdict = evaluate(a_question(spec), Rules(allow=(rule,)), (a_grant(spec=spec),))
    assert verdict.kind == "ask"
    assert risk in {found.id for found in verdict.risks}
    assert verdict.reason in {found.sentence for found in verdict.risks}


def test_a_command_that_cannot_start_is_asked_with_the_reason() -> None:
    resolved = FOUND.model_copy(update={"program": None, "problem": "there is no program git in PATH"})
    verdict = evaluate(a_question(resolved=resolved), Rules(allow=(STATUS,)), (a_grant(),))
    assert (verdict.kind, verdict.reason) == ("ask", "there is no program git in PATH")


def test_broken_rules_allow_nothing_and_say_why() -> None:
    broken = Rules(allow=(STATUS,), broken="line 3 is not TOML")
    verdict = evaluate(a_question(), broken, (a_grant(),))
    assert verdict.kind == "ask"
    assert "line 3 is not TOML" in verdict.reason


def test_broken_rules_still_deny_what_could_be_read() -> None:
    assert evaluate(a_question(), Rules(deny=(STATUS,), broken="line 9"), ()).kind == "refuse"


class TestMemory:
    """A standing approval: exactly this command, in exactly this directory, in this session."""

    def test_an_approval_allows_the_same_command_and_names_its_call(self) -> None:
        verdict = evaluate(a_question(), NO_RULES, (a_grant("g0", a_shell("ls")), a_grant("g1")))
        assert (verdict.kind, verdict.grant_id) == ("allow", "g1")
        assert "call 1" in verdict.reason

    def test_limits_of_time_may_differ(self) -> None:
        spec = a_spec(timeout_s=5.0, grace_s=0.5)
        assert evaluate(a_question(spec), NO_RULES, (a_grant(),)).kind == "allow"

    @pytest.mark.parametrize(
        "spec",
        [
            a_spec(Argv(program="git", args=("status", "-s"))),
            a_spec(cwd=ROOT + "/sub"),
            a_spec(cwd=ROOT + "/"),
            a_spec(environment={"GIT_DIR": "/tmp/x"}),
            a_spec(tty=True),
            a_spec(accepts_input=True),
            a_shell("git status"),
        ],
    )
    def test_an_approval_allows_nothing_else(self, spec: CommandSpec) -> None:
        assert evaluate(a_question(spec), NO_RULES, (a_grant(),)).kind == "ask"

    def test_an_approval_does_not_reach_another_session(self) -> None:
        assert evaluate(a_question(session_id="s2"), NO_RULES, (a_grant(),)).kind == "ask"

    def test_a_revoked_approval_does_not_hold(self) -> None:
        revoked = a_grant().model_copy(update={"revoked_at": 9.0})
        assert evaluate(a_question(), NO_RULES, (revoked,)).kind == "ask"

    def test_an_approval_remembers_added_variables_with_their_values(self) -> None:
        memory = (a_grant(spec=a_spec(environment={"A": "1", "B": "2"})),)
        assert evaluate(a_question(a_spec(environment={"B": "2", "A": "1"})), NO_RULES, memory).kind == "allow"
        assert evaluate(a_question(a_spec(environment={"A": "1", "B": "3"})), NO_RULES, memory).kind == "ask"
        assert evaluate(a_question(a_spec(environment={"A": "1"})), NO_RULES, memory).kind == "ask"
        assert evaluate(a_question(), NO_RULES, memory).kind == "ask"

    def test_an_approval_of_another_command_does_not_use_it_up(self) -> None:
        other = a_grant("g2", a_shell("make")).model_copy(update={"by": HUMAN, "uses": 40})
        assert evaluate(a_question(a_shell("make")), NO_RULES, (a_grant(), other)).grant_id == "g2"


@each_row(
    "text",
    [
        "AWS_PROFILE=prod terraform apply",
        "export AWS_PROFILE=prod; terraform apply",
        "AWS_PROFILE=prod; export AWS_PROFILE; terraform apply",
        "export AWS_PROFILE=prod && cd x && timeout 5 terraform apply",
        "bash -c 'export AWS_PROFILE=prod; terraform apply'",
        "export AWS_PROFILE=prod; bash -c 'terraform apply'",
        "if true; then declare -x AWS_PROFILE=prod; fi; terraform apply",
        "command export A=1 AWS_PROFILE=prod; terraform apply",
    ],
)
def test_a_rule_that_denies_a_command_with_a_variable_holds_however_it_is_set(text: str) -> None:
    anything = (Rule(name="all", anything=True),)
    words = Rules(deny=(Rule(name="production", prefix=("AWS_PROFILE=prod", "terraform")),), allow=anything)
    pattern = Rules(deny=(Rule(name="production", pattern="AWS_PROFILE=pro* terraform *"),), allow=anything)
    for rules in (words, pattern):
        assert evaluate(a_question(a_shell(text)), rules, ()).rule == "production"
        assert evaluate(a_question(a_shell(text.replace("=prod", "=test"))), rules, ()).rule != "production"
