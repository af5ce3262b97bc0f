"""Binaries of this machine that only root and the user can change or replace."""

import os
import stat
from collections.abc import Iterator
from pathlib import PurePath

_BINARY = b"\x7fELF"


def is_own_binary(program: str) -> bool:
    """True if a path leads to such a binary; false for a script, which needs what its first line names."""
    real = os.path.realpath(program)
    try:
        if not stat.S_ISREG(os.stat(real).st_mode) or not all(map(_is_own, (*_upwards(program), *_upwards(real)))):
            return False
        with open(real, "rb") as file:
            return file.read(len(_BINARY)) == _BINARY
    except OSError:
        return False


def _upwards(path: str) -> Iterator[str]:
    yield from (path, *map(str, PurePath(path).parents))


def _is_own(path: str) -> bool:
    """True if only root and the user can write a file, or create and replace entries of a directory."""
    status = os.stat(path)
    own = os.getuid()
    if status.st_uid not in {0, own}:
        return False
    # In a sticky directory such as /tmp, others cannot replace what is the user's.
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return True
    # Many systems give each user a group of the same number, in which nobody else is.
    private_group = status.st_gid == os.getgid() == own
    return not status.st_mode & (stat.S_IWOTH | (0 if private_group else stat.S_IWGRP))
