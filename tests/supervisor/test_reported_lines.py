"""Lines that people have reported about agents and their guards, judged in a real workspace, with hostile neighbours.

Every report is a row of a table. Beside each form that runs without asking stand texts that look alike and do not.
"""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Verdict, is_grave
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.approvals.judge import judge_alone

STUBS = ("rg", "gh", "npm", "cargo", "docker", "docker-compose", "kubectl", "helm", "aws", "go", "flask", "pytest")


class Place(NamedTuple):
    """A workspace in which lines are judged."""

    workspace: Path
    environment: Mapping[str, str]

    def judged(self, text: str, allow: tuple[str, ...] = (), **others: tuple[str, ...]) -> Verdict:
        """The verdict on a text for bash; `allow`, `deny` and `ask` are prefixes of rules."""

        def rules(lines: tuple[str, ...]) -> tuple[Rule, ...]:
            return tuple(Rule(name=line, prefix=tuple(line.split()), sandbox=False) for line in lines)

        made = Rules(read_only=True, allow=rules(allow), **{name: rules(lines) for name, lines in others.items()})
        spec = CommandSpec(command=Shell(text=text), cwd=str(self.workspace))
        return judge_alone(spec, made, self.environment, root=str(self.workspace), now=0.0)[0]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    top = tmp_path_factory.mktemp("reported")
    workspace = top / "workspace"
    for path in ("README.md", "f", "a.txt", "src/a.py", "src/b.py", "config/a.yaml", "web/x.js", "sub/x"):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text("foo\n")
    (top / "bin").mkdir()
    for name in STUBS:
        # A script there would be asked about, because no sandbox executes it.
        shutil.copy("/bin/true", top / "bin" / name)
    for program in (workspace / ".venv/bin/pytest", workspace / "gradlew"):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    shim = top / "home" / ".pyenv" / "shims" / "tox"
    shim.parent.mkdir(parents=True)
    shim.write_text("#!/bin/sh\n")
    shim.chmod(0o755)
    for directory in (workspace, workspace / "inner"):
        subprocess.run(["git", "init", "-q", str(directory)], check=True)
    (workspace / "away").symlink_to("/tmp")
    path = f"{shim.parent}:{top / 'bin'}:/usr/bin:/bin"
    return Place(workspace, {"PATH": path, "HOME": str(top / "home")})


def commit(body: str, before: str = "git commit -m ", cat: str = "cat <<'EOF'", end: str = "EOF\n)") -> str:
    """A commit as Claude Code writes it."""
    return f'{before}"$({cat}\n{body}\n{end}"'


READ = (
    # a slash that separates, and patterns that begin or end with one
    "find . -type f | sed 's|^\\./||' | cut -d/ -f1 | sort | uniq -c",
    "git ls-files | cut -d / -f1",
    "git ls-files | awk -F/ '{print $1}'",
    "git ls-files | awk -F / '/home/ {print $1}'",
    "git ls-files | sort -t/ -k2",
    "git ls-files | sort --field-separator=/ -k2",
    "echo a/b | tr / _",
    "echo a/b | column -s/ -t",
    "paste -d/ f a.txt",
    'rg -n "websocket|ws://" -S .',
    'rg -n "//" web',
    "grep -rn '//' src",
    "grep -rn -e '/home' src",
    "sed -n '/home/p' f",
    # words of patterns and code that are names of secrets elsewhere
    "grep -rn credentials src",
    "jq .credentials package.json",
    # words of the shell that only look
    "command -v git",
    "command -V git rg",
    "[ -f README.md ] && echo yes",
    "[ -d web ] || echo no",
    "[ ! -f a -o -d web ] && ls",
    '[ "a" = b ]; ls',
    # a dollar sign that expands nothing
    'ls -la | grep -v "^d.*\\.git$"',
    'grep -n "foo$" f',
    'grep -nE "a$|b$" f',
    'grep -n "^foo$\\|bar$" f',
    "grep -n foo$ f",
    # loops over the files of a pattern
    'ls config && for f in config/*.yaml; do echo "--- $f"; head -n 30 $f; done',
    "for f in src/*.py; do wc -l $f; done",
    "for f in src/*.py; do grep -c foo $f; done",
    # a dash before a here-document
    "cat - <<'EOF'\nx\nEOF",
    # pictures that consist of several characters
    'echo "\u26a0\ufe0f done"',
    "echo '\u2764\ufe0f 1\ufe0f\u20e3 \U0001f468\u200d\U0001f469\u200d\U0001f467'",
    # bash by its path
    '/bin/bash -lc "ls -la"',
    "/usr/bin/bash -c 'ls'",
    # git in another directory of the same repository
    "cd . && git status",
    "cd sub && git log -1",
    "git -C . status",
    "git -C sub log -1",
    "timeout 5 git -C sub status",
    "bash -lc 'cd sub && git status'",
    # variables that no reader obeys
    "export A=1; ls",
    "export A='x y' B=2 && grep foo f | head",
    "cd src && export FOO=. && ls",
    # what follows a here-document on its line
    "cat <<EOF | wc -l\nhi\nEOF",
    "cat <<'EOF' | grep -c x | head\n$(id)\nEOF\nls",
    "cat <<EOF && ls\nhi\nEOF",
    # lines that are joined
    "ls \\\n  -la \\\n  src",
    "cat f | \\\n  wc -l",
    "grep -n foo f \\\n# a comment\nls",
    # tests that the shell makes itself
    "[[ -f README.md ]] && cat README.md",
    "[[ ! -d nothere && -s src/a.py ]] || ls",
    # what has been right
    'echo "<<declare"',
    "wc -l part{1,2,3}.diff",
    "cat <<'EOF'\n$(rm e)\nEOF",
)

ASKED = (
    "cut -d/ -f1 /home/someone/notes",
    "cut -d / /home/someone/notes",
    "awk -F/ '{print $1}' /home/someone/notes",
    "sort -t/ /home/someone/notes",
    "grep -rn -e x /home",
    "grep -f /home/someone/notes f",
    "grep x /home/someone/notes",
    "rg x /",
    "rg --files /home",
    "sed -n 1p /home/someone/notes",
    # with POSIXLY_CORRECT, all words behind the first operand are files
    "grep x -e /home/someone/notes",
    "cat /",
    "cat credentials",
    "grep x credentials",
    "command git push",
    "command -v git; command git push",
    "command -p -v git",
    "command -v -p rm x",
    "[ -v 'a[$(id)]' ] && ls",
    "[ -R x ] && ls",
    "[ -f README.md ] && rm f",
    "[ -f README.md && ls",
    "cat <<EOF | sh\nid\nEOF",
    "cat <<EOF | tee out\nhi\nEOF",
    "cat <<EOF | wc -l\n$(id)\nEOF",
    "cat <<EOF && rm f\nhi\nEOF",
    "cat <<EOF | wc -l > out\nhi\nEOF",
    "ls \\\n; rm f",
    "cat \\\n  /etc/shadow",
    "cat f \\\n > out",
    "ls # \\\nrm f",
    "l\\\ns",
    "[[ -f README.md ]] && rm f",
    "[[ -f README.md ]] > out",
    "[[ -f /etc/passwd ]] && ls",
    "[[ -f ../x ]] && ls",
    "[[ -v a[$(id)] ]] && ls",
    "[[ $(id) ]] && ls",
    "[[ a -eq b[$(id)] ]] && ls",
    "[[ -f README.md",
    'grep "$x" f',
    'grep "$1" f',
    'grep "$(touch id)" f',
    'grep "a$`id`" f',
    'grep "$[1]" f',
    "for f in src/*.py; do rm $f; done",
    "for f in src/*.py; do $f; done",
    "for f in src/*.py; do python3 $f; done",
    "for f in src/*.py; do sort $f; done",
    "for f in src/*.py; do find $f; done",
    "for f in src/*.py; do sed -n 1p $f; done",
    "for f in src/*.py; do git log $f; done",
    "for f in src/*.py; do type $f; done",
    "python3 - <<'PY'\nprint(1)\nPY",
    "echo 1\u200d2",
    "echo 'a\ufe0f'",
    "/bin/bash -lc 'rm f'",
    "/bin/bash --rcfile f -c ls",
    "/tmp/bash -c ls",
    "/bin/zsh -lc ls",
    "cd inner && git status",
    "git -C inner status",
    "git -C /tmp status",
    "git -C away status",
    "cd away && git status",
    "cd away/.. && git status",
    "cd nothere && git status",
    "cd && git status",
    "cd - && git status",
    "pushd sub && git status",
    "cd sub x && git status",
    "git -C sub -c core.pager=x log",
    "git -C sub -C ../inner status",
    "git -C sub --git-dir=../inner/.git status",
    "git -C sub config a b",
    "git --work-tree=/tmp -C sub status",
    "export PATH=/tmp; ls",
    "export LD_PRELOAD=./x.so; ls",
    "export GIT_DIR=x; git log",
    "export PYTHONPATH=. && ls",
    "export RIPGREP_CONFIG_PATH=x; rg a",
    "export POSIXLY_CORRECT=1; ls",
    "export IFS=x; ls",
    "export A=1; rm f",
    "export -n A=1; ls",
    "export A; ls",
    "export A=1 > x; ls",
    "export A=~/x; ls",
    "export A=$(id); ls",
    "declare -n A=B; ls",
    "export",
    "cd . && python3 script.py",
    "cat > ~/.bashrc <<X\nx\nX",
)


def test_harmless_lines_of_reports_run_without_asking(place: Place) -> None:
    verdicts = {text: place.judged(text) for text in READ}
    assert not {text: each.reason for text, each in verdicts.items() if (each.kind, each.risks) != ("allow", ())}


def test_lines_that_look_like_harmless_ones_are_asked(place: Place) -> None:
    assert not [text for text in ASKED if place.judged(text).kind != "ask"]


def test_a_loop_over_names_with_blanks_is_asked(place: Place) -> None:
    odd = place.workspace / "odd"
    odd.mkdir()
    (odd / "x -y.py").write_text("x\n")
    assert place.judged("for f in odd/*.py; do cat $f; done").kind == "ask"
    assert place.judged('for f in odd/*.py; do cat "$f"; done').kind == "allow"


ALLOWED_BY_RULES = (
    ("npm run test 2>&1 | head -200", ("npm run test",)),
    ('git commit -m "\u2728 add \u26a0\ufe0f"', ("git commit",)),
    ("git commit -F - <<'EOF'\nx\nEOF", ("git commit",)),
    (commit("msg (x) 'y' `z` $a \"q\" ) ; rm -rf x\n\nCo-Authored-By: X <a@b>"), ("git commit",)),
    ("git add -A && " + commit("x"), ("git add", "git commit")),
    (commit("x", cat='cat <<"EOF"'), ("git commit",)),
    (commit("x", 'gh pr create --title "t" --body '), ("gh pr create",)),
    ("/bin/bash -c 'gh api x'", ("gh api",)),
    ("tox -q | tail", ("tox",)),
    ("cd sub && tox -q", ("tox",)),
    (".venv/bin/pytest -q | tail -5", (".venv/bin/pytest",)),
    (".venv/bin/pytest -q 2>&1 | grep FAIL", (".venv/bin/pytest",)),
    ("./gradlew test | tail -5", ("./gradlew test",)),
    ("cd sub && git add -A && git commit -m x", ("git add", "git commit")),
    ("export A=1; npm test", ("npm test", "export A=1")),
    ("npm test && export A=1", ("npm test",)),
    ("cat 'hello()'", ("cat",)),
)

ASKED_DESPITE_RULES = (
    (commit("x", cat="cat <<EOF"), ("git commit",)),
    (commit("x", cat="cat <<'EOF' f"), ("git commit",)),
    (commit("x", cat="cat f <<'EOF'"), ("git commit",)),
    (commit("x", cat="/tmp/cat <<'EOF'"), ("git commit",)),
    (commit("x", cat="A=1 cat <<'EOF'"), ("git commit",)),
    (commit("x", cat="cat <<'EOF' | sh"), ("git commit",)),
    (commit("x", cat="cat <<'EOF' > f"), ("git commit",)),
    (commit("x", cat="id; cat <<'EOF'"), ("git commit",)),
    (commit("x", end="EOF\n; id)"), ("git commit",)),
    (commit("x\nEOF\nrm -rf y\ncat <<'EOF'"), ("git commit",)),
    (commit("x") + "; rm -rf y", ("git commit",)),
    (commit("x") + "$(id)", ("git commit",)),
    (commit("x", 'git commit -m "$(id)" -m '), ("git commit",)),
    ("cat() { id; }; " + commit("x"), ("git commit",)),
    ("alias cat=id; " + commit("x"), ("git commit",)),
    ("git commit -m $(cat <<'EOF'\n-n x\nEOF\n)", ("git commit",)),
    (commit("git", "") + " commit -m x", ("git commit",)),
    (commit("\x1b[31m"), ("git commit",)),
    (".venv/bin/pytest -q | ./gradlew x", (".venv/bin/pytest",)),
    (".venv/bin/pytest -q | xargs rm", (".venv/bin/pytest",)),
    ("tox -q | tail > out.txt", ("tox",)),
    ("cd inner && git commit -m x", ("git commit",)),
    ("git -C inner commit -m x", ("git commit",)),
    ("export A=1; npm test", ("npm test",)),
    ("FOO=1 npm test", ("npm test",)),
    ("cd . && python3 script.py", ("cd",)),
)


def test_a_rule_holds_in_the_forms_that_agents_write(place: Place) -> None:
    verdicts = {text: place.judged(text, rules) for text, rules in ALLOWED_BY_RULES}
    assert not {text: each.reason for text, each in verdicts.items() if each.kind != "allow"}


def test_a_rule_holds_for_nothing_that_only_looks_like_it(place: Place) -> None:
    assert not [text for text, rules in ASKED_DESPITE_RULES if place.judged(text, rules).kind != "ask"]


def test_a_program_of_the_workspace_with_the_name_of_a_reader_does_not_only_read(place: Place) -> None:
    (place.workspace / "bin").mkdir()
    planted = place.workspace / "bin" / "cat"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    path = f"{planted.parent}:{place.environment['PATH']}"
    there = Place(place.workspace, {**place.environment, "PATH": path})
    assert there.judged("tox -q | tail", ("tox",)).kind == "allow"
    for text, rules in (("cat f", ()), ("tox -q | cat", ("tox",)), (commit("x"), ("git commit",))):
        assert there.judged(text, rules).kind == "ask", text
        assert place.judged(text, rules).kind == "allow", text


REFUSED = (
    ("kubectl -n prod delete pod x", "kubectl", "kubectl delete"),
    ("gh -R a/b pr merge 1", "gh", "gh pr merge"),
    ("gh pr -R a/b merge 1", "gh", "gh pr merge"),
    ("docker compose -f x.yml down -v", "docker compose", "docker compose down"),
    ("docker compose --profile a down", "docker compose", "docker compose down"),
    ("git -C . push", "git", "git push"),
    ("git --git-dir .git push", "git", "git push"),
    ("git commit -nm x", "git", "git commit --no-verify"),
    ("npm i lodash", "npm", "npm install"),
    ("npm add lodash", "npm", "npm install"),
    ("make clean deploy", "make", "make deploy"),
    ("helm delete x", "helm", "helm uninstall"),
    ("make DEBUG=1 deploy", "make", "make DEBUG=1"),
    ("echo hi > $(rm x)", "", "rm"),
    ("cat <<EOF\n$(rm e)\nEOF", "", "rm"),
    ("printf '<<EOF'\nrm -rf /tmp/x\nEOF", "", "rm"),
    (commit("x"), "git commit", "cat"),
    (commit("--no-verify", "git commit "), "git commit", "git commit --no-verify"),
)


def test_a_denied_command_is_refused_in_every_spelling(place: Place) -> None:
    for text, allowed, denied in REFUSED:
        assert place.judged(text, tuple(filter(None, (allowed,))), deny=(denied,)).kind == "refuse", text


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("git commit -F - <<'EOF'\nnever rm -rf x\nEOF", "rm -rf"),
        (commit("then git push it", "gh issue create --body "), "git push"),
    ],
)
def test_a_denied_command_in_a_text_that_nothing_runs_is_not_refused(place: Place, text: str, denied: str) -> None:
    assert place.judged(text, deny=(denied,)).kind == "ask"


OFFERED = (
    ("npm run build 2>&1 | tail -3", ("npm run build",)),
    ("cargo test 2>&1 | tail -20", ("cargo test",)),
    ("gh pr list | cat", ("gh pr list",)),
    ("ls && npm run build", ("npm run build",)),
    ("go test | grep FAIL", ("go test",)),
    ("cd sub && npm run build", ("npm run build",)),
    (commit("x"), ("git commit",)),
    ("timeout 60 npm test 2>&1 | tail -5", ("npm test",)),
    ("nice -n 5 timeout 60 cargo test", ("cargo test",)),
    ("bash -lc 'cd sub && npm run build'", ("npm run build",)),
    ("bash -c 'npm run build && npm test' && go test", ("npm run build", "npm test", "go test")),
    ("flask db upgrade", ("flask db upgrade",)),
    # nothing that would allow other scripts, other words of one, or other files
    ("python3 manage.py test", ()),
    ("php artisan test", ()),
    ("node x.js test", ()),
    ("ruby bin.rb x", ()),
    ("bash run.sh test", ()),
    ("npx tsx x.ts test", ()),
    ("uv run x.py test", ()),
    ("dotnet x.dll test", ()),
    ("npm run build.prod", ("npm run build.prod",)),
    ("npm run build | python3 x.py", ()),
    ("npm run build | tail -3 > out.txt", ()),
    ("timeout 60 npm test > out.txt", ()),
    ("timeout 60 python3 manage.py test", ()),
    ("timeout 60 bash run.sh test", ()),
    ("bash -c 'npm test && python3 x.py'", ()),
    ("export A=1; ls; rm -i x", ()),
)


def test_a_prefix_is_offered_for_what_is_not_allowed_yet(place: Place) -> None:
    verdicts = {text: place.judged(text) for text, _ in OFFERED}
    assert {each.kind for each in verdicts.values()} == {"ask"}
    offered = {text: tuple(" ".join(words) for words in each.prefixes) for text, each in verdicts.items()}
    assert offered == dict(OFFERED)


def test_what_is_offered_allows_the_line(place: Place) -> None:
    for text, prefixes in OFFERED:
        assert not prefixes or place.judged(text, prefixes).kind == "allow", text


GRAVE = (
    ("docker compose -f a.yml down -v", "volumes"),
    ("docker-compose -f a.yml down -v", "volumes"),
    ("docker compose down -v", "volumes"),
    ("kubectl -n prod delete deploy x", "cluster"),
    ("helm -n prod uninstall x", "deployed"),
    ("aws --profile prod ec2 terminate-instances --instance-ids i", "cloud"),
    ("docker --context prod rm -f x", "containers"),
    ("systemctl -H host stop x", "Stops"),
    ("pulumi -C x destroy", "infrastructure"),
    ("heroku -a x pg:reset", "cloud"),
    ("fly -a x apps destroy", "cloud"),
    ("supabase --workdir x db reset", "data"),
    ("pnpm --filter a publish", "package"),
    ("curl -X DELETE http://h/x", "delete"),
    ("gh auth token", "tokens"),
    ("vault kv get secret/x", "keys"),
    ("python3 manage.py flush", "database"),
)


def test_a_severe_risk_is_named_behind_any_options(place: Place) -> None:
    for text, word in GRAVE:
        grave = [risk.sentence for risk in place.judged(text).risks if is_grave(risk)]
        assert any(word in sentence for sentence in grave), text


@each_row(
    "text",
    [
        "git push",
        "git push --tags",
        "docker push x",
        "firebase deploy",
        "vercel --prod",
        "wrangler deploy",
        "ngrok http 3000",
        "pip install x",
        "npm install x",
    ],
)
def test_what_reaches_the_network_says_so(place: Place, text: str) -> None:
    assert "network" in {risk.id for risk in place.judged(text).risks}


@each_row(
    "text", ["git check-ignore .env", "git log --oneline -- .env", "grep -rn credentials src", "jq .credentials f"]
)
def test_a_name_that_is_not_read_is_no_severe_risk(place: Place, text: str) -> None:
    assert not [risk for risk in place.judged(text).risks if is_grave(risk)]


def test_the_reason_names_what_no_rule_covers(place: Place) -> None:
    assert place.judged("FOO=1 npm test", ("npm test",)).reason == "it sets FOO first, which no rule names"
    assert place.judged("export PYTHONPATH=. && ls").reason == "it sets PYTHONPATH first, which no rule names"
    assert "keyword '[['" in place.judged("[[ $x ]] && echo y").reason
    assert "it sets A first" in place.judged("declare A=1; npm test", ("npm test",)).reason
