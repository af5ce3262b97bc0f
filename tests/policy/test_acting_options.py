"""An allow rule for a program does not cover the options with which it runs something else or writes a file.

Most of the command lines stand in `data/acting_options.txt`.
"""

from pathlib import Path

from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.corpus import ROOT
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.risks.call_risks import risks_of
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.policy.shell.strict_reader import read_plain
from whisper_tui.policy.view import Question

RUNS = """
kubectl get --kubeconfig=F pods
kubectl get pods --kubeconfig F
helm template --post-renderer ./x .
helm install a . --post-renderer=./x
apt-get update -o APT::Update::Pre-Invoke::=id
apt-get -oAPT::Update::Pre-Invoke::=id update
apt-get update --option APT::x=id
rpm -q --pipe 'sh' a
rpm --eval '%(id)'
rpm -E '%(id)'
go vet -vettool=./x ./...
go vet -vettool ./x
go test -exec ./x ./...
go build -toolexec ./x
go build --toolexec=./x
go env -w GOFLAGS=-toolexec=./x
bat --pager=./x f
bat --pager './x' f
ag --pager=./x a
fd -Hx ./x
fd -x ./x
fd --exec=./x
fd --exec-batch=./x
tar xIf ./x a.tar
tar xf a.tar -I ./x
tar -xIf ./x a.tar
tar xf a.tar --use-compress-program=./x
tar xf a.tar --use-comp=./x
tar cf a.tar --checkpoint=1 --checkpoint-action=exec=./x f
tar xf a.tar --to-command=./x
tar xf a.tar --rsh-command=./x
tar tfv h:x --rsh-command=./x
tmux ls -F '#(./x)'
tmux display-message -p '#(./x)'
npm test --script-shell=./x
npm test --script-shell ./x
npm test --node-options='--require ./x'
gcc -wrapper ./x a.c
gcc -fplugin=./x.so a.c
gcc -B./x a.c
gcc -B ./x a.c
gcc -specs=./x a.c
gcc --specs=./x a.c
gcc @f
clang -Xclang -load -Xclang ./x.so a.c
clang -fpass-plugin=./x.so a.c
nm --plugin ./x.so a.o
nm --plugin=./x.so a.o
nm @f
ar --plugin ./x.so t a.a
objdump --plugin=./x -d a.o
openssl dgst -engine ./x.so f
openssl x509 -engine=./x
openssl x509 -provider-path . -provider x
openssl x509 -in org.openssl.engine:./x.so:x
split --filter=./x f
split --filter './x' f
less '+!id' f
less '++!id' f
less --lesskey-file=./x f
less -k./x f
sqlite3 a.db '.shell id'
sqlite3 a.db '.system id'
sqlite3 a.db -cmd '.shell id'
sqlite3 a.db "select load_extension('./x')"
sqlite3 a.db -init ./x
psql -c '\\! id'
psql -c 'select 1 \\g | id'
psql -c "copy t to program 'id'"
mysql -e '\\! id'
mysql -e 'system id'
mysql --pager=./x
mysql -e 'source ./x'
pdflatex -shell-escape a
pdflatex --shell-escape a
pdflatex -enable-write18 a
pylint --init-hook='import x' a
pylint --init-hook 'import x' a
pylint --load-plugins=x a
php -d auto_prepend_file=x a.php
php -dauto_prepend_file=x a.php
awk '/"/{system("id")} /"/' f
awk 'BEGIN{system("id")}'
awk -f x f
vim -c '!id' f
vim --cmd '!id' f
vim '+!id' f
vim -S x f
make SHELL=./x
make --eval='$(shell id)'
zip a.zip f -T -TT ./x
zip a.zip f --unzip-command ./x
rg --pre ./x a
rg --hostname-bin=./x a
sort --compress-program=./x f
man -P ./x ls
man --pager=./x ls
git grep -O./x a
git grep --open-files-in-pager=./x a
git fetch --upload-pack=./x
git ls-remote --upload-pack=./x .
git difftool -x ./x
git archive --remote=./x HEAD
rsync -e ./x a b:
rsync --rsh=./x a b:
wget --use-askpass=./x u
java -javaagent:x.jar A
java -XX:OnError=./x A
gdb -ex 'shell id' a
valgrind --db-command=./x a
emacs --eval x
gpg --photo-viewer ./x --list-keys
svn diff --diff-cmd ./x
patch -g 1 f
strange --exec ./x
strange --exec=./x
strange --post-hook=./x
strange --pager ./x
strange --shell=./x
strange --on-error-command ./x
strange --plugin ./x.so
"""

WRITES = """
uniq a b
uniq -c a b
uniq -f 1 a b
xxd a b
xxd -r a b
xxd -l 5 a b
iconv -o b a
iconv -f utf8 -o b a
iconv --output=b a
tree -o b
shuf -o b a
shuf --output=b a
sort -o b a
sort --output=b a
git archive -o b HEAD
git archive --output=b HEAD
git format-patch -o b HEAD
git format-patch -1 -o b
git bundle create b HEAD
journalctl --cursor-file=b
journalctl --cursor-file b
journalctl --rotate
journalctl --vacuum-time=1s
tar tf a.tar --index-file=b
tar tf a.tar --index-file b
date -s 12:00
date --set=12:00
sysctl -w a=1
sysctl -p b
hostname -F b
dmesg -C
strange --output-file b
strange --log-file=b
strange --write-state
strange --dump-to b
"""


def listed(kind: str) -> list[str]:
    """The command lines below one heading of the data."""
    found, here = [], ""
    for line in (Path(__file__).parent / "data" / "acting_options.txt").read_text().splitlines():
        if line.startswith("# "):
            here = line[2:].partition(":")[0]
        elif line and here == kind:
            found.append(line)
    return found


TOLD = list(dict.fromkeys([*filter(None, (RUNS + WRITES).splitlines()), *listed("runs"), *listed("writes")]))
"""Command lines of which the human is told what they do."""

TRIES = list(dict.fromkeys([*TOLD, *listed("quiet")]))
"""These, and those of every day, which a rule must name all the same."""


def judged(text: str, *rules: Rule) -> str:
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    question = Question("s", ROOT, spec, "", Resolved(program="/bin/bash", cwd=ROOT, shell="bash"))
    return evaluate(question, Rules(allow=rules), ()).kind


def words(text: str) -> tuple[str, ...]:
    return read_plain(text)[0].argv


@each_row("text", TRIES)
def test_neither_a_program_nor_a_prefix_nor_a_pattern_covers_it(text: str) -> None:
    name = words(text)[0]
    rules = [Rule(name="a", program=name), Rule(name="b", prefix=(name,)), Rule(name="c", pattern=name + " *")]
    assert judged(text, *rules) == "ask"


_WHOLE = {"config", "record", "stat", "b"}
"""Second words that name all that the command does: it sets something, or runs what follows."""


@each_row("text", TRIES)
def test_a_prefix_of_the_subcommand_does_not_cover_it(text: str) -> None:
    prefix = words(text)[:2]
    if len(prefix) == 2 and prefix[1].isalpha() and prefix[1] not in {"create", "a", "xIf"} | _WHOLE:
        assert judged(text, Rule(name="r", prefix=prefix)) == "ask"


RUN_THEIR_WORDS = ("fd", "awk", "gdb", "valgrind")


@each_row("text", [each for each in TRIES if not each.startswith(RUN_THEIR_WORDS)])
def test_a_prefix_that_names_everything_covers_it(text: str) -> None:
    if any(word.partition("=")[0].isidentifier() and "=" in word for word in words(text)):
        return  # in a prefix, such a word stands for a variable in front of the command
    assert judged(text, Rule(name="r", prefix=words(text))) == "allow"


@each_row("text", listed("inner"))
def test_a_rule_for_the_program_in_front_does_not_cover_the_command_among_its_words(text: str) -> None:
    name = words(text)[0]
    rules = [Rule(name="a", program=name), Rule(name="b", prefix=(name,)), Rule(name="c", pattern=name + " *")]
    assert judged(text, *rules) == "ask"


@each_row(
    ("text", "options"),
    [
        ("helm template --post-renderer=./x .", ("--post-renderer=",)),
        ("prettier --write src", ("--write",)),
        ("strange --exec=./x", ("--exec=",)),
        ("git format-patch -o out HEAD", ("-o",)),
    ],
)
def test_a_rule_may_name_the_option_in_its_list(text: str, options: tuple[str, ...]) -> None:
    prefix = words(text)[:1]
    assert judged(text, Rule(name="r", prefix=prefix)) == "ask"
    assert judged(text, Rule(name="r", prefix=prefix, options=options)) == "allow"


@each_row(
    ("text", "named"),
    [
        ("rsync -e ssh --rsync-path=./x a h:b", 3),
        ("tar -I zstd --to-command=./x -xf a.tar", 3),
        ("vim -u NONE -c '!./x'", 3),
        ("sort -o out -o .bashrc in", 3),
    ],
)
def test_a_rule_that_names_one_such_option_does_not_cover_the_next(text: str, named: int) -> None:
    assert judged(text, Rule(name="r", prefix=words(text)[:named])) == "ask"


@each_row(
    "text",
    [
        "kubectl get pods -n a -o json",
        "helm template . --values v.yaml",
        "go test -v -run TestX ./...",
        "go vet ./...",
        "tar xzf a.tar.gz",
        "tar -xf a.tar --strip-components=1",
        "npm test --silent",
        "npm ci --ignore-scripts",
        "gcc -Wall -O2 -Iinclude -o a a.c",
        "pytest -q -k name --maxfail=1",
        "eslint --max-warnings=0 src",
        "prettier --check src",
        "git push -u origin main",
        "git log --oneline -5",
        "make test -j4",
        "tsc -p tsconfig.json --noEmit",
        "cmake --build build",
        "cargo test --release",
        "less f",
        "sqlite3 a.db 'select 1'",
        "psql -c 'select 1'",
        "uniq -c a",
        "xxd a",
        "xxd -l 5 a",
        *listed("covered"),
    ],
)
def test_common_allow_rules_still_match(text: str) -> None:
    assert judged(text, Rule(name="r", prefix=words(text)[:1])) == "allow"


@each_row("text", [each for each in TOLD if not each.startswith("strange")])
def test_the_risk_is_shown_to_the_human(text: str) -> None:
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    question = Question("s", ROOT, spec, "", Resolved(program="/bin/bash", cwd=ROOT, shell="bash"))
    assert {"runs-other-code", "writes-file", "destructive"} & {risk.id for risk in risks_of(question)}
