"""Random command lines, run: every file that one changes is named by its effects, or they say that not all are known.

`python -m tests.effects.differential --commands 20000` prints the lines of which the effects are wrong.
"""

import argparse
import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from tests.effects.random_commands import RandomCommands
from tests.effects.sample_tree import State, look, unstated
from tests.line_runner import own, run_line, tracer
from whisper_tui.effects import effects_of
from whisper_tui.model.call import Shell
from whisper_tui.model.effects import Effects

LONGEST_S = 3.0
"""Seconds after which a line is killed."""

WHOLE = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
"""Has an archive unpacked as it was packed. Python knows no other way before 3.11.4."""
LARGEST = 4 << 20
"""Bytes of the largest file that a line may write."""

_TRACED = (
    "open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,symlink,symlinkat,link,linkat,"
    "truncate,chmod,fchmod,fchmodat,fchmodat2,chown,lchown,fchown,fchownat,utimensat,utime,utimes,futimesat,mknod,mknodat,"
    "setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr"
)
_TRACERS = re.compile(r"\b(?:strace|ltrace|gdb|valgrind)\b")
"""Programs that cannot look at what is looked at already."""

_CALL = re.compile(r"^\d+ +(\w+)\((.*)\) = (-?\d+)(?:<(.*)>)?")
_WRITES = re.compile(r"\b(?:O_WRONLY|O_RDWR|O_CREAT|O_TRUNC)\b")
_PLACE = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>(?:, )?)?(?:"((?:[^"\\]|\\.)*)")?')
_NO_FILE = re.compile(
    r"/dev/(?:null|tty|zero|full|pts/\d+|ptmx)|/proc/(?:self|\d+)/.*|(?:pipe|socket|anon_inode):.*|/memfd:.*"
)

FILES = {
    "work/a.txt": "one\ntwo\nthree\n",
    "work/b.txt": "a\nb\na\n",
    "work/numbers": "1\n2\n",
    "work/with space": "blank\n",
    "work/-x.txt": "dash\n",
    "work/run.sh": "#!/bin/sh\necho ran > made-by-run\n",
    "work/sub/c.txt": "c a\n",
    "work/sub/deep/d.txt": "d\n",
    "work/full/e.txt": "e\n",
    "work/full/f.txt": "f\n",
    "work/change.patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
    "work/bad.patch": "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n eins\n-zwei\n+ZWEI\n drei\n",
    "work/make.patch": "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n",
    "home/rc": "alias x=y\n",
    "outside/file": "outside a\n",
}
LINKS = {
    "work/link": "a.txt",
    "work/dirlink": "sub",
    "work/dead": "nowhere",
    "work/out": "../outside",
    "work/linked/c.txt": "../../outside/file",
    "work/linked/deep": "../full",
    "work/linked/packed": "../sub",
    "work/linked/xaa": "../a.txt",
}

_UNFINISHED = re.compile(r"zi\w{6}")
"""The names that zip gives archives on which it works."""


class Wrong(NamedTuple):
    """One line of which the effects are not true."""

    line: str
    paths: tuple[str, ...]
    """What it changed and what is not stated."""


class Ground:
    """A tree in which lines run, one after the other, each in the same state."""

    def __init__(self, above: Path, *, traced: bool) -> None:
        self.root = above / "ground"
        self._trace = above / "trace" / "calls"
        self._traced = traced
        self._trace.parent.mkdir()
        own(self._trace.parent)
        self._archive = BytesIO()
        with tarfile.open(fileobj=self._archive, mode="w") as archive:
            self._build()
            archive.add(self.root, arcname="ground")
        self.before = look(self.root)
        self.certain = 0
        """Lines whose effects claimed to be complete."""
        self.killed = 0
        """Those of them with which nothing was compared, because they did not end in time."""

    @classmethod
    @contextmanager
    def made(cls, *, traced: bool = True) -> "Iterator[Ground]":
        """A ground for as long as it is needed."""
        with tempfile.TemporaryDirectory(prefix="ground-", ignore_cleanup_errors=True) as above:
            Path(above).chmod(0o755)
            made = cls(Path(above), traced=traced and shutil.which("strace") is not None)
            yield made
            made.clear()

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a line."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.root / "home"),
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(self.root / "home"),
            "PLACE": "sub",
        }

    def look_at(self, line: str, effects: Effects | None = None) -> Wrong | None:
        """Run a line if its effects claim to be complete, and compare. None: they are true, or claim nothing.

        `effects`: others than those that are stated, to try the comparison itself.
        """
        effects = effects or self.effects_of(line)
        if not effects.files_are_certain:
            return None
        self.certain += 1
        try:
            # what a program leaves behind that was killed is not what it would have done
            if not self.run(line):
                self.killed += 1
                return None
            after = look(self.root)
            changed = {path for path in self.before.keys() | after.keys() if self._differs(path, after)}
            wrong = self._without_other_names(unstated(effects, changed), changed) | self._outside(effects)
        finally:
            self._restore()
        return Wrong(line, tuple(sorted(wrong))) if wrong else None

    def effects_of(self, line: str) -> Effects:
        """The effects of a line, before it runs."""
        work = str(self.root / "work")
        return effects_of(Shell(text=line), work, [work], self.environment, budget_s=30)

    def run(self, line: str) -> bool:
        """Run a line, and end all that it has started. Returns False if it did not end by itself."""
        words = ["bash", "-c", "--", line]
        self._trace.unlink(missing_ok=True)
        if self._traced and not _TRACERS.search(line):
            words = [*tracer(_traced_calls(), self._trace, "-y", "--seccomp-bpf"), *words]
        return run_line(words, self.root / "work", self.environment, LONGEST_S, LARGEST).ended

    def _without_other_names(self, wrong: set[str], changed: set[str]) -> set[str]:
        """The paths that are not other names of a file that changed under the name that is stated."""
        stated = {self.before[path].changed[1] for path in changed - wrong if path in self.before} - {0}
        return {path for path in wrong if path not in self.before or self.before[path].changed[1] not in stated}

    def _differs(self, path: str, after: dict[str, State]) -> bool:
        # Effects are those of commands that succeed. A zip whose pipe was closed leaves an unfinished archive behind.
        is_left_behind = path not in self.before and _UNFINISHED.fullmatch(os.path.basename(path)) is not None
        return not is_left_behind and self.before.get(path) != after.get(path)

    def _outside(self, effects: Effects) -> set[str]:
        """Files outside of the tree that strace saw changed and that are not stated."""
        if not self._trace.exists():
            return set()
        lines = self._trace.read_text(errors="replace").splitlines()
        found = {path for line in lines for path in _changed_by(line)}
        return unstated(effects, {path for path in found if not self._is_own(path)})

    def _is_own(self, path: str) -> bool:
        return path.startswith((str(self.root) + "/", str(self._trace))) or _NO_FILE.fullmatch(path) is not None

    def _build(self) -> None:
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            os.utime(path, (10**9, 10**9))
        work = self.root / "work"
        for name in ("empty", "linked"):
            (work / name).mkdir()
        for name, target in LINKS.items():
            (self.root / name).symlink_to(target)
        (work / "run.sh").chmod(0o755)
        (work / "hard.txt").hardlink_to(work / "b.txt")
        with tarfile.open(work / "archive.tar", "w") as archive:
            archive.add(work / "b.txt", arcname="packed/c.txt")
            archive.add(work / "b.txt", arcname="b.txt")
        with zipfile.ZipFile(work / "archive.zip", "w") as packed:
            packed.write(work / "b.txt", "packed/c.txt")
            packed.write(work / "b.txt", "b.txt")
        subprocess.run(["gzip", "-nk", "a.txt"], cwd=work, check=True)
        (work / "a.txt.gz").rename(work / "a.gz")
        for path in (self.root, *self.root.rglob("*")):
            own(path)

    def _restore(self) -> None:
        self.clear()
        self._archive.seek(0)
        with tarfile.open(fileobj=self._archive) as archive:
            archive.extractall(self.root.parent, **WHOLE)
        self.before = look(self.root)

    def clear(self) -> None:
        """Remove the tree, whatever modes its directories have."""
        for _ in range(20):
            for _, names, _, inside in os.fwalk(self.root):
                for name in names:
                    if stat.S_ISDIR(os.stat(name, dir_fd=inside, follow_symlinks=False).st_mode):
                        os.chmod(name, 0o755, dir_fd=inside)
            shutil.rmtree(self.root, ignore_errors=True)
            if not self.root.exists():
                return
            time.sleep(0.05)  # a process that was killed may still have been writing


def _traced_calls() -> str:
    # with a question mark, a call that this strace does not know is passed over
    return ",".join("?" + name for name in _TRACED.split(","))


def _changed_by(line: str) -> Iterator[str]:
    """The absolute paths that a line of strace says were changed."""
    match = _CALL.match(line)
    if match is None or int(match[3]) < 0:
        return
    name, words, opened = match[1], match[2], match[4]
    if name.startswith(("open", "creat")):
        if opened is not None and (name == "creat" or _WRITES.search(words)) and "O_TMPFILE" not in words:
            yield opened.removesuffix(" (deleted)")
        return
    places = [(each[1], each[2]) for each in _PLACE.finditer(words) if each[0]]
    # the text of a link comes first, and what a new name is made for
    for directory, path in places[-1:] if "link" in name and "unlink" not in name else places:
        if directory or (path and path.startswith("/")):
            yield os.path.normpath(os.path.join(directory or "/", path or ""))


def main() -> None:
    """Print the wrong lines of a seed, and how far it is: a run of many lines may be ended at any time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without-strace", action="store_true")
    options = parser.parse_args()
    commands, found = RandomCommands(options.seed), 0
    with Ground.made(traced=not options.without_strace) as ground:
        for number in range(1, options.commands + 1):
            if (wrong := ground.look_at(commands.line())) is not None:
                found += 1
                print(repr(wrong.line), *wrong.paths, sep="\n    ", flush=True)
            if number % 100 == 0 or number == options.commands:
                print(
                    f"{number:,} lines, {ground.certain:,} claim to be complete: {found:,} are wrong, "
                    f"{ground.killed:,} did not end in {LONGEST_S:g} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
