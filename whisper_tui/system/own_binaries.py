"""Binaries of this machine that only root and the user can change or replace."""

import os
import stat
from collections.abc import Iterator
from pathlib import PurePath

from whisper_tui.system.file_owners import others_may_change

_BINARY = b"\x7fELF"


def is_own_binary(program: str) -> bool:
    """True if a path leads to such a binary; false for a script, which needs what its first line names."""
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
    yield from (path, *map(str, PurePath(path).parents))


def _is_of_others(path: str) -> bool:
    # Many systems give each user a group of the same number, which may write in the home directory by default. That
    # does for programs, which the user runs in any case; files that decide what runs have no such exception.
    user, group = os.getuid(), os.getgid()
    return others_may_change(os.stat(path), user, own_group=group if group == user else None)
