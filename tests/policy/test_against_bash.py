"""The readers against bash itself: they miss nothing that bash runs, and read plain text as bash does."""

import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.commands.unwrap import inner_commands
from whisper_tui.policy.corpus import ROOT
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.policy.shell.bash_reader import read_script
from whisper_tui.policy.shell.static_expansion import ExpandedWord, expanded_commands
from whisper_tui.policy.shell.strict_reader import NotPlain, read_plain
from whisper_tui.policy.view import Question, agreed_steps
from whisper_tui.supervisor.approvals.expand import PossibleFiles

BASH = shutil.which("bash") or "/bin/bash"
EXAMPLES = int(os.environ.get("WHISPER_TUI_FUZZ", "400"))
RULES = Rules(allow=(Rule(name="safe", prefix=("SAFE",)), Rule(name="echo", prefix=("echo",))))
NAMES_VARIABLE = Rules(allow=(Rule(name="safe", prefix=("X=1", "SAFE"), sandbox=False),), read_only=True)

FRAGMENTS = [
    "SAFE", "EVIL", "SAFE a", "EVIL b", "SAFE ", "EVIL ", " ", "\n", "\t", ";", "&", "|", "&&", "||", "|&", "(", ")",
    "{ ",
    "; }", "$(", "`", '"', "'", "\\", "\\\n", "$", "${x:-", "${x@P}", "}", "$((", "))", "$[", "]", "<<E\n", "\nE\n",
    "<<'E'\n", "<<-E\n", "<<E", "<<<", "<", ">", "2>&1", ">/dev/null", "&>/dev/null", "<&-", ">&", "<(", ">(", "#", "!",
    "time ", "time -p ", "if ", "; then ", "; fi", "for i in a; do ", "; done", "case x in x) ", ";; esac", "f() ",
    "function g ", "coproc ", "[[ ", " ]]", "~", "*", "{a,b}", "=", "x=1 ", "x[1]=", "a=(", "$'", '$"', "[", "\r", "\f",
    "-c ", "bash -c ", "eval ", "env ", "timeout 5 ", "0", "1", "a", "é", "\u00a0", "%", "echo ", "\\$", "\\`",
    "#x", "-",
    "declare ", "while false; do ", "else ", "+=", "--", "$\\\n(", "\n\n", "select i in a; do break; done",
]  # fmt: skip


class Bash:
    """Runs texts in an empty directory in which only two programs exist; both write down how they were called."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._runs = 0
        programs = directory / "bin"
        programs.mkdir()
        for name in ("SAFE", "EVIL"):
            text = f'#!{BASH}\nif [ -n "$SHOWN" ]; then set -- "${{!SHOWN}}"; else set -- {name} "$@"; fi\n'
            # a file each: several may run at a time, and bash writes line by line
            text += 'printf "%s\\0" "$@" >> "$LOG/$$"\n'
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.work = directory / "work"
        self.work.mkdir()

    def calls(self, text: str, *, variable: str = "") -> list[tuple[str, ...]]:
        """How the two programs were called; with `variable`, its value for each of them."""
        self._runs += 1
        log = self._directory / f"log{self._runs}"
        log.mkdir()
        environment = {"PATH": str(self._directory / "bin"), "LOG": str(log), "HOME": str(self._directory / "work")}
        if variable:
            environment |= {"PATH": f"{environment['PATH']}:{os.environ['PATH']}", "SHOWN": variable}
        ended, open_in_all = os.pipe()
        with open(ended, "rb") as wait:
            try:
                subprocess.run(
                    [BASH, "--norc", "--noprofile", "-c", "--", text],
                    cwd=self._directory / "work",
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(open_in_all,),
                    timeout=20,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return []
            finally:
                os.close(open_in_all)
            # what it left in the background writes as well, and has the pipe open until it ends
            if not select.select([wait], [], [], 20)[0]:
                return []
        written = (each.read_bytes().decode("utf-8", "surrogateescape") for each in log.iterdir())
        return [tuple(each.split("\0")[:-1]) for each in written]


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bash]:
    yield Bash(tmp_path_factory.mktemp("bash"))


TEXTS = st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=12).map("".join)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=TEXTS)
def test_programs_that_bash_ran_were_found_and_never_allowed_without_being_named(bash: Bash, text: str) -> None:
    ran = [call for call in bash.calls(text) if call]
    script = read_script(text)
    inner, _ = inner_commands(script)
    names = {command.name for command in inner}
    certain = script.problem is None and None not in names and not any(command.opaque for command in inner)
    for call in ran:
        assert not certain or call[0] in names, "bash ran a command that was not seen"
    if any(call[0] == "EVIL" for call in ran):
        assert judged(text) != "allow"
    try:
        plain = read_plain(text)
    except NotPlain:
        return
    if not {"bash", "eval", "env", "timeout", "declare"} & {command.argv[0] for command in plain}:
        expected = [command.argv for command in plain]
        assert all(call in expected for call in ran), "a plain text was read differently"


def judged(text: str, rules: Rules = RULES) -> str:
    resolved = Resolved(program="/bin/bash", cwd=ROOT, shell="bash")
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    return evaluate(Question("s", ROOT, spec, "", resolved), rules, ()).kind


WORD_PIECES = [
    "a", "b", "x.py", "*", "?", "[ab]", "[a-c]", "[x-]", "s/", "/", ".", "*.py", "**", "{", "}", ",", "{a,b}", "{1..3}",
    "{c..a}", "{a,}", "{,}", "{}", "{0}", "{x}", "{a..", "..", "~", "~/", "''", "'*'", '"*"', "'a b'", '"', "'", "\\*",
    "\\", "$v", "${v}", '"$v"', "$w", '"$w"', '"$v/$w"', "$f", '"$f"', "$v_", "$HOME", "$", "=", ":", "-", "--", "é",
    "!", "^", "%", "#", "@", "+",
]  # fmt: skip

EXPANDING = [
    "SAFE ", " ", " ", "\n", "; ", " && ", " | ", "v=a", "v=s", "w='x y'", 'w="*"', "w=", "v=", "v=a w=b", "u=a;",
    "v=$w", "for f in ", "; do ", "; done", "\ndo\n", "\ndone\n", "for v in a s; do SAFE ",
    'for f in *; do SAFE "$f"; done', " 2>/dev/null", " >/dev/null", " # ", "SAFE", " done", " do ", " in ",
    "for v in ", "<<E\nx\nE\n",
]  # fmt: skip

WORDS = st.lists(st.sampled_from(WORD_PIECES), min_size=1, max_size=4).map("".join)
COMMANDS = st.lists(WORDS, min_size=1, max_size=3).map(lambda words: "SAFE " + " ".join(words))
SETS = st.lists(st.sampled_from(["v=a", "v=s", "w='x y'", "w=x.py", 'v="s"', "w=s v=a"]), max_size=2, unique=True)
SIMPLE = st.tuples(SETS, COMMANDS).map(lambda made: "; ".join([*made[0], made[1]]))
LOOPS = st.tuples(SETS, st.lists(WORDS, min_size=1, max_size=3), COMMANDS, st.sampled_from(["; ", "\n"])).map(
    lambda made: "; ".join([*made[0], f'for f in {" ".join(made[1])}{made[3]}do {made[2]} "$f"{made[3]}done'])
)
PIECES = st.lists(st.sampled_from([*EXPANDING, *WORD_PIECES]), min_size=1, max_size=12).map("".join)

FILES = ("a", "b", "x.py", "-n", "x y", "*", ".hidden", "s/c", "s/x.py", "s/{a}", "{a,b}", "é", "~", "[ab]")


@pytest.fixture(scope="module")
def files(bash: Bash) -> Path:
    """The directory in which texts run, with a few files."""
    for name in FILES:
        (bash.work / name).parent.mkdir(exist_ok=True)
        (bash.work / name).touch()
    return bash.work


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(
    max_examples=3 * EXAMPLES,
    deadline=None,
    derandomize="WHISPER_TUI_FUZZ" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=st.one_of(SIMPLE, LOOPS, PIECES))
def test_words_with_expansions_are_those_that_bash_makes_of_them(bash: Bash, files: Path, text: str) -> None:
    steps = agreed_steps(text, read_script(text))
    try:
        expected = expanded_commands(steps, str(files), PossibleFiles(str(files)).of) if steps else ()
    except NotPlain:
        return
    if not expected or {command[0].text for command in expected} != {"SAFE"}:
        return
    made = bash.calls(text)
    # a pipeline starts its commands at the same time
    for call in made:
        assert any(is_made_of(call, command) for command in expected), f"bash ran {call}"
    # the locale or the version of bash decides about these patterns, and a loop may run less often
    if not any(sign in text for sign in ("&&", "|", "?", "[", ".*")):
        assert len(made) == len(expected)


def is_made_of(call: tuple[str, ...], command: tuple[ExpandedWord, ...]) -> bool:
    """True if a call has these words in this order; of what a pattern may stand for, it may have any part."""
    passed = {0}
    for word in command:
        taken = {at + 1 for at in passed if at < len(call) and call[at] == word.text}
        passed = taken | (passed if word.beginning is not None else set())
    return len(call) in passed


SETTERS = [
    "export X=1", "X=1", "export X", "X=1; export X", "export X=2", "X=2", "readonly X=2", "export X=1 Y=2", "unset X",
    "export -x X=1", "declare -x X=1", "export X=1 | SAFE", "false && export X=1", "cd work", "cd no/such", "true",
    "false", "set -e", "set -u", "eval X=2", "export X=1 > no/such/file", "[[ -f a ]]", "[[ -e nothing ]]", "read X",
    "readonly X+=2",
]  # fmt: skip
RUNNING = [
    "SAFE", "X=1 SAFE", "X=2 SAFE", "env X=1 SAFE", "timeout 5 SAFE", "bash -c SAFE", "bash -c 'X=1; SAFE'",
    "bash -c 'export X=1; SAFE'", "env SAFE", "env -u X SAFE", "env -i X=1 SAFE", "SAFE | cat",
]  # fmt: skip
JOINED = st.lists(
    st.tuples(
        st.sampled_from([*SETTERS, *RUNNING, "SAFE", "export X=1"]),
        st.sampled_from(["; ", " && ", " && ", "\n", " || ", " & ", " | "]),
    ),
    min_size=1,
    max_size=6,
).map(lambda made: "".join(part + sign for part, sign in made)[: -len(made[-1][1])])


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="WHISPER_TUI_FUZZ" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=JOINED)
def test_a_rule_that_names_a_variable_allows_only_what_bash_runs_with_it(bash: Bash, text: str) -> None:
    if judged(text, NAMES_VARIABLE) == "allow":
        assert {variable for variable, *_ in bash.calls(text, variable="X")} <= {"1"}


@pytest.mark.parametrize(
    "text",
    [
        "X=1 SAFE", "export X=1; SAFE", "export X=1 && SAFE", "X=1; export X; SAFE", "env X=1 SAFE",
        "set -e; export X=1\nSAFE", "cd . && export X=1 && SAFE", "export X=2; X=1 timeout 5 SAFE",
        "export X=1; bash -c SAFE",
    ],
)  # fmt: skip
def test_a_rule_that_names_a_variable_allows_each_way_to_set_it(bash: Bash, text: str) -> None:
    assert judged(text, NAMES_VARIABLE) == "allow"
    assert bash.calls(text, variable="X") == [("1",)]


@pytest.mark.parametrize("before", ["readonly X=2", "readonly X", "readonly X+=2", "declare -r X=2", "X=2; readonly X"])
def test_no_rule_names_a_variable_that_bash_cannot_set(bash: Bash, before: str) -> None:
    text = f"{before}; X=1 SAFE"
    assert bash.calls(text, variable="X") == [("",)]
    assert judged(text, NAMES_VARIABLE) == "ask"


@pytest.mark.parametrize("text", ["X=2 :; SAFE", "X=2 set -e; SAFE", "X=2 times && SAFE"])
def test_a_variable_before_a_special_builtin_is_set_behind_it(bash: Bash, text: str) -> None:
    assert bash.calls(f"export X=0; set -o posix; {text}", variable="X") == [("2",)]
    assert judged(text, Rules(allow=(Rule(name="safe", prefix=("SAFE",)),), read_only=True)) == "ask"
    assert judged(f"sh -c '{text}'", Rules(allow=(Rule(name="safe", prefix=("SAFE",)),), read_only=True)) == "ask"
