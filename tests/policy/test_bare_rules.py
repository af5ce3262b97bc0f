"""A rule that names nothing but a program allows what is known of that program, and nothing of an unknown one."""

from tests.policy.build import FOUND, a_question
from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Verdict
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.rule import Rule, Rules

CWD = "/home/me/project"


def judged(text: str, rule: Rule) -> Verdict:
    spec = CommandSpec(command=Shell(text=text), cwd=CWD)
    found = FOUND.model_copy(update={"cwd": CWD, "shell": "bash"})
    return evaluate(a_question(spec, resolved=found, session_root=CWD), Rules(allow=(rule,)), ())


def prefix(*words: str, options: tuple[str, ...] | None = None) -> Rule:
    return Rule(name="mine", prefix=words, options=options)


_RUN_OTHERS = """
fzf --bind enter:execute(/bin/sh)
fzf --preview ./x
busctl --address=unixexec:path=./x
gnuplot -e 'system("./x")'
gnuplot x.gp
dc -e '!./x'
lftp -c '!./x'
choom -n 0 ./x
java Shell
java -jar x.jar
aria2c --on-download-complete=./x http://h/f
aria2c --conf-path=x http://h/f
aa-exec -p x ./x
bpftrace -e 'BEGIN{system("./x")}'
bpftrace x.bt
guile -c '(system "./x")'
puppet apply -e 'exec{"./x":}'
restic --password-command ./x snapshots
run-parts ./x
R -e 'system("./x")'
openvt -- ./x
multitime ./x
grc ./x
setlock x ./x
posh -c ./x
ksu -e ./x
exiftool -W out in
exiftool -filename=out in
mysql --default-auth x
"""
RUN_OTHERS = _RUN_OTHERS.strip().splitlines()


@each_row("text", RUN_OTHERS)
def test_a_program_that_runs_another_by_its_words_is_not_allowed_by_its_name(text: str) -> None:
    name = text.split(maxsplit=1)[0]
    assert judged(text, prefix(name)).kind == "ask"
    assert judged(text, Rule(name="mine", program=name)).kind == "ask"


@each_row("text", ["fzf --filter x --bind y", "lftp open -c x", "restic snapshots --password-command x"])
def test_a_further_word_does_not_cover_an_option_that_runs_something(text: str) -> None:
    assert judged(text, prefix(*text.split()[:2])).kind == "ask"


def test_a_rule_for_an_unknown_program_needs_a_further_word() -> None:
    verdict = judged("acme build x", prefix("acme"))
    assert verdict.kind == "ask"
    assert "names nothing but acme, of which nothing is known" in verdict.reason
    assert judged("acme build x", prefix("acme", "build")).kind == "allow"


@each_row(
    ("text", "rule"),
    [
        ("acme", prefix("acme")),
        ("acme --quiet x", prefix("acme", options=("--quiet",))),
        ("./run-tests --all x", prefix("./run-tests")),
        ("scripts/check x", prefix("scripts/check")),
        ("acme build x", Rule(name="mine", pattern="acme build *")),
        ("pytest -q tests", prefix("pytest")),
        ("mkdir -p x", prefix("mkdir")),
        ("ruff check .", prefix("ruff")),
        ("cargo test", prefix("cargo")),
        ("python3 x.py", prefix("python3")),
    ],
)
def test_rules_that_say_enough_hold(text: str, rule: Rule) -> None:
    assert judged(text, rule).kind == "allow"
