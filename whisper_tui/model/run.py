"""One execution: its processes, its output and what it used."""

from typing import Literal

from pydantic import ConfigDict, Field

from whisper_tui.model.value import Value

Stream = Literal["out", "err"]
SignalTarget = Literal["leader", "group", "tree"]


class ProcessIdentity(Value):
    """A process for ever: a bare pid can be taken by another one later."""

    pid: int
    start_time: int
    """Clock ticks after boot, as the kernel counts them. 0 where the system does not tell."""
    boot_id: str


class ControlGroup(Value):
    """What the kernel counts, holds still and kills as one."""

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


class BackgroundProcess(Value):
    """A process that a command left behind, still watched by the keeper."""

    identity: ProcessIdentity
    pgid: int
    command: str
    """Its command line as the system shows it."""
    alive: bool = True


class OutputSizes(Value):
    """Bytes of each stream, dropped ones included."""

    out: int = 0
    err: int = 0


class OutputDigest(Value):
    """What was kept of both streams of a run when it was over, in a form that a later change of it does not fit."""

    attempt: int
    """The attempt that has printed it."""
    sha256: str
    """Over the files of the streams, of very long ones over head, tail and size; in hexadecimal."""


class Usage(Value):
    """What the leader and the descendants it waited for used."""

    wall_s: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0
    max_rss_kib: int = 0
    """The most memory that one of them had. 0: not known, for it was less than what its keeper had."""


class Limits(Value):
    """What a run may use. None: as much as there is."""

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
    """Whether the stream can no longer grow."""
    written_at: float | None = None
    """When the last byte of the stream was written, or its file was made, in seconds since the epoch. None: unknown."""

    @property
    def next_offset(self) -> int:
        """Where to go on reading."""
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
