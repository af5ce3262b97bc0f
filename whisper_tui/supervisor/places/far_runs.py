"""The runs at a place: started there at most once each, told orders, given input, and completed without a keeper."""

import errno
import fcntl
import heapq
import itertools
import json
import os
import re
import selectors
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from whisper_tui.supervisor.keeper.attempt_files import RESTARTED_AT_START, AttemptFiles, OrphanedRun, why_lost
from whisper_tui.supervisor.keeper.base_cgroup import Cgroups
from whisper_tui.supervisor.keeper.channels import pack
from whisper_tui.supervisor.keeper.guardian_start import start_guardian
from whisper_tui.system import run_files
from whisper_tui.system.processes import boot_id, is_stopped

SWEEP_S = 1.0
"""Seconds between two sweeps over all runs, because wakeups can be lost and keepers can be killed."""
RUNS = "runs"
"""The directory of the attempts of one supervisor, in its own one."""
NAME = re.compile(r"[0-9A-Za-z_-]{1,64}\.[0-9]{1,9}")
"""The name of an attempt. It is one component of a path."""

ORDER_RETRY_S, ORDER_TRIES = 0.02, 50
"""Seconds between two attempts to reach a keeper that lives but takes no orders yet, and their number."""
MOST_NAMES = 2000
"""Names of attempts in one answer."""

OLD_S = 30 * 86_400.0
"""Seconds after its end for which the output of an attempt is kept that nobody asks for any more."""
_KEPT = frozenset({run_files.SPEC, run_files.CLAIM, run_files.PID, run_files.EXIT, run_files.DONE})
"""The files of an attempt that stay: a supervisor that comes back is told how it ended, and starts nothing twice."""
_NO_READER = frozenset({errno.ENXIO, errno.ENOENT, errno.EPIPE, errno.ENOTDIR})
Reply = Callable[[dict[str, Any]], None]
"""Takes the answer to a request."""


class Failed(Exception):
    """A request cannot be carried out. `kind` is that of an error of the near end."""

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.answer = {"error": kind, "message": message, "hint": hint}


class FarLoop:
    """Calls functions when descriptors are ready or times have come. One thread, no asyncio: it starts in no time."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()

    def watch(self, fd: int, events: int, ready: Callable[[], object]) -> None:
        """Call `ready` whenever a descriptor is ready for the events. No events: no more."""
        if fd in self._selector.get_map():
            self._selector.unregister(fd)
        if events:
            self._selector.register(fd, events, ready)

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        """Call a function once after so many seconds."""
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), action))

    def run_once(self) -> None:
        """Wait, and call what is due."""
        pause = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None
        for key, _ in self._selector.select(pause):
            # An earlier call of this round may have stopped the watch.
            if self._selector.get_map().get(key.fd) is key:
                key.data()
        while self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2]()


class _FifoWrite:
    """Bytes that are being written to a FIFO, which may be full."""

    def __init__(self, loop: FarLoop, path: str, data: bytes, over: Callable[[int, OSError | None], None]) -> None:
        """`over` is called with the number of bytes that were written, and with an error or None."""
        self._loop, self._data, self._over = loop, memoryview(data), over
        self._written = 0
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self._fd = -1
            over(0, error)
            return
        self._write()

    def cancel(self) -> int:
        """Write no more. Return how many bytes were written."""
        self._close()
        return self._written

    def _write(self) -> None:
        try:
            while self._written < len(self._data):
                self._written += os.write(self._fd, self._data[self._written : self._written + (1 << 16)])
        except BlockingIOError:
            self._loop.watch(self._fd, selectors.EVENT_WRITE, self._write)
            return
        except OSError as error:
            self._end(error)
            return
        self._end(None)

    def _end(self, error: OSError | None) -> None:
        self._close()
        self._over(self._written, error)

    def _close(self) -> None:
        if self._fd >= 0:
            self._loop.watch(self._fd, 0, lambda: None)
            os.close(self._fd)
            self._fd = -1


class FarRun:
    """One attempt at this place that is not over."""

    def __init__(self, directory: str, deadline: float) -> None:
        self.attempt = AttemptFiles(directory)
        self.deadline = deadline
        """The time on the monotonic clock at which it is revoked unless a keeper has claimed it."""
        self.orphan: OrphanedRun | None = None
        """Executes orders after the keeper is gone."""
        self.input_taken = 0
        """Bytes of input that this process has handed over."""
        self.inputs: deque[tuple[int, bytes, Reply]] = deque()
        """Input that waits: its offset, its bytes, and who waits for it."""
        self.writing: _FifoWrite | None = None

    @property
    def over(self) -> bool:
        """True once its last file is written."""
        return self.attempt.has(run_files.DONE)


class FarRuns:
    """All attempts below one directory. `changed` is called with the name of each that has new files."""

    def __init__(self, directory: str, package: str, loop: FarLoop, changed: Callable[[str], None]) -> None:
        """`package`: the archive in which the keeper is found."""
        self.directory = directory
        self.boot = boot_id()
        self._package = package
        self._loop = loop
        self._changed = changed
        self._runs: dict[str, FarRun] = {}
        self._groups: Cgroups | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        self._jobs: socket.socket | None = None
        self._unsent: deque[tuple[str, bytes]] = deque()
        self._notify = -1
        self._rest = b""

    def open(self) -> None:
        """Take over the runs that an earlier process has started, and get ready to start more. Raises `OSError`."""
        with suppress(FileExistsError):
            os.mkdir(self.directory, 0o700)
        path = os.path.join(self.directory, run_files.NOTIFY)
        with suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        # Also opened for writing, so that the FIFO does not report its end when the last keeper closes it.
        self._notify = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._loop.watch(self._notify, selectors.EVENT_READ, self._on_wakeup)
        self._groups = Cgroups.find()
        if self._groups is not None:
            self._groups.sweep(self.directory)
        self._guardian, self._jobs = start_guardian(self.directory, self._package)
        for name in self._names():
            attempt = AttemptFiles(self._path(name))
            # Without an order no keeper was ever asked, and whoever attaches it is told that.
            if attempt.has(run_files.SPEC) and not attempt.has(run_files.DONE):
                # No keeper will claim it any more, because its job was in the socket of the last process.
                self._runs[name] = FarRun(self._path(name), 0.0)
                self._check(name)
        self._loop.later(SWEEP_S, self._sweep)

    def close(self) -> None:
        """End the keepers that have no runs. Running commands continue."""
        if self._guardian is not None and self._guardian.stdin is not None:
            self._guardian.stdin.close()

    @property
    def any_alive(self) -> bool:
        """True while a run is not over."""
        return bool(self._runs)

    @property
    def counts(self) -> list[str] | None:
        """The resources that control groups count for each run as a whole. None: runs have no control groups."""
        return list(self._groups.counts) if self._groups else None

    def start(self, name: str, spec: dict[str, Any], environment: dict[str, str]) -> None:
        """Start an attempt. Raises `Failed` if it was ordered before, or cannot be prepared."""
        run = FarRun(self._path(name), time.monotonic() + run_files.UNCLAIMED_S)
        try:
            group = self._groups.group_order(run.attempt.directory) if self._groups else None
            run.attempt.make(spec, self.boot, group)
        except FileExistsError:
            raise Failed("invalid_request", f"{name} was ordered before") from None
        except OSError as error:
            raise Failed("unavailable", f"{self.directory} cannot be used there: {error.strerror}") from None
        self._runs[name] = run
        try:
            self._unsent.append((name, pack(run.attempt.directory, environment)))
        except OSError as error:
            self._runs.pop(name).attempt.discard()
            raise Failed("unavailable", f"{self.directory} cannot be used there: {error.strerror}") from None
        self._send_jobs()

    def attach(self, name: str, boot: str) -> dict[str, Any]:
        """Say how much input of a run was taken. An attempt that nobody knows never runs: a late order finds that.

        `boot`: that in which it was ordered, as far as is known.
        """
        directory = self._path(name)
        attempt = AttemptFiles(directory)
        try:
            if not attempt.has(run_files.SPEC) and run_files.claimed(directory) is None:
                os.makedirs(directory, 0o700, exist_ok=True)
                if boot in {"", self.boot}:
                    attempt.revoke()
                else:
                    # A power failure may have lost the files of a command that had started.
                    run_files.claim(directory, run_files.RUN)
                    attempt.finish_records(RESTARTED_AT_START)
        except OSError as error:
            raise Failed("unavailable", f"{self.directory} cannot be used there: {error.strerror}") from None
        run = self._runs.get(name)
        return {"taken": run.input_taken if run is not None else 0}

    def finished(self) -> list[str]:
        """Return the names of the attempts that are over, and whose files are still here."""
        return [name for name in self._names() if AttemptFiles(self._path(name)).has(run_files.DONE)][:MOST_NAMES]

    def forget(self, name: str) -> None:
        """Remove the files of an attempt that is over."""
        if name not in self._runs:
            run_files.remove_tree(self._path(name))

    def order(self, name: str, order: dict[str, Any], reply: Reply, tries: int = ORDER_TRIES) -> None:
        """Send an order to the keeper of a run, or carry it out if the keeper is gone."""
        run = self._runs.get(name)
        if run is None:
            reply(_nobody(name).answer)
            return
        line = json.dumps({**order, "key": run.attempt.order_key()}).encode()

        def over(_written: int, error: OSError | None) -> None:
            if error is not None and error.errno == errno.ENOENT and tries and run.attempt.state() == "alive":
                # A file was seen before the keeper took orders, a moment later.
                self._loop.later(ORDER_RETRY_S, lambda: self.order(name, order, reply, tries - 1))
            elif error is not None and error.errno in _NO_READER:
                reply(self._order_orphan(name, order))
            elif error is not None:
                reply(Failed("unavailable", f"the run cannot be reached: {error.strerror}").answer)
            else:
                reply(self._is_stopped(run))

        # The leading line feed ends a line that another program may have begun in the FIFO.
        _FifoWrite(self._loop, run.attempt.path(run_files.CONTROL), b"\n" + line + b"\n", over)

    def write(self, name: str, at: int, data: bytes, reply: Reply) -> None:
        """Hand over input that begins at an offset. What was handed over before is skipped."""
        run = self._runs.get(name)
        if run is None:
            reply(_no_input(name).answer)
            return
        run.inputs.append((at, data, reply))
        self._write_next(name, run)

    def drop_inputs(self) -> None:
        """Hand over no more of the input that waits: whoever sent it is gone, and asks how much was taken."""
        for run in self._runs.values():
            run.inputs.clear()
            if run.writing is not None:
                run.input_taken += run.writing.cancel()
                run.writing = None

    def _write_next(self, name: str, run: FarRun) -> None:
        if run.writing is not None or not run.inputs:
            return
        at, data, reply = run.inputs[0]
        if at > run.input_taken:
            run.inputs.popleft()
            reply(Failed("unavailable", "input before this is missing there").answer)
            self._write_next(name, run)
            return
        finished = False

        def over(written: int, error: OSError | None) -> None:
            nonlocal finished
            finished = True
            run.writing = None
            run.inputs.popleft()
            run.input_taken += written
            reply({"taken": run.input_taken} if error is None else _no_input(name).answer)
            self._write_next(name, run)

        path = run.attempt.path(run_files.INPUT)
        writing = _FifoWrite(self._loop, path, data[run.input_taken - at :], over)
        if not finished:
            run.writing = writing

    def _order_orphan(self, name: str, order: dict[str, Any]) -> dict[str, Any]:
        self._check(name)
        run = self._runs.get(name)
        if run is None or run.orphan is None:
            return _nobody(name).answer
        run.orphan.execute(order, self._loop.later)
        return {}

    def _is_stopped(self, run: FarRun) -> dict[str, Any]:
        process = run.attempt.read(run_files.PID)
        if process and is_stopped(process["keeper"]):
            message = "its keeper was stopped by a signal, and executes the order later"
            return Failed("unavailable", message, f"Continue it there: kill -CONT {process['keeper']}").answer
        return {}

    def _on_wakeup(self) -> None:
        with suppress(BlockingIOError):
            *lines, self._rest = (self._rest + os.read(self._notify, 1 << 16)).split(b"\n")
            for name in dict.fromkeys(line.partition(b" ")[0].decode("ascii", "replace") for line in lines):
                if name == run_files.NOBODY:
                    self._shorten_deadlines()
                elif name in self._runs:
                    self._note(name)

    def _note(self, name: str) -> None:
        """Have the news of a run sent, and forget the run once it is over."""
        run = self._runs[name]
        if run.over:
            del self._runs[name]
            if run.writing is not None:
                run.input_taken += run.writing.cancel()
            for _, _, reply in run.inputs:
                reply(_no_input(name).answer)
        self._changed(name)

    def _sweep(self) -> None:
        self._loop.later(SWEEP_S, self._sweep)
        if self._guardian is not None and self._guardian.poll() is not None:
            self._replace_guardian()
        for name in tuple(self._runs):
            self._check(name)

    def _check(self, name: str) -> None:
        """Complete a run whose keeper is gone, and revoke one that nobody has claimed. Errors are tried again."""
        run = self._runs.get(name)
        if run is None:
            return
        with suppress(OSError):
            if not os.path.isdir(run.attempt.directory):
                self._restore(run)
            state = run.attempt.state()
            if state == "unclaimed" and time.monotonic() >= run.deadline:
                self._give_up(run)
            elif state == "gone":
                self._complete(run)
        self._note(name)

    def _give_up(self, run: FarRun) -> None:
        spec = run.attempt.read(run_files.SPEC)
        # A power failure may lose the claim of a command that has started. Such an attempt is never repeated.
        if spec is not None and spec.get("boot") not in {self.boot, ""}:
            run.attempt.finish_records(RESTARTED_AT_START)
        elif run.attempt.revoke() == "gone":
            self._complete(run)

    def _restore(self, run: FarRun) -> None:
        """Complete a run whose files were removed: it is not known whether it ran, so it never runs again."""
        run_files.make_directory(run.attempt.directory)
        run_files.claim(run.attempt.directory, run_files.RUN)
        run.attempt.finish_records("its files were removed while it was starting or running; it may have run")

    def _complete(self, run: FarRun) -> None:
        """Write the files that a killed keeper has not written. The last one is written once no process is left."""
        attempt = run.attempt
        if attempt.has(run_files.DONE):
            return
        run.orphan = run.orphan or OrphanedRun(attempt)
        left, why = run.orphan.alive, None
        if not attempt.has(run_files.EXIT):
            started_in = (attempt.read(run_files.SPEC) or {}).get("boot")
            why = why_lost(attempt.read(run_files.PID), self.boot, started_in, held=left)
        run.orphan.update_background(self.boot)
        if left:
            attempt.record_lost(why)
            return
        run.orphan.remove()
        attempt.finish_records(why)

    def _replace_guardian(self) -> None:
        self._shorten_deadlines()
        if self._jobs is not None:
            self._loop.watch(self._jobs.fileno(), 0, lambda: None)
            self._jobs.close()
            self._jobs = None
        with suppress(OSError):
            self._guardian, self._jobs = start_guardian(self.directory, self._package)
            self._send_jobs()

    def _shorten_deadlines(self) -> None:
        """Shorten all deadlines, because keepers were lost, perhaps with jobs that they were about to claim."""
        deadline = time.monotonic() + run_files.UNCLAIMED_AFTER_LOSS_S
        for run in self._runs.values():
            run.deadline = min(run.deadline, deadline)

    def _send_jobs(self) -> None:
        """Hand over jobs to the keepers, as many as they take now."""
        jobs = self._jobs
        if jobs is None:
            return
        try:
            while self._unsent:
                jobs.send(self._unsent[0][1])
                self._unsent.popleft()
        except BlockingIOError:
            self._loop.watch(jobs.fileno(), selectors.EVENT_WRITE, self._send_jobs)
            return
        except OSError:
            # The guardian is gone. The next one gets what was not sent, and the rest is revoked.
            self._loop.watch(jobs.fileno(), 0, lambda: None)
            return
        self._loop.watch(jobs.fileno(), 0, lambda: None)

    def _names(self) -> list[str]:
        return [name for name in os.listdir(self.directory) if NAME.fullmatch(name)]

    def _path(self, name: str) -> str:
        if not NAME.fullmatch(name):
            raise Failed("invalid_request", f"{name!r} is no name of an attempt")
        return f"{self.directory}/{name}"


def remove_old(runs: str, wanted: Collection[str]) -> None:
    """Remove the output of attempts that ended long ago, except those whose output is being sent."""
    before = time.time() - OLD_S
    with suppress(OSError):
        for name in os.listdir(runs):
            directory = os.path.join(runs, name)
            done = run_files.status(os.path.join(directory, run_files.DONE), follow_links=False)
            if NAME.fullmatch(name) and name not in wanted and done is not None and done.st_mtime < before:
                for left in set(os.listdir(directory)) - _KEPT:
                    run_files.remove(os.path.join(directory, left))
                    run_files.remove_tree(os.path.join(directory, left))


def remove_old_of_others(directory: str, lock: str) -> None:
    """Do that for the supervisors beside this one that no host process serves now: perhaps they never come back."""
    above = os.path.dirname(directory)
    with suppress(OSError):
        for name in set(os.listdir(above)) - {os.path.basename(directory)}:
            with suppress(OSError), open(os.path.join(above, name, lock), "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_old(os.path.join(above, name, RUNS), ())


def _nobody(name: str) -> Failed:
    return Failed("not_running", f"no process of call {name.rpartition('.')[0]} is alive")


def _no_input(name: str) -> Failed:
    return Failed("not_running", f"the command of call {name.rpartition('.')[0]} accepts no input")
