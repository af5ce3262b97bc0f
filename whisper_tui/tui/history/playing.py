"""The output of a run as it was at a time: the port, with a hand over what came later."""

from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import cast

from whisper_tui.model.errors import NotRunning
from whisper_tui.model.port import Supervision
from whisper_tui.model.run import OutputChunk, OutputSpan, Stream, TerminalSize
from whisper_tui.model.state import CallRecord, Ended

ROWS = 16_384
"""Rows of the time index asked for at once."""
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0)


class Recording:
    """When how much of both streams had come."""

    def __init__(self, supervision: Supervision, record: CallRecord) -> None:
        self.record = record
        self._supervision = supervision
        self.began = record.process.started_at if record.process is not None else record.call.submitted_at
        """Seconds since the epoch."""
        self._times = array("d")
        self._ends: dict[Stream, array[int]] = {"out": array("q"), "err": array("q")}

    @property
    def rows(self) -> int:
        """Rows of the time index that are known."""
        return len(self._times)

    @property
    def length_s(self) -> float:
        """Seconds from the start of the command to its end, or to its last output."""
        last = self._times[-1] if self._times else 0.0
        ended = self.record.state.at - self.began if isinstance(self.record.state, Ended) else 0.0
        return max(last, ended, 0.0)

    async def load(self) -> bool:
        """Read on in the time index. Whether there was more of it."""
        spans = await self._supervision.read_timeline(self.record.id, self.rows, ROWS)
        for span in spans:
            self._add(span)
        return bool(spans)

    def _add(self, span: OutputSpan) -> None:
        self._times.append(max(span.at - self.began, self._times[-1] if self._times else 0.0))
        for stream, ends in self._ends.items():
            before = ends[-1] if ends else 0
            ends.append(span.start + span.length if stream == span.stream else before)

    def rows_until(self, at_s: float) -> int:
        """How many rows of the time index had come by then."""
        return bisect_right(self._times, at_s)

    def size_at(self, stream: Stream, at_s: float) -> int:
        """Bytes of a stream that had come by then."""
        rows = self.rows_until(at_s)
        return self._ends[stream][rows - 1] if rows else 0


class Player:
    """Where in a recording one is, and how it goes on. Times are in seconds."""

    def __init__(self, recording: Recording, clock: Callable[[], float]) -> None:
        self.recording = recording
        self.speed = 1.0
        self.playing = False
        self.at: float | None = None
        """Seconds since the start. None: after the end, where everything is shown."""
        self._clock = clock
        self._ticked = 0.0

    @property
    def until(self) -> float | None:
        """The same as seconds since the epoch."""
        return None if self.at is None else self.recording.began + self.at

    def toggle(self) -> None:
        """Play on, or pause; after the end, from the beginning."""
        self.playing = not self.playing
        self._ticked = self._clock()
        if self.playing and self.at is None:
            self.at = 0.0

    def tick(self) -> bool:
        """Let the time pass that has passed. Whether anything may have to be drawn again."""
        now = self._clock()
        passed, self._ticked = now - self._ticked, now
        if not self.playing or self.at is None:
            return False
        self._go_to(self.at + max(0.0, passed) * self.speed)
        return True

    def skip(self, by_s: float) -> None:
        """Go so many seconds on, or back."""
        self._go_to((self.recording.length_s if self.at is None else self.at) + by_s)

    def to(self, at_s: float) -> None:
        """Go to a time."""
        self._go_to(at_s)

    def faster(self, steps: int) -> None:
        """Play faster, or slower."""
        place = SPEEDS.index(self.speed) + steps
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, place))]

    def _go_to(self, at_s: float) -> None:
        over = at_s >= self.recording.length_s
        self.at = None if over else max(0.0, at_s)
        self.playing = self.playing and not over


class _Played:
    """What panes ask of the port. Of what a player has not reached, it knows nothing."""

    def __init__(self, supervision: Supervision, player: Player) -> None:
        self._supervision = supervision
        self._player = player

    async def read_output(self, call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """At most `limit` bytes of a stream from `offset`, as it was."""
        if self._player.at is None:
            return await self._supervision.read_output(call_id, stream, offset, limit)
        size = self._player.recording.size_at(stream, self._player.at)
        start = max(0, size + offset) if offset < 0 else min(offset, size)
        chunk = await self._supervision.read_output(call_id, stream, start, max(0, min(limit, size - start)))
        data = chunk.data[: max(0, size - chunk.start)]
        return OutputChunk(data=data, start=min(chunk.start, size), size=size, ended=False)

    async def resize(self, call_id: str, rows: int, columns: int) -> None:
        """Whoever looks back changes nothing of what runs."""

    async def write_stdin(self, call_id: str, data: bytes, *, eof: bool = False) -> None:
        """Nobody types into the past. Raises `NotRunning`."""
        raise NotRunning(f"the output of call {call_id} is only played here", hint="Type to it in the cockpit")

    async def output_file(self, call_id: str, stream: Stream) -> str | None:
        """A file holds more than was there at the time."""
        return await self._supervision.output_file(call_id, stream) if self._player.at is None else None

    async def read_timeline(self, call_id: str, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Rows of the time index, as far as it had come."""
        if self._player.at is not None:
            limit = max(0, min(limit, self._player.recording.rows_until(self._player.at) - after))
        return await self._supervision.read_timeline(call_id, after, limit) if limit else ()

    async def terminal_sizes(self, call_id: str) -> tuple[TerminalSize, ...]:
        """The sizes that a terminal had by then."""
        sizes = await self._supervision.terminal_sizes(call_id)
        until = self._player.until
        return sizes if until is None else (sizes[0], *(size for size in sizes[1:] if size.at <= until))


def played(supervision: Supervision, player: Player) -> Supervision:
    """The port for whoever shows output, and so asks for nothing but what can be read of it."""
    return cast("Supervision", _Played(supervision, player))
