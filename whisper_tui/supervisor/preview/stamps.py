"""Stamps of files: the facts by which one is recognized, and by which it is seen if anything about it has changed."""

import os
import stat
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import NamedTuple

FACTS = attrgetter("st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_nlink")
"""The fields of a status that a stamp has, in its order."""


class Stamp(NamedTuple):
    """The facts of a file, one of which changes whenever anything about it does."""

    mode: int
    uid: int
    gid: int
    size: int
    mtime: int
    ctime: int
    inode: int
    links: int

    @property
    def is_directory(self) -> bool:
        """True if it is a directory, and no symbolic link to one."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """True if it is a regular file."""
        return stat.S_ISREG(self.mode)


stamp_from: Callable[[tuple[int, ...]], Stamp] = partial(tuple.__new__, Stamp)
"""Makes a stamp of its fields, without the check of their number: there is one for each look at a file."""


def stamp_of(found: os.stat_result) -> Stamp:
    """Return the facts of a file that was looked at."""
    return stamp_from(FACTS(found))


def stamp(path: str, directory: int | None = None) -> Stamp | None:
    """Return the stamp of a file, not of what a symbolic link points to. None: it is not there, or out of reach.

    `directory`: the opened directory in which the path begins.
    """
    try:
        return stamp_from(FACTS(os.stat(path, dir_fd=directory, follow_symlinks=False)))
    except OSError:
        return None


def differs(found: Stamp | None, wanted: Stamp | None, *, copied: bool = False) -> bool:
    """True if these are different files or versions of one. `copied`: a copy with the same time counts as the same."""
    if found == wanted:
        return False
    if found is None or wanted is None:
        return True
    if found.is_directory and wanted.is_directory:
        # Its size and times change with its entries.
        return found[:3] != wanted[:3] or (not copied and found.inode != wanted.inode)
    compared = 5 if copied else 7
    return found[:compared] != wanted[:compared]
