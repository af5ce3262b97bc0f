"""Read-only commands run without being asked, judged option by option."""

from dataclasses import replace

from tests.policy.build import FOUND, a_question
from tests.rows import each_row
from whisper_tui.model.call import Argv, CommandSpec, Shell
from whisper_tui.model.verdict import Meaning
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.rule import Rule, Rules

LOOKING = Rules(read_only=True)
CWD = "/home/me/project"


def kind(text: str, *, neutral: bool = True, rules: Rules = LOOKING) -> str:
    spec = CommandSpec(command=Shell(text=text), cwd=CWD)
    resolved = FOUND.model_copy(update={"cwd": CWD, "git_is_neutral": neutral, "shell": "bash"})
    return evaluate(a_question(spec, resolved=resolved, session_root=CWD), rules, ()).kind


@each_row(
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
        "df -h && free -m",
        "timeout 5 ls",
        "bash -c 'ls | wc -l'",
    ],
)
def test_read_only_commands_run_without_approval(text: str) -> None:
    assert kind(text) == "allow"
    assert kind(text, rules=Rules()) == "ask"


@each_row(
    "text",
    [
        "ls > out",
        "ls; touch x",
        "ls $x",
        "LD_PRELOAD=./x ls",
        "PAGER=./x git log",
        "TZ=:/etc/x date",
        "LESSKEYIN_SYSTEM=./x less a",
        "LESSKEY_CONTENT=x less a",
        "TAPE=host:x tar -t",
        "export TAPE=host:x; tar -t",
        "WORDLIST=x look a",
        "X=.env look a",
        "NVIM_LOG_FILE=x nvim --version",
        "DBUS_SESSION_BUS_ADDRESS=unixexec:path=./x journalctl --user",
        "LC_ALL=zh_TW.big5 bash -c 'echo a'",
        "./ls",
        "/tmp/ls",
        "cd sub && git status",
        "find . -name '*.pem' | xargs cat",
    ],
)
def test_commands_that_could_do_more_are_asked(text: str) -> None:
    assert kind(text) == "ask"


def test_git_runs_read_only_only_where_its_configuration_is_known() -> None:
    assert kind("git status", neutral=False) == "ask"


def test_words_that_no_shell_reads_are_judged_alike() -> None:
    spec = CommandSpec(command=Argv(program="ls", args=("-l", "a b;c")), cwd=CWD)
    assert evaluate(a_question(spec, session_root=CWD), LOOKING, ()).kind == "allow"


@each_row("text", ["ls & cat file", "sleep 60 &", "bash -c 'ls &'", "nohup ls &", "timeout 5 ls & true"])
def test_no_lasting_command_is_on_the_list(text: str) -> None:
    assert kind(text) == "ask"


@each_row(
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


@each_row(
    ("words", "text"), [("find", "find / -exec cat {} +"), ("xargs", "xargs cat"), ("find .", "find . -exec cat {} +")]
)
def test_a_rule_for_a_program_that_gives_words_to_others_is_not_about_what_they_show(words: str, text: str) -> None:
    rule = Rule(name="r", prefix=tuple(words.split()), sandbox=False)
    assert kind(text, rules=Rules(allow=(rule,))) == "ask"


@each_row("text", ["ls | xargs wc", "find . -exec wc {} +", "fd x -x wc"])
def test_no_program_of_the_workspace_gets_words_of_input(text: str) -> None:
    programs = {"ls": "/bin/ls", "xargs": "/usr/bin/xargs", "find": "/usr/bin/find", "fd": "/usr/bin/fd"}

    def verdict(wc: str) -> str:
        commands = tuple(Meaning(words=(name,), program=path) for name, path in {**programs, "wc": wc}.items())
        found = FOUND.model_copy(update={"cwd": CWD, "shell": "bash", "commands": commands})
        question = a_question(CommandSpec(command=Shell(text=text), cwd=CWD), resolved=found, session_root=CWD)
        return evaluate(question, LOOKING, ()).kind

    assert verdict("/usr/bin/wc") == "allow"
    assert verdict(f"{CWD}/bin/wc") == "ask"


def test_unresolved_programs_are_not_trusted() -> None:
    found = FOUND.model_copy(
        update={"cwd": CWD, "shell": "bash", "commands": (Meaning(words=("ls",), program="/usr/bin/ls"),)}
    )
    question = a_question(CommandSpec(command=Shell(text="ls; pwd"), cwd=CWD), resolved=found, session_root=CWD)
    assert evaluate(question, LOOKING, ()).kind == "ask"


@each_row(
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
        "cd .. && ls",
        "cd && cat .bash_history",
        "cd; cat .config/gh/hosts.yml",
        "cd - && cat x",
        "cd '~' && cat x",
        "cd -P /tmp && ls",
        "cd /tmp && cat ../home/me/.bash_history",
        "cd sub/../.. && ls",
        "cd sub; cd .. && ls",
        "cd sub || cd .. && ls",
        "ls || cd sub && cd .. && ls",
        "ls | cd sub && cd .. && ls",
        "cd sub | cd .. && ls",
        "cd sub && cd .. && cd .. && ls",
        "cd sub && cd ../.. && ls",
        "cd sub && cd /opt && cd ../.. && ls",
        "declare -i x=a; ls",
        "declare -n x=PATH; ls",
        "declare PATH=.; ls",
        "readonly IFS=x; ls",
        "declare -p; ls",
        "cat /dev/fd/../root/home/me/.bash_history",
        "head -c 7 /dev/pts/5",
        "cat /dev/tty",
        "cat /dev/sda",
        "strings /dev/mem",
        "cat /proc/kcore",
        "cat /dev/input/event0",
        "grep -r x /etc",
        "grep -rh '' /var/lib",
        "rg x /tmp",
        "rg -e x /tmp",
        "cd /home/me; rg x",
        "bash -c 'cat /home/me/x'",
        "timeout 5 cat /home/me/x",
    ],
)
def test_contents_of_private_files_elsewhere_are_asked(text: str) -> None:
    assert kind(text) == "ask"


@each_row(
    "text",
    [
        "cat /etc/hosts",
        f"cat {CWD}/x",
        "cat sub/../x",
        "ls /home/me",
        "find / -name x",
        "cat /proc/cpuinfo",
        "sed -n '/needle/p' x",
        "tail -5 /var/log/messages",
    ],
)
def test_names_everywhere_and_system_files_may_be_read(text: str) -> None:
    assert kind(text) == "allow"


@each_row("root", ["/", "/home", "/home/me", "/root"])
def test_reading_a_workspace_that_contains_a_home_is_asked(root: str) -> None:
    found = FOUND.model_copy(update={"cwd": root, "shell": "bash"})
    for text, expected in (("rg x", "ask"), ("cat x", "ask"), ("ls", "allow")):
        question = a_question(CommandSpec(command=Shell(text=text), cwd=root), resolved=found, session_root=root)
        assert evaluate(question, LOOKING, ()).kind == expected


@each_row(
    "text",
    [
        "echo a | time -p ls",
        "echo a |& time ls",
        "git log --format=%G?",
        "git log --format=%+G?",
        "git reflog --format=%G?",
        "git reflog show --format=%G?",
        "aws ec2 describe-instances --region eu-west-1 --output json",
        "aws s3 ls s3://bucket",
        "aws ec2 describe-instance-attribute --instance-id i --attribute userData",
        "sdiff a b",
        "bash <<< 'rm x'",
        "python3 <<< 'x'",
        "cat <<< $TOKEN",
        "UNZIP=-o unzip -l x.zip",
    ],
)
def test_commands_with_hidden_effects_are_asked(text: str) -> None:
    assert kind(text) == "ask"


@each_row(
    "text",
    [
        "env | sort",
    ],
)
def test_commands_that_show_environments_or_cloud_secrets_are_asked(text: str) -> None:
    assert kind(text) == "ask"


@each_row(
    "text",
    [
        "test -f x && ls",
        "bash -lc ls",
        "ls | xargs wc -l",
        "git ls-files -z | xargs -0 grep -n TODO",
        "gzip -dc x.gz | head",
        "grep x <<< 'a b'",
        "env -i ls",
        "A=1 ls",
        "LC_ALL=C sort x",
        "LC_ALL=en_US.UTF-8 sort x",
        "LC_ALL= LANG=C.utf8 bash -c ls",
        "TZ=Europe/Oslo date",
        "GIT_PAGER=cat git log",
        "env A=1 ls",
        "env -u A ls",
        "sh -c 'ls -la | head'",
        "bash -xc 'ls; pwd'",
        "set -eu; ls",
    ],
)
def test_the_rest_of_the_list_is_allowed(text: str) -> None:
    assert kind(text) == "allow"


@each_row(
    "text", ["diff -r a b", "grep -R x .", "grep --dereference-recursive x .", "rgrep x .", "rg -L x", "rg --follow x"]
)
def test_what_follows_links_runs_in_the_sandbox_alone(text: str) -> None:
    spec = CommandSpec(command=Shell(text=text), cwd=CWD)
    resolved = FOUND.model_copy(update={"cwd": CWD, "shell": "bash"})
    verdict = evaluate(a_question(spec, resolved=resolved, session_root=CWD), LOOKING, ())
    assert verdict.kind == "allow"
    assert verdict.sandbox is not None
    question = replace(a_question(spec, resolved=resolved, session_root=CWD), sandbox_problem="the kernel has none")
    assert evaluate(question, LOOKING, ()).kind == "ask"


@each_row(
    ("text", "expected"),
    [
        ("cd /opt/x && ls", "allow"),
        ("cd /opt/x && cat y", "allow"),
        ("cd /home/other && cat y", "ask"),
        ("cd /home/other && ls | xargs cat", "ask"),
        ("cd / && cat y", "ask"),
        ("cd /var/lib && grep -r x .", "ask"),
        ("cd /var/lib && find . -exec cat {} +", "ask"),
        ("cd /opt/../root && cat y", "ask"),
        ("find /etc -exec cat {} +", "ask"),
        ("find /home -exec cat {} +", "ask"),
        ("find /usr/share -name x -exec cat {} +", "allow"),
    ],
)
def test_what_reads_elsewhere_is_judged_by_its_directory(text: str, expected: str) -> None:
    assert kind(text) == expected


def test_the_shells_code_in_a_word_is_seen_although_quotes_break_it_up_in_the_text() -> None:
    risks = evaluate(
        a_question(CommandSpec(command=Shell(text="test -n x -a -v 'a[$''(touch x)]'"), cwd=CWD), session_root=CWD),
        LOOKING,
        (),
    ).risks
    assert "substitution" in {risk.id for risk in risks}


@each_row(
    "text",
    [
        "cd src && cat x",
        f"cd {CWD} && ls -la",
        "cd src && cd sub && cat x",
        "cd src && cd .. && cat x",
        "ls; cd src/sub && cat x && cd .. && ls && cd .. && cat x",
        "declare x=1; ls",
        "typeset -rx x=1; readonly y=2; ls",
        "cd /tmp",
        "rg /api/v1 src",
        "grep -rn /api/v1 src",
        "grep -rn x /usr/include",
        "cat /dev/null",
        "head -c 8 /dev/urandom | xxd",
    ],
)
def test_harmless_commands_in_the_workspace_run(text: str) -> None:
    assert kind(text) == "allow"


@each_row(
    "name",
    [
        ".envrc",
        "prod.env",
        "privkey.pem",
        "server.pem",
        "secrets.yml",
        "config/secrets.yaml",
        "service-account.json",
        "terraform.tfstate",
        "prod.tfvars",
        "kubeconfig",
        "id_rsa.bak",
        ".vault_pass",
        "auth.json",
        "AuthKey.p8",
        "key.ppk",
        "/etc/ssl/private/x.pem",
        "/etc/ssh/ssh_host_ed25519_key",
        "/tmp/krb5cc_0",
        "/etc/shadow",
        ".bash_history",
        ".credentials.json",
        "HEAD:.env",
        "/srv/http-token",
    ],
)
def test_files_that_usually_hold_secrets_are_asked_with_a_risk(name: str) -> None:
    program = "git show" if ":" in name else "cat"
    spec = CommandSpec(command=Shell(text=f"{program} {name}"), cwd=CWD)
    resolved = FOUND.model_copy(update={"cwd": CWD, "git_is_neutral": True, "shell": "bash"})
    verdict = evaluate(a_question(spec, resolved=resolved, session_root=CWD), LOOKING, ())
    assert verdict.kind == "ask"
    assert "reads-secrets" in {risk.id for risk in verdict.risks}


@each_row("name", ["cert.pem", "fullchain.pem", ".env.example", "id_rsa.pub", "environ", "README.md"])
def test_files_that_only_sound_alike_are_no_secrets(name: str) -> None:
    assert kind(f"cat {name}") == "allow"


@each_row(
    "text",
    [
        "env",
        "env -0",
        "printenv",
        "printenv X",
        "env | sort",
        "ps auxe",
        "ps e",
        "ps axeww",
        "export -p",
        "set",
        "base64 < .env",
    ],
)
def test_commands_that_show_the_environment_have_a_risk(text: str) -> None:
    spec = CommandSpec(command=Shell(text=text), cwd=CWD)
    verdict = evaluate(a_question(spec, session_root=CWD), LOOKING, ())
    assert verdict.kind == "ask"
    assert "reads-secrets" in {risk.id for risk in verdict.risks}


@each_row("text", ["ps -ef", "ps aux", "env A=1 make", "ssh -i .ssh/id_rsa x", "set -e", "rm .env"])
def test_other_commands_have_no_such_risk(text: str) -> None:
    spec = CommandSpec(command=Shell(text=text), cwd=CWD)
    verdict = evaluate(a_question(spec, session_root=CWD), LOOKING, ())
    assert "reads-secrets" not in {risk.id for risk in verdict.risks}


def asked_about(**found: object) -> str:
    resolved = FOUND.model_copy(update={"cwd": CWD, "shell": "bash", "program": "/bin/bash", **found})
    spec = CommandSpec(command=Shell(text="ls | zcat a.gz"), cwd=CWD)
    return evaluate(a_question(spec, resolved=resolved, session_root=CWD), LOOKING, ()).kind


def test_neither_the_shell_nor_a_helper_of_a_program_may_come_from_the_workspace() -> None:
    assert asked_about() == "allow"
    assert asked_about(program=f"{CWD}/bin/bash") == "ask"
    assert asked_about(helpers=(f"{CWD}/bin/gzip",)) == "ask"


def test_a_shim_asks_the_project_what_it_shall_start() -> None:
    found = Meaning(words=("python3", "--version"), program="/root/.pyenv/shims/python3")
    resolved = FOUND.model_copy(update={"cwd": CWD, "shell": "bash", "commands": (found,)})
    spec = CommandSpec(command=Shell(text="python3 --version"), cwd=CWD)
    assert evaluate(a_question(spec, resolved=resolved, session_root=CWD), LOOKING, ()).kind == "ask"


@each_row(
    "text",
    [
        "docker logs x",
        "podman ps",
        "kubectl get pods -n x",
        "az vm list -o table",
        "gh pr list",
        "systemctl status ssh",
        "dmesg",
    ],
)
def test_commands_that_need_sockets_or_devices_are_asked(text: str) -> None:
    assert kind(text) == "ask"
