"""Files that git would run or obey although they are in no `.git`: parts of a planted repository, hooks elsewhere."""

import os
import re
from collections.abc import Iterable, Sequence

from whisper_tui.system import host_files

_SETTINGS = frozenset({"config", "commondir", "config.worktree"})
"""Files that make git run programs, where there is a `HEAD` beside them."""
_HOOKS_PATH = re.compile(r"^\s*hookspath\s*=(.*)$", re.IGNORECASE | re.MULTILINE)
_LARGEST = 1024 * 1024
"""Bytes of a configuration of git that are read."""


def kind_for_git(path: str, hooks: Sequence[str]) -> str:
    """Return what a file is for git, outside of any `.git`. Empty: nothing that it runs or obeys.

    `hooks`: the directories of hooks elsewhere (`directories_of_hooks`).
    """
    directory, _, name = path.rpartition("/")
    if "/.git/" not in path:
        top = directory.partition("/hooks")[0] if "/hooks" in directory else directory
        is_of_it = (name in _SETTINGS or top != directory) and host_files.lexists(f"{top}/HEAD")
        if name == "HEAD" or is_of_it:
            return "a part of a repository of git"
    return "a hook of git" if hooks and f"{path}/".startswith(tuple([f"{each}/" for each in hooks])) else ""


def directories_of_hooks(roots: Iterable[str]) -> tuple[str, ...]:
    """Return the directories of hooks that the settings of workspaces name."""
    return tuple(hooks for root in roots for hooks in _directories_in(root))


def _directories_in(root: str) -> list[str]:
    settings, _ = host_files.read_regular(os.path.join(root, ".git", "config"), _LARGEST)
    named = _HOOKS_PATH.findall((settings or b"").decode(errors="surrogateescape"))
    return [os.path.normpath(os.path.join(root, each.strip().strip('"'))) for each in named]
