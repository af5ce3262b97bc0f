"""Random command lines of bash: programs, options, wrappers, redirections, builtins, variables, pipelines, loops.

The same seed makes the same lines. Each line ends by itself and changes nothing outside of the tree of `Ground`,
whatever its random parts are: paths lie in it or are not writable, and no line names a process or a machine.
"""

# ruff: noqa: E501 (one program a line)

import re
import shlex
from collections.abc import Sequence
from random import Random
from typing import TypeVar

_T = TypeVar("_T")

FILES = (
    "a.txt", "b.txt", "sub/c.txt", "'with space'", "link", "dirlink/c.txt", "out/file", "run.sh", "../outside/file",
    "~/rc", "$HOME/rc", "$PLACE/c.txt", "~+/a.txt", '"$PWD/b.txt"', "./a.txt", "./-x.txt", "sub/../a.txt",
    "dirlink/../a.txt", "hard.txt", "/proc/self/cwd/b.txt", "numbers",
)  # fmt: skip
DIRECTORIES = (
    "sub", "sub/deep", "empty", "dirlink", "out", "../outside", "~", ".", "$PLACE", '"$PWD/sub"', "full", "linked", "dirlink/",
    "sub/.", "linked/deep",
)  # fmt: skip
NEW = (
    "new", "new.txt", "sub/new", "dirlink/new", "dead", "out/new", "~/new", "no/where", "../outside/new", "empty/new",
    '"$HOME/new"', "$PLACE/new", "~+/new", "/proc/self/cwd/new", "-v", "./-n", "new/", "two", "nowhere",
)  # fmt: skip
STREAMS = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2", "/dev/stdin", "-", "/dev/tty")
PATTERNS = ("*.txt", "sub/*", "{a,b}.txt", "?.txt", "[ab].txt", "no*match", "full/*", "*", "{new,two}.txt", ".*rc")
TEXTS = (
    "x", "hello", "'two words'", "'a\\nb'", "-n", "''", "1", "%s", "'%s %d\\n'", '"$PLACE"', "s/a/b/", "'$HOME'", "a=b",
)  # fmt: skip
SIZES = ("0", "3", "1k", "+2")
UNCERTAIN = (
    "$(echo a.txt)",
    "`echo new`",
    "$NOWHERE",
    "${PLACE:-new}",
    "${PLACE:=new}",
    '"$1"',
    "$((1+1))",
    "$NAME",
    "$REPLY",
)

PROGRAMS = """
cp {o} {p} {w}|-r -a -f -n -u -b -l -s -P -L -T -v -i -d -p -x --parents --backup --backup=numbered --remove-destination --attributes-only --no-clobber -S.old --suffix=.old -rT -H --recursive --archive --force --link --symbolic-link --dereference --no-dereference --no-target-directory --update
cp {o} {p} {p} {d}|-r -a -f -n -v -b --parents -t{d} --recursive --archive --link -L -H --target-directory={d} --target-directory_{d}
cp {o} -t {d} {p} {p}|-r -v -f -l -s --recursive --dereference -L -H -P --no-clobber
cp {o} {d} {d}|-r -a -f -l -s -L -P -H -d -T -v -n --recursive --archive --link --dereference --no-dereference --remove-destination --parents
cp {o} -t {d} {d} {p}|-r -a -l -L -H -P --recursive --link --dereference
mv {o} {p} {w}|-f -n -u -b -T -v -i --backup=simple -S.old --suffix .old --force --no-clobber --update --no-target-directory --backup
mv {o} {f} {f} {d}|-f -n -b -v --target-directory={d} --force
mv {o} {d} {d}|-f -n -T -v -t{d} --no-target-directory
mv {o} -t {d} {p} {d}|-f -n --verbose
install {o} {p} {w}|-m600 -D -b -v -p -s -C -T -S.old --backup -m 755 --directory --mode=600 --compare --no-target-directory --suffix=.old
install {o} {p} {p} {d}|-m600 -v -C
install -d {o} {w} {w}|-m700 -v --mode=700 --verbose
install {o} -t {w} {p}|-D -v --compare --strip
ln {o} {p} {w}|-s -f -n -b -r -v -T -sf -sfn -i -L -P -S.old --backup=t --symbolic --force --no-dereference --relative --no-target-directory --target-directory={d} -t{d} --logical --physical
ln {o} {p}|-s -f -v
ln {o} {d} {d}|-s -f -n -T -sf -sfn -sfT -r --symbolic --no-dereference --target-directory={d}
link {f} {w}|
unlink {p}|
rm {o} {p}|-r -f -rf -i -v -d -I --one-file-system --preserve-root --recursive --force --dir --interactive=never
rm {o} {p} {p}|-r -f -d --recursive --dir
rm {o} {d}|-r -rf -d --recursive --force --dir
rmdir {o} {d}|-p -v --ignore-fail-on-non-empty --parents --verbose
mkdir {o} {w}|-p -m700 -v --parents --mode=700 --verbose
mkdir {o} {w} {w}|-p --parents
touch {o} {w}|-c -a -m -h -d2001-01-01 -r{f} -t200101010000 --no-create --date=2001-01-01 --reference={f} --no-dereference --time=atime --reference_{f}
touch {o} {p} {w}|-c -h
truncate -s {s} {o} {w}|-c -o --no-create --io-blocks
truncate -r {f} {w}|
truncate --size={s} {o} {w}|--no-create --reference={f} --reference_{f}
chmod {m} {o} {p}|-R -v -c -f --recursive --changes --silent --verbose --reference={f}
chmod {o} --reference={f} {p}|-R --recursive
tee {o} {w}|-a -i -p --append --ignore-interrupts --output-error=warn
tee {o} {w} {p}|-a
dd if={p} of={w} {o}|count=1 bs=1 conv=notrunc status=none conv=fsync oflag=append seek=1
dd {o} of={w} of={w} if={p}|count=1 status=none
shred {o} {p}|-u -z -n1 -f -v -x --remove=unlink --zero --remove --iterations=1 --force --exact --random-source={f}
split {o} {f}|-l1 -b2 -d -a3 -n2 --additional-suffix=.x --verbose --filter=cat --lines=1 --bytes=2 --numeric-suffixes --suffix-length=3 --number=2
split {o} {f} {w}|-l1 -b2 -d --lines=1 --bytes_2
csplit {o} {f} 2|-f{w} -s -k -n3 -z --prefix={w} --silent --keep-files --digits=3
sort {o} {f}|-r -n -u -o{w} --output={w} -c -m -t, -k1 -T{d} -S1M --parallel=2 --compress-program=cat --reverse --numeric-sort --unique --output_{w} --merge --temporary-directory={d}
sort {f} -o {w} {o}|-r -u --reverse --unique --output={w}
uniq {o} {f}|-c -d -u -i --count --repeated --unique
uniq {o} {f} {w}|-c -d
sed {o} s/a/b/ {p}|-i -n -E -s -z -i.bak -u --in-place --in-place=.old -b --debug --posix --follow-symlinks --quiet --silent --regexp-extended --separate --null-data --expression=1d --in-place=.x
sed -i {o} -e s/a/b/ -e '1d' {p} {p}|-n -E -s
sed {o} 'w {w}' {f}|-n -i
sed -n '1w {w}' {f}|
sed -i '1e touch new' {f}|
perl -pi{o} -e s/a/b/ {f}|.bak
awk '{print > "{w}"}' {f}|
awk {o} '{print $1}' {f}|-F, -vx=1
patch {o} < {h}|-p1 -p0 -b -R -N -f -s -E --dry-run -V t -z.old -B old/ -u -l --verbose --no-backup-if-mismatch -F0 --backup-if-mismatch -r{w} -o{w} -d{d} --posix --strip=1 --backup --reverse --forward --force --silent --suffix=.z --prefix=old/ --output={w} --reject-file={w} --directory={d} --batch --remove-empty-files --version-control=t
patch {o} -i {h}|-p1 -b -s -R -t --strip=1 --input={h} --input_{h}
patch {o} {f} {h}|-b -s -R -f -o{w} -r{w}
patch {o} {f} < {h}|-b -s -N
xxd {o} {f}|-p -l4 -s1 -b -u
xxd {o} {f} {w}|-p -r -v
xxd {f} -v|
od {o} {f}|-c -An
tar {o} -cf {w} {p}|-v -z -h --remove-files -P -S --exclude=x --verbose --gzip --dereference --absolute-names --directory={d} --remove-f
tar {o} -xf {h}|-v -k -C{d} --strip-components=1 --overwrite -m -p -O --one-top-level --keep-old-files --directory={d} --touch --to-stdout --directory_{d}
tar {o} --file={w} {p}|--create --append --update --list --extract --get --catenate
tar {o} --extract --file {h}|--directory={d} --verbose
tar {o} -tf {h}|-v
gzip {o} {p}|-k -f -c -v -r -1 -n -S.z --keep --force --stdout --recursive --suffix=.z --decompress --test
gunzip {o} a.gz|-k -f -c -t --keep --force --stdout --test
bzip2 {o} {f}|-k -f -c --keep --force --stdout --decompress
xz {o} {f}|-k -f -c -0 --keep --force --stdout --suffix=.z --decompress
zcat a.gz|
find {d} {o}|-type_f -name_*.txt -delete -print -maxdepth_1 -empty -fprint_{w} -fls_{w} -newer_a.txt -exec_touch_{w}_; -exec_rm_{}_+ -execdir_touch_x_; -printf_%p -fprintf_{w}_%p -quit
xargs {o} {c} < numbers|-n1 -t -I{} -r -a{f} --max-args=1 --arg-file={f} --replace={} --no-run-if-empty --verbose
mkfifo {o} {w}|-m600 --mode=600
mktemp {o}|-d -u -p{d} -t --suffix=.x --directory --dry-run --tmpdir={d} --quiet
mktemp {o} {w}.XXXX|-d -u -q --directory --tmpdir={d} --tmpdir
curl {o} file://$PWD/a.txt|-s -o{w} -O -sS --output-dir{_}{d} --create-dirs -D{w} --remote-name -c{w} --trace{_}{w} --stderr{_}{w} -J --etag-save{_}{w} -K{f} -w%{http_code} --output{_}{w} -I --libcurl{_}{w} -i --no-clobber --url{_}file://$PWD/b.txt --remote-name-all --dump-header{_}{w} --cookie-jar{_}{w} --silent --config{_}{f} --head
wget {o} http://127.0.0.1:9/x|-q -O{w} -P{d} -o{w} -a{w} --save-cookies={w} -t1 -T1 -nv -c -nc -N -x -r --spider --output-document={w} --output-file={w} --append-output={w} --directory-prefix={d} --tries=1 --output-document_{w} --force-directories --background
ls {o} {p}|-l -a -R -d
cat {o} {p}|-n -A
head {o} {f}|-n1 -c2
tail {o} {f}|-n1 -c2
cut -c1 {f}|
paste {f} {f}|
comm {f} {f}|
diff {o} {f} {f}|-u -q
cmp {f} {f}|
wc {o} {f}|-l -c
grep {o} a {f}|-n -i -c -r -q
tr a b < {f}|
rev {f}|
base64 {o} {f}|-d -w0
md5sum {o} {f}|-b --tag
sha256sum {f}|
stat {o} {p}|-c%s -L
file {p}|
du {o} {d}|-s -h
tac {f}|
nl {f}|
fold -w2 {f}|
expand {f}|
seq 3|
date {o}|-u +%s
env {o}|-i -0
printenv {o}|PLACE
id|
uname -a|
sleep 0|
true|
false|
test {o} {p}|-f -d -e -s
[ {o} {p} ]|-f -d -e
expr 1 + 1|
basename {p}|
dirname {p}|
realpath {o} {p}|-m -s
readlink {o} {p}|-f
sync {p}|
nproc|
strings {f}|
pr {o} {f}|-t -l10
tsort {f}|
ptx {o} {f}|-o
ptx -G {f} {w}|
shuf {o} {f}|-o{w} -n1 -r --output={w} --output_{w} --repeat
iconv {o} {f}|-o{w} -futf-8 -tlatin1 -c --output={w} --output_{w}
openssl {o} {f}|dgst base64_-in rand_-out_{w}_4 enc_-base64_-in_a.txt_-out
python3 {o}|-c1 -V run.sh
bash {o} run.sh|-x -n -e
sh run.sh|
./run.sh|
cksum {f}|
factor 6|
numfmt 5|
groups|
hostname|
ulimit -c|
git {o}|--version init init_-q_new clone_-q_sub_new status diff_--no-index_a.txt_b.txt_--output={w} archive_--help config_-f_{w}_a.b_c hash-object_a.txt
logger --version|
jq . {f}|
column {f}|
getopt -o a -- -a|
ed -s {f} < numbers|
ex -s {f} < numbers|
vim --version|
cpio -o < numbers|-O{w} --file={w}
cpio {o} < archive.tar|-i -t -id
ar {o} {w} {f}|-rc -t -q -x -d
strip {o} {f}|-o{w}
zip {o} {w} {f}|-q -m -r -j -u --move --recurse-paths
unzip {o} {h}|-o -d{d} -q -n -l -j
rsync {o} {d} {d}|-a -r -l -v -n --archive --recursive --links --delete --dry-run
rsync {o} {p} {w}|-a -r -n --delete -b --remove-source-files -R --log-file={w} --backup-dir={d} -u --archive --recursive --links --dry-run --update --copy-links --existing --suffix=.x --backup --log-file_{w}
"""

WRAPPERS = """
env {o} {a}|-i -u_PLACE -C_sub -0 --chdir=sub -S_true --ignore-environment --unset=PLACE --split-string=true --null --unset_PLACE --chdir_sub
nice {o}|-n5 -5 -n_5 --adjustment=5 --adjustment_5
timeout {o} 2|-k1 -s_KILL --foreground -v --preserve-status --kill-after=1 --signal=KILL --signal_KILL --verbose
nohup|
stdbuf {o}|-o0 -oL -i0 --output=L --input=0 --output_0
setsid {o}|-w --wait --ctty
/usr/bin/time {o}|-p -v -o{w} -o_{w} --output={w} -a -f_%e -q --append --format=%e --verbose --output_{w} --portability
time {o}|-p
command {o}|-p -v
builtin|
exec {o}|-c -a_x
strace {o}|-o{w} -o_{w} -f -ff -qq -c -e_trace=none -A --output={w} -y -etrace=open --output_{w} --quiet=all --trace=none --follow-forks --trace=open
ltrace {o}|-o_{w} -c
valgrind {o}|-q --log-file={w} --tool=none --tool=massif --xml-file={w} --log-file_{w}
flock {o} {w}|-n -x -s -E_3 -w_1 -F -o -u --nonblock --exclusive --shared --conflict-exit-code=3 --timeout=1 --close --unlock
fakeroot {o}|-s_{w} -i_a.txt --
xargs {o}|-n1 -r -t -I{} --max-args=1 --no-run-if-empty --verbose --replace={}
script {o} {w}|-q -a -e -f -T_{w} -O_{w} -B_{w} -I_{w} --quiet --append --return --flush --log-timing={w} --log-out={w} --log-in_{w} --log-io={w}
script {o} -c '{c}' {w}|-q -a -e --quiet --append
ionice {o}|-c3 -t --class=3 --ignore
chrt {o} 0|-o -b --other --batch
taskset 1|
setarch {o}|-R -v --addr-no-randomize
prlimit {o}|--core=0 --nofile=100
linux64|
coreutils --coreutils-prog=|
busybox|
sh {o} -c|
bash {o} -c|-e -x -l -i
"""

BUILTINS = """
cd {d}|cd -P {d}|cd -|cd|pushd {d}|popd|dirs|echo {t}|echo -e {t}|echo -n {t}|printf {t} {t}|printf '%s\\n' {t}
printf -v NAME %s {p}|read NAME < {f}|read -r NAME <<< {p}|read NAME REPLY < {f}|IFS=, read -ra LIST < {f}|mapfile NAME < {f}
mapfile -t -C 'touch new #' -c 1 L < a.txt|readarray -n1 NAME < {f}|history -w {w}|history -a {w}|history -c|history -r {f}
history -s 'x';history -w {w}|fc -l|fc -W {w}|fc -s|set -x|set -e|set -f|set +f|set -- {p} {p}|set -C|set -o noglob|set +B
set -u|set -a|set -P|set -k|set -n|set -o pipefail|set -o posix|shopt -s dotglob|shopt -s nullglob|shopt -s failglob
shopt -s expand_aliases|shopt -u sourcepath|shopt -s nocaseglob|shopt -s globstar|shopt -s lastpipe|shopt -s extglob
alias ls='touch {w}'|unalias -a|hash -p ./run.sh ls|hash -r|hash ls|enable -f {f} x|enable -n echo|bind -f {f}|bind -x '"a":ls'
umask 077|umask|ulimit -f 100|trap 'rm -f {f}' EXIT|trap - EXIT|trap|export NAME={p}|export PATH=.:$PATH|export -n PLACE
readonly NAME={p}|declare NAME={p}|declare -i N=1|declare -n NAME=PLACE|typeset NAME={p}|local x|unset PLACE|unset -f f
let N=1|getopts ab NAME -a|wait|wait -n|jobs|type ls|times|caller|return|exit|exec|exec > {w}|exec 3> {w}|exec 2>&1
source ./run.sh|. ./run.sh|eval touch {w}|eval 'PLACE=full'|complete -C 'touch new' x|compgen -f|compgen -C 'touch new'
compgen -W '$(touch new)'|test -v 'L[$(touch new)]'|[[ {p} =~ (.*) ]]|[[ -f {p} ]]|(( N = 1 ))|coproc cat|coproc NAME { cat; }
PLACE=full|PLACE={d}|NAME={p}|NAME=new|HOME=$PWD/sub|IFS=,|PS4='$(touch new)'|PATH=.:$PATH|BASH_ENV=./run.sh|NAME+=x|L=(a.txt b.txt)
CDPATH=sub|LD_PRELOAD=./a.txt|GIT_DIR=.|PROMPT_COMMAND='touch new'|GLOBIGNORE='*.txt'|OLDPWD=sub|TMPDIR=sub|TMPDIR=full
for NAME in a.txt b.txt; do rm -f $NAME; done|wait -p NAME|command cd {d}|builtin cd {d}|: ${PLACE:=full}|: > {w}
select x in a; do break; done < /dev/null|suspend --help|logout|disown -a|help ls|bg|fg|let 'PLACE=1'|export PLACE=full|: ${NAME:=new}
printf -v PLACE full|read PLACE <<< full|declare PLACE=full|typeset -g PLACE=full|[[ full =~ (.*) ]]; rm -rf "${BASH_REMATCH}"
"""

ASSIGNED = (
    "X=1", "NAME=new", "PLACE=full", "HOME=$PWD/sub", "TMPDIR=sub", "LC_ALL=C", "PATH=.:$PATH", "BASH_ENV=./run.sh",
    "LD_PRELOAD=./a.txt", "PS4='$(touch new)'", "POSIXLY_CORRECT=1", "TAR_OPTIONS=--remove-files", "IFS=a", "BACKUP=x",
    "SIMPLE_BACKUP_SUFFIX=.b", "VERSION_CONTROL=numbered", "GZIP=-k", "CURL_HOME=.", "PATCH_VERSION_CONTROL=t", "TIME=%e",
    "STRACE_LOG=x", "VALGRIND_OPTS=--log-file=new", "BASH_XTRACEFD=1", "ENV=./run.sh", "SHELLOPTS=xtrace", "A=b",
    "PERL5OPT=-Mx", "HISTFILE=new", "BASHOPTS=dotglob",
)  # fmt: skip
REDIRECTIONS = (
    "> {w}", ">> {w}", "2> {w}", "&> {w}", "&>> {w}", ">| {w}", "<> {w}", "< {p}", "2>&1", "> {w} 2>&1", "2>> {w}", ">&2",
    "> {w} < {f}", "3> {w}", "1<> {w}", "> {w} > {w}", "<<< {t}", ">& {w}", "3> {w} >&3", "0< {f}", "> {x}", "{NAME}> {w}",
    ">&- ", "2> /dev/null",
)  # fmt: skip
MODES = ("600", "+x", "u+w", "go-rwx", "755", "a=r", "u=rwx,go=", "644")
HOLDERS = ("change.patch", "bad.patch", "make.patch", "archive.tar", "archive.zip", "a.txt")
LONG_OPTION = re.compile(r"(?<!\S)--([a-z][a-z-]*[a-z])")
SLOTS = re.compile(r"\{([opfdwstmahcx_])\}")


class RandomCommands:
    """An endless row of command lines."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._programs = [line.partition("|")[::2] for line in PROGRAMS.strip().splitlines()]
        self._wrappers = [line.partition("|")[::2] for line in WRAPPERS.strip().splitlines()]
        self._builtins = [each for line in BUILTINS.strip().splitlines() for each in line.split("|") if each]

    def line(self) -> str:
        """The next line."""
        return self._line(2)

    def _line(self, deep: int) -> str:
        chance = self._random.random()
        if chance < 0.5 or deep == 0:
            return self._command(deep)
        one, other = self._line(deep - 1), self._line(deep - 1)
        quoted = shlex.quote(one)
        forms = (
            f"{one}; {other}", f"{one} && {other}", f"{one} || {other}", f"{one}\n{other}", f"{one} | {other}",
            f"({one}); {other}", f"{{ {one}; }} > {self._writable()}", f"{{ {one}; {other}; }} 2> {self._writable()}",
            f"if {one}; then {other}; fi", f"for NAME in {self._path()} {self._path()}; do {one}; done",
            f"while read NAME; do {one}; done < numbers", f"f() {{ {one}; }}; f {self._path()}", f"bash -c {quoted}; {other}",
            f"sh -c {quoted}", f"eval {quoted}", f"cd {self._pick(DIRECTORIES)} && {one}", f"cd {self._pick(DIRECTORIES)}; {one}",
            f"cd {self._pick(DIRECTORIES)} {self._filled(self._pick(REDIRECTIONS))}; {one}", f"cd {self._pick(DIRECTORIES)}; cd ..; {one}",
            f"NAME={self._path()}; {one} $NAME", f"PLACE=full; {one}", f"{one} & wait; {other}", f"cat <<EOF > {self._writable()}\nx $PLACE\nEOF\n{other}",
            f"{self._filled(self._pick(self._builtins))}; {one}", f"{self._filled(self._pick(self._builtins))}\n{one}",
            f"ln -s {self._path()} two; {one} two", f"rm dirlink; mkdir dirlink; {other}", f"cat < <(PLACE=full; {one} $PLACE)",
            f"echo $(NAME={self._path()}; {one} $NAME)",
            f"f() {{ {one}; }}; cd {self._pick(DIRECTORIES)}; f", f"f() {{ {one} $PLACE; }}; PLACE=full; f",
            f"for NAME in 1 2; do {one}; cd {self._pick(DIRECTORIES)}; done", f"{one} && cd {self._pick(DIRECTORIES)}; {other}",
            f"{one} || cd {self._pick(DIRECTORIES)}\n{other}", f"{one} && PLACE=full; rm -r $PLACE",
            f"while read PLACE; do {one} $PLACE; done < numbers", f"exec > {self._writable()}; {one}",
            f"{{ {one}; }} < {self._pick(FILES)}", f"cat {self._pick(FILES)} | {{ {one}; {other}; }}",
            f"case {self._path()} in *) {one};; esac", f"! {one}", f"until {one}; do break; done", f"[[ -n x ]] && {one}",
            f"cat > {self._writable()} < <({one})", f"{one} | tee {self._writable()} | {other}", f"time {one}",
            f"({one}) > {self._writable()} 2>&1",
            f"bash -s {self._path()} <<< {quoted}; {other}", f"bash <<'EOF' {self._filled(self._pick(REDIRECTIONS))}\n{one}\nEOF",
            f"exit {self._filled(self._pick(REDIRECTIONS))}; {one}", f"exec {self._command(0)}; {other}",
            f"{one} # {other.partition(chr(10))[0]}", f"export PLACE=full && {one}",
        )  # fmt: skip
        return self._pick(forms)

    def _command(self, deep: int) -> str:
        if self._random.random() < 0.12:
            made = self._filled(self._pick(self._builtins))
        else:
            made = self._from_table(self._programs)
        if self._random.random() < 0.15:
            made = self._wrapped(made)
            if self._random.random() < 0.2:
                made = self._wrapped(made)
        if self._random.random() < 0.06:
            made = f"{self._pick(ASSIGNED)} {made}"
        if self._random.random() < 0.25:
            made = f"{made} {self._filled(self._pick(REDIRECTIONS))}"
        return made

    def _wrapped(self, made: str) -> str:
        wrapper = self._from_table(self._wrappers)
        if wrapper.endswith(" -c"):
            return f"{wrapper} {shlex.quote(made)}"
        return wrapper + ("" if wrapper.endswith("=") else " ") + made

    def _from_table(self, table: list[tuple[str, str]]) -> str:
        form, options = self._pick(table)
        some = options.split()
        number = self._random.choice((0, 0, 1, 1, 1, 2, 2, 3)) if some else 0
        chosen = " ".join(
            each.replace("_", " ") if "{_}" not in each else each for each in self._random.choices(some, k=number)
        )
        if form.startswith("find"):
            chosen = chosen.replace(";", "';'").replace("*.txt", "'*.txt'").replace("%p", "'%p'")
        return " ".join(self._filled(self._abbreviated(form.replace("{o}", chosen))).split(" ")).strip()

    def _abbreviated(self, form: str) -> str:
        """Some of the long options by their beginnings, which GNU programs take for them."""

        def shortened(match: re.Match[str]) -> str:
            return match[0] if self._random.random() < 0.6 else match[0][: self._random.randint(3, len(match[0]))]

        return LONG_OPTION.sub(shortened, form)

    def _filled(self, form: str) -> str:
        def value(match: re.Match[str]) -> str:
            match match[1]:
                case "p":
                    return self._path()
                case "f":
                    return self._pick(FILES)
                case "d":
                    return self._pick(DIRECTORIES)
                case "w":
                    return self._writable()
                case "s":
                    return self._pick(SIZES)
                case "t":
                    return self._pick(TEXTS)
                case "m":
                    return self._pick(MODES)
                case "a":
                    return self._pick(ASSIGNED)
                case "h":
                    return self._pick(HOLDERS)
                case "c":
                    return self._pick(("touch new", "echo x", "rm a.txt", "cat"))
                case "x":
                    return self._pick(STREAMS)
                case _:
                    return " "

        return SLOTS.sub(value, form)

    def _path(self) -> str:
        chance = self._random.random()
        if chance < 0.6:
            return self._pick(FILES)
        if chance < 0.72:
            return self._pick(DIRECTORIES)
        if chance < 0.82:
            return self._pick(NEW)
        if chance < 0.92:
            return self._pick(PATTERNS)
        return self._pick(STREAMS) if chance < 0.97 else self._pick(UNCERTAIN)

    def _writable(self) -> str:
        chance = self._random.random()
        if chance < 0.6:
            return self._pick(NEW)
        if chance < 0.8:
            return self._pick(FILES)
        if chance < 0.88:
            return self._pick(DIRECTORIES)
        return self._pick(STREAMS) if chance < 0.96 else self._pick(UNCERTAIN)

    def _pick(self, some: Sequence[_T]) -> _T:
        return self._random.choice(some)
