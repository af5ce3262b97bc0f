"""The executor of this machine: each run has a keeper, which the next supervisor recovers, and a control group."""

import asyncio
import os
import resource
import stat
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from whisper_tui.model.errors import BadStateDirectory, NotRunning, Unavailable
from whisper_tui.supervisor.health import Health
from whisper_tui.supervisor.keeper.base_cgroup import Cgroups
from whisper_tui.supervisor.keeper.guardian_start import LOG
from whisper_tui.supervisor.runs.attempt import Attempt, BootMark
from whisper_tui.supervisor.runs.executor import HasEnded, HasSettled, HasSpawned, Report, RunKey, StartOrder
from whisper_tui.supervisor.runs.keepers import Keepers, WakeupListener, send_order, write_fifo
from whisper_tui.supervisor.runs.monitor import ExecutorOfFiles, RunMonitor
from whisper_tui.supervisor.runs.output_files import OutputFiles, RecordedOutput
from whisper_tui.system import run_files

SWEEP_S = 1.0
"""Seconds between two sweeps over all runs, because wakeups can be lost and keepers can be killed."""
SWEPT_AT_ONCE = 25
REPORTED_AT_ONCE = 25
BOOT = "boot"
"""File beside the attempts: the boot in which the last command was started."""
FEWEST_FILES = 256
"""Limit of open files below which keepers may be unable to start commands."""
READ_HINT = "It is retried; check the limit of open files, and the disk"


class _MonitoredRun:
    """One monitored run."""

    def __init__(self, monitor: RunMonitor, deadline: float, *, asked: bool) -> None:
        self.monitor = monitor
        self.asked = asked
        """True if this process ordered the start. Then its files certainly existed."""
        self.deadline = deadline
        """The time on the monotonic clock at which it is revoked unless a keeper has claimed it."""
        self.reachable = asyncio.Event()
        """Set once it has a process, or will never have one."""
        self.writing = asyncio.Lock()


class LocalExecutor(ExecutorOfFiles[_MonitoredRun]):
    """The `Executor` of this machine. All files are below one directory of local disk."""

    def __init__(self, runs_directory: Path, groups: Cgroups | None = None) -> None:
        super().__init__(OutputFiles(Path(runs_directory)))
        self._directory = Path(runs_directory)
        self._runs_path = str(runs_directory)
        self._groups = groups
        self._keepers = Keepers(self._directory)
        self._runs: dict[RunKey, _MonitoredRun] = {}
        self._reports: asyncio.Queue[Report] = asyncio.Queue()
        self._settling = set[asyncio.Task[None]]()
        """Runs that are over, but whose output a thread still reads."""
        self._wakeups = WakeupListener(self._on_wakeup)
        self._health = Health()
        self._sweeper: asyncio.Task[None] | None = None
        self._boot = BootMark(self._directory / BOOT)

    @property
    def problem(self) -> str | None:
        """Why runs cannot be started or monitored now, and what to do. None: they can."""
        return self._health.problem

    @property
    def counts(self) -> tuple[str, ...] | None:
        """The resources that control groups count for each run as a whole. None: runs have no control groups."""
        return self._groups.counts if self._groups else None

    async def open(self) -> None:
        """Get ready to start and to report. Raises `Unavailable`."""
        try:
            self._prepare_directory()
        except OSError as error:
            message = f"the directory of runs {self._directory} cannot be used: {error.strerror}"
            raise BadStateDirectory(message, hint="Check its owner, its permissions and the free disk.") from None
        self._boot.read()
        if self._groups is not None:
            self._groups.sweep(self._runs_path)
        self._keepers.open()
        self._sweeper = asyncio.create_task(self._sweep_for_ever(), name="sweep of runs")

    async def close(self) -> None:
        """Stop reporting. Running commands continue."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
            self._sweeper = None
        for task in self._settling:
            task.cancel()  # The next supervisor reads the files again.
        self._wakeups.close()
        for run in self._runs.values():
            run.reachable.set()
        self._runs.clear()
        await self._keepers.close()

    async def start(self, order: StartOrder) -> None:
        """Order a start. Its result is reported. Raises `Unavailable` if nothing was ordered."""
        if order.spec.place:
            # Nothing that was approved for another machine may run on this one.
            raise Unavailable(f"this executor starts nothing at {order.spec.place}", hint="Run it on this machine")
        attempt = Attempt(self._runs_path, order.key)
        try:
            self._boot.note()
            group = self._groups.group_order(attempt.directory) if self._groups else None
            attempt.create(order, self._boot.now, group)
        except FileExistsError:
            # Nothing of it was ordered by this call: its command must not run, now or later.
            message = (
                f"attempt {order.key.attempt} of call {order.key.call_id} has files already, so nothing was started"
            )
            raise Unavailable(message, hint="Submit the command again") from None
        except OSError as error:
            raise self._unprepared(order.key, error) from None
        run = self._follow(attempt, asked=True)
        # A cancelled request must not leave an attempt that a keeper could still claim.
        with ExitStack() as undone:
            undone.callback(self._discard, run)
            try:
                await self._keepers.send(attempt.directory, order.environment)
            except OSError as error:
                raise self._unprepared(order.key, error) from None
            undone.pop_all()

    async def attach(self, key: RunKey) -> None:
        """Monitor a start that an earlier supervisor ordered. Everything about it is reported (again)."""
        attempt = Attempt(self._runs_path, key)
        run = self._follow(attempt, asked=False)
        if not Path(attempt.directory).is_dir():
            self._report(run, run.monitor.on_unclaimed(self._boot, asked=run.asked))
            return
        # No keeper will claim it any more, because its job was in the socket of the last supervisor.
        self._check(run, revoke_now=True)

    async def reports(self) -> AsyncIterator[tuple[Report, ...]]:
        """Yield batches of new reports about the started and attached runs, without end, for one reader."""
        while True:
            news = [await self._reports.get()]
            while len(news) < REPORTED_AT_ONCE and not self._reports.empty():
                news.append(self._reports.get_nowait())
            yield tuple(news)

    async def write_stdin(self, key: RunKey, data: bytes, *, eof: bool = False) -> None:
        """Write to its input, and wait while it is full. Raises `NotRunning` if it takes no input."""
        run = await self._reachable(key)
        async with run.writing:
            path = run.monitor.attempt.path(run_files.INPUT)
            await write_fifo(path, data, f"the command of call {key.call_id} accepts no input")
            if eof:
                await self._order(run, {"do": "eof"})

    def input_file(self, key: RunKey) -> str | None:
        """Return the absolute path of the FIFO for its input. None: there is none, or no longer."""
        path = Attempt(self._runs_path, key).path(run_files.INPUT)
        return path if os.path.lexists(path) else None

    def last_directory(self, key: RunKey) -> str | None:
        """Return the directory in which its shell ended. None: it was not requested, or is unknown."""
        try:
            told = Attempt(self._runs_path, key).read(run_files.EXIT)
        except OSError:
            return None
        found = told.get("directory") if isinstance(told, dict) else None
        return found if isinstance(found, str) else None

    def _discard(self, run: _MonitoredRun) -> None:
        del self._runs[run.monitor.attempt.key]
        run.reachable.set()
        run.monitor.attempt.discard()

    def _unprepared(self, key: RunKey, error: OSError) -> Unavailable:
        message = f"the run of call {key.call_id} cannot be prepared in {self._directory}: {error.strerror}"
        return Unavailable(message, hint="Nothing was started. Make room on the disk and try again.")

    def _prepare_directory(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = self._directory.stat()
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            message = f"the directory of runs {self._directory} is not private to this user"
            raise BadStateDirectory(message, hint=f"Make it yours alone: chmod 700 {self._directory}")
        self._wakeups.open(self._directory)

    def _follow(self, attempt: Attempt, *, asked: bool) -> _MonitoredRun:
        run = _MonitoredRun(RunMonitor(attempt, self._files), time.monotonic() + run_files.UNCLAIMED_S, asked=asked)
        self._runs[attempt.key] = run
        return run

    async def _reachable(self, key: RunKey) -> _MonitoredRun:
        """Wait until a run can receive orders, and return it. Raises `NotRunning`."""
        run = self._runs.get(key)
        if run is not None:
            await run.reachable.wait()
        if run is None or run.monitor.over:
            raise NotRunning(f"no process of call {key.call_id} is alive")
        return run

    async def _order(self, run: _MonitoredRun, order: dict[str, Any]) -> None:
        await send_order(run.monitor, order, lambda: self._check(run))

    def _on_wakeup(self, name: str) -> None:
        call_id, _, attempt = name.rpartition(".")
        if name == run_files.NOBODY:
            self._shorten_deadlines()
        run = self._runs.get(RunKey(call_id, int(attempt))) if attempt.isdecimal() else None
        if run is not None:
            with self._read_errors_noted():
                self._report(run, run.monitor.new_reports())

    def _report(self, run: _MonitoredRun, news: Iterable[Report]) -> None:
        for report in news:
            if isinstance(report, HasSettled):
                self._settle(report.key)
            else:
                self._reports.put_nowait(report)
            if isinstance(report, HasSpawned | HasEnded):
                run.reachable.set()
        if run.monitor.over:
            run.reachable.set()
            self._runs.pop(run.monitor.attempt.key, None)

    def _settle(self, key: RunKey) -> None:
        """Report that a run is over, with a digest of its output. Long output is read in a thread (decision 2)."""
        try:
            recorded = RecordedOutput(self._runs_path, key)
            if not recorded.is_small:
                task = asyncio.create_task(self._settle_later(key, recorded))
                self._settling.add(task)
                task.add_done_callback(self._settling.discard)
                return
            made = recorded.digest()
        except OSError:
            made = None
        self._reports.put_nowait(HasSettled(key, made))

    async def _settle_later(self, key: RunKey, recorded: RecordedOutput) -> None:
        try:
            made = await asyncio.to_thread(recorded.digest)
        except OSError:
            made = None
        self._reports.put_nowait(HasSettled(key, made))

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            # A problem lasts until a whole sweep does not find it.
            self._health.over_unless_noted()
            if not self._keepers.alive:
                self._replace_keepers("the process that starts commands has ended")
            for number, run in enumerate(list(self._runs.values())):
                if run.monitor.attempt.key in self._runs:
                    self._check(run)
                # Each check reads files. Thousands of runs must not block the event loop.
                if number % SWEPT_AT_ONCE == 0:
                    await asyncio.sleep(0)

    def _replace_keepers(self, why: str) -> None:
        hint = f"Another one is started; {self._directory / LOG} may have the reason"
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < FEWEST_FILES:
            why = f"{why}: the limit of open files is {soft}, which is too few"
            hint = f"Run ulimit -n {FEWEST_FILES}, then whisper-tui restart"
        self._health.note(Unavailable(why, hint=hint))
        self._shorten_deadlines()
        try:
            self._keepers.replace()
        except Unavailable as error:
            self._health.note(error)

    def _shorten_deadlines(self) -> None:
        """Shorten all deadlines, because keepers were lost, perhaps with jobs that they were about to claim."""
        deadline = time.monotonic() + run_files.UNCLAIMED_AFTER_LOSS_S
        for run in self._runs.values():
            run.deadline = min(run.deadline, deadline)

    def _check(self, run: _MonitoredRun, *, revoke_now: bool = False) -> None:
        """Report new facts about a run, and check whether its keeper is still alive."""
        monitor = run.monitor
        with self._read_errors_noted():
            state = monitor.attempt.state()
            if state == "unclaimed" and (revoke_now or time.monotonic() >= run.deadline):
                self._report(run, monitor.on_unclaimed(self._boot, asked=run.asked))
                if not revoke_now and self._keepers.alive:
                    self._replace_keepers(f"no keeper has claimed the start of call {monitor.attempt.key.call_id}")
            elif state == "revoked":
                self._report(run, monitor.on_revoked())
            elif state == "gone":
                self._report(run, monitor.on_keeper_gone(self._boot.now))
            else:
                self._report(run, monitor.new_reports())

    @contextmanager
    def _read_errors_noted(self) -> Iterator[None]:
        """Note read errors and ignore them otherwise, because the next sweep reads again."""
        # A file that cannot be read is not a missing file. A wrong ending would be worse than a late one (decision 1).
        try:
            yield
        except (OSError, Unavailable) as error:
            self._health.note(Unavailable(f"the files of runs cannot be read: {error}", hint=READ_HINT))
