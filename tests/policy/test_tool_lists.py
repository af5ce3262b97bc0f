"""excludeTools and coreTools in their own syntax, and their effect on calls of run_shell_command."""

from dataclasses import replace

from tests.model.build import ROOT
from tests.policy.build import a_question
from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Function, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.policy.rules.rules_toml import allowances, denials
from whisper_tui.policy.tool_calls import evaluate_carried_out


def rules(exclude: tuple[str, ...] = (), core: tuple[str, ...] = (), *, strict: bool = False) -> Rules:
    problems: list[str] = []
    made = Rules(
        deny=denials(exclude, problems),
        allow=allowances(core, problems),
        strict=("run_shell_command",) if strict else (),
    )
    assert problems == []
    return made


def verdict(text: str, held: Rules, tool: str = "run_shell_command"):
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT, environment={"ASIMI_CLI": "1"})
    resolved = Resolved(program="/usr/bin/bash", cwd=ROOT)
    return evaluate(replace(a_question(spec, resolved=resolved), tool=tool), held, ())


@each_row("text", ["rm x", "rm", "/bin/rm x", "ls; rm x", "sudo rm x", "ls | xargs rm", "bash -c 'rm x'"])
def test_an_excluded_command_fails_however_it_is_wrapped(text):
    answer = verdict(text, rules(exclude=("run_shell_command(rm)",)))
    assert (answer.kind, answer.rule) == ("refuse", "excludeTools: run_shell_command(rm)")
    assert "run_shell_command(rm)" in answer.reason


def test_exclusion_is_of_the_words_given_and_of_that_tool_alone():
    held = rules(exclude=("run_shell_command(git push)",))
    assert verdict("git push origin", held).kind == "refuse"
    assert verdict("git status", held).kind == "ask"
    assert verdict("git push", held, tool="ExecCommand").kind == "ask"


def test_a_tool_alone_is_excluded_altogether():
    assert verdict("ls", rules(exclude=("run_shell_command",))).kind == "refuse"
    assert verdict("ls", rules(exclude=("ShellTool(ls)",))).kind == "refuse"


def test_a_command_on_the_core_list_runs_and_another_is_asked():
    held = rules(core=("run_shell_command(git status)",))
    assert verdict("git status", held).kind == "allow"
    assert verdict("npm install", held).kind == "ask"
    assert verdict("git status; npm install", held).kind == "ask"


def test_off_the_core_list_a_strict_tool_refuses():
    held = rules(core=("run_shell_command(git status)",), strict=True)
    assert verdict("git status", held).kind == "allow"
    answer = verdict("npm install", held)
    assert (answer.kind, answer.rule) == ("refuse", "strict")


def test_exclusion_beats_the_core_list():
    held = rules(exclude=("run_shell_command(git push)",), core=("run_shell_command(git)",))
    assert verdict("git push", held).kind == "refuse"


def test_a_tool_alone_on_the_core_list_allows_nothing_by_itself():
    assert allowances(("run_shell_command",), []) == ()


@each_row("entry", ["", "run_shell_command(", "run_shell_command()", "run_shell_command('x)", "rm -rf", "a(b) c"])
def test_an_entry_that_says_nothing_is_a_problem_and_no_rule(entry):
    for read in (denials, allowances):
        problems: list[str] = []
        assert read((entry,), problems) == ()
        assert len(problems) == 1 and repr(entry) in problems[0]


def test_a_tool_of_the_agents_side_can_be_excluded_too():
    function = Function(tool="publish", arguments={})
    question = a_question(CommandSpec(command=function, cwd=ROOT), resolved=Resolved(cwd=ROOT))
    assert evaluate_carried_out(question, function, rules(exclude=("publish",)), ()).kind == "refuse"
    assert evaluate_carried_out(question, function, rules(exclude=("other",)), ()).kind == "ask"
