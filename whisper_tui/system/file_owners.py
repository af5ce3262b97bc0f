"""Owners of files, and whether others may change them: by what the machine of a file says about it."""

import os
import stat
from collections.abc import Iterator


def others_may_change(status: os.stat_result, user: int, *, own_group: int | None = None) -> bool:
    """True if anybody but root and this user may write a file, or create and replace entries of a directory.

    `own_group`: a group in which nobody else is. None: the user has none.
    """
    if status.st_uid not in {0, user}:
        return True
    # In a sticky directory such as /tmp, others cannot replace what is the user's.
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return False
    return bool(status.st_mode & (stat.S_IWOTH | (0 if status.st_gid == own_group else stat.S_IWGRP)))


_BINARY = b"\x7fELF"


def is_own_binary(program: str) -> bool:
    """True if a path leads to a binary of this machine that only root and the user can change or replace.

    False for a script, which needs what its first line names.
    """
    real = os.path.realpath(program)
    try:
        above = {*_upwards(program), *_upwards(real)}
        if not stat.S_ISREG(os.stat(real).st_mode) or any(map(_is_of_others, above)):
            return False
        with open(real, "rb") as file:
            return file.read(len(_BINARY)) == _BINARY
    except OSError:
        return False


def _upwards(path: str) -> Iterator[str]:
    # Hooks load this module as well, and pathlib takes them longer than Python itself.
    from pathlib import PurePath

    yield from (path, *map(str, PurePath(path).parents))


def _is_of_others(path: str) -> bool:
    # Many systems give each user a group of the same number, which may write in the home directory by default. That
    # does for programs, which the user runs in any case; files that decide what runs have no such exception.
    user, group = os.getuid(), os.getgid()
    return others_may_change(os.stat(path), user, own_group=group if group == user else None)
