"""Monitoring of a run: its files become reports in order, and orders go to its keeper, here or at a place."""

import signal
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from whisper_tui.model.ending import Ending, Exited, FailedToStart, Lost, Signalled, TimedOut
from whisper_tui.model.errors import InvalidRequest, NotRunning
from whisper_tui.model.run import (
    BackgroundProcess,
    Blocked,
    ControlGroup,
    OutputChunk,
    OutputSizes,
    OutputSpan,
    ProcessIdentity,
    RunProcess,
    SignalTarget,
    Stream,
    TerminalSize,
    Usage,
)
from whisper_tui.supervisor.keeper.attempt_files import RESTARTED_AT_START, OrphanedRun, why_lost
from whisper_tui.supervisor.runs.attempt import Attempt, BootMark
from whisper_tui.supervisor.runs.executor import (
    HasBackground,
    HasEnded,
    HasForeignOrders,
    HasSettled,
    HasSpawned,
    NeverRan,
    Report,
    RunKey,
)
from whisper_tui.supervisor.runs.output_files import OutputFiles
from whisper_tui.system import run_files


class _FileContents(NamedTuple):
    """The contents of all files, read before any report is made."""

    done: bool
    process: Any
    exit: Any
    version: str | None
    """The version of the file with the list of background processes."""
    background: Any
    foreign: Any
    """Foreign lines in the FIFO for orders."""
    sizes: OutputSizes
    """The sizes of the output of a lost run."""


class RunMonitor:
    """Reads the files of one run, and reports each fact once."""

    def __init__(self, attempt: Attempt, files: OutputFiles) -> None:
        self.attempt = attempt
        self._files = files
        self.process: RunProcess | None = None
        """The process, once it has been reported."""
        self.end_reported = False
        """True once the end of the leader has been reported."""
        self.orphan: OrphanedRun | None = None
        """Executes orders after the keeper is gone."""
        self.over = False
        """True after the last report."""
        self._record: dict[str, Any] | None = None
        """The process as its keeper recorded it."""
        self._look = 0
        self._background_version: str | None = None
        self._foreign_orders = 0

    def new_reports(self) -> list[Report]:
        """Return the unreported facts in the files. Raises `OSError` before any of them counts as reported."""
        if self.over:
            return []
        told = self._read()
        news = self._spawned(told.process) if self.process is None else []
        if not self.end_reported:
            news += self._answer(told.exit, told.sizes)
        self._background_version = told.version
        news += self._background(told.background)
        news += self._foreign(told.foreign)
        if told.done:
            if not self.end_reported:
                news += self._ended(Lost(why="its keeper could not record how it ended"), OutputSizes(), None)
            news += self._settled()
        return news

    def on_unclaimed(self, boot: BootMark, *, asked: bool) -> list[Report]:
        """Revoke an attempt that no keeper has claimed; `asked`: this process ordered the start."""
        spec = self.attempt.read(run_files.SPEC)
        # A power failure may lose the claim of a command that has started. Such an attempt is never repeated.
        if (str(spec["boot"]) if spec is not None else boot.before) not in {boot.now, ""}:
            return self.on_uncertain(RESTARTED_AT_START)
        if not Path(self.attempt.directory).is_dir():
            if asked or self.process is not None:
                return self.on_uncertain("its files were removed while it was starting or running; it may have run")
            return self.on_revoked()
        state = self.attempt.revoke()
        if state == "revoked":
            return self.on_revoked()
        return self.on_keeper_gone(boot.now) if state == "gone" else self.new_reports()

    def on_revoked(self) -> list[Report]:
        """Report that it was revoked."""
        self.over = True
        return [NeverRan(self.attempt.key)]

    def on_keeper_gone(self, boot: str) -> list[Report]:
        """Report on a run whose keeper is gone. This is the last report unless a process of its control group is alive.

        `boot`: the id of this boot of the machine.
        """
        spec, sizes = self.attempt.read(run_files.SPEC) or {}, self._files.sizes(self.attempt.key)
        news = self.new_reports()
        if self.over:
            return news
        self.orphan = self.orphan or OrphanedRun(self.attempt)
        left = self.orphan.alive
        why = None if self.end_reported else why_lost(self._record, boot, spec.get("boot"), held=left)
        if why is not None:
            news += self._ended(Lost(why=why), sizes, None)
        news += self._background(self.orphan.update_background(boot))
        if left:
            self.attempt.record_lost(why)
            return news
        self.orphan.remove()
        self.attempt.finish_records(why)
        return news + self._settled()

    def on_uncertain(self, why: str) -> list[Report]:
        """Report that it may have run, because no file shows whether it did."""
        if self.end_reported:
            return self._settled()
        self.attempt.finish_records(why)
        return [*self._ended(Lost(why=why), OutputSizes(), None), *self._settled()]

    def _spawned(self, told: Any) -> list[Report]:
        if not told:
            return []
        leader = ProcessIdentity(pid=told["pid"], start_time=told["start"], boot_id=told["boot"])
        self.process, self._record = _process(leader, told), told
        return [HasSpawned(self.attempt.key, self.process)]

    def _read(self) -> _FileContents:
        # The keeper writes DONE last, and it is checked first here: if it exists, all other files are complete.
        done = self.attempt.has(run_files.DONE)
        process = self.attempt.read(run_files.PID) if self.process is None else None
        ending = None if self.end_reported else self.attempt.read(run_files.EXIT)
        version = run_files.stamp(self.attempt.path(run_files.BACKGROUND))
        is_new = version is not None and version != self._background_version
        background = self.attempt.read(run_files.BACKGROUND) if is_new else None
        foreign = self.attempt.read(run_files.FOREIGN_ORDERS)
        lost = ending is not None and "lost" in ending
        sizes = self._files.sizes(self.attempt.key) if lost else OutputSizes()
        return _FileContents(done, process, ending, version, background, foreign, sizes)

    def _answer(self, told: Any, sizes: OutputSizes) -> list[Report]:
        if told is None:
            return []
        news = self._spawned(told.get("process")) if self.process is None else []
        if "lost" in told:
            return news + self._ended(Lost(why=told["lost"]), sizes, None)
        news += self._background(told.get("background"))
        usage = Usage(**told["usage"]) if "usage" in told else None
        blocked = Blocked.model_validate(told["blocked"]) if told.get("blocked") else None
        sizes = OutputSizes(out=told["out"], err=told["err"])
        return news + self._ended(_ending(told), sizes, usage, blocked)

    def _ended(
        self, ending: Ending, output: OutputSizes, usage: Usage | None, blocked: Blocked | None = None
    ) -> list[Report]:
        self.end_reported = True
        return [HasEnded(self.attempt.key, ending, output, usage, blocked)]

    def _settled(self) -> list[Report]:
        self.over = True
        return [HasSettled(self.attempt.key)]

    def _background(self, told: Any) -> list[Report]:
        if not told or told["look"] <= self._look:
            return []
        self._look = told["look"]
        processes = tuple(_background_process(row, told["boot"]) for row in told["processes"])
        return [HasBackground(self.attempt.key, processes)]

    def _foreign(self, told: Any) -> list[Report]:
        if not told or told["count"] <= self._foreign_orders:
            return []
        self._foreign_orders = told["count"]
        return [HasForeignOrders(self.attempt.key, told["count"], told["line"], told["at"])]


def _ending(told: dict[str, Any]) -> Ending:
    if failed := told.get("failed"):
        return FailedToStart(problem=failed["problem"], subject=failed["subject"], message=failed["message"])
    if told["timed_out"] is not None:
        return TimedOut(after_s=told["timed_out"])
    if "signal" in told:
        return Signalled(number=told["signal"], by_us=told["by_us"], core_dumped=told["core"], limit=told.get("limit"))
    return Exited(code=told["code"])


def _process(leader: ProcessIdentity, told: dict[str, Any]) -> RunProcess:
    group = told.get("group")
    return RunProcess(
        leader=leader,
        pgid=told["pgid"],
        keeper_pid=told["keeper"],
        started_at=told["at"],
        group=ControlGroup(path=group, sums=tuple(told["sums"])) if group else None,
        terminal=told.get("terminal"),
    )


def _background_process(row: dict[str, Any], boot: str) -> BackgroundProcess:
    identity = ProcessIdentity(pid=row["pid"], start_time=row["start"], boot_id=boot)
    return BackgroundProcess(identity=identity, pgid=row["pgid"], command=row["command"], alive=row["alive"])


class FollowedRun(Protocol):
    """A run that an executor follows by its files."""

    @property
    def monitor(self) -> RunMonitor:
        """The reader of its files."""


FollowedT = TypeVar("FollowedT", bound=FollowedRun)


class ExecutorOfFiles(ABC, Generic[FollowedT]):
    """The part of an `Executor` that is the same for all runs whose files are here, wherever their keepers are."""

    def __init__(self, files: OutputFiles) -> None:
        self._files = files

    @abstractmethod
    async def _reachable(self, key: RunKey) -> FollowedT:
        """Wait until a run can receive orders, and return it. Raises `NotRunning`."""

    @abstractmethod
    async def _order(self, run: FollowedT, order: dict[str, Any]) -> None:
        """Send an order to the keeper of a run. Raises `NotRunning` and `Unavailable`."""

    async def signal(self, key: RunKey, number: int, target: SignalTarget) -> None:
        """Send a signal. Raises `NotRunning` if no process of the run is alive."""
        if number not in signal.valid_signals():
            raise InvalidRequest(f"there is no signal {number} on this system")
        run = await self._reachable(key)
        if target == "leader" and run.monitor.end_reported:
            hint = "Send the signal to the whole tree to reach what it left behind."
            raise NotRunning(f"the command of call {key.call_id} has ended", hint=hint)
        await self._order(run, {"do": "signal", "number": number, "target": target})

    async def end(self, key: RunKey, grace_s: float) -> None:
        """End the whole tree: SIGTERM, the grace period, then SIGKILL until none is left. Raises `NotRunning`."""
        await self._order(await self._reachable(key), {"do": "end", "grace": grace_s})

    async def set_frozen(self, key: RunKey, *, frozen: bool) -> None:
        """Freeze or thaw all processes of a run. Raises `NotRunning`."""
        await self._order(await self._reachable(key), {"do": "freeze" if frozen else "thaw"})

    async def resize(self, key: RunKey, rows: int, columns: int) -> None:
        """Set the size of its terminal in character cells, if it has one."""
        with suppress(NotRunning):
            await self._order(await self._reachable(key), {"do": "resize", "rows": rows, "columns": columns})

    def read_output(self, key: RunKey, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """Return at most `limit` bytes of a stream from `offset`. A negative offset counts from the end."""
        return self._files.read_output(key, stream, offset, limit)

    def output_file(self, key: RunKey, stream: Stream) -> str | None:
        """Return the absolute path of the file with a whole stream. None: no file has all of it."""
        return self._files.whole_file(key, stream)

    def read_timeline(self, key: RunKey, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Return at most `limit` rows of the time index, from row `after`."""
        return self._files.read_timeline(key, after, limit)

    def terminal_sizes(self, key: RunKey) -> tuple[TerminalSize, ...]:
        """Return all sizes of its terminal, beginning with the first one."""
        return self._files.terminal_sizes(key)
