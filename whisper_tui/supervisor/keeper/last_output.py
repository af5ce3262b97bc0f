"""The processes that deliver a command's last output after its end, as `tee` does in `exec > >(tee log)`.

They hold the pipe of the output like a server in the background does. But nothing can be written to the pipe that they
read any more: its last writer was the command. So they end as soon as they have read what is left in it.
"""

from collections import defaultdict
from collections.abc import Iterable

from whisper_tui.system.processes import pipes_of


def deliver_last_output(pids: Iterable[int]) -> bool:
    """True if one of these processes reads a pipe to which no other one of them can write. False without /proc."""
    readers: dict[int, set[int]] = defaultdict(set)
    writers: dict[int, set[int]] = defaultdict(set)
    for pid in pids:
        for pipe in pipes_of(pid):
            if pipe.reads:
                readers[pipe.inode].add(pid)
            if pipe.writes:
                writers[pipe.inode].add(pid)
    return any(not writers[inode] for inode in readers)
