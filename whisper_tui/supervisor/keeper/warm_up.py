"""The start of a process of keepers: warming up, and preparing for signals and orphans."""

import os
import signal
from contextlib import closing, suppress
from types import FrameType

from whisper_tui.supervisor.keeper.channels import pack, take
from whisper_tui.supervisor.keeper.keeper import Keeper, KeeperSetup
from whisper_tui.supervisor.keeper.keeper_loop import KeeperLoop
from whisper_tui.system import run_files
from whisper_tui.system.processes import LINUX

_PR_SET_CHILD_SUBREAPER = 36
STANDARD_OUTPUT = 1
_PROGRAMS = ("/bin/echo", "/usr/bin/echo")


class _WarmUpTimeout(Exception):
    """The warm-up takes too long."""


def warm_up(runs: str, setup: KeeperSetup) -> None:
    """Run a command that does nothing, in the same way as a real one, and remove its files."""
    # A fork copies every page of memory that it first writes to, and Python writes even when it reads
    # (reference counts). After a warm-up a start takes half as long, and nobody waits for the warm-up.
    directory = os.path.join(runs, run_files.WARM_UP, str(os.getpid()))
    before = signal.signal(signal.SIGALRM, _break_off)
    try:
        signal.setitimer(signal.ITIMER_REAL, run_files.WARM_UP_TIMEOUT_S)
        _warm_up_once(directory, setup)
    except (OSError, _WarmUpTimeout):
        pass  # The disk is full, or the directory was removed. Then the first run is a little slower.
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        run_files.remove_tree(directory)
        setup.loop.discard_signals()


def _warm_up_once(directory: str, setup: KeeperSetup) -> None:
    with suppress(FileExistsError):
        os.mkdir(os.path.dirname(directory), 0o700)
    os.mkdir(directory, 0o700)
    run_files.write_json(
        os.path.join(directory, run_files.SPEC), _warm_up_spec(sandboxed=not setup.sandboxes.support.problem)
    )
    job = take(pack(directory, dict(os.environ)))
    if job is not None:
        # It may be broken off, so nothing of it may stay in the loop of real runs.
        with closing(KeeperLoop(setup.loop.wake)) as loop:
            loop.drive(Keeper(job, setup._replace(loop=loop)))


def _warm_up_spec(*, sandboxed: bool) -> dict[str, object]:
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
    raise _WarmUpTimeout


def leave_standard_output() -> None:
    """Replace standard output, whose end tells the supervisor that no warm-up is under way."""
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, STANDARD_OUTPUT)
    os.close(nowhere)


def wakeup_pipe(*numbers: int) -> int:
    """Return a descriptor that receives the number of each of these signals as one byte."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    earlier = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if earlier >= 0:
        os.close(earlier)
    for number in numbers:
        # The handler does nothing, but an ignored signal would not reach the wakeup descriptor.
        signal.signal(number, lambda *_: None)
    return reader


class OrphanAdoption:
    """Makes orphaned processes of the command children of the keeper, if the system supports subreapers."""

    def __init__(self, prctl: object) -> None:
        self._prctl = prctl

    @property
    def is_supported(self) -> bool:
        """True if orphans can be adopted."""
        return callable(self._prctl)

    def begin(self) -> bool:
        """Become a subreaper. Return whether the system supports it."""
        return callable(self._prctl) and self._prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def adoption() -> OrphanAdoption:
    """Return how this system has a process adopt orphans."""
    if not LINUX:
        return OrphanAdoption(None)
    try:
        import ctypes
    except ImportError:
        return OrphanAdoption(None)
    return OrphanAdoption(ctypes.CDLL(None).prctl)
