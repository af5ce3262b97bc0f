"""The zygote: a small process that forks keepers. Some keepers are always idle, so the supervisor never forks."""

import gc
import mmap
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from types import FrameType

from whisper_tui.supervisor.keeper import spawn
from whisper_tui.supervisor.keeper.channels import LIFELINE, JobQueue, WakeupSender, is_waiting, pack, take
from whisper_tui.supervisor.keeper.keeper import Keeper, KeeperSetup
from whisper_tui.supervisor.keeper.keeper_loop import KeeperLoop
from whisper_tui.supervisor.keeper.sandbox import Sandboxes
from whisper_tui.system import processes, run_files
from whisper_tui.system.processes import LINUX, boot_id

SLOTS = 4096
"""Capacity of the table: idle keepers, and busy ones that may become idle again."""

_FREE, _WAITS, _WORKS = 0, 1, 2


class KeeperTable:
    """The state of each keeper, one byte in shared memory. A keeper writes its own, the parent before and after it."""

    def __init__(self) -> None:
        # Shared with all forked keepers. A single byte needs no lock.
        self._states = mmap.mmap(-1, SLOTS)
        self._keepers: dict[int, int] = {}
        """The pid of the last keeper in each slot, known to the parent only."""

    @property
    def waiting(self) -> int:
        """The number of keepers that wait for a job."""
        return self._states[:].count(_WAITS)

    def reserve(self) -> int | None:
        """Reserve a slot for a keeper that is about to be forked. None: the table is full."""
        slot = self._states.find(bytes([_FREE]))
        if slot < 0:
            return None
        # It counts as idle before it exists, so that the parent does not fork another one.
        self._states[slot] = _WAITS
        return slot

    def assign(self, slot: int, pid: int) -> None:
        """Record the pid of the keeper that was forked for a slot."""
        self._keepers[slot] = pid

    def remove_dead(self, pid: int) -> bool:
        """Remove a dead keeper. Return whether it died idle, perhaps with a job that it had just received."""
        slot = next((slot for slot, keeper in self._keepers.items() if keeper == pid), None)
        if slot is None:
            return False
        waited = self._states[slot] == _WAITS
        self.leave(slot)
        del self._keepers[slot]
        return waited

    def wait(self, slot: int) -> None:
        """Mark the keeper of a slot as waiting for a job."""
        self._states[slot] = _WAITS

    def work(self, slot: int) -> None:
        """Mark the keeper of a slot as working."""
        self._states[slot] = _WORKS

    def leave(self, slot: int) -> None:
        """Free a slot. Its keeper takes no other job."""
        self._states[slot] = _FREE


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


IDLE_KEEPERS = 4
"""How many idle keepers there should be."""
FEWEST_IDLE = 2
"""With fewer idle keepers, new ones are forked without delay."""
REFILL_AFTER_MS = 10
"""Idle milliseconds before further keepers are forked, so that the fork does not slow down a command just started."""
REST_S = 1.0
"""Seconds without a job after which a keeper warms up. Most supervisors that a subcommand starts end earlier, and a
burst of commands needs its processors for itself."""
REUSE_WAIT_S = 1.0
"""Seconds that a keeper waits for another job after a short one, so that many short commands need few forks."""
SHORT_RUN_S = 1.0
"""Seconds after which a keeper takes no other job and ends with its run."""
FORK_PAUSE_S = 0.2
"""Pause after an idle keeper died or a fork failed: something kills keepers, or the system lacks memory."""

_PR_SET_CHILD_SUBREAPER = 36
_SIGNALS_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def main(jobs_fd: int, runs: str, *, previews: bool) -> None:
    """Fork keepers until the supervisor is gone. `jobs_fd`: the socket that jobs arrive on."""
    os.set_inheritable(jobs_fd, False)
    jobs = socket.socket(fileno=jobs_fd)
    for number in _SIGNALS_IGNORED:
        signal.signal(number, signal.SIG_IGN)
    # The keepers outlive the supervisor, and must not prevent a directory from being unmounted.
    os.chdir("/")
    processes.mark_supervised()
    if previews:
        # A keeper that loads it takes as long as the rest of a preview; pages of the zygote are shared by all of them.
        spawn.load_previews()
    Zygote(jobs, runs, boot_id(), _adoption()).run()


class Zygote:
    """Keeps `IDLE_KEEPERS` keepers idle. A keeper that takes a job wakes it if too few are left."""

    def __init__(self, jobs: socket.socket, runs: str, boot: str, adopt: "OrphanAdoption") -> None:
        self._jobs = jobs
        self._runs = runs
        self._boot = boot
        self._adopt = adopt
        self._sandboxes = Sandboxes()
        self._wake = wakeup_pipe(signal.SIGCHLD)
        self._too_few, self._too_few_in = os.pipe()
        self._table = KeeperTable()
        for fd in (self._too_few, self._too_few_in):
            os.set_blocking(fd, False)
        # Once: it loads what all keepers share. More would delay the first command, and make no later one faster.
        with closing(KeeperLoop(self._wake)) as loop:
            warm_up(runs, KeeperSetup(boot, loop, adopts=False, sandboxes=self._sandboxes))
        self._sandboxes.end_threads()
        # The garbage collector does not touch frozen objects, so their pages stay shared with the forks.
        gc.collect()
        gc.freeze()

    def run(self) -> None:
        """Run until the supervisor is gone."""
        poll = select.poll()
        # No event is requested: poll() always reports POLLHUP, however the supervisor dies.
        poll.register(LIFELINE, 0)
        poll.register(self._too_few, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        self._fill(IDLE_KEEPERS)
        while True:
            missing = self._table.waiting < IDLE_KEEPERS
            ready = dict(poll.poll(REFILL_AFTER_MS if missing else None))
            if LIFELINE in ready:
                return
            if self._too_few in ready:
                os.read(self._too_few, 4096)
            if self._wake in ready:
                os.read(self._wake, 4096)
                self._reap()
            self._fill(FEWEST_IDLE if ready else IDLE_KEEPERS)

    def _fill(self, wanted: int) -> None:
        while self._table.waiting < wanted:
            slot = self._table.reserve()
            if slot is None:
                return
            try:
                pid = os.fork()
            except OSError:
                self._table.leave(slot)
                time.sleep(FORK_PAUSE_S)
                return
            if not pid:
                for fd in (self._wake, self._too_few):
                    os.close(fd)
                self._keeper_main(slot)
            self._table.assign(slot, pid)

    def _reap(self) -> None:
        died_waiting = False
        with suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                died_waiting |= self._table.remove_dead(pid)
        if died_waiting:
            # Its job may be lost. The supervisor then revokes unclaimed attempts earlier.
            wakeups = WakeupSender(os.path.join(self._runs, run_files.NOBODY))
            wakeups.send("lost")
            wakeups.close()
            time.sleep(FORK_PAUSE_S)

    def _keeper_main(self, slot: int) -> None:
        """The main function of a forked keeper. Never returns."""
        status = 1
        try:
            os.setsid()
            loop = KeeperLoop(wakeup_pipe(signal.SIGCHLD))
            setup = KeeperSetup(self._boot, loop, self._adopt.begin(), self._sandboxes)
            self._serve(setup, slot)
            status = 0
        finally:
            if status:
                sys.excepthook(*sys.exc_info())
                sys.stderr.flush()
            # Not sys.exit(): the fork has a copy of the parent's stack, and must not run the parent's cleanup.
            os._exit(status)

    def _serve(self, setup: KeeperSetup, slot: int) -> None:
        """Serve one run after another, until no job has arrived for `REUSE_WAIT_S` or a run exceeds `SHORT_RUN_S`."""
        jobs = JobQueue(self._jobs)

        def stay() -> None:
            """Take no other job after the current one."""
            jobs.close()
            self._sandboxes.close()
            self._table.leave(slot)

        message = self._first_job(jobs, setup)
        while message:
            self._table.work(slot)
            self._ask_for_more()
            _keep(message, setup, stay)
            if jobs.closed:
                return
            self._table.wait(slot)
            if not is_waiting(self._jobs):
                self._sandboxes.prepare()
            message = jobs.next(REUSE_WAIT_S)
        self._table.leave(slot)
        self._ask_for_more()

    def _first_job(self, jobs: JobQueue, setup: KeeperSetup) -> bytes:
        """Wait for the first job, and warm up if it does not come soon. Empty: the supervisor is gone."""
        if not is_waiting(self._jobs):
            self._sandboxes.prepare()
        message = jobs.next(REST_S)
        # What is waiting after a rest is the end of the supervisor, which waits until nothing is written any more.
        if not message and not is_waiting(self._jobs):
            warm_up(self._runs, setup)
            self._sandboxes.prepare()
        _leave_standard_output()
        return message or jobs.next(None)

    def _ask_for_more(self) -> None:
        """Wake the parent if too few keepers wait."""
        # BrokenPipeError: the parent is gone. BlockingIOError: earlier wakeups are still unread in the pipe.
        if self._table.waiting < IDLE_KEEPERS:
            with suppress(BrokenPipeError, BlockingIOError):
                os.write(self._too_few_in, b"!")


def _leave_standard_output() -> None:
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


def _keep(message: bytes, setup: KeeperSetup, stay: Callable[[], None]) -> None:
    """Serve one run, from its job to its end. `stay` is called once it exceeds `SHORT_RUN_S`."""
    setup.loop.discard_signals()
    signal.signal(signal.SIGTERM, lambda *_: None)
    job = take(message)
    if job is not None:
        keeper = Keeper(job, setup)
        keeper.do_after(SHORT_RUN_S, stay)
        setup.loop.drive(keeper)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class OrphanAdoption:
    """Makes orphaned processes of the command children of the keeper, if the system supports subreapers."""

    def __init__(self, prctl: object) -> None:
        self._prctl = prctl

    def begin(self) -> bool:
        """Become a subreaper. Return whether the system supports it."""
        return callable(self._prctl) and self._prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def _adoption() -> OrphanAdoption:
    if not LINUX:
        return OrphanAdoption(None)
    try:
        import ctypes
    except ImportError:
        return OrphanAdoption(None)
    return OrphanAdoption(ctypes.CDLL(None).prctl)
