"""Finding a process again that the supervisor has told of, and not another one that has its number now."""

import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

from whisper_tui.model.run import ProcessIdentity

STAT_START = 19
"""Which word after the name of the program in /proc/<pid>/stat says when it started."""


@cache
def boot_id() -> str:
    """What names this start of the system. Empty where it has no name."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def find(identity: ProcessIdentity) -> psutil.Process | None:
    """The process, if it is alive. None: it has ended, or it cannot be known whether it is the same."""
    if sys.platform == "linux" and (identity.boot_id != boot_id() or _started(identity.pid) != identity.start_time):
        return None
    if sys.platform != "linux" and identity.boot_id == "stage":
        return None
    with suppress(psutil.Error):
        return psutil.Process(identity.pid)
    return None


def _started(pid: int) -> int | None:
    """Clock ticks after boot when a process started. None: there is no such process."""
    with suppress(OSError, IndexError, ValueError):
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return int(stat[stat.rindex(b")") + 1 :].split()[STAT_START])
    return None
