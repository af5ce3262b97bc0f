"""The process of keepers: it takes jobs, and drives the runs that these ask for."""

import os
import select
import signal
import socket
import sys
from contextlib import suppress

from whisper_tui.supervisor.keeper.channels import LIFELINE, LONGEST_MESSAGE, Job, take
from whisper_tui.supervisor.keeper.disks import may_hang
from whisper_tui.supervisor.keeper.held_runs import HeldRun
from whisper_tui.supervisor.keeper.keeper import NOBODY, Keeper, KeeperSetup
from whisper_tui.supervisor.keeper.keeper_loop import KeeperLoop
from whisper_tui.supervisor.keeper.run_control import Death
from whisper_tui.supervisor.keeper.sandbox import Sandboxes
from whisper_tui.supervisor.keeper.warm_up import OrphanAdoption, leave_standard_output, wakeup_pipe, warm_up
from whisper_tui.system import run_files
from whisper_tui.system.processes import LINUX, mark_run

REST_S = 1.0
"""Seconds without a job after which a keeper warms up. Most supervisors that a subcommand starts end earlier, and a
burst of commands needs its processors for itself."""
_JOB = select.POLLIN | (select.EPOLLEXCLUSIVE if LINUX else 0)
"""Exclusive: one job wakes one keeper instead of all."""


class KeeperProcess:
    """Takes jobs, and drives their runs, until the supervisor is gone and no run is left."""

    def __init__(self, jobs: socket.socket, runs: str, setup: KeeperSetup, adopt: OrphanAdoption) -> None:
        self._jobs = jobs
        self._runs = runs
        self._guard = setup.guard
        guard = self._guard if adopt.is_supported else NOBODY
        self._setup = setup._replace(guard=guard, has_long_run=self._let_others_take)
        self._loop = setup.loop
        self._adopt = adopt
        self._taken_over: list[Keeper] = []

    def serve(self, held: list[HeldRun]) -> None:
        """Serve until nothing is left to do."""
        self._loop.watch(self._guard.fileno(), select.POLLIN, self._hear)
        for run in held:
            self._take_over(run)
        if not held:
            self._rest()
        leave_standard_output()
        if self._takes:
            self._loop.watch(LIFELINE, 0, self._leave)
            self._loop.watch(self._jobs.fileno(), _JOB, self._take)
        while self._takes or not self._loop.idle:
            self._loop.turn()

    @property
    def _takes(self) -> bool:
        """True while it takes jobs."""
        return self._jobs.fileno() >= 0

    def _rest(self) -> None:
        """Warm up, unless a job comes soon."""
        self._setup.sandboxes.prepare()
        poll = select.poll()
        poll.register(self._jobs, select.POLLIN)
        poll.register(LIFELINE, 0)
        if not poll.poll(1000 * REST_S):
            warm_up(self._runs, self._setup)
            self._setup.sandboxes.prepare()

    def _let_others_take(self) -> None:
        """Leave the next job to another keeper if one waits: of those that wait, the first to have begun gets it."""
        # Short commands in a row have the same keeper, which is warm. Those that may write for long are spread.
        if self._takes:
            self._loop.unwatch(self._jobs.fileno())
            self._loop.watch(self._jobs.fileno(), _JOB, self._take)

    def _leave(self) -> None:
        """Take no more jobs."""
        if self._takes:
            self._loop.unwatch(LIFELINE)
            self._loop.unwatch(self._jobs.fileno())
            self._jobs.close()

    def _take(self) -> None:
        try:
            message = self._jobs.recv(LONGEST_MESSAGE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return  # Another keeper has taken it.
        if not message:
            self._leave()
            return
        job = take(message)
        if job is None:
            return
        if not self._adopt.is_supported:
            self._leave()
            self._be_unguarded()
        if job.spec.get("preview") is not None or may_hang(job.spec, job.environment):
            self._fork_for(job)
        else:
            self._loop.add(Keeper(job, self._setup))

    def _fork_for(self, job: Job) -> None:
        """Drive a run in a process of its own: it may hang, or be a preview, whose host may have nothing of others."""
        try:
            pid = os.fork()
        except OSError:
            self._loop.add(Keeper(job, self._setup))
            return
        if pid:
            self._loop.children.leave_out(pid, job.spec.get("order_key"))
            os.close(job.lock)
            return
        status = 1
        try:
            # It has the mark of the last run, and may get another parent, which would count it to that one.
            mark_run(0)
            signal.set_wakeup_fd(-1)
            close_all_but({0, 1, 2, job.lock})
            os.setsid()
            loop = KeeperLoop(wakeup_pipe(signal.SIGCHLD, signal.SIGTERM))
            setup = KeeperSetup(self._setup.boot, loop, self._adopt.begin(), Sandboxes())
            loop.drive(Keeper(job, setup))
            status = 0
        finally:
            if status:
                sys.excepthook(*sys.exc_info())
                sys.stderr.flush()
            os._exit(status)

    def _take_over(self, run: HeldRun) -> None:
        try:
            spec = run_files.read_json(os.path.join(run.directory, run_files.SPEC))
        except (OSError, ValueError):
            run.close()  # Its directory was removed.
            return
        keeper = Keeper(Job(run.directory, spec, {}, run.fds["lock"]), self._setup)
        self._taken_over.append(keeper)
        self._loop.add(keeper, lambda: keeper.take_over(run))

    def _hear(self) -> None:
        """Hear from the guardian which of the processes that it has adopted it has reaped, and when to end."""
        try:
            while (told := self._guard.receive()) is not None:
                if "end" in told:
                    self._leave()
                    self._be_asked_to_end()
                else:
                    death = Death.of(told["death"]) if told["death"] is not None else None
                    self._loop.children.has_reaped(told["reaped"], death)
        except EOFError:
            self._leave()  # The supervisor starts a guardian with other keepers.
            self._be_unguarded()
            self._loop.children.share_with(0)
            for keeper in self._taken_over:
                keeper.watch_leader()

    def _be_asked_to_end(self) -> None:
        """End all runs, also of SIGTERM from now on."""
        signal.signal(signal.SIGTERM, lambda *_: None)
        self._loop.end_all()

    def _be_unguarded(self) -> None:
        """Nobody would go on with the runs, so that SIGTERM ends them from now on."""
        self._loop.unwatch(self._guard.fileno())
        self._guard.close()
        signal.signal(signal.SIGTERM, lambda *_: None)


def close_all_but(kept: set[int]) -> None:
    """Close all descriptors of this process except for some."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with suppress(OSError):
                os.close(int(name))
