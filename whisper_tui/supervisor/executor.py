"""The seam between the pool and whatever executes: start, attach, signal, ask, read, by call and attempt."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.ending import Ending
from whisper_tui.model.run import (
    NO_LIMITS,
    BackgroundProcess,
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
from whisper_tui.model.sandbox import Blocked


class RunKey(NamedTuple):
    """Names one attempt to run one call. An executor starts each key at most once, ever."""

    call_id: str
    attempt: int


@dataclass(frozen=True)
class SandboxProfile:
    """What a confined command may do beyond reading the system, as absolute paths of this machine."""

    read: tuple[str, ...] = ()
    execute: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    """Written and executed in, too, where they are also in `execute`."""
    network: bool = False
    processes: bool = False
    """Whether it may read what the system shows of other processes."""


@dataclass(frozen=True)
class StartOrder:
    """All that an executor needs to start a command."""

    key: RunKey
    spec: CommandSpec
    program: str | None
    """Absolute path of the program that was approved. None: it was not found; the start reports so."""
    environment: dict[str, str]
    """The complete environment of the process, additions included."""
    max_output_bytes: int | None = None
    """Bytes kept of each stream, half from its head and half from its tail. None: all."""
    min_free_bytes: int = 0
    """Below this much free disk only the tail of what follows is kept."""
    limits: Limits = NO_LIMITS
    real_cwd: str | None = None
    """Where its working directory has to lead, links resolved. None: wherever it leads."""
    sandbox: SandboxProfile | None = None
    """How it is confined. None: it is not."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What has to be behind these paths. Empty: whatever is."""
    tells_directory: bool = False
    """Whether its bash is asked for the directory in which it ends."""


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
    """What its sandbox kept it from."""


@dataclass(frozen=True)
class HasBackground:
    """What the command has left behind so far, ended processes included."""

    key: RunKey
    processes: tuple[BackgroundProcess, ...]


@dataclass(frozen=True)
class HasSettled:
    """Nothing of it is alive and its output is complete. Always the last report."""

    key: RunKey
    digest: OutputDigest | None = field(default=None, compare=False)
    """Of its output. None: it has none, or it could not be read."""


@dataclass(frozen=True)
class NeverRan:
    """This attempt provably never started and never will. The last report of its key."""

    key: RunKey


Report = HasSpawned | HasEnded | HasBackground | HasSettled | NeverRan


class Executor(Protocol):
    """Runs commands somewhere. Reports of one key come in the order in which they are listed in `Report`."""

    @property
    def trouble(self) -> str | None:
        """Why runs cannot be started or followed now, and what to do about that. None: they can."""

    @property
    def counts(self) -> tuple[str, ...] | None:
        """What is counted for each run as a whole by its control group. None: runs have no such groups."""

    async def open(self) -> None:
        """Get ready to start and to report."""
        ...

    async def close(self) -> None:
        """Stop reporting. What runs goes on."""
        ...

    async def start(self, order: StartOrder) -> None:
        """Ask for a start. What becomes of it is reported; raises `Unavailable` if nothing was asked for."""
        ...

    async def attach(self, key: RunKey) -> None:
        """Follow a start that an earlier supervisor asked for: everything about it is reported (again)."""
        ...

    def reports(self) -> AsyncIterator[tuple[Report, ...]]:
        """What becomes of the runs that were started or attached, all that is new at once; endless, one reader."""
        ...

    async def signal(self, key: RunKey, number: int, target: SignalTarget) -> None:
        """Send a signal. Raises `NotRunning` if nothing of the run is alive."""
        ...

    async def end(self, key: RunKey, grace_s: float) -> None:
        """End the whole tree: TERM, the grace, KILL until nothing is left."""
        ...

    async def hold(self, key: RunKey, *, still: bool) -> None:
        """Hold every process of a run still, or let them go on. Raises `NotRunning` if nothing of it is alive."""
        ...

    async def write_stdin(self, key: RunKey, data: bytes, *, eof: bool = False) -> None:
        """Write to its input, waiting while it is full. Raises `NotRunning` if it takes none."""
        ...

    async def resize(self, key: RunKey, rows: int, columns: int) -> None:
        """Set the size of its terminal. Nothing happens where it has none."""
        ...

    def read_output(self, key: RunKey, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """At most `limit` bytes of a stream from `offset`; a negative offset counts from the end."""
        ...

    def output_file(self, key: RunKey, stream: Stream) -> str | None:
        """Absolute path of the file that holds all of a stream. None: no file holds all of it."""
        ...

    def input_file(self, key: RunKey) -> str | None:
        """Absolute path of the FIFO that takes its input. None: there is none, or not any more."""
        ...

    def last_directory(self, key: RunKey) -> str | None:
        """The directory in which its shell ended. None: it was not asked for, or is not known."""
        ...

    def read_timeline(self, key: RunKey, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """At most `limit` rows of the time index, from row `after`."""
        ...

    def terminal_sizes(self, key: RunKey) -> tuple[TerminalSize, ...]:
        """The sizes that its terminal has had, the one that it began with first."""
        ...
