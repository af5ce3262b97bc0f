"""`python -m tests.as_user WORDS`: runs pytest with these words as an ordinary user, where it is started as root.

The suite of root sees none of the refusals that the users of the program meet: a directory that its owner may not
write, a file system that cannot be mounted, a descriptor of somebody else. An ordinary user starts the suite as one
anyway, so there this does nothing.

The user is `nobody`, in a mount namespace in which the interpreter and the checkout can be reached: both may lie below
a directory that is root's alone, which is covered there by an empty one.

Its surroundings are those in which a test fails that depends on what else is on the machine: a home that the user
database does not name, no shell, the locale of C, and a `/tmp` that holds an empty `.git`, as some agents leave it
behind.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

NOBODY = 65534
ROOT = Path(__file__).resolve().parent.parent
_INSIDE = "TESTS_AS_USER_TMP"
"""Set in the mount namespace: the directory that becomes its `/tmp`."""
_HOME = "home-of-a-user"


def main(words: list[str]) -> int:
    """Run pytest as an ordinary user. Returns its exit code; 0 where this is one already."""
    if os.geteuid():
        sys.stderr.write("The tests ran as an ordinary user already.\n")
        return 0
    if place := os.environ.pop(_INSIDE, ""):
        _become_nobody(place, words)
    made = Path(tempfile.mkdtemp(prefix="tmp-of-a-user-"))
    made.chmod(0o1777)
    for name in (".git", _HOME):
        (made / name).mkdir()
    os.chown(made / _HOME, NOBODY, NOBODY)
    try:
        inside = [sys.executable, "-m", "tests.as_user", *words]
        command = ["unshare", "--mount", "--propagation", "private", "--", *inside]
        return subprocess.run(command, check=False, cwd=ROOT, env={**os.environ, _INSIDE: str(made)}).returncode
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _become_nobody(place: str, words: list[str]) -> None:
    """Become pytest of the user. Never returns."""
    needed = {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), ROOT}
    if any(path.is_relative_to("/tmp") for path in needed):
        raise SystemExit("/tmp is another directory for this user, so the checkout and the interpreter cannot be in it")
    _make_reachable(needed)
    _mount("--bind", place, "/tmp")
    kept = ("PATH", "TERM", "EXHAUSTIVE")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.umask(0o022)
    os.chdir(ROOT)
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    own = {"HOME": f"/tmp/{_HOME}", "USER": "nobody", "LOGNAME": "nobody", "LANG": "C"}
    os.execve(sys.executable, argv, environment | own)


def _make_reachable(needed: Iterable[Path]) -> None:
    """Cover each directory that others may not enter, and put what is needed back into it."""
    covered: dict[Path, list[Path]] = {}
    for path in needed:
        closed = next((each for each in reversed((path, *path.parents)) if not each.stat().st_mode & 0o001), None)
        if closed == path:
            raise SystemExit(f"{path} cannot be entered by others, so an ordinary user cannot run the tests in it")
        if closed is not None:
            covered.setdefault(closed, []).append(path)
    for closed, paths in covered.items():
        aside = {path: tempfile.mkdtemp(prefix="aside-") for path in paths}
        for path, place in aside.items():
            _mount("--bind", str(path), place)
        _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(closed))
        for path, place in aside.items():
            path.mkdir(parents=True, exist_ok=True)
            _mount("--move", place, str(path))
            os.rmdir(place)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
