"""Real commands: a preview that is applied makes what a real run makes of a copy, and undo restores the old tree."""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interpreter import PYTHON
from tests.outside import needs_overlays
from tests.supervisor.conftest import HUMAN
from tests.supervisor.test_previews import LiveBench
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import Ended

pytestmark = [
    needs_overlays,
    pytest.mark.skipif(sys.platform != "linux", reason="previews need Linux"),
    pytest.mark.slow,
]

FILES = """
mkdir -p src/deep/er docs; seq 2000 > src/a.txt; echo 'old words' > src/deep/b.txt; echo x > src/deep/er/c.txt
printf 'int main(void) { return 0; }\\n' > main.c; ln -s src/a.txt link; echo 'a,b' > docs/t.csv; chmod 640 docs/t.csv
"""
REPOSITORY = f"""{FILES}
git init -q -b main . && git config user.name n && git config user.email n@example.org && git config gc.auto 0
# A copy has other inodes and change times, by which git would find every file changed.
git config core.checkStat minimal && git config core.trustctime false
git add -A && git commit -qm one && echo two >> src/a.txt && git commit -qam two
git checkout -q -b topic HEAD~1 && echo topic > topic.txt && git add -A && git commit -qm topic && git checkout -q main
"""
DIRTY = f"{REPOSITORY}echo changed >> src/a.txt; echo new > new.txt\n"
PACKAGE = """
mkdir -p lib/p-1.0.dist-info; echo 'print(1)' > lib/p.py
printf 'Metadata-Version: 2.1\\nName: p\\nVersion: 1.0\\n' > lib/p-1.0.dist-info/METADATA
printf 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' > lib/p-1.0.dist-info/WHEEL
printf 'p.py,,\\np-1.0.dist-info/METADATA,,\\np-1.0.dist-info/WHEEL,,\\np-1.0.dist-info/RECORD,,\\n' \
  > lib/p-1.0.dist-info/RECORD
python3 -m zipfile -c p-1.0-py3-none-any.whl lib/p.py lib/p-1.0.dist-info/
"""
NODE = """
mkdir -p dep; echo '{"name": "dep", "version": "1.0.0"}' > dep/package.json; echo 'module.exports = 1' > dep/index.js
echo '{"name": "top", "version": "1.0.0", "scripts": {"build": "mkdir -p dist && echo made > dist/out"}}' > package.json
"""
CRATE = """
mkdir -p src; printf '[package]\\nname = "tiny"\\nversion = "0.1.0"\\nedition = "2021"\\n' > Cargo.toml
echo 'fn main() {}' > src/main.rs
"""
MAKEFILE = f"""{FILES}
printf 'all: main\\nmain: main.c\\n\\tcc -o main main.c\\nclean:\\n\\trm -f main\\n' > Makefile
printf 'cmake_minimum_required(VERSION 3.10)\\nproject(p C)\\nadd_executable(main main.c)\\n' > CMakeLists.txt
"""
INDEX = ".git/index"  # it notes the inodes and times of the files
DATED = "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z"


class RealCommand(NamedTuple):
    """A command, the files that it needs, and patterns of those whose content depends on the time or on the place.

    A pattern with `!` is about files whose names do.
    """

    text: str
    files: str = FILES
    differ: tuple[str, ...] = ()
    needs: str = ""


COMMANDS = (
    RealCommand(f"{DATED} git commit -qam three", DIRTY, (INDEX,), "git"),
    RealCommand(f"{DATED} git commit -q --amend -m again", DIRTY, (INDEX,), "git"),
    RealCommand("git add -A && git rm -q --cached docs/t.csv", DIRTY, (INDEX,), "git"),
    RealCommand("git checkout -q topic", REPOSITORY, (INDEX, ".git/logs/*"), "git"),
    RealCommand("git checkout -q -- src/a.txt", DIRTY, (INDEX,), "git"),
    RealCommand("git checkout -q -b other && git branch -q -D topic", REPOSITORY, (INDEX, ".git/logs/*"), "git"),
    RealCommand(f"{DATED} git stash -q", DIRTY, (INDEX, ".git/logs/*"), "git"),
    RealCommand(f"{DATED} git stash -q -u && {DATED} git stash pop -q", DIRTY, (INDEX, ".git/logs/*"), "git"),
    RealCommand(f"git checkout -q topic && {DATED} git rebase -q main", REPOSITORY, (INDEX, ".git/logs/*"), "git"),
    RealCommand(f"{DATED} git merge -q --no-ff -m m topic", REPOSITORY, (INDEX, ".git/logs/*"), "git"),
    RealCommand(f"{DATED} git cherry-pick topic", REPOSITORY, (INDEX, ".git/logs/*"), "git"),
    RealCommand(f"{DATED} git revert --no-edit HEAD", REPOSITORY, (INDEX, ".git/logs/*"), "git"),
    RealCommand("git reset -q --hard HEAD~1", DIRTY, (INDEX, ".git/logs/*"), "git"),
    RealCommand("git clean -fdxq", DIRTY, (), "git"),
    RealCommand("git mv src lib", REPOSITORY, (INDEX,), "git"),
    RealCommand("git gc -q --prune=now", REPOSITORY, (INDEX, "*.pack", "*.idx", "*.rev", ".git/*"), "git"),
    RealCommand("git worktree add -q w topic", REPOSITORY, ("*index", ".git/*", "w/.git"), "git"),
    RealCommand("sed -i 's/old/new/' src/deep/b.txt"),
    RealCommand("sed -i.bak '1d' src/a.txt"),
    RealCommand("find . -name '*.txt' -delete"),
    RealCommand("find src -type f -exec chmod 600 {} +"),
    RealCommand("tar czf all.tgz src docs && rm -r src", FILES, ("all.tgz",), "tar"),
    RealCommand("tar cf - src | (mkdir out && tar xf - -C out)", needs="tar"),
    RealCommand("zip -qr all.zip src && unzip -q all.zip -d out", FILES, ("all.zip",), "zip"),
    RealCommand("gzip -n -k src/a.txt && gunzip -c src/a.txt.gz > copy"),
    RealCommand("cp -a src copy && mv docs papers && rm -rf src/deep"),
    RealCommand("rm -rf src docs link main.c"),
    RealCommand("ln -s nowhere dangling; ln src/a.txt second; ln -sf docs link"),
    RealCommand("chmod -R go-rwx . && mkdir -p -m 2770 shared/x && install -m 755 main.c bin"),
    RealCommand("truncate -s 5M hole; truncate -s 10 src/a.txt; dd if=/dev/zero of=s bs=1 count=1 seek=3M status=none"),
    RealCommand("split -l 100 src/a.txt part. && cat part.* > whole && sort -r -o src/a.txt src/a.txt"),
    RealCommand("perl -pi -e 's/1/one/g' src/a.txt", needs="perl"),
    RealCommand("awk '{ print $1 * 2 }' src/a.txt > doubled && mv doubled src/a.txt"),
    RealCommand(
        "printf -- '--- a\\n+++ b\\n@@ -1 +1 @@\\n-old words\\n+patched\\n' | patch -s src/deep/b.txt", needs="patch"
    ),
    RealCommand("mkfifo pipe; touch 'with space' $'with\\nnewline' -- -dash; rmdir docs 2>/dev/null; echo $?"),
    RealCommand("mv src/deep/er up && mv src gone && mkdir src && mv gone/a.txt src/ && touch -d 2001-01-01 src/a.txt"),
    RealCommand("for i in $(seq 10000); do echo $i > src/f$i; done"),
    RealCommand("sqlite3 t.db 'create table t(a); insert into t values (1); vacuum'", needs="sqlite3"),
    RealCommand("echo '{\"a\": 1}' | jq .a > one.json", needs="jq"),
    RealCommand("make -s && make -s clean && make -s", MAKEFILE, (), "make"),
    RealCommand("cmake -S . -B build > log && cmake --build build > log2", MAKEFILE, ("build/*", "log*"), "cmake"),
    RealCommand("gcc -c -o main.o main.c && ar cr lib.a main.o", needs="gcc"),
    RealCommand("cargo build -q --offline", CRATE, ("target/.rustc_info.json", "!target/debug/?*"), "cargo"),
    RealCommand(
        # Logs and cache in the workspace: those in the home are trimmed by every other npm that runs meanwhile.
        "npm install --offline --no-audit --no-fund --cache .npm ./dep",
        NODE,
        ("node_modules/.package-lock.json", "!.npm/?*"),
        "npm",
    ),
    RealCommand("npm run -s --cache .npm build", NODE, ("!.npm/?*",), "npm"),
    RealCommand("python3 -m venv --without-pip env", "true", ("env/*",), "python3"),
    RealCommand(
        "python3 -m pip install -q --no-index --no-compile --target to p-1.0-py3-none-any.whl",
        PACKAGE,
        ("*/direct_url.json", "*/RECORD"),
        "pip",
    ),
    RealCommand("python3 -m compileall -q lib", PACKAGE, ("*.pyc",), "python3"),
    RealCommand(f"{PYTHON} -m ruff format -q --no-cache .", "printf 'x = {  1:2 }\\n' > a.py"),
)


def listing(top: Path, differ: tuple[str, ...]) -> dict[str, tuple[object, ...]]:
    """Describe each file of a tree, without its times."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = Path(folder, name)
            inside, status = str(path.relative_to(top)), path.lstat()
            if any(fnmatch(inside, pattern[1:]) for pattern in differ if pattern[0] == "!"):
                continue
            content: object = None
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode) and not any(fnmatch(inside, pattern) for pattern in differ):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[inside] = (oct(status.st_mode), status.st_uid, status.st_gid, content)
    return found


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveBench]:
    made = LiveBench(tmp_path)
    await made.open()
    yield made
    await made.supervisor.close()


@pytest.mark.parametrize("command", COMMANDS, ids=[command.text[:40] for command in COMMANDS])
@pytest.mark.one_in(2)
async def test_an_applied_preview_is_what_a_real_run_does(
    live: LiveBench, command: RealCommand, tmp_path: Path
) -> None:
    if command.needs and shutil.which(command.needs) is None:
        pytest.skip(f"there is no {command.needs} here")
    subprocess.run(["bash", "-ec", command.files], cwd=live.workspace, check=True, stdout=subprocess.DEVNULL)
    before = listing(live.workspace, ())
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", live.workspace, copy], check=True)
    report = await live.previewed(call_id := await live.asked(command.text))
    assert not report.problem and listing(live.workspace, ()) == before
    record = await live.apply(call_id)
    assert isinstance(record.state, Ended) and not record.state.discarded
    applied = listing(live.workspace, command.differ)
    await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert listing(live.workspace, ()) == before
    # Last, because programs such as npm also write to the home: what changed meanwhile is neither applied nor undone.
    real = subprocess.run(["bash", "-c", command.text], cwd=copy, check=False, capture_output=True)
    assert report.ending == Exited(code=real.returncode), real.stderr
    assert applied == listing(copy, command.differ)
