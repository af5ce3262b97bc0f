"""Owners of files, and whether others may change them: by what the machine of a file says about it."""

import os
import stat


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
