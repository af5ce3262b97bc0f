"""One execution: how it is confined and limited, its processes, its output and what it used."""

from collections.abc import Sequence
from operator import not_
from typing import Literal

from pydantic import ConfigDict, Field

from whisper_tui.model.value import Value

SandboxKind = Literal["read-only", "workspace"]


class Sandbox(Value):
    """Confinement of a command by the kernel (decision 7). `docs/sandbox.md` lists the limits of each kind."""

    kind: SandboxKind = "read-only"
    """`read-only`: it writes nothing but its own temporary directory. `workspace`: it may also write the workspace."""
    network: bool = False
    """True if it may reach other machines. Local sockets stay closed."""
    execute: tuple[str, ...] = ()
    """Directories whose programs it may run, beside those of the system. Absolute."""
    programs: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Single programs outside of all of these that it may run as well, as they were found."""

    def words(self) -> str:
        """The sandbox in a few words, for people."""
        written = "writes only in the workspace" if self.kind == "workspace" else "read-only"
        return f"{written}, {'with network' if self.network else 'no network'}"


class BlockedAttempt(Value):
    """One thing that the sandbox refused."""

    what: Literal["write", "change", "network", "execute"]
    """`write`: creating, writing, renaming or removing a file. `change`: its mode, owner, times or attributes.

    `execute`: its own program is in none of the directories from which it may be run.
    """
    subject: str = ""
    """The path, links resolved. Empty: it is about no file."""

    def words(self) -> str:
        """The attempt as a clause without a subject."""
        match self.what:
            case "write":
                return f"tried to write {self.subject}"
            case "change":
                return f"tried to change the attributes of {self.subject}"
            case "network":
                return "tried to use the network"
            case "execute":
                return f"could not execute {self.subject}"


class Blocked(Value):
    """Attempts of a command that the sandbox refused."""

    attempts: tuple[BlockedAttempt, ...] = ()
    """Different ones, in the order in which they were tried."""
    more: int = 0
    """Further attempts that are not listed."""
    messages: tuple[str, ...] = ()
    """Lines of the failed command's error output that speak of a refusal."""

    def words(self) -> str:
        """All of it in one sentence without its end, for people."""
        tried = [attempt.words() for attempt in self.attempts] or [f"said: {line}" for line in self.messages[-1:]]
        rest = f" and {self.more} more" if self.more else ""
        return "; ".join(tried) + rest


Stream = Literal["out", "err"]
SignalTarget = Literal["leader", "group", "tree"]


class ProcessIdentity(Value):
    """A process for ever: a bare pid can be taken by another one later."""

    pid: int
    start_time: int
    """Clock ticks after boot, as the kernel counts them. 0 where the system does not tell."""
    boot_id: str


class ControlGroup(Value):
    """Cgroup of a run: its processes are counted, frozen and killed together."""

    path: str
    sums: tuple[str, ...] = ()
    """The limits that hold for the run's processes together, and not only for each of them, by their names."""


class RunProcess(Value):
    """The leader of a run and its keeper."""

    leader: ProcessIdentity
    pgid: int
    keeper_pid: int
    started_at: float
    """Seconds since the epoch."""
    group: ControlGroup | None = None
    """None: the run has no control group of its own."""
    terminal: str | None = None
    """The device of its terminal. None: it has none, or an earlier version started it."""


class BackgroundProcess(Value):
    """A process that a command left behind, still watched by the keeper."""

    identity: ProcessIdentity
    pgid: int
    command: str
    """Its command line as the system shows it."""
    alive: bool = True


InputWait = Literal["reads", "perhaps"]
"""`reads`: it is blocked reading its input. `perhaps`: it seems so, but the kernel does not show it for certain."""

Echo = Literal["shows", "hides", "raw"]
"""The echo of a terminal: on; off, as for a password; or raw mode, in which the program may echo or not."""


StallNews = Literal["needs-input", "stopped"]
"""A change in the state of a run that a person is notified of."""


class Stall(Value):
    """The reason why a run gets no further. Measured, not journaled: it changes with every line that is typed."""

    stopped: bool = False
    """True if all its processes are stopped by a signal."""
    waits: InputWait | None = None
    """How surely one of them waits for input."""
    silent_since: float | None = None
    """If it needs input: when its last output came, in seconds since the epoch. None: it needs none."""

    def news(self, before: "Stall") -> StallNews | None:
        """Return what a person is told who knows the run as it was `before`. None: nothing that stalls it is new."""
        if self.stopped and not before.stopped:
            return "stopped"
        return "needs-input" if self.silent_since is not None and before.silent_since is None else None


NO_STALL = Stall()


LONGEST_NAMED = 40
"""Characters of a command in the reason why another one is queued."""


class QueueReason(Value):
    """The reason why a call is queued. Measured, not journaled: it changes with every second."""

    why: str
    """As a clause: `4 of 4 workers busy`."""
    call_id: str = ""
    """The run that has lasted longest of those that are in the way. Empty: none is."""
    command: str = ""
    """Its command on one line, secrets masked, shortened."""
    lasts_s: float = 0.0

    def words(self) -> str:
        """The reason as a clause for people."""
        return self._named(self.command or f"call {self.call_id}")

    def words_for_agents(self) -> str:
        """The reason as a clause for an agent: it does not quote the command of another one."""
        return self._named(f"call {self.call_id}")

    def _named(self, longest: str) -> str:
        return f"{self.why}; longest: {longest}, {_age(self.lasts_s)}" if self.call_id else self.why


def shortened_command(command: str) -> str:
    """Return the beginning of a command on one line."""
    line = " ".join(command[: 4 * LONGEST_NAMED].split())
    return line if len(line) <= LONGEST_NAMED else f"{line[: LONGEST_NAMED - 1]}…"


def _age(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h"


class QueueReasons(Value):
    """The reasons why calls are queued."""

    approved: QueueReason | None = None
    """That of calls that a human approved. None: they start at once."""
    unasked: QueueReason | None = None
    """That of all other calls. None: they start, unless their session is among `sessions`."""
    sessions: dict[str, QueueReason] = Field(default_factory=dict)
    """Sessions that run so many commands unasked that no more of them may start."""

    places: dict[str, QueueReason] = Field(default_factory=dict)
    """Places that are not reached, so that nothing starts there."""

    def of(self, session_id: str, *, by_human: bool, place: str = "") -> QueueReason | None:
        """Return why a queued call of this session waits; None: it starts. `by_human`: a human approved it."""
        there = self.places.get(place)
        return there or (self.approved if by_human else self.unasked or self.sessions.get(session_id))


NOT_QUEUED = QueueReasons()


class BackgroundUsage(Value):
    """Resources that one process which a command left behind uses at one moment."""

    identity: ProcessIdentity
    started_at: float
    """Seconds since the epoch."""
    memory: int
    """Bytes in memory."""
    ports: tuple[str, ...] = ()
    """Addresses and ports where it, or a child of it, listens for TCP connections."""


class UsageSample(Value):
    """Resources that the processes of a run use at one moment, its keeper left out."""

    at: float
    """Seconds of the supervisor's monotonic clock: only differences between samples mean anything."""
    cpu_s: dict[int, float]
    """Seconds of processor time so far, by pid."""
    memory: int
    """Bytes in memory; what processes share is counted for each."""
    threads: int
    ports: tuple[str, ...] = ()
    """Addresses and ports where they listen for TCP connections."""
    paused: bool = False
    """True if all of them are stopped by a signal."""
    waits: InputWait | None = None
    """How surely one of them waits for input."""
    left_behind: tuple[BackgroundUsage, ...] = ()
    """Those that were left in the background."""

    @property
    def processes(self) -> int:
        """How many there are."""
        return len(self.cpu_s)


class OutputSizes(Value):
    """Bytes of each stream, dropped ones included."""

    out: int = 0
    err: int = 0


class OutputDigest(Value):
    """Digest of the recorded output of a run, so that a later change of the files shows."""

    attempt: int
    """The attempt that has printed it."""
    sha256: str
    """Over the files of the streams, of very long ones over head, tail and size; in hexadecimal."""


class Usage(Value):
    """Resources used by the leader and the descendants that it waited for."""

    wall_s: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0
    max_rss_kib: int = 0
    """The most memory that one of them had. 0: not known, for it was less than what its keeper had."""


class Limits(Value):
    """Resource limits of a run. None: unlimited."""

    cpu_s: int | None = Field(default=None, ge=1)
    """Seconds of processor time of each of its processes."""
    memory_bytes: int | None = Field(default=None, ge=64 * 1024 * 1024)
    """Bytes that each of its processes can write to and shares with nobody."""
    processes: int | None = Field(default=None, ge=1)
    """Processes of all of it at once."""


NO_LIMITS = Limits()


class OutputChunk(Value):
    """A piece of one stream. A start beyond the offset asked for means that bytes between were dropped."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    data: bytes
    """In JSON, base64."""
    start: int
    """Offset of the first byte of `data` in the stream."""
    size: int
    """Bytes of the whole stream so far."""
    ended: bool
    """True if the stream can no longer grow."""
    written_at: float | None = None
    """When the last byte of the stream was written, or its file was made, in seconds since the epoch. None: unknown."""

    @property
    def next_offset(self) -> int:
        """Offset of the next byte to read."""
        return self.start + len(self.data)


class TerminalSize(Value):
    """The size of a terminal in character cells, from one byte of its output on."""

    at: float = 0.0
    """Seconds since the epoch. 0: from the beginning."""
    start: int = 0
    """Bytes of `out` that came before."""
    rows: int = Field(default=24, ge=1)
    columns: int = Field(default=80, ge=1)


class OutputSpan(Value):
    """One row of the time index: these bytes arrived at that time."""

    at: float
    """Seconds since the epoch."""
    stream: Stream
    start: int
    length: int


def output_turns(spans: Sequence[OutputSpan]) -> list[tuple[Stream, int]]:
    """Return the streams in the order of their output, each with the offset to read to."""
    turns: list[tuple[Stream, int]] = []
    for span in spans:
        if turns and turns[-1][0] == span.stream:
            turns.pop()
        turns.append((span.stream, span.start + span.length))
    return turns
