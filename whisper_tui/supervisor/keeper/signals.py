"""Signals to what belongs to a run, and to nothing else: a pid that was taken over by a stranger is never hit."""

import os
import signal
import time
from collections.abc import Callable

from whisper_tui.supervisor.keeper.processes import Descendants, Seen, look_at

BURST_S = 0.05
"""How long one burst of killing may keep the keeper from its other work."""


def send_to(seen: Seen, number: int) -> bool:
    """Signal one process, if it is still the one that was seen. Returns whether it was."""
    if hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal"):
        return _send_by_pidfd(seen, number)
    now = look_at(seen.pid)
    return now is not None and now.start == seen.start and _quietly(os.kill, seen.pid, number)


def send_to_group(pgid: int, number: int) -> bool:
    """Signal a process group of which a member was just seen. Returns whether there was one."""
    if pgid <= 1 or pgid == os.getpgid(0):
        return False
    return _quietly(os.killpg, pgid, number)


def send_to_all(family: list[Seen], *numbers: int) -> None:
    """Signal every process of a family, each number in turn."""
    for number in numbers:
        for seen in family:
            send_to(seen, number)


def kill_burst(descendants: Descendants, nothing_left: Callable[[], bool]) -> bool:
    """Kill, look again, kill, until nothing is left or the burst is over. Returns whether nothing is left.

    One look is never enough: what forks between the look and the signal would get away. A whole group is killed in one
    step, which forks inside it cannot outrun; a loop outruns those that change their group.
    """
    deadline = time.monotonic() + BURST_S
    while not nothing_left():
        if time.monotonic() >= deadline:
            return False
        family = descendants.now()
        for pgid in {seen.pgid for seen in family}:
            send_to_group(pgid, signal.SIGKILL)
        send_to_all(family, signal.SIGKILL)
    return True


def _send_by_pidfd(seen: Seen, number: int) -> bool:
    try:
        fd = os.pidfd_open(seen.pid)
    except ProcessLookupError:
        return False
    except OSError:
        return _quietly(os.kill, seen.pid, number)
    try:
        now = look_at(seen.pid)
        if now is None or now.start != seen.start:
            return False
        signal.pidfd_send_signal(fd, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(fd)
    return True


def _quietly(send: Callable[[int, int], None], pid: int, number: int) -> bool:
    """Whether the signal went out: a process that is gone, or was made somebody else's, gets none."""
    try:
        send(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
