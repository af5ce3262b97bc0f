"""Answers at the place to the questions of judging: its files, many at once, and the environment of a login.

A question is a list of its kind, a path and what else the kind needs. An answer is a list with one value, or null if
there was no time or room for it, so that it has to be asked again.
"""

import base64
import errno
import json
import os
import pwd
import shlex
import stat
import subprocess
import sys
import threading
import time
import zlib
from contextlib import suppress
from typing import Any

from whisper_tui.system.host_files import THIS_MACHINE

LOOK, NAMES, READ, DIGEST, TREE = "look", "names", "read", "digest", "tree"
"""The kinds of questions."""

PATIENCE_S = 2.0
"""Seconds after which no further question of a batch is answered."""
LARGEST_ANSWERS = 4 << 20
"""Bytes of files and names of one batch; the first one that is larger is the last one that is answered."""
LARGEST_READ = 1 << 20
"""Bytes of one file that are read or hashed."""
MOST_NAMES = 10_000
"""Names of one directory, or of the files below it, that are told."""
TREE_S = 0.2
"""Seconds for which the files below one path are counted."""

LOGIN_S = 10.0
"""Seconds that the login shell of the user has to say its environment."""
_MARK = "whisper-tui-environment:"
_NOT_INHERITED = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
_DUMP = f"import os,sys,json;sys.stdout.write('{_MARK}'+json.dumps(dict(os.environ)))"


def answer(request: bytes) -> bytes:
    """Return the answers to a batch of questions, in their order."""
    ends, left = time.monotonic() + PATIENCE_S, LARGEST_ANSWERS
    answers: list[list[Any] | None] = []
    for question in json.loads(request):
        if left <= 0 or time.monotonic() > ends:
            answers.append(None)
            continue
        value, size = _answer(*question)
        left -= size
        answers.append([value])
    return zlib.compress(json.dumps(answers, separators=(",", ":")).encode(), 1)


def _answer(kind: str, path: str, *more: int) -> tuple[Any, int]:
    """Return an answer, and about how many bytes it has beside those of a short one."""
    match kind:
        case "look":
            return _look(path), len(path)
        case "names":
            return _names(path)
        case "read":
            return _read(path, *more)
        case "digest":
            return THIS_MACHINE.digest(path, LARGEST_READ), 0
        case "tree":
            found = THIS_MACHINE.tree(path, TREE_S)
            names = found.names[:MOST_NAMES]
            return [found.files, found.bytes, found.complete, names, found.links], sum(map(len, names + found.links))
        case _:
            raise ValueError(f"no question is called {kind!r}")


def _look(path: str) -> list[Any]:
    """Return all that a path is: its own status, that behind its links, its target, its real path, if it executes."""
    own = _status(path, follow=False)
    is_link = isinstance(own, list) and stat.S_ISLNK(own[0])
    behind = _status(path, follow=True) if is_link else None
    try:
        target = os.readlink(path) if is_link else None
        return [own, behind, target, THIS_MACHINE.realpath(path), os.access(path, os.X_OK)]
    except (OSError, ValueError):
        return [own, behind, None, path, False]


def _status(path: str, *, follow: bool) -> list[int] | int:
    """Return the status of a file, or the number of the error."""
    try:
        found = os.stat(path, follow_symlinks=follow)
    except OSError as error:
        return error.errno or errno.EIO
    except ValueError:
        return errno.EINVAL
    return [
        *(found.st_mode, found.st_ino, found.st_dev, found.st_nlink, found.st_uid, found.st_gid, found.st_size),
        *(found.st_mtime_ns, found.st_ctime_ns),
    ]


def _names(path: str) -> tuple[list[str] | int, int]:
    try:
        names = THIS_MACHINE.names(path, MOST_NAMES)
    except OSError as error:
        return error.errno or errno.EIO, 0
    except ValueError:
        return errno.EINVAL, 0
    return names, sum(map(len, names))


def _read(path: str, most: int, follow: int) -> tuple[list[str | None], int]:
    try:
        content, why = THIS_MACHINE.read_regular(path, min(most, LARGEST_READ), follow=bool(follow))
    except ValueError:
        content, why = None, "no system takes such a name"
    return [None if content is None else base64.b64encode(content).decode(), why], len(content or b"")


class LoginEnvironment:
    """The variables that a login shell of this user sets. They are kept in memory, and written nowhere."""

    def __init__(self) -> None:
        self.variables: dict[str, str] | None = None
        """None: the shell has not said them yet."""
        threading.Thread(target=self._ask, daemon=True).start()

    def _ask(self) -> None:
        shell = os.environ.get("SHELL") or _login_shell()
        command = "exec " + shlex.join([sys.executable, "-I", "-S", "-c", _DUMP])
        found = dict(os.environ)
        with suppress(OSError, subprocess.SubprocessError, ValueError, TypeError):
            told = subprocess.run(
                [shell, "-lc", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=LOGIN_S,
                start_new_session=True,
                check=False,
            ).stdout.decode("utf-8", "surrogateescape")
            found = {str(name): str(value) for name, value in json.loads(told.rpartition(_MARK)[2]).items()}
        self.variables = {name: value for name, value in found.items() if name not in _NOT_INHERITED}


def _login_shell() -> str:
    with suppress(KeyError):
        return pwd.getpwuid(os.geteuid()).pw_shell
    return "/bin/sh"
