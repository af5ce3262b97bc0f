"""The guardian: it forks the keepers, holds their runs, and starts a successor of a keeper that was killed.

Each keeper drives any number of runs. The guardian goes on after its supervisor until all runs are over. Where the
system has no subreapers nobody could go on with the runs of a killed keeper, so each run has a keeper of its own there.
"""

import gc
import os
import select
import signal
import socket
import sys
import time
from contextlib import closing, suppress

from whisper_tui.supervisor.keeper import spawn
from whisper_tui.supervisor.keeper.channels import LIFELINE, WakeupSender
from whisper_tui.supervisor.keeper.held_runs import READ_AFTER_S, Doorbell, HeldRun, Holder
from whisper_tui.supervisor.keeper.keeper import KeeperSetup
from whisper_tui.supervisor.keeper.keeper_loop import KeeperLoop
from whisper_tui.supervisor.keeper.keeper_process import KeeperProcess
from whisper_tui.supervisor.keeper.limited_start import raise_file_limit
from whisper_tui.supervisor.keeper.run_control import Death
from whisper_tui.supervisor.keeper.sandbox import Sandboxes
from whisper_tui.supervisor.keeper.warm_up import OrphanAdoption, adoption, leave_standard_output, wakeup_pipe, warm_up
from whisper_tui.system import processes, run_files
from whisper_tui.system.processes import boot_id

MOST_KEEPERS = 4
"""How many keepers share the work at most: a flood of output keeps one of them busy."""
FORK_PAUSE_S = 0.2
"""Pause after a keeper without runs died, or a fork failed: something kills keepers, or the system lacks memory."""
DIES_WITHIN_S = 0.5
"""Seconds in which a keeper whose connection has ended is dead, unless it has only given up to be held."""
MOST_SUCCESSORS = 100
"""How often a run gets a new keeper. It may be what kills them."""
ERROR = 33
"""As how many a keeper counts that was not killed, but has ended of an error, which may come again."""

_SIGNALS_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def main(jobs_fd: int, runs: str, *, previews: bool) -> None:
    """Fork keepers until the supervisor is gone and no run is left. `jobs_fd`: the socket that jobs arrive on."""
    os.set_inheritable(jobs_fd, False)
    jobs = socket.socket(fileno=jobs_fd)
    for number in _SIGNALS_IGNORED:
        signal.signal(number, signal.SIG_IGN)
    # The keepers outlive the supervisor, and must not prevent a directory from being unmounted.
    os.chdir("/")
    processes.mark_supervised()
    if previews:
        # A keeper that loads it takes as long as the rest of a preview; pages of the guardian are shared by all.
        spawn.load_previews()
    Guardian(jobs, runs, boot_id(), adoption()).run()


class Guardian:
    """The parent of the keepers of one runs directory."""

    def __init__(self, jobs: socket.socket, runs: str, boot: str, adopt: OrphanAdoption) -> None:
        self._jobs = jobs
        self._runs = runs
        self._boot = boot
        self._adopt = adopt
        self._wanted = min(MOST_KEEPERS, os.cpu_count() or 1) if adopt.is_supported else MOST_KEEPERS
        """How many keepers that take jobs there should be."""
        self._sandboxes = Sandboxes()
        self._wake = wakeup_pipe(signal.SIGCHLD, signal.SIGTERM)
        self._holders: dict[int, Holder] = {}
        """By the pids of the keepers that are connected."""
        self._bell = Doorbell()
        self._leaving = False
        self._ending = False
        self._poll = select.poll()
        # Once: it loads what all keepers share. More would delay the first command, and make no later one faster.
        with closing(KeeperLoop(self._wake)) as loop:
            warm_up(runs, KeeperSetup(boot, loop, adopts=False, sandboxes=self._sandboxes))
        self._sandboxes.end_threads()
        raise_file_limit()
        # The garbage collector does not touch frozen objects, so their pages stay shared with the forks.
        gc.collect()
        gc.freeze()

    def run(self) -> None:
        """Run until the supervisor is gone and no run is left."""
        self._adopt.begin()
        # No event is requested: poll() always reports POLLHUP, however the supervisor dies.
        self._poll.register(LIFELINE, 0)
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(self._bell.reader, select.POLLIN)
        reads_again = False
        while self._holders or not self._leaving:
            while not self._leaving and len(self._holders) < self._wanted and self._fork({}):
                pass
            missing = not self._leaving and len(self._holders) < self._wanted
            seconds = FORK_PAUSE_S if missing else READ_AFTER_S if reads_again else None
            ready = dict(self._poll.poll(None if seconds is None else 1000 * seconds))
            if LIFELINE in ready:
                self._leave()
            for pid, holder in list(self._holders.items()):
                if holder.connection.fileno() in ready:
                    self._check(pid, holder)
            if self._wake in ready:
                self._read_signals()
            if not ready or self._bell.reader in ready:
                reads_again = self._bell.answer(self._read)

    def _read(self) -> bool:
        """Read what the keepers have told. Return whether there was anything."""
        heard = [holder.receive() for holder in self._holders.values()]
        return any(heard)

    def _leave(self) -> None:
        """Fork no keepers for further runs."""
        if not self._leaving:
            self._leaving = True
            self._poll.unregister(LIFELINE)
            self._jobs.close()
            leave_standard_output()

    def _check(self, pid: int, holder: Holder) -> None:
        """Hold nothing for a keeper that lives and is no longer connected: what is known of its runs may be wrong."""
        self._poll.unregister(holder.connection)
        until = time.monotonic() + DIES_WITHIN_S
        while self._adopt.is_supported and time.monotonic() < until:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return
            time.sleep(DIES_WITHIN_S / 100)
        del self._holders[pid]
        holder.close()

    def _read_signals(self) -> None:
        if signal.SIGTERM in os.read(self._wake, 4096):
            # The system shuts down, or somebody wants to be rid of all of it. A keeper alone hands over.
            self._ending = True
            self._leave()
            for holder in self._holders.values():
                holder.tell({"end": True})
        self._reap()

    def _reap(self) -> None:
        dead: list[tuple[int, int]] = []
        others: list[tuple[int, Death]] = []
        with suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if not pid:
                    break
                if pid in self._holders:
                    dead.append((pid, status))
                else:
                    others.append((pid, Death(status, usage, time.monotonic())))
        # What a keeper has told before its end comes first: it names the leaders.
        self._read()
        for pid, death in others:
            self._note_reaped(pid, death)
        for pid, status in dead:
            self._replace(pid, status)

    def _note_reaped(self, pid: int, death: Death) -> None:
        for holder in self._holders.values():
            run = holder.run_of(pid)
            if run is not None:
                run.facts["death"] = death.told()
            if holder.shares:
                holder.tell({"reaped": pid, "death": death.told() if run is not None else None})

    def _replace(self, pid: int, status: int) -> None:
        """Start the successor of a dead keeper."""
        holder = self._holders.pop(pid)
        with suppress(KeyError):
            self._poll.unregister(holder.connection)
        # Its job may be lost, too. The supervisor then revokes unclaimed attempts earlier.
        wakeups = WakeupSender(os.path.join(self._runs, run_files.NOBODY))
        wakeups.send("lost")
        wakeups.close()
        for run in holder.runs.values():
            run.facts["successors"] = run.facts.get("successors", 0) + (1 if os.WIFSIGNALED(status) else ERROR)
        runs = {name: run for name, run in holder.runs.items() if run.facts["successors"] <= MOST_SUCCESSORS}
        for name in runs:
            del holder.runs[name]
        holder.close()
        if runs:
            while not self._fork(runs):
                time.sleep(FORK_PAUSE_S)
        elif not self._leaving:
            time.sleep(FORK_PAUSE_S)

    def _fork(self, runs: dict[str, HeldRun]) -> bool:
        """Fork a keeper that goes on with some runs. Return whether the system could."""
        try:
            holder = Holder(runs, self._bell)
            pid = os.fork()
        except OSError:
            return False
        if not pid:
            for other in self._holders.values():
                other.close()
            self._keeper_main(holder)
        holder.has_forked()
        self._holders[pid] = holder
        # No event is requested: only its end is looked at without the bell.
        self._poll.register(holder.connection, 0)
        if self._ending:
            holder.tell({"end": True})
        return True

    def _keeper_main(self, holder: Holder) -> None:
        """The main function of a forked keeper. Never returns."""
        status = 1
        try:
            for fd in (self._wake, self._bell.reader):
                os.close(fd)
            parent = os.getppid()
            os.setsid()
            # While there is a guardian, it ends of SIGTERM as of any signal: its successor goes on with its runs.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            loop = KeeperLoop(wakeup_pipe(signal.SIGCHLD))
            setup = KeeperSetup(self._boot, loop, self._adopt.begin(), self._sandboxes, holder.guard())
            if holder.shares:
                loop.children.share_with(parent)
            KeeperProcess(self._jobs, self._runs, setup, self._adopt).serve(list(holder.runs.values()))
            status = 0
        finally:
            if status:
                sys.excepthook(*sys.exc_info())
                sys.stderr.flush()
            # Not sys.exit(): the fork has a copy of the parent's stack, and must not run the parent's cleanup.
            os._exit(status)
