"""An executor that does nothing by itself: the test says what becomes of each run."""

import asyncio
from collections.abc import AsyncIterator, Callable

from tests.supervisor.places.far_root import SamePlace
from whisper_tui.model.ending import Ending, Exited
from whisper_tui.model.errors import NotRunning, Unavailable
from whisper_tui.model.run import (
    BackgroundProcess,
    OutputChunk,
    OutputSizes,
    OutputSpan,
    ProcessIdentity,
    RunProcess,
    SignalTarget,
    Stream,
    TerminalSize,
)
from whisper_tui.supervisor.places.place_files import AskedPlace
from whisper_tui.supervisor.runs.executor import (
    HasBackground,
    HasEnded,
    HasSettled,
    HasSpawned,
    NeverRan,
    Report,
    RunKey,
    StartOrder,
)


class HandExecutor:
    """Remembers what it was asked and reports what it is told to."""

    def __init__(self) -> None:
        self.orders: dict[RunKey, StartOrder] = {}
        self.attached: list[RunKey] = []
        self.signals: list[tuple[RunKey, int, SignalTarget]] = []
        self.ended: list[RunKey] = []
        self.held: list[tuple[RunKey, bool]] = []
        self.refuse_starts = False
        self.room: asyncio.Event | None = None
        """Set when there is room for another order. None: there always is."""
        self.problem: str | None = None
        self.counts: tuple[str, ...] | None = None
        self.written: dict[tuple[RunKey, Stream], bytes] = {}
        self.files: dict[tuple[RunKey, Stream], str] = {}
        self.timeline: dict[RunKey, list[OutputSpan]] = {}
        self.typed: list[tuple[RunKey, bytes, bool]] = []
        self.places: dict[str, AskedPlace] = {}
        """The places that answer questions about files. All others do as this machine."""
        self.on_reached: Callable[[str], None] = lambda _place: None
        self._reports: asyncio.Queue[Report] = asyncio.Queue()

    def connection(self, place: str) -> AskedPlace:
        return self.places.get(place) or SamePlace(place)

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def start(self, order: StartOrder) -> None:
        if self.refuse_starts:
            raise Unavailable("no space for another run", hint="Free some disk space")
        if self.room is not None:
            await self.room.wait()
        self.orders[order.key] = order

    async def attach(self, key: RunKey) -> None:
        self.attached.append(key)

    async def reports(self) -> AsyncIterator[tuple[Report, ...]]:
        while True:
            yield (await self._reports.get(),)

    async def signal(self, key: RunKey, number: int, target: SignalTarget) -> None:
        self.signals.append((key, number, target))

    async def end(self, key: RunKey, grace_s: float) -> None:
        if key not in self.orders and key not in self.attached:
            raise NotRunning(f"no process of call {key.call_id} is alive")
        self.ended.append(key)

    async def set_frozen(self, key: RunKey, *, frozen: bool) -> None:
        self.held.append((key, frozen))

    async def write_stdin(self, key: RunKey, data: bytes, *, eof: bool = False) -> None:
        self.typed.append((key, data, eof))

    async def resize(self, key: RunKey, rows: int, columns: int) -> None: ...

    def read_output(self, key: RunKey, stream: Stream, offset: int, limit: int) -> OutputChunk:
        data = self.written.get((key, stream), b"")
        return OutputChunk(data=data[offset : offset + limit], start=offset, size=len(data), ended=False)

    def input_file(self, key: RunKey) -> str | None:
        return None

    def last_directory(self, key: RunKey) -> str | None:
        return None

    def output_file(self, key: RunKey, stream: Stream) -> str | None:
        return self.files.get((key, stream))

    def read_timeline(self, key: RunKey, after: int, limit: int) -> tuple[OutputSpan, ...]:
        return tuple(self.timeline.get(key, ())[after : after + limit])

    def terminal_sizes(self, key: RunKey) -> tuple[TerminalSize, ...]:
        return (TerminalSize(),)

    def write(self, key: RunKey, data: bytes, stream: Stream = "out", at: float = 1.0) -> None:
        """Let a run print something."""
        start = len(self.written.get((key, stream), b""))
        self.written[key, stream] = self.written.get((key, stream), b"") + data
        span = OutputSpan(at=at, stream=stream, start=start, length=len(data))
        self.timeline.setdefault(key, []).append(span)

    def spawn(self, key: RunKey, pid: int = 4242) -> None:
        leader = ProcessIdentity(pid=pid, start_time=1, boot_id="boot")
        self._reports.put_nowait(
            HasSpawned(key, RunProcess(leader=leader, pgid=pid, keeper_pid=pid - 1, started_at=1.0))
        )

    def leave_behind(self, key: RunKey, pid: int, *, alive: bool = True) -> None:
        identity = ProcessIdentity(pid=pid, start_time=2, boot_id="boot")
        process = BackgroundProcess(identity=identity, pgid=pid, command="sleep 30", alive=alive)
        self._reports.put_nowait(HasBackground(key, (process,)))

    def finish(self, key: RunKey, ending: Ending | None = None, *, settle: bool = True) -> None:
        self._reports.put_nowait(HasEnded(key, ending or Exited(code=0), self._sizes(key)))
        if settle:
            self.settle(key)

    def _sizes(self, key: RunKey) -> OutputSizes:
        if key not in self.timeline:
            return OutputSizes(out=3, err=0)
        return OutputSizes(out=len(self.written.get((key, "out"), b"")), err=len(self.written.get((key, "err"), b"")))

    def settle(self, key: RunKey) -> None:
        self._reports.put_nowait(HasSettled(key))

    def never_ran(self, key: RunKey) -> None:
        self._reports.put_nowait(NeverRan(key))
