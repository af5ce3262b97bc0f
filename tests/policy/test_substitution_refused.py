"""run_shell_command refuses every substitution that bash would perform."""

from dataclasses import replace

from tests.model.build import ROOT
from tests.policy.build import a_question
from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.rule import Rules


def verdict(text: str, tool: str = "run_shell_command") -> Verdict:
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    question = a_question(spec, resolved=Resolved(program="/usr/bin/bash", cwd=ROOT))
    return evaluate(replace(question, tool=tool), Rules(), ())


@each_row("text", ["echo $(id)", "echo `id`", "cat <(id)", "tee >(id)", "echo $'\\'' $(id)", "bash -c 'echo $(id)'"])
def test_substitutions_fail_the_call(text: str) -> None:
    assert verdict(text).kind == "refuse"


@each_row("text", ["echo '$(x)'", "echo $((1+2))", "cat <<'END'\n$(x)\nEND", "echo \\$(x"])
def test_text_without_substitutions_is_accepted(text: str) -> None:
    assert verdict(text).kind == "ask"


def test_other_tools_are_asked_about_the_same_text() -> None:
    assert verdict("echo $(id)", tool="ExecCommand").kind == "ask"
