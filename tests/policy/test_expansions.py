"""Commands with expansions run without approval where every result is certain or harmless (decision 29)."""

import os
from pathlib import Path

import pytest

from tests.supervisor.conftest import Bench
from whisper_tui.effects.git_repository import NEUTRAL, pin_repository
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.verdict import Verdict
from whisper_tui.policy import view as policy_view
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.policy.shell import substitutions
from whisper_tui.policy.shell.bash_reader import read_script
from whisper_tui.policy.shell.substitutions import taken_apart
from whisper_tui.policy.view import agreed_steps
from whisper_tui.supervisor.approvals import expand, judge
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.supervisor.runs import sandbox_profile
from whisper_tui.system import host_files

LOOKING = Rules(read_only=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a workspace in it, on a machine with a sandbox."""
    found = tmp_path / "home"
    workspace = found / "project"
    for name in ("a.py", "b.py", "data.txt", "src/c.py", "src/d.txt", "src/sub/e.py", "notes/x y.md"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("one\n")
    (found / ".ssh").mkdir()
    (found / ".ssh" / "id_rsa").write_text("a key\n")
    monkeypatch.setattr(host_files, "home_of_user", lambda: str(found))
    monkeypatch.setattr(judge, "sandbox_problem", lambda: "")
    return found


def judged(
    home: Path, text: str, *, rules: Rules = LOOKING, shell: str = "bash", variables: dict[str, str] | None = None
) -> Verdict:
    workspace = str(home / "project")
    spec = CommandSpec(command=Shell(text=text, shell=shell), cwd=workspace, environment=variables or {})
    return judge_alone(spec, rules, dict(os.environ), root=workspace, now=0.0)[0]


@pytest.mark.parametrize(
    "text",
    [
        "ls *.py",
        "ls -la src/*",
        "ls ~/project",
        "ls $HOME/project",
        "cat ~/project/{a,b}.py",
        "echo {1..3}",
        "echo {a..c}{1,2} x{,y}",
        "a=1; echo $a",
        "a='x y' && echo \"$a\"",
        "DIR=src; ls $DIR/*.py",
        'd=src\nhead -n 5 "${d}"/*.txt | tail -2',
        'for f in *.py; do wc -l "$f"; done',
        'for f in src/*.py notes/*; do echo "== $f"; head -3 "$f"; done 2>/dev/null | sort',
        "for i in {1..3}; do echo $i; done",
        'for d in src notes; do for f in "$d"/*; do stat "$f"; done; done',
        "head -n 5 src/*.txt",
        "grep -rn TODO src/*.py",
        "grep -n one *.py | head -20",
        "sed -n '1,5p' src/*.py",
        "awk '{print $1}' src/*.txt",
        "sort -u src/*.txt && diff src/*.txt data.txt",
        "ls src/[a-d]?.py src/??py",
        "ls nothing*here || true",
        "cat -- *.txt",
        "find src/* -name '*.py'",
        "d=src; cd $d && ls",
        "cd src && cd .. && git log",
        'export d=src; ls "$d"',
        'declare -r d=src; e=notes; ls "$d" "$e"',
        "git log -n 3 -- {a,b}.py",
        "echo $PATH $USER; ls ${PWD}; echo $?",
        "wc -l < data.txt",
        "sort < src/d.txt | uniq -c",
        "if test -f data.txt; then cat data.txt; elif [ -d src ]; then ls src; else pwd; fi",
        "if ! grep -q one data.txt; then echo none; fi",
        'while IFS= read -r line; do echo "$line"; done < data.txt',
        "find src -name '*.py' | while read f; do head -3 \"$f\"; done",
        "until false; do ls *; done",
        "(cd src && ls) | wc -l; { ls; pwd; } 2>/dev/null",
        "! ls *.py",
        'for f in *.py; do if [ -s "$f" ]; then wc -l < "$f"; fi; done',
        "ls $(pwd)",
        "bash -c 'for f in *.py; do wc -l $f; done'",
        "bash -c 'ls *.py; echo $(pwd)'",
        'echo "today is $(date)" `whoami`',
        "cat $(git ls-files)",
        'n=$(wc -l < data.txt); [ "$n" -gt 3 ] && echo "$n lines"',
        'for f in src/*.py; do echo "$(basename $f)"; done',
        "diff <(ls src) <(ls notes)",
        "while read x; do echo $x; done < <(sort data.txt)",
        'LC_ALL=C ls *.py; if [ -z "$CI" ]; then ls; fi',
        "set -euo pipefail; ls *.py || exit 1",
    ],
)
def test_expansions_that_can_only_be_read_run_without_approval_and_in_the_sandbox(home: Path, text: str) -> None:
    os.system(f"git init -q {home}/project")
    verdict = judged(home, text)
    assert verdict.kind == "allow", verdict.reason
    assert verdict.sandbox is not None and verdict.sandbox.kind == "read-only"
    assert judged(home, text, rules=Rules()).kind == "ask"


ASKED = {
    "a program that is not on the list": ("rm *.py", "a=x; rm $a", "for f in *.py; do rm \"$f\"; done", "touch {a,b}"),
    "a name may be taken for an option that acts": (
        "sort *.txt", "find *", "find . -name *.py", "rg one *", "tree *", "sort -k 1 *.txt",
        'for f in *.txt; do sort "$f"; done', "xxd -*", "sort -u -*",
        "strings -- *", "sort -k -- *", "rg one -e -- *",
    ),
    "a name may be taken for code": (
        "sed 'p#'*", "sed 'p#'* p", "awk '1#'* 1", "jq '.#'*", "awk '1#'*", "sed src/*", "awk src/*",
        "jq src/*", "sed -n src/*", 'for f in src/*; do sed "$f" data.txt; done',
    ),
    "a second name would be written": ("xxd src/*", "uniq src/*"),
    "a word decides what runs": (
        "sort $(ls)", "$(echo ls)", "eval $(ls)", "sh -c $(ls)", "while read f; do sort $f; done < data.txt",
        "find . $(echo -delete)", "sort $USER", 'awk "$(cat data.txt)" a.py', 'sed -n "$(wc -l < data.txt)p" a.py',
        "x=ls; $x", "{ls,-l}", "l* src", "~/bin/ls", "x=-delete; find . $x", "x='-exec rm {} ;'; find . $x",
        "find . -{delete,print}", "sort {-o,out} data.txt", "sort -{u,o} data.txt a.py",
        "x=--output=y; sort $x data.txt",
    ),
    "it reaches something private": (
        "cat ~/.ssh/id_rsa", "cat ~/.ssh/*", "cat $HOME/.ssh/id_rsa", "x=.ssh; cat ~/$x/id_rsa", "cat ../.ssh/*",
        "cat ~/.s{sh,h}/id_rsa", "cat ../*/id_rsa", "cat /proc/*/environ", "ls /proc/[0-9]*/fd",
        "x=/proc/self/environ; cat $x", "for x in ~/.ssh ~; do cat $x/id_rsa; done", "cat /ho*/*", "cat .en{v,x}",
        "cat < ~/.ssh/id_rsa", "cat < ../.ssh/id_rsa", "while read x; do echo $x; done < ~/.ssh/id_rsa", "cat < .env",
        "echo $(cat ~/.ssh/id_rsa)", "diff <(cat ~/.ssh/id_rsa) data.txt", "if cat ~/.ssh/id_rsa; then ls; fi",
        "cat $(echo .env)",
    ),
    "the value of a variable is not certain": (
        "echo $a", "a=1; a=2; echo $a", "a=1 | cat; echo $a", "true || a=src; ls $a", "ls && a=src; ls $a",
        "a=src & ls $a", "a=$b; ls $a", "for a in x y; do ls; done; ls $a",
        "a=1; for a in x; do ls $a; done",
        "for i in 1 2; do a=1; echo $a; done", "a+=src; ls $a", "a[0]=src; ls $a", "ls $1 $# $@", "echo ${a:-x}",
        "echo $SECRET_TOKEN", "echo $(echo $TOKEN); TOKEN=x", "echo $(echo $a)", "read -p x a; ls $a",
        "echo $a; read a", "false && export a=src; ls $a", "if false; then export a=src; fi; ls $a",
        "(export a=src); ls $a", "ls | declare a=src; ls $a", "a=src; export a=notes; ls $a",
        "declare a=src b=$a; ls $b",
        "for i in 1 2; do export a=$i; ls $a; done", "declare -i a=src; ls $a", "ls $a; export a=src",
        "a=src ls $a", "a=src; ls ${a%c}", "a=src; ls ${#a}", "echo $a; a=1", "a=~; ls $a", "a=x:~; ls $a",
    ),
    "bash would split or expand a value": (
        "a='x y'; ls $a", "a='*'; ls $a", "a=; ls $a", "a='x\ty'; ls x$a", 'for f in *.py; do sort $f; done',
        "a=*; ls $a", "a={x,y}; ls $a",
    ),
    "a variable changes how commands run": (
        "PATH=src; ls $PATH", "IFS=x; echo $IFS", "LD_PRELOAD=x; ls $LD_PRELOAD", "BASH_ENV=x; ls $BASH_ENV",
        "HOME=src; ls ~", "HOME=src; ls $HOME", "for HOME in src; do ls ~; done", "LC_ALL=C; ls $LC_ALL",
        "GLOBIGNORE=x; ls *.py $GLOBIGNORE", "PAGER=x; echo $PAGER", "PS4=x; echo $PS4", "PWD=src; ls $PWD",
    ),
    "a form is not known": (
        "ls ~root", "ls ~+", "echo {a,{b,c}}", "echo {01..3}", "echo {1..9..2}", "echo $x{a,b}", "a=x; echo $a{b,c}",
        "echo {a,b", "echo a}", "ls !(a)", "ls [!a]*", "ls [[:alpha:]]*", "ls [a-", "ls *(x)", "echo $'*'",
        "echo $((1))",
        "for f in *; do ls; done &", "for f; do ls; done", "for ((;;)); do ls; done", "select f in *; do ls; done",
        "f() { ls *; }; f", "time ls *", "! ! ls *", "if true; then ls *; fi &",
        "case x in *) ls;; esac", "ls * &", "echo {~,x}", 'ls ~"/x"',
    ),
    "it writes": ("ls * > out", "for f in *; do ls; done > out", "a=x; echo y > $a", "echo x > {a,b}", "echo x > *",
        "if true; then ls; fi > out", "{ ls; } > out", "(ls; rm a.py)", "if rm a.py; then ls; fi",
        "while rm a.py; do ls; done",
        "while read f; do rm $f; done < data.txt", "ls < data.txt > out", "echo $(rm a.py)", "diff <(rm a.py) data.txt",
        "tee >(cat) < data.txt", "rm $(ls)", "ls `touch x`", "x=$(rm a.py); echo $x", "echo $(ls > out)",
    ),
    "the directory is not certain": ("cd src && ls *.py", "cd src; cat *", 'for d in */; do cd "$d"; ls; done'),
    "it is behind another program": (
        "timeout 5 ls *.py", "env ls *", "bash -c 'ls *' x", "bash -c 'sort *'", "bash -ic 'ls *'", "sh -c 'ls *'",
        "nice cat src/*", "bash -c 'rm $(ls)'", "bash -c 'cat ~/.ssh/*'", "bash -c 'cat .env*'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("why", "text"), [(why, text) for why, texts in ASKED.items() for text in texts])
def test_expansions_that_could_do_more_are_asked(home: Path, why: str, text: str) -> None:
    assert judged(home, text).kind == "ask", why


def test_file_names_that_are_there_are_judged_like_words(home: Path) -> None:
    assert judged(home, "ls *.txt").kind == judged(home, "cat *").kind == "allow"
    (home / "project" / "--nonsense.txt").touch()
    assert judged(home, "ls *.txt").kind == "ask"
    (home / "project" / "--nonsense.txt").unlink()
    (home / "project" / "link.txt").symlink_to(home / ".ssh" / "id_rsa")
    assert judged(home, "cat *.txt").kind == "ask"
    (home / "project" / "link.txt").unlink()
    (home / "project" / "keys").symlink_to(home / ".ssh")
    assert judged(home, "cat */id*").kind == judged(home, 'for f in */id*; do cat "$f"; done').kind == "ask"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".env", "cat .*"),
        (".env", "cat .e*"),
        ("id_rsa", "cat i*"),
        ("src/.netrc", "cat src/.n*"),
        (".env", "cat ''.e*"),
    ],
)
def test_secrets_that_a_pattern_matches_are_asked(home: Path, name: str, text: str) -> None:
    assert judged(home, text).kind == "allow" or ".*" in text
    (home / "project" / name).touch()
    assert judged(home, text).kind == "ask"


def test_more_names_than_are_looked_at_are_asked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(expand.MOST_NAMES + 1):
        (home / "project" / f"{number}.log").touch()
    assert judged(home, "ls *.log").kind == "ask"
    monkeypatch.setattr(expand, "MOST_NAMES", 1000)
    assert judged(home, "ls *.log").kind == "allow"
    monkeypatch.setattr(expand, "MOST_ENTRIES", 5)
    assert judged(home, "ls *.py").kind == "ask"


@pytest.mark.parametrize("text", ["ls *.py", "echo {1..3}", "a=1; echo $a", 'for f in *.py; do wc -l "$f"; done'])
def test_without_a_sandbox_expansions_are_asked(home: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(judge, "sandbox_problem", lambda: "the kernel has no Landlock")
    verdict = judged(home, text)
    assert verdict.kind == "ask" and "no Landlock" in verdict.reason


async def test_an_agent_that_runs_its_commands_itself_is_asked_about_expansions(home: Path, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.workspace = home / "project"
    await bench.open(LOOKING)
    try:
        session = await bench.session()
        found = {}
        for text in ("ls a.py", "ls *.py"):
            for by_agent in (False, True):
                spec = CommandSpec(command=Shell(text=text), cwd=str(bench.workspace))
                request = CallRequest(
                    session_id=session, tool="Bash", arguments={}, spec=spec, ticket="t", by_agent=by_agent
                )
                record = await bench.record(await bench.supervisor.submit(request))
                found[text, by_agent] = record.state.kind
    finally:
        await bench.supervisor.close()
    assert found == {
        ("ls a.py", False): "held",
        ("ls a.py", True): "held",
        ("ls *.py", False): "held",
        ("ls *.py", True): "waiting",
    }


@pytest.mark.parametrize("shell", ["sh", "zsh", "dash", "/bin/sh"])
def test_only_bash_is_known_to_expand_so(home: Path, shell: str) -> None:
    assert judged(home, "echo {1..3}", shell=shell).kind != "allow"


def test_variables_that_an_agent_adds_are_asked(home: Path) -> None:
    assert judged(home, "ls ~/project", variables={"HOME": "/etc"}).kind == "ask"


def test_a_rule_that_denies_or_asks_sees_the_words_that_expansions_lead_to(home: Path) -> None:
    denied = Rule(name="no data", prefix=("cat", "data.txt"))
    for text in ("cat {data,x}.txt", "x=data.txt; cat $x", "cat d*.txt", 'for f in data.txt; do cat "$f"; done'):
        assert judged(home, text).kind == "allow"
        assert judged(home, text, rules=LOOKING.model_copy(update={"deny": (denied,)})).kind == "refuse"
        assert judged(home, text, rules=LOOKING.model_copy(update={"ask": (denied,)})).kind == "ask"


def test_rules_that_allow_are_about_words_that_are_written_out(home: Path) -> None:
    rules = Rules(allow=(Rule(name="wipe", prefix=("rm",)), Rule(name="all", anything=True)), otherwise="allow")
    for text in ("rm *.py", "rm {a,b}.py", "x=a.py; rm $x", "ls *.py"):
        assert judged(home, text, rules=rules).kind == "ask"


def test_readers_that_differ_expand_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert agreed_steps("ls *.py", read_script("ls *.py"))
    assert agreed_steps("ls *.py", read_script("ls '*.py'")) == ()
    monkeypatch.setattr(policy_view, "is_available", lambda: True)
    monkeypatch.setattr(policy_view, "second_steps", lambda _text: None)
    assert agreed_steps("ls *.py", read_script("ls *.py")) == ()


def test_readers_that_differ_about_a_substitution_expand_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "ls $(pwd)"
    assert taken_apart(text, read_script(text)) == ("ls ${WHISPER_TUI_SUBSTITUTED_0}", ("pwd",))
    monkeypatch.setattr(substitutions, "is_available", lambda: True)
    for spans in (None, [], [(3, 8)], [(3, 9), (4, 8)]):
        monkeypatch.setattr(substitutions, "substitution_spans", lambda _text, spans=spans: spans)
        assert taken_apart(text, read_script(text)) is None


@pytest.mark.parametrize("text", ["find ~", "ls ~/*", "cat ~/x", "ls ~ | wc -l", "for f in ~/*; do stat $f; done"])
def test_a_home_that_the_sandbox_closes_is_asked_about_at_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(host_files, "home_of_user", lambda: "/home/me")
    assert judged(home, text).kind == "ask"
    assert judged(home, "echo ~").kind == "allow"


@pytest.mark.parametrize("text", ["ls ~", "ls $HOME/x", "stat ~/.ssh", "x=/home/me; ls $x", "ls /home/m{e,y}"])
def test_names_alone_need_no_sandbox_if_every_word_is_certain(
    home: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(host_files, "home_of_user", lambda: "/home/me")
    verdict = judged(home, text)
    assert verdict.kind == "allow"
    assert verdict.sandbox is None


def test_no_variable_that_an_unasked_command_gets_may_be_set(home: Path) -> None:
    given = {"LC_ALL": "C", "LC_TIME": "C", **dict.fromkeys(sandbox_profile.INHERITED, "")}
    names = {*sandbox_profile.minimal_environment(given, None), *NEUTRAL, *pin_repository(None, "/")}
    for name in ("WHISPER_TUI", "WHISPER_TUI_CALL_ID", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_", *sorted(names)):
        assert judged(home, f"{name}=x; echo ${name}").kind == "ask", name
        assert judged(home, f"for {name} in x; do ls; done").kind == "ask", name


def test_the_home_is_that_of_the_sandbox() -> None:
    environment = sandbox_profile.minimal_environment({"HOME": "/somewhere/else"}, None)
    assert environment["HOME"] == sandbox_profile.home_of_user()
    kept = {"GLOBIGNORE", "BASHOPTS", "SHELLOPTS", "IFS", "BASH_ENV", "POSIXLY_CORRECT", "a", "CDPATH"} & {*environment}
    assert not kept
