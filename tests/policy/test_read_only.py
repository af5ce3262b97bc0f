"""What runs without being asked because it only looks: earned option by option."""

import pytest

from tests.policy.build import FOUND, a_question
from whisper_tui.model.command import Argv, CommandSpec, Shell
from whisper_tui.model.verdict import Meaning
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules import Rules

LOOKING = Rules(read_only=True)
CWD = "/home/me/project"


def kind(text: str, *, neutral: bool = True, rules: Rules = LOOKING) -> str:
    spec = CommandSpec(command=Shell(text=text), cwd=CWD)
    resolved = FOUND.model_copy(update={"cwd": CWD, "git_is_neutral": neutral, "shell": "bash"})
    return evaluate(a_question(spec, resolved=resolved, session_root=CWD), rules, ()).kind


@pytest.mark.parametrize(
    "text",
    [
        "ls -la src && pwd",
        "grep -rn 'def x' --include='*.py' . | head -20",
        "find . -name '*.py' -not -path './x/*' -type f",
        "sed -n '1,20p' file",
        "awk '{print $1}' file | sort | uniq -c | sort -rn",
        "cat a.txt 2>/dev/null",
        "git status --short && git log --oneline -5",
        "git diff HEAD~1 -- src",
        "docker ps -a && kubectl get pods -n x",
        "timeout 5 ls",
        "bash -c 'ls | wc -l'",
    ],
)
def test_what_only_looks_runs_without_being_asked(text: str) -> None:
    assert kind(text) == "allow"
    assert kind(text, rules=Rules()) == "ask"


@pytest.mark.parametrize(
    "text",
    [
        "ls > out",
        "ls; touch x",
        "ls $x",
        "find . -delete",
        "find . -fprint x",
        "sed -i s/a/b/ x",
        "sed 's/a/b/w x' y",
        "awk '{print > \"x\"}' y",
        "awk '{system($1)}' y",
        "sort -o x y",
        "sort --compress-prog=x y",
        "rg --pre x y",
        "date 010203042024",
        "env ls",
        "A=1 ls",
        "./ls",
        "/tmp/ls",
        "cat .env",
        "cat src/id_rsa",
        "grep x ../.ssh/config",
        "git -c core.pager=x log",
        "git diff --ext-diff",
        "git branch -D x",
        "git grep -O x y",
        "git show --output=x",
        "cd sub && git status",
        "curl https://example.org",
        "kubectl get secrets",
        "tar -xf x",
        "unzip x.zip",
        "python3 -c 1",
        "sudo ls",
        "xargs ls",
        "bash -c 'ls $x'",
        "zsh -c ls",
    ],
)
def test_what_could_do_more_is_asked(text: str) -> None:
    assert kind(text) == "ask"


def test_git_only_looks_where_its_configuration_is_known() -> None:
    assert kind("git status", neutral=False) == "ask"


def test_words_that_no_shell_reads_are_judged_alike() -> None:
    spec = CommandSpec(command=Argv(program="ls", args=("-l", "a b;c")), cwd=CWD)
    assert evaluate(a_question(spec, session_root=CWD), LOOKING, ()).kind == "allow"


@pytest.mark.parametrize("text", ["ls & cat file", "sleep 60 &", "bash -c 'ls &'", "nohup ls &", "timeout 5 ls & true"])
def test_nothing_that_stays_after_its_answer_is_on_the_list(text: str) -> None:
    assert kind(text) == "ask"


@pytest.mark.parametrize(
    "text",
    [
        "tmux ls -F '#(touch x)'",
        "tmux display-message '#(touch x)'",
        "hg status",
        "hg --version",
        "composer show",
        "vagrant status",
        "pnpm ls",
        "pnpm --version",
        "uv pip list",
        "dotnet --version",
        "npm view x",
        "docker search x",
        "helm show chart oci://h/x",
        "svn cat svn+ssh://h/x",
        "tar tf host:archive.tar",
        "tar -t --file=host:archive.tar",
    ],
)
def test_what_the_project_or_another_machine_could_decide_is_not_on_the_list(text: str) -> None:
    assert kind(text) == "ask"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("/usr/bin/ls", "allow"),
        (None, "allow"),
        ("/opt/tools/bin/ls", "allow"),
        (f"{CWD}/bin/ls", "ask"),
        (f"{CWD}/.venv/bin/ls", "ask"),
    ],
)
def test_a_program_that_the_agent_could_have_put_there_is_not_on_the_list(program: str | None, expected: str) -> None:
    found = FOUND.model_copy(
        update={"cwd": CWD, "shell": "bash", "commands": (Meaning(words=("ls",), program=program),)}
    )
    question = a_question(CommandSpec(command=Shell(text="ls"), cwd=CWD), resolved=found, session_root=CWD)
    assert evaluate(question, LOOKING, ()).kind == expected


def test_programs_that_were_not_looked_up_are_not_taken_on_trust() -> None:
    found = FOUND.model_copy(
        update={"cwd": CWD, "shell": "bash", "commands": (Meaning(words=("ls",), program="/usr/bin/ls"),)}
    )
    question = a_question(CommandSpec(command=Shell(text="ls; pwd"), cwd=CWD), resolved=found, session_root=CWD)
    assert evaluate(question, LOOKING, ()).kind == "ask"


@pytest.mark.parametrize(
    "text",
    [
        "grep -r token /home/me",
        "rg --hidden . /home/other/project",
        "cat ../notes/x",
        "cat /root/x",
        "head -5 /Users/me/x",
        "grep -r . /",
        "grep --file=/home/me/x y",
        "grep -f/home/me/x y",
        "cat /proc/1/cmdline",
        "grep -r . /proc",
        "cd .. && cat x",
        "cd /home/me; rg x",
        "bash -c 'cat /home/me/x'",
        "timeout 5 cat /home/me/x",
    ],
)
def test_what_is_inside_of_peoples_files_elsewhere_is_asked(text: str) -> None:
    assert kind(text) == "ask"


@pytest.mark.parametrize(
    "text",
    [
        "cat /etc/hosts",
        f"cat {CWD}/x",
        "cat sub/../x",
        "ls /home/me",
        "find / -name x",
        "cd .. && ls",
        "cat /proc/cpuinfo",
        "sed -n '/needle/p' x",
        "tail -5 /var/log/messages",
    ],
)
def test_names_everywhere_and_files_of_the_system_may_be_looked_at(text: str) -> None:
    assert kind(text) == "allow"


@pytest.mark.parametrize("root", ["/", "/home", "/home/me", "/root"])
def test_a_workspace_that_holds_a_home_is_read_with_a_question(root: str) -> None:
    found = FOUND.model_copy(update={"cwd": root, "shell": "bash"})
    for text, expected in (("rg x", "ask"), ("cat x", "ask"), ("ls", "allow")):
        question = a_question(CommandSpec(command=Shell(text=text), cwd=root), resolved=found, session_root=root)
        assert evaluate(question, LOOKING, ()).kind == expected
