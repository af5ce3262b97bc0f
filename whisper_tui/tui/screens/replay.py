"""The replay of recorded output: a recording, its player, the progress bar, and the area that shows the output."""

from array import array
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from whisper_tui.model.api import Supervision, output_was_removed
from whisper_tui.model.errors import NotRunning
from whisper_tui.model.run import OutputChunk, OutputSpan, Stream, TerminalSize, UsageSample
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.present.spans import Line, Span
from whisper_tui.present.words import REMOVED
from whisper_tui.tui.button_bar import ButtonBar
from whisper_tui.tui.lines import ROLE_CLASSES, base_style, drawn, width_of
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.output.painter import Pens

ROWS = 16_384
"""Rows of the time index read at once."""
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0)


class Recording:
    """The sizes of both streams over time."""

    def __init__(self, supervision: Supervision, record: CallRecord) -> None:
        self.record = record
        self._supervision = supervision
        self.began = record.process.started_at if record.process is not None else record.call.submitted_at
        """Seconds since the epoch."""
        self._times = array("d")
        self._ends: dict[Stream, array[int]] = {"out": array("q"), "err": array("q")}

    @property
    def rows(self) -> int:
        """Rows of the time index read so far."""
        return len(self._times)

    @property
    def length_s(self) -> float:
        """Seconds from the start of the command to its end or its last output."""
        last = self._times[-1] if self._times else 0.0
        ended = self.record.state.at - self.began if isinstance(self.record.state, Ended) else 0.0
        return max(last, ended, 0.0)

    async def load(self) -> bool:
        """Read more of the time index. Return False at its end."""
        spans = await self._supervision.read_timeline(self.record.id, self.rows, ROWS)
        for span in spans:
            self._add(span)
        return bool(spans)

    def _add(self, span: OutputSpan) -> None:
        # Never backwards, whatever the clock of the machine did: the rows are found by binary search.
        self._times.append(max(span.at - self.began, self._times[-1] if self._times else 0.0))
        for stream, ends in self._ends.items():
            before = ends[-1] if ends else 0
            ends.append(span.start + span.length if stream == span.stream else before)

    def rows_until(self, at_s: float) -> int:
        """Return the number of rows of the time index up to a time."""
        return bisect_right(self._times, at_s)

    def size_at(self, stream: Stream, at_s: float) -> int:
        """Return the size of a stream at a time."""
        rows = self.rows_until(at_s)
        return self._ends[stream][rows - 1] if rows else 0


class OutputPlayer:
    """The position in a recording, and its playback. Times are in seconds."""

    def __init__(self, recording: Recording, clock: Callable[[], float]) -> None:
        self.recording = recording
        self.speed = 1.0
        self.playing = False
        self.at: float | None = None
        """Seconds since the start; None at the end, where everything is shown."""
        self._clock = clock
        self._ticked = 0.0

    @property
    def until(self) -> float | None:
        """The position in seconds since the epoch."""
        return None if self.at is None else self.recording.began + self.at

    def toggle(self) -> None:
        """Play or pause; at the end, play from the start."""
        self.playing = not self.playing
        self._ticked = self._clock()
        if self.playing and self.at is None:
            self.at = 0.0

    def tick(self) -> bool:
        """Advance by the elapsed time. Return True if the screen may have changed."""
        now = self._clock()
        passed, self._ticked = now - self._ticked, now
        if not self.playing or self.at is None:
            return False
        self._go_to(self.at + max(0.0, passed) * self.speed)
        return True

    def skip(self, by_s: float) -> None:
        """Skip by seconds."""
        self._go_to((self.recording.length_s if self.at is None else self.at) + by_s)

    def to(self, at_s: float) -> None:
        """Seek to a time."""
        self._go_to(at_s)

    def faster(self, steps: int) -> None:
        """Change the speed by steps."""
        place = SPEEDS.index(self.speed) + steps
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, place))]

    def _go_to(self, at_s: float) -> None:
        over = at_s >= self.recording.length_s
        self.at = None if over else max(0.0, at_s)
        self.playing = self.playing and not over


class _Played:
    """The supervisor's API as output panes use it, cut at the position of a player."""

    def __init__(self, supervision: Supervision, player: OutputPlayer) -> None:
        self._supervision = supervision
        self._player = player

    async def read_output(self, call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """Read a stream as it was at the position."""
        if self._player.at is None:
            return await self._supervision.read_output(call_id, stream, offset, limit)
        size = self._player.recording.size_at(stream, self._player.at)
        start = max(0, size + offset) if offset < 0 else min(offset, size)
        chunk = await self._supervision.read_output(call_id, stream, start, max(0, min(limit, size - start)))
        data = chunk.data[: max(0, size - chunk.start)]
        return OutputChunk(data=data, start=min(chunk.start, size), size=size, ended=False)

    async def resize(self, call_id: str, rows: int, columns: int) -> None:
        """Ignore the size of the pane."""
        # The recorded terminal may still be in use: a replay must not resize it.

    async def write_stdin(self, call_id: str, data: bytes, *, eof: bool = False) -> None:
        """Refuse input. Raises `NotRunning`."""
        raise NotRunning(f"the output of call {call_id} is a recording", hint="Send input to the call in the cockpit")

    async def output_file(self, call_id: str, stream: Stream) -> str | None:
        """Return the file of a stream at the end of the recording only: it holds more than any earlier position."""
        return await self._supervision.output_file(call_id, stream) if self._player.at is None else None

    async def read_timeline(self, call_id: str, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Read the time index up to the position."""
        if self._player.at is not None:
            limit = max(0, min(limit, self._player.recording.rows_until(self._player.at) - after))
        return await self._supervision.read_timeline(call_id, after, limit) if limit else ()

    async def usage(self, call_ids: tuple[str, ...]) -> dict[str, UsageSample]:
        """Return nothing: a recording uses no processor."""
        return {}

    async def terminal_sizes(self, call_id: str) -> tuple[TerminalSize, ...]:
        """Return the terminal sizes up to the position."""
        sizes = await self._supervision.terminal_sizes(call_id)
        until = self._player.until
        return sizes if until is None else (sizes[0], *(size for size in sizes[1:] if size.at <= until))


def played(supervision: Supervision, player: OutputPlayer) -> Supervision:
    """Return the supervisor's API at the position of a player."""
    # Output panes call only the methods that `_Played` has.
    return cast("Supervision", _Played(supervision, player))


SIGN = 3
"""Columns of the button that plays and pauses."""


class ReplayBar(Widget):
    """The progress bar: a click on its button plays or pauses, one on the bar seeks."""

    COMPONENT_CLASSES = ROLE_CLASSES
    ALLOW_SELECT = False

    class Toggled(Message):
        """Play or pause."""

    @dataclass
    class Sought(Message):
        """Seek to a time."""

        at_s: float

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.player: OutputPlayer | None = None
        self.gone = False
        """True if the output was removed from the disk."""
        self._bar = (0, 0)
        """First column and width of the bar."""

    def show(self, player: OutputPlayer | None) -> None:
        """Show the position of a player; None if nothing ran."""
        self.player = player
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the bar."""
        width = self.size.width
        if y > 0 or self.player is None:
            return Strip.blank(width, base_style(self))
        if self.gone:
            return drawn(self, (Span(f"   {REMOVED}", "risk"),), width)
        if not self.player.recording.rows:
            return drawn(self, (Span("   No output to play.", "muted"),), width)
        return drawn(self, self._line(self.player, width), width)

    def _line(self, player: OutputPlayer, width: int) -> Line:
        length = player.recording.length_s
        at = length if player.at is None else player.at
        left: Line = (
            Span(" ▮▮" if player.playing else " ▶ ", "running"),
            Span(f" {_clock(at)} of {_clock(length)} ", "text"),
        )
        words = "playing" if player.playing else "at the end" if player.at is None else "paused"
        right: Line = (Span(f" speed {player.speed:g}", "text"), Span(f" · {words} ", "muted"))
        room = max(0, width - width_of(left) - width_of(right))
        done = room if length <= 0 else min(room, round(room * at / length))
        self._bar = (width_of(left), room)
        return (*left, Span("━" * done, "running"), Span("─" * (room - done), "frame"), *right)

    def on_click(self, event: events.Click) -> None:
        """Play, pause or seek."""
        start, room = self._bar
        if event.x < SIGN:
            self.post_message(self.Toggled())
        elif self.player is not None and room and start <= event.x < start + room:
            self.post_message(self.Sought((event.x - start) / room * self.player.recording.length_s))


def _clock(seconds: float) -> str:
    """Format a time as players do: 0:07.4, 12:07, 1:02:07."""
    whole = int(seconds)
    if seconds < 60:
        return f"0:{seconds:04.1f}"
    minutes = f"{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{whole // 3600}:{minutes}" if whole >= 3600 else minutes.removeprefix("0")


FRAMES_PER_S = 30
BUTTONS = tuple(
    f"history-{word}" for word in ("play", "faster", "slower", "back", "ahead", "begin", "finish", "layout", "zoom")
)


class ReplayArea(Vertical):
    """The recorded output of a call, with its player."""

    def __init__(self, pens: Pens, clock: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._pens = pens
        self._clock = clock
        self._supervision: Supervision | None = None
        self.player: OutputPlayer | None = None
        """The player of the shown call; None if nothing ran."""
        self.away = False
        """True while another pane has its room."""

    @property
    def has_output(self) -> bool:
        """True if the shown call has run."""
        return self.player is not None

    def compose(self) -> ComposeResult:
        """The output, the bar and the buttons."""
        yield OutputArea(self._pens, whole=False, id="past-output")
        yield ReplayBar(id="past-bar")
        yield ButtonBar(BUTTONS, id="past-buttons")

    def on_mount(self) -> None:
        """Start the clock of the player."""
        self.set_interval(1 / FRAMES_PER_S, self._frame)

    async def show(self, supervision: Supervision, record: CallRecord | None) -> None:
        """Show all output of a call, or nothing, then read its time index. Raises `WhisperError`."""
        self._supervision = supervision
        ran = record is not None and record.process is not None
        self.display = ran and not self.away
        self.player = OutputPlayer(Recording(supervision, record), self._clock) if ran and record is not None else None
        self._show_output()
        player = self.player
        gone = player is not None and await output_was_removed(supervision, player.recording.record)
        self.query_one(ReplayBar).gone = gone
        while player is not None and await player.recording.load():
            pass
        self.query_one(ReplayBar).refresh()

    async def grown(self, record: CallRecord) -> None:
        """Update the recording of a call that goes on. Raises `WhisperError`."""
        if self.player is not None:
            self.player.recording.record = record
            await self.player.recording.load()
            self.query_one(ReplayBar).refresh()

    def _show_output(self) -> None:
        """Show the output at the position; panes must forget later output."""
        area, player = self.query_one(OutputArea), self.player
        area.forget()
        if self._supervision is not None:
            api = played(self._supervision, player) if player is not None else self._supervision
            area.show(api, player.recording.record if player is not None else None)
        self.query_one(ReplayBar).show(player)

    def toggle(self) -> None:
        """Play or pause; at the end, play from the start."""
        if self.player is not None:
            anew = self.player.at is None
            self.player.toggle()
            if anew:
                self._show_output()
            self.query_one(ReplayBar).refresh()

    def faster(self, steps: int) -> None:
        """Change the speed by steps."""
        if self.player is not None:
            self.player.faster(steps)
            self.query_one(ReplayBar).refresh()

    def skip(self, by_s: float) -> None:
        """Skip by seconds."""
        if self.player is not None:
            self.player.skip(by_s)
            self._show_output()

    def to(self, at_s: float) -> None:
        """Seek to a time; beyond the end, all output is shown."""
        if self.player is not None:
            self.player.to(at_s)
            self._show_output()

    @on(ReplayBar.Toggled)
    def _bar_toggled(self) -> None:
        self.toggle()

    @on(ReplayBar.Sought)
    def _bar_sought(self, message: ReplayBar.Sought) -> None:
        self.to(message.at_s)

    def _frame(self) -> None:
        if self.player is not None and self.player.tick():
            self.query_one(ReplayBar).refresh()
