"""Statements about a command agree with its run: every row of the tables is run in a copy of a tree.

A path that changes is stated, or the effects say that not all of them are known. A path that is stated changes, unless
it is stated with a condition. A diff that is stated leads from the old content to the new one.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.effects.sample_tree import below, build, environment, look, unstated
from whisper_tui.effects import effects_of
from whisper_tui.effects.file_view import Deadline, FileView
from whisper_tui.effects.text_walk import TextWalk
from whisper_tui.model.call import Shell
from whisper_tui.model.effects import Effects
from whisper_tui.policy.commands.wrappers import BUILTINS

STATED = r"""
# redirections
echo hello > README.md
echo hello > new.txt
echo hello >> README.md
echo -n hello > new.txt
echo -e 'a\tb\nc' > new.txt
printf 'a %s\n' b c > new.txt
printf '%s,%d\n' x 1 y 2 > data/one.csv
> README.md
: > README.md
true > new.txt
echo one > a.txt; echo two >> a.txt; echo three >> a.txt
echo hello >| README.md
echo hello &> new.txt
echo hello > new.txt 2> errors.txt
ls > listing.txt
ls nowhere 2> errors.txt || true
cat README.md data/one.csv > both.txt
cat < README.md > copy.txt
echo hello > 'name with space.txt'
echo hello > "$TARGET/three.csv"
echo hello > link.txt
echo hello > out/new
echo hello > srclink/new.py
echo hello > ../outside/file
echo hello > ~/new.txt
{ echo a; echo b; } > group.txt
for each in a b; do echo $each; done > loop.txt
(echo a; echo b) >> README.md
echo a > /dev/null
echo hello | cat > new.txt
if true; then echo yes > new.txt; fi
cat README.md | tee copy.txt
echo hello | tee -a README.md
echo hello | tee a.txt b.txt > c.txt
bash -c 'echo hello > new.txt'
env X=1 bash -c 'echo hello > new.txt'
NAME=new.txt; echo hello > $NAME
DIR=src; echo hello > "$DIR/new.py"
export OUT=out.txt && echo hello > "$OUT"
cat <<< hello > new.txt
exec_result=$(echo hello); echo done > new.txt
# directories
cd src && echo hello > new.py
cd src; cd ..; echo hello > new.txt
(cd src && echo hello > new.py); echo hello > new.txt
mkdir fresh && cd fresh && echo hello > new.txt
builtin cd src && echo hello > new.txt
echo hello > new.txt; exit; rm -rf src
touch nowhere/ || true
cp README.md nowhere/ || true
tee new.txt < nowhere || true
mkdir fresh
mkdir -p fresh/a/b data
mkdir -p src/deep/a
mkdir -m 700 fresh
rmdir empty
mkdir fresh && touch fresh/a && rm -r fresh
# copies and moves
cp README.md new.md
cp README.md src
cp README.md data/one.csv
cp README.md data/two.csv src/
cp -t src README.md data/one.csv
cp -r src copy
cp -r src data
cp -a src/. data
cp -n README.md data/one.csv
cp README.md link.txt || true
cp -l README.md hard.md
cp -s "$PWD/README.md" soft.md
cp data/*.csv src
cp -r srclink copied
mv README.md new.md
mv README.md data
mv data/one.csv data/two.csv
mv src moved
mv src data
mv -n README.md data/one.csv || true
mv link.txt other.txt
mv data/*.csv src
touch a && mv a b
mv README.md a && cp a README.md
install -m 755 README.md new.sh
install -d fresh/a
install -D README.md fresh/a/b.md
# links, times, sizes, modes
ln -s README.md new.lnk
ln -sf src link.txt
ln README.md hard.md
ln -s ../README.md src/
touch new.txt
touch README.md
touch -c nothing.txt
touch -d 2001-01-01 README.md
touch srclink/new.py
truncate -s 0 README.md
truncate -s 100 new.bin
chmod 600 README.md
chmod +x src/app.py
chmod -x script.sh
chmod -R go-rwx src
chmod u+w README.md
chmod 644 nowhere || true
dd if=/dev/zero of=zero.bin bs=1 count=10
dd if=README.md of=data/one.csv
mkfifo pipe
# deletions
rm README.md
rm -f README.md nothing.txt
rm -rf src
rm -r src data
rm -rf src/deep/*
rm data/*.csv
rm link.txt
rm -r srclink
rm -f dead
rm 'name with space.txt'
rm -rf "$TARGET"
rm -rf build node_modules
rm -d empty
rm -- README.md
rm -rf nothing
rm notes.log untracked.txt
unlink README.md
shred -u notes.log
find . -name '*.log' -type f -delete
find build -delete
find data -type f -name '*.csv' -delete
cd src && rm app.py
rm -rf src && mkdir src && echo hello > src/new.py
# in place
sed -i s/one/ONE/ README.md
sed -i.bak -e s/one/ONE/ -e s/two/TWO/ README.md
sed -n -i 1p README.md data/one.csv
sed -i 's/t/T/g; 1d' README.md
sed -i '2,3d' README.md
sed -i '$a six' README.md
sed -i '/two/c changed' README.md
sed -i '1i first' src/app.py data/one.csv
sed -i -E 's/(RATE) = ([0-9]+)/\1 = \20/' src/app.py
sed -i "s/RATE/$TARGET/" src/app.py
sed -i.bak '/two/,/four/d' README.md && sed -i s/one/1/ README.md
sed -i s/nothing/x/ README.md
sed -i s/one/ONE/ link.txt
sed -i s/x/y/ dead srclink || true
sed -i --follow-symlinks s/one/ONE/ link.txt
sed -i 's/[[:alpha:]]/x/' README.md
sed -i s/outside/inside/ out/file
cp README.md a.md && sed -i s/one/ONE/ a.md
sed --in-place=.orig 's/a/b/' src/app.py
sed -i 's/one/ONE/' nowhere || true
sed s/one/ONE/ README.md > new.md
perl -pi -e 's/one/ONE/g' README.md
perl -i.bak -pe 's/one/ONE/' README.md
perl -pi -e 's/one/ONE/' link.txt
sort -o README.md README.md
sort README.md > sorted.txt
sort -r -o sorted.txt README.md
# archives and patches
tar -xzf archive.tar.gz -C data
tar czf new.tar.gz src
tar -c -f new.tar src data
tar tzf archive.tar.gz
gzip README.md
gzip -k README.md
gzip -c README.md > new.gz
gzip README.md && gunzip README.md.gz
bzip2 README.md
xz -k README.md
patch -p1 < change.patch
patch -p1 -i change.patch
patch README.md < change.patch
patch --dry-run -p1 < change.patch
zip -q new.zip README.md
zip -q new README.md
split -l 2 README.md part-
mktemp
mktemp -d -p .
rsync -a src/ copy/
rsync -a README.md data/
# git
git reset --hard
git reset --hard HEAD~1
git reset HEAD~1
git reset --soft HEAD~1
git checkout -- data/one.csv
git checkout data/one.csv
git checkout HEAD~1 -- README.md
git checkout feature
git checkout -b fresh
git checkout -q HEAD~1
git switch feature
git switch -c fresh
git restore data/one.csv
git restore .
git restore --source HEAD~1 README.md
git restore --staged data/one.csv
git add -A
git commit -qam 'More'
git commit -q --amend --no-edit
git stash
git stash -u
git stash pop
git stash apply
git stash drop
git clean -fd
git clean -fdx
git clean -fdX
git clean -fx notes.log
git clean -n
git rm -q README.md
git rm -rq src
git rm -q --cached README.md
git mv README.md new.md
git mv src moved
git branch -D feature
git branch fresh
git tag v1
git push -q origin main
git push -q --force origin HEAD~1:main
git fetch -q
git apply change.patch
git merge -q feature -m merged
git cherry-pick feature
git revert --no-edit HEAD
git -C src clean -fdx
git init -q fresh
git checkout nothing-of-that-name || true
git status
git log --oneline
git diff > changes.diff
cd src && git checkout -- ../data/one.csv
# nothing
ls -la
cat README.md
grep -r one .
wc -l README.md data/one.csv
diff README.md data/one.csv || true
test -f README.md && echo yes
find . -name '*.py'
head -2 README.md | tail -1
echo hello
cd src
sleep 0
"""

UNKNOWN = r"""
# a link among what is there already
tar xzf archive.tar.gz
# words that are only known when it runs
rm -f $(echo README.md)
echo hello > {x,y}.txt || true
for each in *.md; do rm "$each"; done
echo hello > "$(echo new.txt)"
read name <<< README.md; rm "$name"
while read name; do touch "$name"; done <<< new.txt
ls data/*.csv | xargs rm
find data -name '*.csv' -exec rm {} +
find . -name one.csv -exec cp {} new.csv ';'
test -d nowhere && cd nowhere; touch new.txt
false || cd src; touch new.txt
x=README.md; eval "rm $x"
f() { touch "$1"; }; f new.txt
name=README.md; if true; then name=new.txt; fi; touch $name
# code and programs that are not known
make
make made-by-make
python3 -c 'open("new.txt", "w").write("x")'
python3 -m zipfile -c new.zip README.md
perl -e 'open F, ">new.txt"'
awk 'BEGIN { print "x" > "new.txt" }'
sed -n 'w new.txt' README.md
env -C src touch new.py
base64 -d <<< dG91Y2ggbmV3LnR4dA== | bash
git rebase -q HEAD~1
git worktree add -q ../tree feature
git submodule update -q
git -c core.hooksPath=. commit -qam hooked
git bisect start
git stash branch other
tar xzPf archive.tar.gz
cp -r --backup src/. data
"""

SCRIPTS = r"""
./script.sh
sh script.sh
bash script.sh
. ./script.sh
sh < script.sh
./tools/build.sh
bash tools/build.sh
cd tools && ./build.sh
sh tools/args.sh
sh tools/args.sh name
bash tools/function.sh
sh tools/loop.sh
bash tools/usage.sh
bash tools/sources.sh
echo before > before.txt; sh script.sh; rm made-by-script
timeout 20 sh script.sh
npm run build
"""

HERE_DOCUMENTS = (
    "cat > src/app.py <<'EOF'\nimport util\n\nRATE = 20\nprint(util.price(RATE))\nEOF",
    "cat > new.txt <<EOF\nplain text\nof two lines\nEOF",
    "cat >> README.md <<'EOF'\n$not expanded `here`\nEOF",
    "cat <<'EOF' > a.txt\nfirst\nEOF\ncat <<'EOF' > b.txt\nsecond\nEOF",
    "tee README.md <<'EOF'\nfrom tee\nEOF",
    "cat <<-EOF > new.txt\n\tindented\n\tEOF\ntouch after.txt",
    "cd src\ncat > new.py <<'EOF'\ncd ..\nrm -rf everything\n(\nEOF\necho done > done.txt",
    "mkdir -p fresh/src && cat > fresh/src/a.py <<'EOF'\nx = 1\nEOF\ncp fresh/src/a.py b.py",
    "cat > script.sh <<'EOF'\n#!/bin/sh\nif true; then echo; fi\nEOF\nchmod 600 script.sh",
    "patch -p1 <<'EOF'\n--- a/README.md\n+++ b/README.md\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\nEOF",
    "bash <<'EOF'\necho hello > new.txt\nEOF",
    "# a comment with ( and |\ncat README.md > new.txt # another\n",
)


def rows(table: str) -> list[str]:
    """The commands of a table."""
    return [line for line in table.strip().splitlines() if not line.startswith("#")]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template")
    build(root)
    return root


class Ran:
    """One command that was looked at and then run."""

    def __init__(self, template: Path, root: Path, text: str) -> None:
        shutil.copytree(template, root, symlinks=True)
        self.workspace, variables = root / "work", environment(root)
        remote = ["git", "remote", "set-url", "origin", str(root / "remote.git")]
        subprocess.run(remote, cwd=self.workspace, check=True, env=variables)
        # Git would write every file anew of which it does not know that it is the same.
        subprocess.run(["git", "update-index", "-q", "--refresh"], cwd=self.workspace, check=False, env=variables)
        self.before = look(root)
        self.contents = {path: Path(path).read_bytes() for path, at in self.before.items() if at.kind == "file"}
        command = Shell(text=text)
        self.effects = effects_of(command, str(self.workspace), [str(self.workspace)], variables, budget_s=30)
        assert look(root) == self.before, "looking at the effects has changed something"
        done = subprocess.run(
            ["bash", "-c", "--", text], cwd=self.workspace, env=variables, capture_output=True, timeout=30, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.after = look(root)
        self.code, self.errors = done.returncode, done.stderr.decode()

    @property
    def changed(self) -> set[str]:
        paths = self.before.keys() | self.after.keys()
        return {path for path in paths if self.before.get(path) != self.after.get(path)}


def programs_are_missing(text: str, template: Path) -> bool:
    walk = TextWalk(FileView([str(template)], Deadline(5)), {"PATH": "/usr/bin"})
    names = {step.name for step in walk.steps(Shell(text=text), str(template)) if not step.is_function}
    return any(name and "/" not in name and name not in BUILTINS and shutil.which(name) is None for name in names)


def not_happened(effects: Effects, ran: Ran) -> list[str]:
    """Effects that are stated without a condition and did not happen."""
    gone = [path for removal in effects.removals for path in removal.paths]
    gone += [file.real for file in effects.files if file.action in {"moves", "removes directory"}]
    missed = []
    for file in effects.files:
        undone = any(below(file.real, path) for path in gone) and ran.before.get(file.real) == ran.after.get(file.real)
        undone = undone or file.real.endswith("/.git")  # nobody looks there
        happened = any(below(path, file.real) for path in ran.changed) if file.below else file.real in ran.changed
        if not (file.only_if or undone or happened):
            missed.append(f"{file.action} {file.real}")
    written = {file.real for file in effects.files if file.action != "moves"}
    for path in gone:
        if path in ran.after and not any(below(other, path) for other in written):
            missed.append(f"deletes {path}")
    return missed


def wrong_diffs(effects: Effects, ran: Ran) -> list[str]:
    """Files whose diffs, one after the other, do not lead to what they are now."""
    contents: dict[str, bytes | None] = dict(ran.contents)
    for file in effects.files:
        if file.action in {"writes", "appends to", "edits"}:
            known = contents.get(file.real, b"" if file.before == "absent" else None)
            contents[file.real] = None if file.diff is None or known is None else patched(known, file.diff.text)
        elif file.action == "moves":
            contents[file.real] = None
    stated = {file.real for file in effects.files if file.diff is not None}
    return [
        path
        for path in stated
        if contents.get(path) is not None and path in ran.after and Path(path).read_bytes() != contents[path]
    ]


def patched(old: bytes, diff: str) -> bytes:
    """Apply a unified diff."""
    lines, made, at = old.decode().splitlines(keepends=True), [], 0
    parts = diff.replace("\n\\ No newline at end of file\n", "\0").splitlines(keepends=True)
    parts = [piece for part in parts for piece in re.split(r"(?<=\0)", part) if piece]
    for part in parts:
        text = part[1:].removesuffix("\0")
        if match := re.match(r"@@ -(\d+)(?:,(\d+))? ", part):
            start = int(match[1]) - (0 if match[2] == "0" else 1)
            made += lines[at:start]
            at = start
        elif part[0] == "+":
            made.append(text)
        else:
            assert lines[at] == text
            at += 1
            made += [text] if part[0] == " " else []
    return "".join(made + lines[at:]).encode()


def deleted(ran: Ran) -> int:
    """Files and links that are gone."""
    return sum(1 for path, at in ran.before.items() if at.kind != "directory" and path not in ran.after)


@pytest.mark.slow
@pytest.mark.parametrize("text", [*rows(STATED), *HERE_DOCUMENTS])
@pytest.mark.one_in(3)
def test_a_command_changes_what_is_stated(text: str, template: Path, tmp_path: Path) -> None:
    if programs_are_missing(text, template):
        pytest.skip("a program of this row is not installed")
    ran = Ran(template, tmp_path / "copy", text)
    assert ran.code == 0, ran.errors
    assert ran.effects.files_are_certain, (ran.effects.unknown, ran.effects.code)
    assert unstated(ran.effects, ran.changed) == set()
    assert not_happened(ran.effects, ran) == []
    assert wrong_diffs(ran.effects, ran) == []
    moves = any(file.action == "moves" for file in ran.effects.files)
    if ran.effects.removals and not moves and not any(file.before == "absent" for file in ran.effects.files):
        assert sum(removal.files for removal in ran.effects.removals) == deleted(ran)


@pytest.mark.parametrize("text", rows(UNKNOWN))
def test_an_incompletely_known_command_is_reported_as_such(text: str, template: Path, tmp_path: Path) -> None:
    if programs_are_missing(text, template):
        pytest.skip("a program of this row is not installed")
    ran = Ran(template, tmp_path / "copy", text)
    assert not ran.effects.files_are_certain
    assert wrong_diffs(ran.effects, ran) == []


@pytest.mark.parametrize("text", rows(SCRIPTS))
def test_effects_of_the_top_level_of_a_script_are_stated(text: str, template: Path, tmp_path: Path) -> None:
    if programs_are_missing(text, template):
        pytest.skip("a program of this row is not installed")
    ran = Ran(template, tmp_path / "copy", text)
    assert ran.code == 0, ran.errors
    assert not ran.effects.files_are_certain
    assert not_happened(ran.effects, ran) == []
    assert wrong_diffs(ran.effects, ran) == []
    stated = [each for each in (*ran.effects.files, *ran.effects.removals) if each.script]
    left_out = [each for each in ran.effects.unknown if each.script]
    assert stated or left_out
    assert left_out or unstated(ran.effects, ran.changed) == set()


def test_there_are_at_least_200_rows() -> None:
    assert len(rows(STATED)) + len(rows(UNKNOWN)) + len(rows(SCRIPTS)) + len(HERE_DOCUMENTS) >= 200
