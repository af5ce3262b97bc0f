"""The processes that deliver a command's last output after its end, as `tee` does in `exec > >(tee log)`.

They hold the pipe of the output like a server in the background does. But nothing can be written to the pipe that they
read any more: its last writer was the command. So they end as soon as they have read what is left in it.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Iterable


def deliver_last_output(pids: Iterable[int]) -> bool:
    """True if one of these processes reads a pipe to which no other one of them can write. False without /proc."""
    readers: dict[int, set[int]] = defaultdict(set)
    writers: dict[int, set[int]] = defaultdict(set)
    for pid in pids:
        for inode, mode in _pipes_of(pid):
            if mode & stat.S_IRUSR:
                readers[inode].add(pid)
            if mode & stat.S_IWUSR:
                writers[inode].add(pid)
    return any(not writers[inode] for inode in readers)


def _pipes_of(pid: int) -> list[tuple[int, int]]:
    """Return the pipes that a process has open, as inodes and the permissions with which it has opened them."""
    directory = f"/proc/{pid}/fd"
    found = []
    try:
        for name in os.listdir(directory):
            path = f"{directory}/{name}"
            target = os.readlink(path)
            if target.startswith("pipe:["):
                found.append((int(target[6:-1]), os.lstat(path).st_mode))
    except (OSError, ValueError):
        # It has ended, or belongs to somebody else.
        return found
    return found
