"""What the tests of previews share: descriptions of trees to compare, and children that are an ordinary user."""

import codecs
import hashlib
import os
import stat
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from whisper_tui.changes.file_trees import attributes, remove_tree
from whisper_tui.system import syscalls

NOBODY = 65534
PR_SET_DUMPABLE = 4


def described(top: Path | str, *, inodes: bool = False) -> dict[str, tuple[object, ...]]:
    """Everything about a tree but change times: names, kinds, modes, owners, content, hard links, attributes, times."""
    found: dict[str, tuple[object, ...]] = {}
    groups: dict[int, str] = {}
    top = str(top)
    for directory, directories, files in os.walk(top):
        directories.sort()
        for path in (directory, *(os.path.join(directory, name) for name in sorted(files + directories))):
            status = os.lstat(path)
            name = os.path.relpath(path, top)
            first = groups.setdefault(status.st_ino, name)
            found[name] = (
                status.st_mode,
                status.st_uid,
                status.st_gid,
                status.st_mtime_ns,
                _content(path, status),
                tuple(sorted(attributes(path).items())),
                first if not stat.S_ISDIR(status.st_mode) else "",
                status.st_ino if inodes else 0,
            )
    return found


def _content(path: str, status: os.stat_result) -> object:
    if stat.S_ISLNK(status.st_mode):
        return os.readlink(path)
    if stat.S_ISREG(status.st_mode):
        data = _bytes(path, status)
        return data if len(data) < 40 else hashlib.sha256(data).hexdigest()
    return status.st_rdev


def _bytes(path: str, status: os.stat_result) -> bytes:
    """The content of a file, also of one that its owner may not read."""
    try:
        return Path(path).read_bytes()
    except PermissionError:
        os.chmod(path, stat.S_IRUSR)
    try:
        return Path(path).read_bytes()
    finally:
        os.chmod(path, stat.S_IMODE(status.st_mode))


class _Child:
    """`child`: true in the child. `code`: the exit code of the child, in the parent and once it has ended."""

    def __init__(self, child: bool) -> None:
        self.child = child
        self.code: int | None = None


@contextmanager
def as_nobody() -> Iterator[_Child]:
    """Run the body in a child as an ordinary user, and in this process with `child` false; then wait for the child."""
    sys.stdout.flush()
    for encoding in ("ascii", "idna", "utf-8"):
        # Loads its module while this is possible: an ordinary user may not read the home of root.
        codecs.lookup(encoding)
    status = _Child(False)
    pid = os.fork()
    status.child = pid == 0
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            syscalls.prctl(PR_SET_DUMPABLE, 1)  # or /proc/self belongs to root
            yield status
            code = 0
        except BaseException:  # noqa: BLE001 - the child must never return into pytest
            traceback.print_exc()
        finally:
            os._exit(code)
    yield status
    status.code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextmanager
def public_directory(parent: str | None = None) -> Iterator[Path]:
    """A directory that all users reach, unlike those of pytest; removed whatever its modes."""
    path = Path(tempfile.mkdtemp(prefix="preview-", dir=parent)).resolve()
    path.chmod(0o755)
    try:
        yield path
    finally:
        remove_tree(str(path))
