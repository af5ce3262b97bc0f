"""The interface between the pool and an executor: start, attach, signal and read a run, by call and attempt."""

import signal
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from whisper_tui.model.call import CommandSpec
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Ending
from whisper_tui.model.errors import InvalidRequest, NotRunning
from whisper_tui.model.event import SignalSent
from whisper_tui.model.run import (
    NO_LIMITS,
    BackgroundProcess,
    Blocked,
    Limits,
    OutputChunk,
    OutputDigest,
    OutputSizes,
    OutputSpan,
    RunProcess,
    SignalTarget,
    Stream,
    TerminalSize,
    Usage,
)
from whisper_tui.model.state import CallRecord, Running
from whisper_tui.supervisor.journal.store import Store


class RunKey(NamedTuple):
    """The name of one attempt to run one call. An executor starts each key at most once, ever."""

    call_id: str
    attempt: int


@dataclass(frozen=True)
class SandboxProfile:
    """The rights of a confined command beyond reading the system, as absolute paths of this machine."""

    read: tuple[str, ...] = ()
    execute: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    """Paths for writing. A path that is in `execute` as well is writable and executable."""
    network: bool = False
    processes: bool = False
    """True if it may read the system's information about other processes."""
    docker: str = ""
    """The socket of the docker daemon whose lists it may get. Empty: it gets none."""


@dataclass(frozen=True)
class PreviewOptions:
    """How a command runs in a copy-on-write view of the files."""

    roots: tuple[str, ...]
    """The directories that it may change in its view, links resolved."""
    hide: tuple[str, ...] = ()
    """Directories and files that it does not see."""
    network: bool = False
    """True if it may reach other machines and the sockets of this one."""
    timeout: float | None = None
    """Seconds after which it is ended. None: only its own timeout counts."""
    max_bytes: int | None = None
    """Bytes that its changes may take of the disk."""
    ways: tuple[str, ...] = ("overlay", "bubblewrap")
    """The ways to be tried, one after the other, until one works."""
    instead: tuple[tuple[str, str], ...] = ()
    """The better ways that are known not to work, each with the reason."""
    workspace: str = ""
    """The directory that may be copied, links resolved."""
    inside: tuple[str, ...] = ()
    """The paths of the workspace that a command may read in a sandbox, unless it runs in a copy."""
    readable: tuple[str, ...] = ()
    """The paths that it may read beside the workspace and the system."""
    draft: str = ""
    """The directory of the draft on whose overlays it runs. Empty: it has overlays of its own."""


@dataclass(frozen=True)
class StartOrder:
    """Everything that an executor needs to start a command."""

    key: RunKey
    spec: CommandSpec
    program: str | None
    """Absolute path of the approved program. None: it was not found, which the start reports."""
    environment: dict[str, str]
    """The complete environment of the process, including additions."""
    max_output_bytes: int | None = None
    """How many bytes of each stream are kept, half from its head and half from its tail. None: all."""
    min_free_bytes: int = 0
    """With less free disk space, only the tail of further output is kept."""
    limits: Limits = NO_LIMITS
    real_cwd: str | None = None
    """The working directory with links resolved, as it was approved. None: it is not checked."""
    sandbox: SandboxProfile | None = None
    """The sandbox of the command. None: it is not confined."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The version of each file that was approved, by path. Empty: none is checked."""
    preview: PreviewOptions | None = None
    """The view of the files in which it runs. None: it changes the real ones."""
    reports_directory: bool = False
    """True if its bash reports the directory in which it ends."""


@dataclass(frozen=True)
class HasSpawned:
    """The process exists."""

    key: RunKey
    process: RunProcess


@dataclass(frozen=True)
class HasEnded:
    """The leader ended, or could not be started."""

    key: RunKey
    ending: Ending
    output: OutputSizes = field(default_factory=OutputSizes)
    usage: Usage | None = None
    blocked: Blocked | None = None
    """The attempts that its sandbox refused."""


@dataclass(frozen=True)
class HasBackground:
    """The processes that the command has left behind so far, including ended ones."""

    key: RunKey
    processes: tuple[BackgroundProcess, ...]


@dataclass(frozen=True)
class HasForeignOrders:
    """Another program has written into the keeper's FIFO for orders. The keeper ignored it."""

    key: RunKey
    count: int
    """Lines so far."""
    line: str
    """The beginning of the newest."""
    at: float
    """Time of the report, in seconds since the epoch."""


@dataclass(frozen=True)
class HasSettled:
    """No process of the run is alive and its output is complete. Always the last report."""

    key: RunKey
    digest: OutputDigest | None = field(default=None, compare=False)
    """The digest of its output. None: there is no output, or it could not be read."""


@dataclass(frozen=True)
class NeverRan:
    """This attempt provably never started and never will. The last report of its key."""

    key: RunKey


Report = HasSpawned | HasEnded | HasBackground | HasForeignOrders | HasSettled | NeverRan


class Executor(Protocol):
    """Runs commands somewhere. The reports of one key have the same order as the arms of `Report`."""

    @property
    def problem(self) -> str | None:
        """Why runs cannot be started or monitored now, and what to do. None: they can."""

    @property
    def counts(self) -> tuple[str, ...] | None:
        """The resources that control groups count for each run as a whole. None: runs have no control groups."""

    async def open(self) -> None:
        """Get ready to start and to report."""
        ...

    async def close(self) -> None:
        """Stop reporting. Running commands continue."""
        ...

    async def start(self, order: StartOrder) -> None:
        """Order a start. Its result is reported. Raises `Unavailable` if nothing was ordered."""
        ...

    async def attach(self, key: RunKey) -> None:
        """Monitor a start that an earlier supervisor ordered. Everything about it is reported (again)."""
        ...

    def reports(self) -> AsyncIterator[tuple[Report, ...]]:
        """Yield batches of new reports about the started and attached runs, without end, for one reader."""
        ...

    async def signal(self, key: RunKey, number: int, target: SignalTarget) -> None:
        """Send a signal. Raises `NotRunning` if no process of the run is alive."""
        ...

    async def end(self, key: RunKey, grace_s: float) -> None:
        """End the whole tree: SIGTERM, the grace period, then SIGKILL until no process is left."""
        ...

    async def set_frozen(self, key: RunKey, *, frozen: bool) -> None:
        """Freeze or thaw all processes of a run. Raises `NotRunning` if none is alive."""
        ...

    async def write_stdin(self, key: RunKey, data: bytes, *, eof: bool = False) -> None:
        """Write to its input, and wait while it is full. Raises `NotRunning` if it takes no input."""
        ...

    async def resize(self, key: RunKey, rows: int, columns: int) -> None:
        """Set the size of its terminal, if it has one."""
        ...

    def read_output(self, key: RunKey, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """Return at most `limit` bytes of a stream from `offset`. A negative offset counts from the end."""
        ...

    def output_file(self, key: RunKey, stream: Stream) -> str | None:
        """Return the absolute path of the file with a whole stream. None: no file has all of it."""
        ...

    def input_file(self, key: RunKey) -> str | None:
        """Return the absolute path of the FIFO for its input. None: there is none, or no longer."""
        ...

    def last_directory(self, key: RunKey) -> str | None:
        """Return the directory in which its shell ended. None: it was not requested, or is unknown."""
        ...

    def read_timeline(self, key: RunKey, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Return at most `limit` rows of the time index, from row `after`."""
        ...

    def terminal_sizes(self, key: RunKey) -> tuple[TerminalSize, ...]:
        """Return all sizes of its terminal, beginning with the first one."""
        ...


def run_key(record: CallRecord) -> RunKey:
    """Return the key of a call's run, or of its preview while it waits. Without either, that of its first attempt."""
    return RunKey(record.id, record.output_attempt or 1)


def check_signal(record: CallRecord, number: int) -> None:
    """Raise `NotRunning` if no process of a run is left, `InvalidRequest` for a signal that the system lacks."""
    if record.process is None or not record.is_open:
        raise NotRunning(f"no process of call {record.id} is alive", hint="whisper-tui ps lists the running calls")
    if number not in signal.valid_signals():
        raise InvalidRequest(f"there is no signal {number} on this system", hint="kill -l lists the signals")


@dataclass(frozen=True)
class RunControl:
    """Sends signals and input to running commands."""

    store: Store
    executor: Executor
    clock: Callable[[], float]

    async def signal(self, record: CallRecord, number: int, target: SignalTarget, by: Decider) -> None:
        """Send a signal to a run, or to the processes that it has left behind."""
        check_signal(record, number)
        # Journaled before it is sent (decision 1), so that the ending can tell signals of humans from others.
        self.store.record(SignalSent(at=self.clock(), call_id=record.id, number=number, target=target, by=by))
        await self.executor.signal(run_key(record), number, target)

    async def write_stdin(self, record: CallRecord, data: bytes, *, eof: bool) -> None:
        """Write to the standard input or terminal. Raises `NotRunning` if the command accepts no input now."""
        if not isinstance(record.state, Running) or not record.takes_input:
            raise NotRunning(f"call {record.id} accepts no input", hint="Only a running command with an input does")
        await self.executor.write_stdin(run_key(record), data, eof=eof)

    async def resize(self, record: CallRecord, rows: int, columns: int) -> None:
        """Set the size of the terminal, if it still exists."""
        # A size that arrives too late is harmless, so this raises no error.
        if isinstance(record.state, Running) and record.spec.tty:
            await self.executor.resize(run_key(record), rows, columns)
