"""Rules and approvals at places: permissions cover the place that they name, and denials cover every place."""

from dataclasses import replace

from tests.model.build import a_grant, a_shell, a_spec
from tests.policy.build import a_question
from tests.rows import each_row
from whisper_tui.config.project_rules import restrictions_only, trusted_here
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.decision import PrefixScope, RuleScope
from whisper_tui.model.run import Sandbox
from whisper_tui.policy.evaluate import evaluate, undo_plan
from whisper_tui.policy.rules.grants import saved_rule
from whisper_tui.policy.rules.matching import place_by_rule
from whisper_tui.policy.rules.rule import NO_RULES, Rule, Rules, stricter
from whisper_tui.policy.rules.rules_toml import read_rules, rules_text

MAKE = Rule(name="make", prefix=("make", "test"), sandbox=False)


def at(place: str, text: str = "make test") -> CommandSpec:
    return a_shell(text, place=place)


def kind(spec: CommandSpec, rules: Rules, *grants: object) -> str:
    return evaluate(a_question(spec), rules, grants).kind  # type: ignore[arg-type]


@each_row(
    ("said", "allowed"),
    [(None, [""]), ("here", [""]), ("gpu1", ["gpu1"]), ("*", ["", "gpu1", "gpu2"])],
)
def test_a_rule_allows_at_the_place_that_it_names_and_without_one_on_this_machine(
    said: str | None, allowed: list[str]
) -> None:
    rules = Rules(allow=(MAKE.model_copy(update={"place": said}),))
    assert [place for place in ("", "gpu1", "gpu2") if kind(at(place), rules) == "allow"] == allowed


@each_row(
    ("said", "reached"),
    [(None, ["", "gpu1", "gpu2"]), ("here", [""]), ("gpu1", ["gpu1"]), ("*", ["", "gpu1", "gpu2"])],
)
@each_row("effect", ["deny", "ask"])
def test_a_rule_that_restricts_is_about_every_place_unless_it_names_one(
    effect: str, said: str | None, reached: list[str]
) -> None:
    rule = Rule(name="no", prefix=("make",), place=said)
    everywhere = MAKE.model_copy(update={"place": "*"})
    rules = Rules.model_validate({effect: (rule,), "allow": (everywhere,)})
    assert [place for place in ("", "gpu1", "gpu2") if kind(at(place), rules) != "allow"] == reached


def test_nothing_runs_at_a_place_because_it_only_reads() -> None:
    rules = Rules(read_only=True)
    assert kind(a_shell("ls -l"), rules) == "allow"
    assert kind(at("gpu1", "ls -l"), rules) == "ask"
    assert kind(at("gpu1", "ls *.py"), rules) == "ask"
    # Where this machine has no sandbox, programs that can do nothing else run without one, but on this machine.
    plain = [replace(a_question(at(place, "pwd")), sandbox_problem="no Landlock") for place in ("", "gpu1")]
    assert [evaluate(question, rules, ()).kind for question in plain] == ["allow", "ask"]


def test_a_permission_that_needs_a_sandbox_asks_at_a_place() -> None:
    rules = Rules(allow=(MAKE.model_copy(update={"place": "gpu1", "sandbox": "workspace"}),))
    verdict = evaluate(a_question(at("gpu1")), rules, ())
    assert verdict.kind == "ask"
    assert verdict.reason == "it may run without asking only in a sandbox, and there is none at gpu1"


def test_an_approval_at_one_place_is_none_at_another() -> None:
    for scope in ("exact_for_session", PrefixScope(words=("make", "test"))):
        here, there = (a_grant(spec=at(place)).model_copy(update={"scope": scope}) for place in ("", "gpu1"))
        assert [kind(at(place), NO_RULES, here) for place in ("", "gpu1")] == ["allow", "ask"]
        assert [kind(at(place), NO_RULES, there) for place in ("", "gpu1", "gpu2")] == ["ask", "allow", "ask"]


def test_a_rule_that_is_saved_with_an_approval_is_about_the_place_of_the_command() -> None:
    scope = RuleScope(words=("make", "test"))
    rule = saved_rule(scope, at("gpu1"), call_id="1", root=None, now=0.0)
    assert (rule.place, rule.sandbox) == ("gpu1", False)
    assert [kind(at(place), Rules(allow=(rule,))) for place in ("", "gpu1", "gpu2")] == ["ask", "allow", "ask"]
    assert saved_rule(scope, at(""), call_id="1", root=None, now=0.0, sandbox=Sandbox()).place is None


def test_a_directory_of_a_rule_is_the_one_there_or_the_workspace_that_it_stands_for() -> None:
    rule = Rule(name="no", prefix=("make",), directory="/srv/project")
    question = a_question(a_shell("make test", place="gpu1", cwd="/data/project/sub"))
    question = replace(question, resolved=question.resolved.model_copy(update={"cwd": "/data/project/sub"}))
    assert evaluate(question, Rules(deny=(rule,)), ()).kind == "ask"
    assert evaluate(replace(question, cwd_here="/srv/project/sub"), Rules(deny=(rule,)), ()).kind == "refuse"


def test_a_place_that_nothing_is_known_about_is_asked_about() -> None:
    question = replace(a_question(at("gpu1")), place_problem="gpu1 is unreachable, so what would run there is unknown")
    verdict = evaluate(question, Rules(allow=(MAKE.model_copy(update={"place": "*"}),)), (a_grant(spec=at("gpu1")),))
    assert (verdict.kind, verdict.reason) == ("ask", "gpu1 is unreachable, so what would run there is unknown")
    denied = Rules(deny=(Rule(name="no", prefix=("make",)),))
    assert evaluate(question, denied, ()).kind == "refuse"


def test_changes_at_a_place_are_not_kept_and_not_previewed() -> None:
    ask = Rule.model_validate({"name": "ask", "prefix": ("rm",), "preview": "always", "allow_if_preview": {}})
    rules = Rules(ask=(ask,))
    here = evaluate(a_question(at("", "rm -r x")), rules, ())
    there = evaluate(a_question(at("gpu1", "rm -r x")), rules, ())
    assert (here.preview, bool(here.allow_if_preview)) == ("always", True)
    assert (there.preview, there.allow_if_preview) == (None, ())
    plan = undo_plan(a_question(at("gpu1", "rm -r x")), rules, there, "every")
    assert plan is not None
    assert (plan.how, plan.why) == ("none", "it runs at gpu1, and changes are kept on this machine only")


@each_row(
    ("effect", "rule", "said"),
    [
        ("allow", 'prefix = ["make"]\nplace = "gpu1"', "needs sandbox = false: there is no sandbox at a place"),
        ("allow", 'prefix = ["make"]\nplace = "*"\nsandbox = "workspace"', "needs sandbox = false"),
        ("allow", 'prefix = ["make"]\nrun_at = "gpu1"', "needs sandbox = false"),
        ("deny", 'prefix = ["make"]\nrun_at = "gpu1"', "says run_at, which a rule that denies cannot do"),
        ("ask", 'prefix = ["make"]\nrun_at = "gpu1"\nplace = "gpu1"', "says place and run_at"),
        ("ask", 'prefix = ["make"]\nrun_at = "*"', "needs the name of a place in run_at"),
        ("ask", 'prefix = ["make"]\nrun_at = "here"', "needs the name of a place in run_at"),
        ("ask", 'prefix = ["make"]\nplace = "gpu 1"', "needs the name of a place in place"),
        ("deny", 'path = "src/**"\nplace = "gpu1"', "edits and fetches are made by the agent itself"),
        ("ask", 'prefix = ["make"]\nplace = "gpu1"\npreview = "always"', "only commands on this machine can be"),
        ("ask", 'prefix = ["make"]\nplace = "gpu1"\nundo = true', "changes are kept on this machine only"),
    ],
)
def test_a_rule_that_cannot_hold_at_its_place_is_refused(effect: str, rule: str, said: str) -> None:
    import tomllib

    broken = read_rules(tomllib.loads(f'[[{effect}]]\nname = "r"\n{rule}\n'), "rules.toml", table="").broken
    assert broken is not None
    assert said in broken


def test_a_rule_with_a_place_is_written_as_it_is_read() -> None:
    import tomllib

    text = '[[allow]]\nname = "r"\nprefix = ["make"]\nplace = "gpu1"\nsandbox = false\n'
    rules = read_rules(tomllib.loads(text), "rules.toml", table="")
    assert (rules.broken, rules.allow[0].place) == (None, "gpu1")
    assert read_rules(tomllib.loads(rules_text(rules)), "rules.toml", table="") == rules


TRAIN = Rule(name="train", prefix=("python3", "train.py"), run_at="gpu1", sandbox=False)


@each_row(
    ("text", "place"),
    [
        ("python3 train.py --epochs 3", "gpu1"),
        ("cd src && env A=1 python3 train.py", "gpu1"),
        ("python3 other.py", ""),
        ("echo python3 train.py", ""),
    ],
)
def test_a_rule_moves_the_calls_that_hold_its_command(text: str, place: str) -> None:
    assert place_by_rule(a_question(a_shell(text)), Rules(ask=(TRAIN,))) == place
    assert place_by_rule(a_question(a_shell(text)), Rules(allow=(TRAIN,))) == place


def test_the_first_rule_that_asks_moves_a_call_and_what_denies_moves_nothing() -> None:
    question = a_question(a_shell("python3 train.py"))
    other = TRAIN.model_copy(update={"run_at": "gpu2"})
    assert place_by_rule(question, Rules(ask=(other,), allow=(TRAIN,))) == "gpu2"
    assert place_by_rule(question, Rules(deny=(TRAIN,))) == ""
    assert place_by_rule(question, Rules(ask=(TRAIN.model_copy(update={"disabled": True}),))) == ""
    assert place_by_rule(question, Rules(ask=(TRAIN,), broken="a key is misspelt")) == ""


def test_a_rule_that_moves_allows_at_its_place_alone() -> None:
    rules = Rules(allow=(TRAIN,))
    assert [kind(at(place, "python3 train.py"), rules) for place in ("", "gpu1", "gpu2")] == ["ask", "allow", "ask"]


def test_neither_a_project_nor_a_client_moves_a_call() -> None:
    question, rules = a_question(a_shell("python3 train.py")), Rules(ask=(TRAIN,))
    assert place_by_rule(question, restrictions_only(rules)) == ""
    assert place_by_rule(question, restrictions_only(Rules(allow=(TRAIN,)))) == ""
    assert place_by_rule(question, trusted_here(rules, "/srv/project")) == ""
    assert place_by_rule(question, stricter(Rules(), rules)) == ""


def test_a_command_for_another_shell_is_no_other_command_at_a_place() -> None:
    spec = a_spec(Shell(text="make test", shell="/tmp/own"), place="gpu1")
    assert kind(spec, Rules(allow=(MAKE.model_copy(update={"place": "gpu1"}),))) == "ask"


def test_a_rule_that_nobody_has_trusted_is_named_where_it_would_allow_and_nowhere_else() -> None:
    there = MAKE.model_copy(update={"place": "gpu1"})
    rules = Rules(untrusted=(there,))
    asked = evaluate(a_question(at("gpu1")), rules, ())
    assert asked.kind == "ask"
    assert asked.reason == (
        "the rule 'make' would allow it, but is not in force until you trust it: whisper-tui rules trust"
    )
    for other in (at(""), at("gpu1", "make test; curl example.com"), at("gpu1", "rm x")):
        verdict = evaluate(a_question(other), rules, ())
        assert (verdict.kind, "trust" in verdict.reason) == ("ask", False)
