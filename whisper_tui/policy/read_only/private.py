"""Whether a command that only looks could show what other people, programs or whisper_tui itself keep to themselves."""

import posixpath
import re
from collections.abc import Sequence

from whisper_tui.policy.wrappers.peeled import Argv, program_name

_SHOWS_NAMES = frozenset(
    "ls dir vdir find gfind fd fdfind stat df tree which whereis type cd pwd test basename dirname realpath readlink "
    "echo printf true false expr seq sleep date exa eza lsd ps pgrep pidof pstree id whoami uname hostname "
    "uptime".split()
)
"""Programs that show names, sizes and times, and nothing that is inside of files."""

_HOME = re.compile(r"/(?:home|Users|export/home)/[^/]+|/root|/var/root")
_PRIVATE = re.compile(
    r"/(?:(?:home|Users|export/home|root|var/root|run/user|var/run/user)(?:/.*)?|proc(?:/(?:\d+|self|thread-self)(?:/.*)?)?)",
    re.DOTALL,
)
"""Where people keep their files, and what tells about other processes."""

_ABOVE = frozenset({"/", "//", "/var", "/var/run", "/run", "/export"})
"""Directories that hold some of these."""


def shows_private(commands: Sequence[Argv], cwd: str, root: str) -> bool:
    """Whether a command that shows what is inside of files is pointed at private places outside the workspace.

    A workspace that is somebody's home, or lies above one, holds such places itself.
    """
    readers = [argv for argv in commands if _reads(argv)]
    if not readers:
        return False
    if holds_homes(root) or _is_private(cwd, root):
        return True
    moved = [argv for argv in commands if argv[:1] in {("cd",), ("pushd",)}]
    return any(_leads_there(word, cwd, root) for argv in (*readers, *moved) for word in argv[1:])


def _reads(argv: Argv) -> bool:
    return bool(argv) and (argv[0] is None or program_name(argv[0]) not in _SHOWS_NAMES)


def holds_homes(root: str) -> bool:
    """Whether a directory is somebody's home, or lies above one."""
    return root in _ABOVE or root in {"/home", "/Users", "/export/home"} or _HOME.fullmatch(root) is not None


def _leads_there(word: str | None, cwd: str, root: str) -> bool:
    if word is None:
        return True
    parts = (word, word.rpartition("=")[2], word[2:] if word.startswith("-") and not word.startswith("--") else "")
    return any(
        _is_private(posixpath.join(cwd, part), root)
        for part in parts
        if part.startswith("/") or ".." in part.split("/")
    )


def _is_private(path: str, root: str) -> bool:
    path = posixpath.normpath(path)
    if root and (path == root or path.startswith(root.rstrip("/") + "/")):
        return False
    return path in _ABOVE or _PRIVATE.fullmatch(path) is not None
