"""A whole run of nothing, before the first real one.

A fresh fork pays for every page of memory that it first writes to, and Python writes wherever it reads. Rehearsed, a
start takes half as long; the price is paid while nobody waits.
"""

import os
import signal
from contextlib import suppress
from types import FrameType

from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.job import pack, take
from whisper_tui.supervisor.keeper.life import Keeper, Standing

REHEARSALS = "rehearsal"
"""Beside the attempts: where it happens."""
LONGEST_S = 2.0
"""A rehearsal that takes longer is broken off: it is no use to anybody."""
_PROGRAMS = ("/bin/echo", "/usr/bin/echo")


class _Enough(Exception):
    """The rehearsal takes too long."""


def rehearse(runs: str, standing: Standing) -> None:
    """Run a command that does nothing, as a real one would be run, and leave no trace of it."""
    directory = os.path.join(runs, REHEARSALS, str(os.getpid()))
    before = signal.signal(signal.SIGALRM, _break_off)
    try:
        signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
        _run(directory, standing)
    except (OSError, _Enough):
        pass  # A full disk, or a directory that was cleared: then the first run is a little slower.
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        layout.remove_directory(directory)
        drain(standing.wake)


def _run(directory: str, standing: Standing) -> None:
    with suppress(FileExistsError):
        os.mkdir(os.path.dirname(directory), 0o700)
    os.mkdir(directory, 0o700)
    layout.write_json(os.path.join(directory, layout.SPEC), _spec(sandboxed=not standing.sandboxes.support.problem))
    job = take(pack(directory, dict(os.environ)))
    if job is not None:
        keeper = Keeper(job, standing)
        keeper.run()
        keeper.close()


def _spec(*, sandboxed: bool) -> dict[str, object]:
    program = next((path for path in _PROGRAMS if os.access(path, os.X_OK)), None)
    return {
        "argv": ["echo"],
        "program": program,
        "cwd": "/",
        "real_cwd": "/",
        "files": {},
        "tty": False,
        "input": False,
        "timeout": None,
        "grace": 0,
        "max_bytes": None,
        "min_free": 1,
        "cpu": None,
        "memory": None,
        "processes": None,
        "boot": "",
        "sandbox": {"read": [], "execute": [], "write": [], "network": False, "processes": False}
        if sandboxed
        else None,
    }


def _break_off(_number: int, _frame: FrameType | None) -> None:
    raise _Enough


def drain(fd: int) -> None:
    """Forget the signals that have come so far."""
    try:
        os.read(fd, 4096)
    except BlockingIOError:
        return
