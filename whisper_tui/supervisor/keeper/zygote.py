"""The slim process from which keepers are forked: a few always wait, ready, so that a start costs no fork of ours."""

import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from whisper_tui.supervisor.keeper import layout, mark
from whisper_tui.supervisor.keeper.job import Hints, take
from whisper_tui.supervisor.keeper.jobs import LIFELINE, Jobs, is_waiting
from whisper_tui.supervisor.keeper.life import Keeper, Standing
from whisper_tui.supervisor.keeper.processes import LINUX, boot_id
from whisper_tui.supervisor.keeper.rehearsal import drain, rehearse
from whisper_tui.supervisor.keeper.roster import Roster
from whisper_tui.supervisor.keeper.sandbox import Sandboxes

IDLE = 4
"""Keepers that wait for a job."""
SCARCE = 2
"""So many are replaced at once."""
REFILL_AFTER_MS = 10
"""The others are replaced when nothing has happened for so long, out of the way of the command just started."""
REHEARSED = 8
"""Rehearsals before the first fork: so often the interpreter wants to see code before it has adapted to it."""
SPARE_S = 1.0
"""How long a keeper waits for another job after a short one: many short commands in a row need no forks."""
SHORT_S = 1.0
"""A keeper whose run lasts longer holds on to nothing but that run, and goes with it."""
FORK_PAUSE_S = 0.2
"""Pause after a waiting keeper died without a job: something kills them, or the system has no room."""

_PR_SET_CHILD_SUBREAPER = 36
_SIGNALS_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def main(jobs_fd: int, runs: str) -> None:
    """Fork keepers until the supervisor is gone. `jobs_fd`: the socket on which jobs arrive."""
    os.set_inheritable(jobs_fd, False)
    jobs = socket.socket(fileno=jobs_fd)
    for number in _SIGNALS_IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    mark.put_on()
    Zygote(jobs, runs, boot_id(), _adoption()).run()


class Zygote:
    """Keeps `IDLE` keepers waiting. One that takes a job marks that first; it wakes its parent if too few are left.

    A keeper whose run left nothing behind waits for another one for a while: it is ready, where a fork is not yet.
    """

    def __init__(self, jobs: socket.socket, runs: str, boot: str, adopt: "Adoption") -> None:
        self._jobs = jobs
        self._runs = runs
        self._boot = boot
        self._adopt = adopt
        self._sandboxes = Sandboxes()
        self._wake = wakeup_pipe(signal.SIGCHLD)
        self._too_few, self._too_few_in = os.pipe()
        self._roster = Roster()
        for fd in (self._too_few, self._too_few_in):
            os.set_blocking(fd, False)
        for _ in range(REHEARSED):
            rehearse(runs, Standing(boot, self._wake, adopts=False, sandboxes=self._sandboxes))
        gc.collect()
        gc.freeze()

    def run(self) -> None:
        """Live as long as the supervisor."""
        poll = select.poll()
        poll.register(LIFELINE, 0)
        poll.register(self._too_few, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        self._fill(IDLE)
        while True:
            missing = self._roster.waiting < IDLE
            ready = dict(poll.poll(REFILL_AFTER_MS if missing else None))
            if LIFELINE in ready:
                return
            if self._too_few in ready:
                os.read(self._too_few, 4096)
            if self._wake in ready:
                os.read(self._wake, 4096)
                self._bury()
            self._fill(SCARCE if ready else IDLE)

    def _fill(self, wanted: int) -> None:
        while self._roster.waiting < wanted:
            place = self._roster.take_place()
            if place is None:
                return
            try:
                pid = os.fork()
            except OSError:
                self._roster.leave(place)
                time.sleep(FORK_PAUSE_S)
                return
            if not pid:
                for fd in (self._wake, self._too_few):
                    os.close(fd)
                self._live(place)
            self._roster.seat(place, pid)

    def _bury(self) -> None:
        died_waiting = False
        with suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                died_waiting |= self._roster.bury(pid)
        if died_waiting:
            hints = Hints(os.path.join(self._runs, layout.NOBODY))
            hints.give("lost")
            hints.close()
            time.sleep(FORK_PAUSE_S)

    def _live(self, place: int) -> None:
        """A keeper from its fork to its end. Never returns."""
        status = 1
        try:
            os.setsid()
            standing = Standing(self._boot, wakeup_pipe(signal.SIGCHLD), self._adopt.begin(), self._sandboxes)
            if not is_waiting(self._jobs):
                rehearse(self._runs, standing)
                self._sandboxes.prepare()
            self._serve(standing, place)
            status = 0
        finally:
            if status:
                sys.excepthook(*sys.exc_info())
                sys.stderr.flush()
            os._exit(status)

    def _serve(self, standing: Standing, place: int) -> None:
        """Keep one run after the other, until none has come for a while or one lasts."""
        jobs = Jobs(self._jobs)

        def stay() -> None:
            """Take no other job than the present one."""
            jobs.close()
            self._roster.leave(place)

        message = jobs.next(None)
        while message:
            self._roster.work(place)
            self._ask_for_more()
            _keep(message, standing, stay)
            if jobs.closed:
                return
            self._roster.wait(place)
            if not is_waiting(self._jobs):
                self._sandboxes.prepare()
            message = jobs.next(SPARE_S)
        self._roster.leave(place)
        self._ask_for_more()

    def _ask_for_more(self) -> None:
        """Wake the parent if too few wait. One that is gone needs no waking, nor one that has not heard the last."""
        if self._roster.waiting < IDLE:
            with suppress(BrokenPipeError, BlockingIOError):
                os.write(self._too_few_in, b"!")


def wakeup_pipe(*numbers: int) -> int:
    """A descriptor that gets one byte, its number, for each of these signals."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    earlier = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if earlier >= 0:
        os.close(earlier)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return reader


def _keep(message: bytes, standing: Standing, stay: Callable[[], None]) -> None:
    """One run, from its job to its end; nothing of it is left in this process. `stay`: done once it lasts."""
    drain(standing.wake)
    signal.signal(signal.SIGTERM, lambda *_: None)
    job = take(message)
    if job is not None:
        keeper = Keeper(job, standing)
        keeper.do_after(SHORT_S, stay)
        keeper.run()
        keeper.close()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Adoption:
    """Making orphans of the command our own children, where the system can."""

    def __init__(self, prctl: object) -> None:
        self._prctl = prctl

    def begin(self) -> bool:
        """Whether it can, from now on."""
        return callable(self._prctl) and self._prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def _adoption() -> Adoption:
    if not LINUX:
        return Adoption(None)
    try:
        import ctypes
    except ImportError:
        return Adoption(None)
    return Adoption(ctypes.CDLL(None).prctl)
