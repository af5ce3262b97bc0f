"""A small workspace with a repository, and what a command has changed in it."""

import os
import stat
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from whisper_tui.model.effects import Effects

BUILD = r"""
set -eu
git init -q --bare -b main ../remote.git
git init -q -b main .
git config user.name Ann; git config user.email ann@example.org
git remote add origin "$(cd ../remote.git && pwd)"
mkdir -p src/deep/a/b data build empty node_modules/.bin
printf 'one\ntwo\nthree\nfour\nfive\n' > README.md
printf 'import util\n\nRATE = 10\nprint(util.price(RATE))\n' > src/app.py
printf 'def price(net):\n    return net\n' > src/util.py
printf 'deep\n' > src/deep/a/b/c.txt
printf 'a,b\n1,2\n' > data/one.csv
printf 'a,b\n3,4\n' > data/two.csv
printf 'blank\n' > 'name with space.txt'
printf '*.log\nbuild/\nnode_modules/\n' > .gitignore
printf '#!/bin/sh\necho hello > made-by-script\n' > script.sh; chmod +x script.sh
mkdir tools
printf '#!/bin/bash\nset -euo pipefail\ncd "$(dirname "$0")"\nrm -rf ../build\nmkdir -p out\necho v1 > out/version\n' > tools/build.sh
printf '#!/bin/sh\nif [ -n "$1" ]; then\n  rm -rf data\nfi\nsed -i s/one/ONE/ README.md\ntouch "$1.txt"\n' > tools/args.sh
printf 'f() {\n  rm -f README.md\n}\nmv untracked.txt moved.txt\nf\n' > tools/function.sh
printf '[ -f README.md ] || exit 1\n: > empty.txt\ntrue && touch and.txt\nfor n in 1 2; do touch "n$n"; done\n' > tools/loop.sh
printf 'usage() { echo usage; exit 2; }\ncase "${1:-}" in x) usage;; esac\ncp README.md copy.md\n' > tools/usage.sh
printf '. ./tools/build.sh\necho after > after.txt\n' > tools/sources.sh
chmod +x tools/*.sh
printf '{"scripts": {"prebuild": "rm -rf build", "build": "mkdir dist && echo built > dist/a"}}\n' > package.json
printf 'all: made-by-make\nmade-by-make:\n\techo made > made-by-make\n' > Makefile
printf -- '--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n' > change.patch
ln -s README.md link.txt; ln -s src srclink; ln -s nowhere dead
mkdir ../outside; printf 'outside\n' > ../outside/file; ln -s ../outside out
git add -A; git commit -qm 'Begin'
git push -q origin main
printf 'six\n' >> README.md; git commit -qam 'Add a line'
git checkout -q -b feature HEAD~1
printf 'feature\n' > feature.txt; git rm -q data/two.csv; git add -A; git commit -qm 'Add a feature'
git checkout -q main
printf 'stashed\n' >> src/app.py; git stash -q
printf 'changed\n' >> data/one.csv
printf 'new\n' > untracked.txt
printf 'log\n' > notes.log; printf 'object\n' > build/out.o
tar czf archive.tar.gz src/deep; rm -f archive.zip
printf '\000\001\002' > binary.bin
"""  # noqa: E501 scripts, one a line


class State(NamedTuple):
    """One path as it is."""

    kind: str
    mode: int
    size: int
    digest: str
    changed: tuple[int, int]
    """Time and inode of a file: a file that is written anew differs in one of them."""


def build(root: Path) -> Path:
    """Make the tree below a directory. Returns the workspace."""
    workspace = root / "work"
    workspace.mkdir(parents=True)
    (root / "home").mkdir()
    subprocess.run(["bash", "-c", BUILD], cwd=workspace, env=environment(root), check=True, capture_output=True)
    return workspace


def environment(root: Path) -> dict[str, str]:
    """The variables of a command in the tree."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(root / "home"),
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(root / "home"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_EDITOR": "true",
        "TARGET": "data",
    }


def look(root: Path) -> dict[str, State]:
    """Everything below a directory, without what is inside of repositories."""
    found = {}
    # By descriptors, because a copy of a tree into itself may end in paths that are too long to be opened.
    for directory, names, files, inside in os.fwalk(root):
        names[:] = [name for name in names if name not in {".git", "remote.git"}]
        for name in (*names, *files):
            found[os.path.join(directory, name)] = state = State(*_content(name, inside))
            if state.kind == "directory" and state.mode & 0o700 != 0o700:
                # An ordinary user would not get in.
                os.chmod(name, state.mode | 0o700, dir_fd=inside)
    return found


def _content(name: str, inside: int) -> tuple[str, int, int, str, tuple[int, int]]:
    status = os.stat(name, dir_fd=inside, follow_symlinks=False)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return "directory", mode, 0, "", (0, 0)
    if stat.S_ISLNK(status.st_mode):
        return "link", 0, 0, os.readlink(name, dir_fd=inside), (0, 0)
    if not stat.S_ISREG(status.st_mode):
        return "special", mode, 0, "", (0, 0)
    if not mode & 0o400:
        os.chmod(name, mode | 0o400, dir_fd=inside)
    with open(os.open(name, os.O_RDONLY, dir_fd=inside), "rb") as file:
        content = file.read()
    return "file", mode, len(content), sha256(content).hexdigest(), (status.st_mtime_ns, status.st_ino)


def below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def unstated(effects: Effects, changed: set[str]) -> set[str]:
    """Paths that changed and that no effect speaks of."""
    exact = {file.real for file in effects.files} | {file.detail for file in effects.files if file.action == "moves"}
    trees = [file.real for file in effects.files if file.below] + [
        path for each in effects.removals for path in each.paths
    ]
    return {path for path in changed if path not in exact and not any(below(path, tree) for tree in trees)}
