"""The output of a run: its streams side by side, stacked, alone or merged, or its terminal."""

import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal, NamedTuple

from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import Size
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from whisper_tui.model.api import Supervision
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.present.quantities import size
from whisper_tui.tui.output.output_bars import OutputBar, RemovedLine, SearchBar, UsageLine
from whisper_tui.tui.output.output_pane import OutputPane
from whisper_tui.tui.output.output_search import Needle
from whisper_tui.tui.output.output_view import ScrolledOutput
from whisper_tui.tui.output.painter import Pens
from whisper_tui.tui.output.stream_reader import STREAMS, ReadOutput, RunOutput, TimeIndex
from whisper_tui.tui.output.terminal_pane import TerminalPane

WIDE = 100
"""Least width for streams side by side."""
HIGH = 12
"""Least height for one stream above the other."""

Choice = Literal["merged", "both", "out", "err"]
NEXT: dict[Choice, Choice] = {"merged": "both", "both": "out", "out": "err", "err": "merged"}


class Arrangement(NamedTuple):
    """The panes that are displayed, and how."""

    out: bool
    err: bool
    both: bool
    side: bool = False
    """True if the streams are side by side."""


class StreamPanes:
    """The panes of stdout, stderr and both; decides which of them are displayed.

    A stream without output takes no room. Merged streams are one pane: as long as only one of them has output, the pane
    of that one, which needs no time index and skips to the end of a flood.
    """

    def __init__(self, out: OutputPane, err: OutputPane, both: OutputPane) -> None:
        self.every = (out, err, both)
        self.choice: Choice = "merged"
        self.side: bool | None = None
        """The choice of side by side (True) or stacked (False); None lets the size decide."""
        self.terminal = False
        """True for the run of a terminal, whose output is in the pane of stdout alone."""
        self._before: OutputPane | None = None
        """The pane that was read before the streams were merged or separated, until the others go on in its place."""
        self._reads: dict[Stream, ReadOutput] = {}
        self._index: TimeIndex | None = None

    def show(self, reads: dict[Stream, ReadOutput], index: TimeIndex | None, *, terminal: bool) -> None:
        """Show the streams of another run; empty for none."""
        self._reads, self._index, self.terminal = reads, index, terminal
        self._before = None
        out, err, both = self.every
        for pane, stream in ((out, STREAMS[0]), (err, STREAMS[1])):
            pane.show({stream: reads[stream]} if reads else {}, index)
        both.show({})
        out.title = "terminal" if terminal else "stdout"

    @property
    def joined(self) -> bool:
        """True while both streams are in one pane."""
        return self.choice == "merged" and self.every[2].covers_both

    @property
    def visible(self) -> list[OutputPane]:
        """The panes on the screen."""
        return [pane for pane in self.every if pane.display]

    def choose(self, choice: Choice, current: OutputPane) -> None:
        """Choose what is displayed; the place of the `current` pane is kept where its rows go to other panes."""
        if (choice == "merged") != (self.choice == "merged"):
            self._before = current
        self.choice = choice

    async def tick(self, *, screen: bool) -> None:
        """Poll for new output; `screen`: True while a terminal's screen hides all panes."""
        out, err, both = self.every
        if not screen and not self.joined:
            # A hidden stream is polled as well, because its first byte and its size have to be shown.
            await out.tick()
            await err.tick()
            if self._before is both:
                self._before = None
                for pane in (out, err):
                    await pane.go_to_place(both)
        if self._mergeable:
            await self._join(both, next((pane for pane in (out, err) if pane.display), out))

    async def _join(self, both: OutputPane, before: OutputPane) -> None:
        """Poll both streams; once their order is known, show them where the reader was in one of them."""
        covered = both.covers_both
        if both.view is None:
            both.show(self._reads, self._index)
        await both.tick()
        if both.covers_both and (self._before is not None or not covered):
            before, self._before = self._before or before, None
            await both.continue_from(before)

    @property
    def _mergeable(self) -> bool:
        """True if both streams have text to be merged."""
        separate = self.choice != "merged" or self.terminal
        return not separate and all(pane.view and pane.view.size and not pane.as_bytes for pane in self.every[:2])

    def arrange(self, size: Size, *, screen: bool) -> Arrangement:
        """Display the panes that fit the size, the output so far and the person's choices; none beside a `screen`."""
        focused = any(pane.has_focus for pane in self.every)
        chosen = self._arrangement(size) if not screen else Arrangement(False, False, False)
        for pane, displayed in zip(self.every, chosen[:3], strict=True):
            pane.display = displayed
        if focused and not any(pane.has_focus for pane in self.visible):
            for pane in self.visible[:1]:
                pane.focus(scroll_visible=False)
        self._weigh()
        return chosen

    def _arrangement(self, size: Size) -> Arrangement:
        out, err, _ = self.every
        if self.terminal:
            return Arrangement(True, False, False)
        if self.joined:
            return Arrangement(False, False, True)
        if self.choice == "merged" and not (out.as_bytes or err.as_bytes or out.failed or err.failed):
            only_err = out.silent and not err.silent
            return Arrangement(not only_err, only_err, False)
        beside = size.width >= WIDE if self.side is None else self.side
        single = self.choice == "both" and self.side is None and not beside and size.height < HIGH
        shows_out, shows_err = self.choice != "err", self.choice != "out" and not single
        return Arrangement(shows_out, shows_err, False, beside and not out.silent and not err.silent)

    def _weigh(self) -> None:
        """Mention a hidden stream, and collapse a silent one to its title."""
        out, err, _ = self.every
        for pane, other in ((out, err), (err, out)):
            pane.beside = ""
            if pane.display and not other.display and not self.terminal and other.view is not None:
                amount = size(other.view.size) if other.view.size else "is empty"
                pane.beside = f" · {other.title} {amount}{'' if self.choice == 'merged' else ' (o)'}"
            collapsed = pane.silent and other.display and (pane is err or not other.silent)
            pane.set_class(collapsed, "-silent")


def _is_previewed(record: CallRecord) -> bool:
    """True if the output of a call is that of a preview that has ended."""
    return record.attempt is None and record.preview is not None and record.preview.report is not None


LOOKED_AT = 64 * 1024
"""Bytes at the start of a terminal's output that are checked for full-screen drawing."""
_DRAWS = re.compile(rb"\x1b\[\?(?:47|1047|1049)h|\x1b\[\d+;\d*H|\x1b\[2J")
"""The alternate screen, absolute cursor positions, or an erased screen."""
FRAMES_PER_S = 40
CALM_FRAMES = 5
"""Without new output, only one frame in this many polls."""
ROOM_FOR_BUTTONS = 10
"""Least height for buttons below the panes."""


class GrowthTimer:
    """Polls output: fast while it grows, slowly otherwise."""

    def __init__(self, poll: Callable[[], Awaitable[None]], active: Callable[[], bool]) -> None:
        """`active` returns False while there is nothing to poll."""
        self._poll = poll
        self._active = active
        self._frame = 0
        self._grown_at = 0
        self._fast: Timer | None = None
        self._slow: Timer | None = None
        self._calm = False
        """True while the fast timer is paused."""

    def begin(self, widget: Widget) -> None:
        """Start the timers of a mounted widget."""
        # Paused while nothing grows or nothing is shown: they would be most of the CPU time of an idle cockpit.
        self._fast = widget.set_interval(1 / FRAMES_PER_S, self.tick)
        self._slow = widget.set_interval(CALM_FRAMES / FRAMES_PER_S, self._tick_calmly)

    def hurry(self) -> None:
        """Poll fast from now on, because something has grown."""
        self._grown_at = self._frame
        self._calm = False
        if self._fast is not None:
            self._fast.resume()
        self.go_on()

    def go_on(self) -> None:
        """Poll slowly at least, if there is something to poll."""
        if self._slow is not None and self._active():
            self._slow.resume()

    async def tick(self) -> None:
        """Poll, or pause after some frames without growth."""
        self._frame += 1
        if self._active() and self._frame - self._grown_at <= CALM_FRAMES:
            await self._poll()
        elif self._fast is not None:
            self._calm = True
            self._fast.pause()

    async def _tick_calmly(self) -> None:
        if not self._active() and self._slow is not None:
            self._slow.pause()
        elif self._calm:
            await self._poll()


class OutputArea(Container):
    """The panes of a run's output, which one timer polls for growth."""

    class NeedChanged(Message):
        """The output has come to need another number of rows."""

    def __init__(self, pens: Pens, *, whole: bool = True, id: str | None = None) -> None:
        """`whole`: False in a replay, which shows a part of the output and has buttons of its own."""
        super().__init__(id=id)
        self._pens = pens
        self._whole = whole
        self.away = False
        """True while another pane has its room."""
        self.streams = StreamPanes(
            OutputPane("stdout", pens, id="out"),
            OutputPane("stderr", pens, id="err"),
            OutputPane("stdout and ▌stderr", pens, id="both"),
        )
        self.wraps = False
        self.stamps = False
        self._shown: tuple[str, int | None] | None = None
        self.run: RunOutput | None = None
        """The readers of the shown run, also for saving and paging; None if nothing has run."""
        self._index: TimeIndex | None = None
        self._terminal = False
        self.as_screen = False
        """True while a terminal is shown as a screen, not as lines."""
        self._growth = GrowthTimer(self._look, lambda: self._shown is not None and self.display)
        self._written_at: float | None = None
        self._began_at = 0.0
        self._needed: int | None = None
        self._over = False
        """True if no further output is to come."""
        self._fitted: tuple[ScrolledOutput, int] | None = None
        """A view that was on the screen with all of its rows, and their number."""

    def compose(self) -> ComposeResult:
        """The usage line, the panes, the terminal, the search field and the buttons."""
        yield UsageLine(lambda: self.quiet_s, self._ask_when_written, id="usage")
        yield from self.streams.every
        yield TerminalPane(self._pens, id="terminal")
        yield SearchBar(id="search")
        yield RemovedLine(id="removed")
        if self._whole:
            yield OutputBar(id="output-buttons")

    def on_mount(self) -> None:
        """Start polling."""
        # Polled and not pushed: a command can write faster than events could be drawn (decision 3).
        self._growth.begin(self)

    @property
    def choice(self) -> Choice:
        """The streams to show, and whether they are merged."""
        return self.streams.choice

    @property
    def merged(self) -> bool:
        """True if both streams are to be merged in order of arrival."""
        return self.choice == "merged"

    @property
    def panes(self) -> tuple[OutputPane, OutputPane, OutputPane]:
        """The panes of stdout, stderr and both."""
        return self.streams.every

    @property
    def quiet_s(self) -> float:
        """Seconds since the last output; 0 while that is unknown."""
        return max(0.0, time.time() - self._written_at) if self._written_at is not None else 0.0

    @property
    def has_output(self) -> bool:
        """True if the shown call has run."""
        return self.run is not None

    @property
    def rows_needed(self) -> int | None:
        """The rows that all of the output takes. None: as many as there are, or more output is to come."""
        panes = self.visible_panes
        if self.as_screen or self.searching or self.wraps or len(panes) != 1 or (view := panes[0].view) is None:
            return None
        above = 1 + sum(widget.region.height for widget in self.query("UsageLine, RemovedLine") if widget.display)
        if panes[0].silent:
            return above + 1
        # Once all of it was on the screen, it is known how high it is, also while the pane is lower for a moment.
        if self._over and view.extent == (0, view.size):
            self._fitted = (view, len(view.shown()))
        return above + self._fitted[1] if self._fitted is not None and self._fitted[0] is view else None

    @property
    def is_empty(self) -> bool:
        """True if there is no output, and none is to come."""
        return self._over and all(pane.silent for pane in self.visible_panes)

    @property
    def terminal(self) -> TerminalPane:
        """The terminal of a command that has one."""
        return self.query_one(TerminalPane)

    @property
    def visible_panes(self) -> list[OutputPane]:
        """The panes on the screen."""
        return self.streams.visible

    @property
    def current(self) -> OutputPane:
        """The pane that commands act on: the focused one, else the first with output."""
        panes = self.visible_panes
        focused = [pane for pane in panes if pane.has_focus]
        return (focused or [pane for pane in panes if not pane.silent] or panes or self.panes)[0]

    def show(self, supervision: Supervision, record: CallRecord | None) -> None:
        """Show the output of a call that has run, or of its preview while it waits."""
        attempt = record.output_attempt if record is not None else None
        key = (record.id, attempt) if record is not None and attempt is not None else None
        self.display = key is not None and not self.away
        self._over = record is not None and (isinstance(record.state, Ended) or _is_previewed(record))
        self.query_one(UsageLine).of(supervision, record if key is not None else None)
        if key == self._shown:
            self._growth.go_on()
            return
        self._shown = key
        self._written_at = None
        self._began_at = record.process.started_at if record is not None and record.process is not None else 0.0
        self._terminal = record is not None and record.spec.tty
        again = self.run is not None and key is not None and self.run.call_id == key[0]
        self.run = RunOutput(supervision, key[0]) if key is not None else None
        self._index = self.run.times() if self.run is not None else None
        over = record is not None and isinstance(record.state, Ended)
        self.as_screen = self._terminal and (self.as_screen if again else not over)
        if self._terminal and over and not again and self.run is not None:
            self.run_worker(self._draw_screen_of_the_past(self.run), group="past-screen", exclusive=True)
        self.query_one(RemovedLine).of(supervision, record if self._whole else None)
        self.streams.show(self.run.reads if self.run is not None else {}, self._index, terminal=self._terminal)
        self.terminal.show(supervision, record if self._terminal else None, recorded=over or not self._whole)
        self._arrange()
        self._wake()

    async def _draw_screen_of_the_past(self, run: RunOutput) -> None:
        """Show the terminal of an ended run as a screen if the program drew on all of it."""
        try:
            chunk = await run.reads["out"](0, LOOKED_AT)
        except WhisperError:
            return
        # Full-screen programs cannot be read as lines.
        if run is self.run and _DRAWS.search(chunk.data) is not None:
            self.as_screen = True
            self._arrange()
            self._wake()

    def forget(self) -> None:
        """Forget the shown run after a reconnection, so that the next `show` reads it anew."""
        self._shown = None

    def recolour(self, pens: Pens) -> None:
        """Redraw with other colours."""
        for pane in (*self.panes, self.terminal):
            pane.recolour(pens)

    def choose_next(self) -> None:
        """Cycle through merged, separate and single streams; for a terminal, switch between screen and lines."""
        if self._terminal:
            self.as_screen = not self.as_screen
            self._arrange()
            self._wake()
        else:
            self._choose(NEXT[self.choice])

    def toggle_merged(self) -> None:
        """Merge the streams, or separate them."""
        self._choose("both" if self.merged else "merged")

    def toggle_side(self) -> None:
        """Switch the streams between side by side and stacked."""
        self.streams.side = not self.has_class("-side")
        self._choose("both")

    def _choose(self, choice: Choice) -> None:
        needle = next((pane.finder.needle for pane in self.visible_panes if pane.finder is not None), None)
        self.streams.choose(choice, self.current)
        self._arrange()
        if needle is not None:
            self.find(needle)
        self._wake()

    async def toggle_wrap(self) -> None:
        """Switch the wrapping of long lines."""
        self.wraps = not self.wraps
        await self._restyle()

    async def toggle_stamps(self) -> None:
        """Switch the timestamps."""
        self.stamps = not self.stamps
        await self._restyle()
        self._wake()

    async def _restyle(self) -> None:
        for pane in self.panes:
            await pane.set_style(wraps=self.wraps, stamps=self.stamps)

    async def toggle_follow(self) -> None:
        """Switch following."""
        visible = self.visible_panes
        focused = [pane for pane in visible if pane.has_focus] or visible
        following = any(pane.view is not None and pane.view.following for pane in focused)
        for pane in focused:
            await pane.move("hold" if following else "end")

    def toggle_bytes(self) -> None:
        """Switch the current pane between bytes and text; bytes are those of one stream."""
        if self.streams.joined:
            self._choose("both")
        self.current.toggle_bytes()
        self._arrange()
        self._wake()

    def visible_text(self) -> str:
        """Return the rows of the current pane on the screen, in full."""
        return self.terminal.text() if self.terminal.display else self.current.visible_text()

    def size_of(self, source: Stream | Literal["both"]) -> int:
        """Return the known size of a stream, or of both."""
        out, err, both = self.panes
        panes = {"out": (out,), "err": (err,), "both": (both,) if self.streams.joined else (out, err)}[source]
        return sum(pane.view.size for pane in panes if pane.view is not None)

    def find(self, needle: Needle | None) -> None:
        """Search the visible panes, or the lines of a terminal; None ends the search."""
        if needle is not None and self.as_screen:
            self.choose_next()
        for pane in self.panes:
            pane.find(needle if pane.display else None)
        self._wake()

    @property
    def searching(self) -> bool:
        """True while a search is typed or active."""
        return self.query_one(SearchBar).display or any(pane.finder is not None for pane in self.visible_panes)

    async def go_to_match(self, direction: int) -> bool:
        """Show the next match in the focused pane, else in the first pane with one. Return False if there is none."""
        focused = [pane for pane in self.visible_panes if pane.has_focus]
        standing = [pane for pane in self.visible_panes if pane.finder is not None and pane.finder.standing]
        for pane in focused or standing or self.visible_panes:
            if await pane.go_to_match(direction):
                return True
        return False

    async def go_to_first_match(self) -> bool:
        """Show the first match, in stderr if it has one. Return False if there is none."""
        # The key for errors starts here, and errors are usually in stderr.
        for pane in reversed(self.visible_panes):
            if await pane.go_to_first_match():
                return True
        return False

    def on_resize(self) -> None:
        """Arrange the panes for the new size."""
        self._arrange()

    def _arrange(self) -> None:
        self._arrange_panes()
        self.terminal.display = self._terminal and self.as_screen
        self.query(OutputBar).set(display=self.size.height >= ROOM_FOR_BUTTONS)

    def _arrange_panes(self) -> None:
        self.set_class(self.streams.arrange(self.size, screen=self._terminal and self.as_screen).side, "-side")

    def _wake(self) -> None:
        """Poll at once, and fast from now on."""
        self._growth.hurry()
        self.call_after_refresh(self._growth.tick)

    async def _look(self) -> None:
        before = self._sizes()
        await self.streams.tick(screen=self.as_screen)
        if self.as_screen:
            await self.terminal.tick()
        await self._read_times()
        if before != self._sizes():
            self._growth.hurry()
            self._arrange_panes()
        if self.rows_needed != self._needed:
            self._needed = self.rows_needed
            self.post_message(self.NeedChanged())

    async def _ask_when_written(self) -> None:
        """Ask the supervisor for the time of the last output, which may be before this cockpit opened."""
        chunks, run = [], self.run
        with suppress(WhisperError):
            chunks = [await run.reads[stream](0, 0) for stream in STREAMS] if run is not None else []
        if chunks and run is self.run:
            self._written_at = max(chunk.written_at or self._began_at for chunk in chunks)

    async def _read_times(self) -> None:
        """Read the time index while timestamps are on; a merged view reads it by itself."""
        index = self._index
        if index is None or not self.stamps or self.streams.joined:
            return
        before = index.count
        try:
            await index.advance()
        except WhisperError:
            return
        if index.count != before:
            for pane in self.visible_panes:
                pane.redraw()

    def _sizes(self) -> list[int]:
        sizes = [pane.view.size if pane.view is not None else 0 for pane in self.panes]
        index = self._index.count if self._index is not None else 0
        return [*sizes, self.terminal.stream_size, index, self.streams.joined]
