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
        "env rm x",
        "env LD_PRELOAD=./x ls",
        "LD_PRELOAD=./x ls",
        "PAGER=./x git log",
        "TZ=:/etc/x date",
        "LESSKEYIN_SYSTEM=./x less a",
        "LESSKEY_CONTENT=x less a",
        "TAPE=host:x tar -t",
        "export TAPE=host:x; tar -t",
        "WORDLIST=x look a",
        "X=.env look a",
        "env X=src/id_rsa look a",
        "NVIM_LOG_FILE=x nvim --version",
        "DBUS_SESSION_BUS_ADDRESS=unixexec:path=./x journalctl --user",
        "LC_ALL=zh_TW.big5 bash -c 'echo a'",
        "env LC_CTYPE=ja_JP.sjis sed p x",
        "env -i git log",
        "env -S 'rm x'",
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
        "xargs rm",
        "xargs sort",
        "xargs sed -n 1p",
        "xargs sh -c ls",
        "xargs -a list cat",
        "xargs -P 0 -n 1 cat",
        "xargs --max-procs=1000 cat",
        "xargs -I{} {} x",
        "xargs -I{} awk '{}' x",
        "find . -exec rm {} +",
        "find . -exec sed -i s/a/b/ {} +",
        "find . -exec sort -o {} x +",
        "find . -execdir sort {} +",
        "find . -exec {} x +",
        "find . -exec cat {} + -delete",
        "find . -exec cat {} \\; -exec rm {} \\;",
        "find . -ok cat {} +",
        "find . -name '*.pem' -exec cat {} +",
        "find . -name '*.pem' | xargs cat",
        "find . -exec cat",
        "fd x -x rm",
        "fd x -X sort",
        "bash -c 'ls $x'",
        "zsh -c ls",
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
def test_commands_under_foreign_control_are_not_on_the_list(text: str) -> None:
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
        "test -n -- -a -v 'a[$''(touch x)]'",
        "[ -v 'a[$''(touch x)]' ]",
        "test -v a",
        "ss dst data.example.org",
        "lsof -i @data.example.org",
        "echo a | time -p ls",
        "echo a |& time ls",
        "bash --rcfile ./evil.sh -ic 'ls'",
        "bash --init-file ./evil.sh -ic 'ls'",
        "bash -ic ls",
        "bash -O extglob -c ls",
        "bash --posix -c ls",
        "rustup --version",
        "cargo --version",
        "rustc --version",
        "terraform --version",
        "go version",
        "go env",
        "brew cat ./x.rb",
        "glab mr list",
        "npm ls --prefix /x",
        "npm install",
        "npm run x",
        "npm pkg set x=y",
        "npm config list",
        "npm config list",
        "svn log",
        "asdf current",
        "pyenv version",
        "tput init",
        "tput reset",
        "git config core.fsmonitor 'touch x' --get",
        "git config --global core.pager 'touch x' --get",
        "git config --global core.pager 'touch x' --list",
        "git config --list",
        "git config --get user.signingkey",
        "git tag --format --list v1",
        "git branch --format --list evil",
        "git branch evil",
        "git branch --abbrev evil",
        "git tag v1",
        "git log --format=%G?",
        "git describe --dirty",
        "netstat -a",
        "netstat --route",
        "ss -r",
        "ss --resolve",
        "last -d",
        "ip -r route show",
        "ip -resolve neigh show",
        "java -version",
        "javac --version",
        "git describe --broken=x",
        "hostname -f",
        "hostname -A",
        "hostname --domain",
        "git log --format=%+G?",
        "git log '--pretty=format:%h% GK'",
        "git show '--format=%-GS' HEAD",
        "git reflog --format=%G?",
        "git reflog show --format=%G?",
        "git for-each-ref '--format=%(signature:grade)'",
        "git for-each-ref --sort=-signature",
        "git branch --list '--format=%(*signature)'",
        "git tag -l --sort=signature:key",
        "git log --show-signature",
        "git submodule status",
        "git diff --submodule=diff",
        "git status --ignore-submodules=none",
        "nm @opts",
        "strings @opts",
        "size @opts",
        "readelf -a @opts",
        "objdump -d @opts",
        "objdump -S x",
        "openssl x509 -in org.openssl.engine:/srv/evil.so:x -noout",
        "openssl crl -in file:/etc/x -noout",
        "openssl x509 -engine ./x.so -in a",
        "arch ./evil.sh",
        "arch sh evil.sh",
        "aws iot get-job-output out",
        "aws iot-data get-thing-shadow --thing-name x out",
        "aws ec2 describe-instances --filters file:///etc/x",
        "aws ec2 describe-instances --region eu-west-1 --output json",
        "aws s3 ls s3://bucket",
        "aws ec2 describe-instance-attribute --instance-id i --attribute userData",
        "aws eks get-token --cluster-name x",
        "tar tfv host:x",
        "sdiff a b",
        "jq -f x .",
        "jq -L x . y",
        "jq --slurpfile a x .",
        "jq --rawfile a x .",
        "jq --arg",
        "jq -n env",
        "gzip x",
        "gunzip x.gz",
        "bash <<< 'rm x'",
        "python3 <<< 'x'",
        "cat <<< $TOKEN",
        "7z x a.7z",
        "7z t a.7z @list",
        "7z l -oout a.7z",
        "ar rcs x.a x.o",
        "base64 x y",
        "less +!x y",
        "less -o log x",
        "git config --list",
        "git config --name-only --list",
        'awk \'{print > "/dev/null" "x"}\' y',
        'awk \'{print > "/dev/stderr"; print > "f"}\' y',
        "env -u GIT_CONFIG_GLOBAL git log",
        "perl -V:x x",
        "xz -d x.xz",
        "zstd --rm -c x",
        "unzip -d out -t x.zip",
        "sed -e p -e 'w out' x",
        "sed -e '1e date' x",
        "sed -n -e p -f script x",
        "awk '{getline x < \"f\"}' y",
        "awk '{\"date\" | getline}' y",
        "awk '{getline < f}' y",
        "git -c core.fsmonitor=./x status",
        "git -c core.pager=./x log",
        "git -c alias.st=!./x st",
        "git -c color.ui=!x -c core.sshCommand=./x log",
        "git -c log.showSignature=true log",
        "git -c status.submoduleSummary=true status",
        "xz -t -d f.xz",
        "xz -ld f.xz",
        "zstd --test --decompress f.zst",
        "bzip2 -td f.bz2",
        "UNZIP=-o unzip -l x.zip",
        "git format-patch HEAD~1",
        "git symbolic-ref HEAD refs/heads/x",
        "git config --local --get http.extraheader",
        "git config --local user.name x",
        "git config --get-all user.name x",
        "git fsck --lost-found",
        "set -f",
        "set -- a",
        "sh -c 'ls > f'",
        "sh -c 'ls &>f'",
        "sh -c 'rm x'",
        "bash -ic ls",
        "zsh -c ls",
        "fd -l x",
        "sort --files0-from=list",
        "wc --files0-from=list",
        "du --files0-from=list",
        "sha256sum -c list",
        "file -s /dev/sda",
        "dmesg -H",
        'jq -n \'import "config" as $d {search:"~/.docker"}; $d\'',
    ],
)
def test_commands_with_hidden_effects_are_asked(text: str) -> None:
    assert kind(text) == "ask"


@each_row(
    "text",
    [
        "env",
        "env -0",
        "printenv",
        "printenv FAKE_API_KEY",
        "env | sort",
        "ps auxe",
        "ps e",
        "ps axeww",
        "ps -axeww",
        "ps -ef nonsense",
        "ps -o pid,environ",
        "docker inspect x",
        "docker top x axe",
        "heroku config",
        "az acr credential show --name x",
        "az storage account keys list",
        "terraform output -json",
        "helm get values x",
        "systemctl show x",
    ],
)
def test_commands_that_show_environments_or_cloud_secrets_are_asked(text: str) -> None:
    assert kind(text) == "ask"


@each_row(
    "text",
    [
        "test -f x && ls",
        "test 3 -gt -2",
        "bash -lc ls",
        "ss -tlnp",
        "lsof -i :80",
        "ps aux",
        "ps -ef",
        "ps -eo pid,comm --sort=-rss",
        "ps -p 1 -o args",
        "git config --get remote.origin.url",
        "git branch -a",
        "git branch --list 'x*'",
        "git branch --contains HEAD",
        "git tag -l",
        "strings x",
        "openssl x509 -in cert.pem -noout -text",
        "arch",
        "python3 --version",
        "tput cols",
        "diff -u a b",
        "diff -r --no-dereference a b",
        "ls | xargs wc -l",
        "git ls-files -z | xargs -0 grep -n TODO",
        "xargs -I{} basename {}",
        "xargs -n 1 -P 4 head -3",
        "find . -name '*.py' -exec grep -n x {} +",
        "find src -exec sed -n 1p {} \\;",
        "find . -execdir cat {} \\;",
        "fd x -x wc -l",
        "gzip -dc x.gz | head",
        "gunzip -c x.gz",
        "xz -dc x.xz",
        "zstd -t x.zst",
        "xz -l x.xz",
        "grep x <<< 'a b'",
        "7z l a.7z",
        "7zz h -scrcSHA256 x",
        "ar t x.a",
        "base64 -d x",
        "less x",
        "git",
        "git config --local --name-only --list",
        "awk '{print > \"/dev/null\"}' y",
        "env -i ls",
        "sort -T /tmp x",
        "grep '-->' x",
        "sh --version",
        "perl -v",
        "unzip -t x.zip",
        "sed -n -e 1p -e '$p' x",
        "sed --expression=s/a/b/ x",
        "awk '/x/{getline; print}' y",
        "git -c color.ui=never status",
        "git -c core.pager=cat log",
        "git tag -n",
        "git branch --remote",
        "git format-patch --stdout HEAD~1",
        "git config --local --get user.name",
        "git config --get-all remote.origin.url",
        "git symbolic-ref HEAD",
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
        "tar tzf x.tgz",
        "pip list",
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
