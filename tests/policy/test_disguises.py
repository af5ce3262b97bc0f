"""A denied command is denied in all of its disguises."""

import pytest

from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.corpus import ROOT
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.policy.view import Question

RULES = Rules(allow=(Rule(name="everything", anything=True),), deny=(Rule(name="no touch", prefix=("touch",)),))
"""The widest allow rule there is, and one thing that is denied."""

DENIED = [
    "touch zz",
    "touch -- zz",
    "echo a && touch zz",
    "echo a | touch zz",
    "sudo touch zz",
    "env A=1 touch zz",
    "A=1 touch zz",
    "nohup touch zz",
    "timeout 5 touch zz",
    "command touch zz",
    "nice touch zz",
    "stdbuf -o0 touch zz",
    "setsid touch zz",
    "exec touch zz",
    "echo zz | xargs touch",
    "/usr/bin/touch zz",
    "bash -c 'touch zz'",
    'sh -c "touch zz"',
    "$(touch zz)",
    "(touch zz)",
    "if true; then touch zz; fi",
    "f(){ touch zz;};f",
    "\\touch zz",
    "to''uch zz",
    "find . -maxdepth 0 -exec touch zz \\;",
    "eval 'touch zz'",
    "busybox touch zz",
]
ASKED = ["X=touch; $X zz"]

MORE = [
    "bash -lc -x 'touch zz'",
    "bash <<E\ntouch zz\nE",
    "bash <<< 'touch zz'",
    "bash <<< 'touch zz' 3<<< true",
    "cat <(touch zz)",
    "echo `touch zz`",
    "cat <<E\n$(touch zz)\nE",
    "coproc touch zz",
    "! time -p touch zz",
    "while touch zz; do break; done",
    "case x in *) touch zz;; esac",
    "[[ -n $(touch zz) ]]",
    "x=$(touch zz)",
    "x=(1 $(touch zz))",
    "echo $((1 + $(touch zz)))",
    "echo ${x:-$(touch zz)}",
    "trap 'touch zz' EXIT",
    "nice -5 timeout -k 1 5 ionice -c3 touch zz",
    "sudo -u root -- env -i nohup touch zz",
    "su -c 'touch zz' root",
    "script -qc 'touch zz' /dev/null",
    "flock /tmp/l -c 'touch zz'",
    "parallel touch ::: zz",
    "git -c alias.x='!touch zz' x",
    "git bisect run touch zz",
    "docker exec -it c touch zz",
    "kubectl exec p -c d -- touch zz",
    "ssh -p 2 host 'ls; touch zz'",
    "/lib64/ld-linux-x86-64.so.2 /bin/touch zz",
    "$'\\x74ouch' zz",
    "tou\\\nch zz",
    '"touch" zz',
    "> out touch zz",
    "2>&1 touch zz",
    "fd -x touch",
    "watch -n1 touch zz",
    "echo a\ntouch zz",
    "echo a & touch zz",
    "function g { touch zz; }; g",
    "select x in a; do touch zz; done",
    "((1)) && touch zz",
    "echo ((touch zz",
]


def kind(text: str) -> str:
    resolved = Resolved(program="/bin/bash", cwd=ROOT, shell="bash")
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    question = Question(session_id="s", session_root=ROOT, spec=spec, description="", resolved=resolved)
    return evaluate(question, RULES, ()).kind


def test_the_tables_hold_twenty_eight_disguises() -> None:
    assert len(DENIED + ASKED) == 28


@each_row("text", DENIED)
def test_a_disguise_is_denied(text: str) -> None:
    assert kind(text) == "refuse"


@each_row("text", MORE)
def test_more_disguises_are_denied(text: str) -> None:
    assert kind(text) == "refuse"


@each_row("text", [*ASKED, "sudo --unheard-of touch zz", "echo dG91Y2ggeno= | base64 -d | sh", "${x@P}", "source ./x"])
def test_opaque_commands_are_asked(text: str) -> None:
    assert kind(text) in {"ask", "refuse"}


@each_row("text", ["echo touch zz", "echo 'touch zz'", "grep touch zz", "echo a # touch zz"])
def test_the_word_alone_is_not_denied(text: str) -> None:
    assert kind(text) == "allow"


@each_row("shell", ["zsh", "fish", "dash", "/usr/bin/zsh", "cmd.exe"])
def test_text_for_another_shell_is_never_allowed_by_the_grammar_of_bash(shell: str) -> None:
    spec = CommandSpec(command=Shell(text="echo a", shell=shell), cwd=ROOT)
    question = Question("s", ROOT, spec, "", Resolved(program="/bin/x", cwd=ROOT, shell=shell.rsplit("/", 1)[-1]))
    assert evaluate(question, RULES, ()).kind == "ask"


@pytest.mark.parametrize(("real", "expected"), [("dash", "ask"), ("bash", "allow")])
def test_sh_counts_as_what_it_really_is(real: str, expected: str) -> None:
    spec = CommandSpec(command=Shell(text="echo a", shell="sh"), cwd=ROOT)
    question = Question("s", ROOT, spec, "", Resolved(program="/bin/sh", cwd=ROOT, shell=real))
    assert evaluate(question, RULES, ()).kind == expected
