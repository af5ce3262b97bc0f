"""Runs commands on this machine: one keeper each, which outlives the supervisor and is taken back by the next."""

import asyncio
import os
import signal
import stat
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from whisper_tui.model.errors import BadStateDirectory, InvalidRequest, NotRunning, Unavailable
from whisper_tui.model.run import OutputChunk, OutputSpan, SignalTarget, Stream, TerminalSize
from whisper_tui.supervisor.attempt import Attempt
from whisper_tui.supervisor.boot_mark import BootMark
from whisper_tui.supervisor.control_groups import ControlGroups
from whisper_tui.supervisor.executor import HasEnded, HasSettled, HasSpawned, Report, RunKey, StartOrder
from whisper_tui.supervisor.fifo import write_fifo
from whisper_tui.supervisor.follow import Follower
from whisper_tui.supervisor.hints import Hints
from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keepers import LOG, Keepers
from whisper_tui.supervisor.orders import give
from whisper_tui.supervisor.output_digest import Recorded
from whisper_tui.supervisor.output_files import OutputFiles
from whisper_tui.supervisor.trouble import Trouble

SWEEP_S = 1.0
"""Seconds between two looks at all runs, for hints can be lost and keepers can be killed."""
SWEPT_AT_ONCE = 25
REPORTED_AT_ONCE = 100
UNCLAIMED_S = 30.0
"""How long nobody may take up an attempt before it is revoked."""
UNCLAIMED_AFTER_LOSS_S = 3.0
"""The same once the parent of the keepers was lost, and jobs perhaps with it."""
BOOT = "boot"
"""Beside the attempts: the boot in which the last command was started."""
READ_HINT = "It is tried again; check the limit of open files, and the disk"


class _Run:
    """One run that is followed."""

    def __init__(self, follower: Follower, deadline: float, *, asked: bool) -> None:
        self.follower = follower
        self.asked = asked
        """Whether this process asked for the start, so that there were files for certain."""
        self.deadline = deadline
        """Monotonic seconds at which it is revoked if nobody has taken it up."""
        self.reachable = asyncio.Event()
        """Set once it has a process, or will never have one."""
        self.writing = asyncio.Lock()


class LocalExecutor:
    """The `Executor` of this machine. All files are below one directory of local disk."""

    def __init__(self, runs_directory: Path, groups: ControlGroups | None = None) -> None:
        self._directory = Path(runs_directory)
        self._runs_path = str(runs_directory)
        self._files = OutputFiles(self._directory)
        self._groups = groups
        self._keepers = Keepers(self._directory)
        self._runs: dict[RunKey, _Run] = {}
        self._reports: asyncio.Queue[Report] = asyncio.Queue()
        self._settling = set[asyncio.Task[None]]()
        """Runs that are over, and whose output is still being read."""
        self._hints = Hints(self._on_hint)
        self._trouble = Trouble()
        self._sweeper: asyncio.Task[None] | None = None
        self._boot = BootMark(self._directory / BOOT)

    @property
    def trouble(self) -> str | None:
        """Why runs cannot be started or followed now, and what to do about that. None: they can."""
        return self._trouble.words

    @property
    def counts(self) -> tuple[str, ...] | None:
        """What is counted for each run as a whole by its control group. None: runs have no such groups."""
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
        """Stop reporting. What runs goes on."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
            self._sweeper = None
        for task in self._settling:
            task.cancel()  # the next supervisor is told again that these are over
        self._hints.close()
        for run in self._runs.values():
            run.reachable.set()
        self._runs.clear()
        await self._keepers.close()

    async def start(self, order: StartOrder) -> None:
        """Ask for a start. What becomes of it is reported; raises `Unavailable` if nothing was asked for."""
        attempt = Attempt(self._runs_path, order.key)
        try:
            self._boot.note()
            group = self._groups.place(self._runs_path, order.key) if self._groups else None
            attempt.create(order, self._boot.now, group)
        except FileExistsError:
            message = f"attempt {order.key.attempt} of call {order.key.call_id} was asked for before"
            raise InvalidRequest(message, hint="An attempt is started at most once; start the next one.") from None
        except OSError as error:
            raise self._unprepared(order.key, error) from None
        run = self._follow(attempt, asked=True)
        with ExitStack() as undone:
            undone.callback(self._discard, run)
            try:
                await self._keepers.send(attempt.directory, order.environment)
            except OSError as error:
                raise self._unprepared(order.key, error) from None
            undone.pop_all()

    async def attach(self, key: RunKey) -> None:
        """Follow a start that an earlier supervisor asked for: everything about it is reported (again)."""
        attempt = Attempt(self._runs_path, key)
        run = self._follow(attempt, asked=False)
        if not Path(attempt.directory).is_dir():
            self._tell(run, run.follower.nobody_came(self._boot, asked=run.asked))
            return
        self._check(run, revoke_now=True)

    async def reports(self) -> AsyncIterator[tuple[Report, ...]]:
        """What becomes of the runs that were started or attached, all that is new at once; endless, one reader."""
        while True:
            news = [await self._reports.get()]
            while len(news) < REPORTED_AT_ONCE and not self._reports.empty():
                news.append(self._reports.get_nowait())
            yield tuple(news)

    async def signal(self, key: RunKey, number: int, target: SignalTarget) -> None:
        """Send a signal. Raises `NotRunning` if nothing of the run is alive."""
        if number not in signal.valid_signals():
            raise InvalidRequest(f"there is no signal {number} on this system")
        run = await self._reachable(key)
        if target == "leader" and run.follower.answered:
            hint = "Send the signal to the whole tree to reach what it left behind."
            raise NotRunning(f"the command of call {key.call_id} has ended", hint=hint)
        await self._order(run, {"do": "signal", "number": number, "target": target})

    async def end(self, key: RunKey, grace_s: float) -> None:
        """End the whole tree: TERM, the grace, KILL until nothing is left. Raises `NotRunning`."""
        await self._order(await self._reachable(key), {"do": "end", "grace": grace_s})

    async def hold(self, key: RunKey, *, still: bool) -> None:
        """Hold every process of it still, or let them go on. Raises `NotRunning`."""
        await self._order(await self._reachable(key), {"do": "freeze" if still else "thaw"})

    async def write_stdin(self, key: RunKey, data: bytes, *, eof: bool = False) -> None:
        """Write to its input, waiting while it is full. Raises `NotRunning` if it takes none."""
        run = await self._reachable(key)
        async with run.writing:
            path = run.follower.attempt.path(layout.INPUT)
            await write_fifo(path, data, f"the command of call {key.call_id} takes no input")
            if eof:
                await self._order(run, {"do": "eof"})

    async def resize(self, key: RunKey, rows: int, columns: int) -> None:
        """Set the size of its terminal, in character cells. Nothing happens where it has none."""
        with suppress(NotRunning):
            await self._order(await self._reachable(key), {"do": "resize", "rows": rows, "columns": columns})

    def read_output(self, key: RunKey, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """At most `limit` bytes of a stream from `offset`; a negative offset counts from the end."""
        return self._files.read_output(key, stream, offset, limit)

    def output_file(self, key: RunKey, stream: Stream) -> str | None:
        """Absolute path of the file that holds all of a stream. None: no file holds all of it."""
        return self._files.whole_file(key, stream)

    def input_file(self, key: RunKey) -> str | None:
        """Absolute path of the FIFO that takes its input. None: there is none, or not any more."""
        path = Attempt(self._runs_path, key).path(layout.INPUT)
        return path if os.path.lexists(path) else None

    def last_directory(self, key: RunKey) -> str | None:
        """The directory in which its shell ended. None: it was not asked for, or is not known."""
        try:
            told = Attempt(self._runs_path, key).read(layout.EXIT)
        except OSError:
            return None
        found = told.get("directory") if isinstance(told, dict) else None
        return found if isinstance(found, str) else None

    def read_timeline(self, key: RunKey, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """At most `limit` rows of the time index, from row `after`."""
        return self._files.read_timeline(key, after, limit)

    def terminal_sizes(self, key: RunKey) -> tuple[TerminalSize, ...]:
        """The sizes that its terminal has had, the one that it began with first."""
        return self._files.terminal_sizes(key)

    def _discard(self, run: _Run) -> None:
        del self._runs[run.follower.attempt.key]
        run.reachable.set()
        run.follower.attempt.discard()

    def _unprepared(self, key: RunKey, error: OSError) -> Unavailable:
        message = f"the run of call {key.call_id} cannot be prepared in {self._directory}: {error.strerror}"
        return Unavailable(message, hint="Nothing was started. Make room on the disk and try again.")

    def _prepare_directory(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = self._directory.stat()
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            message = f"the directory of runs {self._directory} is not private to this user"
            raise BadStateDirectory(message, hint=f"Make it yours alone: chmod 700 {self._directory}")
        self._hints.open(self._directory)

    def _follow(self, attempt: Attempt, *, asked: bool) -> _Run:
        run = _Run(Follower(attempt, self._files), time.monotonic() + UNCLAIMED_S, asked=asked)
        self._runs[attempt.key] = run
        return run

    async def _reachable(self, key: RunKey) -> _Run:
        """The run, once orders can reach it. Raises `NotRunning`."""
        run = self._runs.get(key)
        if run is not None:
            await run.reachable.wait()
        if run is None or run.follower.over:
            raise NotRunning(f"nothing of call {key.call_id} is alive")
        return run

    async def _order(self, run: _Run, order: dict[str, Any]) -> None:
        await give(run.follower, order, lambda: self._check(run))

    def _on_hint(self, name: str) -> None:
        call_id, _, attempt = name.rpartition(".")
        if name == layout.NOBODY:
            self._expect_losses()
        run = self._runs.get(RunKey(call_id, int(attempt))) if attempt.isdecimal() else None
        if run is not None:
            with self._tried_again():
                self._tell(run, run.follower.news())

    def _tell(self, run: _Run, news: Iterable[Report]) -> None:
        for report in news:
            if isinstance(report, HasSettled):
                self._settle(report.key)
            else:
                self._reports.put_nowait(report)
            if isinstance(report, HasSpawned | HasEnded):
                run.reachable.set()
        if run.follower.over:
            run.reachable.set()
            self._runs.pop(run.follower.attempt.key, None)

    def _settle(self, key: RunKey) -> None:
        """Tell that a run is over, with a digest of what it has printed; of much, once a thread has read it."""
        try:
            recorded = Recorded(self._runs_path, key)
            if not recorded.is_small:
                task = asyncio.create_task(self._settle_later(key, recorded))
                self._settling.add(task)
                task.add_done_callback(self._settling.discard)
                return
            made = recorded.digest()
        except OSError:
            made = None
        self._reports.put_nowait(HasSettled(key, made))

    async def _settle_later(self, key: RunKey, recorded: Recorded) -> None:
        try:
            made = await asyncio.to_thread(recorded.digest)
        except OSError:
            made = None
        self._reports.put_nowait(HasSettled(key, made))

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            self._trouble.over_unless_noted()
            if not self._keepers.alive:
                self._replace_keepers("the process that starts commands has ended")
            for number, run in enumerate(list(self._runs.values())):
                if run.follower.attempt.key in self._runs:
                    self._check(run)
                if number % SWEPT_AT_ONCE == 0:
                    await asyncio.sleep(0)

    def _replace_keepers(self, why: str) -> None:
        self._trouble.note(
            Unavailable(why, hint=f"Another one is started; {self._directory / LOG} may tell the reason")
        )
        self._expect_losses()
        try:
            self._keepers.replace()
        except Unavailable as error:
            self._trouble.note(error)

    def _expect_losses(self) -> None:
        """Keepers were lost, and perhaps jobs that they were taking: do not wait long for those."""
        deadline = time.monotonic() + UNCLAIMED_AFTER_LOSS_S
        for run in self._runs.values():
            run.deadline = min(run.deadline, deadline)

    def _check(self, run: _Run, *, revoke_now: bool = False) -> None:
        """Tell what is new about a run, and find out whether anybody still stands by it."""
        follower = run.follower
        with self._tried_again():
            fate = follower.attempt.fate()
            if fate == "unclaimed" and (revoke_now or time.monotonic() >= run.deadline):
                self._tell(run, follower.nobody_came(self._boot, asked=run.asked))
                if not revoke_now and self._keepers.alive:
                    self._replace_keepers(f"nobody took up the start of call {follower.attempt.key.call_id}")
            elif fate == "revoked":
                self._tell(run, follower.never_ran())
            elif fate == "gone":
                self._tell(run, follower.keeper_gone(self._boot.now))
            else:
                self._tell(run, follower.news())

    @contextmanager
    def _tried_again(self) -> Iterator[None]:
        """What cannot be read now is nothing new: the next sweep looks again."""
        try:
            yield
        except (OSError, Unavailable) as error:
            self._trouble.note(Unavailable(f"what the runs do cannot be read: {error}", hint=READ_HINT))
