"""The output of a run: its streams side by side, one above the other, alone, or as one text; or its terminal."""

import re
import time
from typing import Literal

from textual.app import ComposeResult
from textual.containers import Container
from textual.timer import Timer

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import Supervision
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tui.output.arrangement import NEXT, Choice, arrangement
from whisper_tui.tui.output.needle import Needle
from whisper_tui.tui.output.pens import Pens
from whisper_tui.tui.output.reader import ReadOutput
from whisper_tui.tui.output.run_output import STREAMS, RunOutput
from whisper_tui.tui.output.times import TimeIndex
from whisper_tui.tui.widgets.output_bar import OutputBar
from whisper_tui.tui.widgets.output_pane import OutputPane
from whisper_tui.tui.widgets.removed_line import RemovedLine
from whisper_tui.tui.widgets.search_bar import SearchBar
from whisper_tui.tui.widgets.terminal_pane import TerminalPane
from whisper_tui.tui.widgets.usage_line import UsageLine
from whisper_tui.tui.words import size

LOOKED_AT = 64 * 1024
"""Bytes at the beginning of a terminal's output in which a program shows that it draws on the whole screen."""
_DRAWS = re.compile(rb"\x1b\[\?(?:47|1047|1049)h|\x1b\[\d+;\d*H|\x1b\[2J")
"""The second screen, the cursor at a row and a column, or everything erased."""
FRAMES_PER_S = 40
CALM_FRAMES = 5
"""While nothing grows, only every so many frames look for growth."""
ROOM_FOR_BUTTONS = 10
"""Rows from which there are buttons below the panes."""


class OutputArea(Container):
    """One timer asks for growth, whatever the number of lines that arrive."""

    def __init__(self, pens: Pens, *, whole: bool = True, id: str | None = None) -> None:
        """`whole`: whether it is given all there is; then there are buttons, and what is gone is told."""
        super().__init__(id=id)
        self._pens = pens
        self._whole = whole
        self.choice: Choice = "both"
        self.merged = False
        """Whether both streams are one text, in the order of their arrival."""
        self.side: bool | None = None
        """Whether the streams stand side by side. None: as there is room."""
        self.wraps = False
        self.stamps = False
        self._shown: tuple[str, int | None] | None = None
        self.run: RunOutput | None = None
        """What is shown, for those who take it elsewhere. None: nothing has run."""
        self._reads: dict[Stream, ReadOutput] = {}
        self._index: TimeIndex | None = None
        self._terminal = False
        self.as_screen = False
        """Whether a terminal is shown as the screen that it is, not as the lines that were written to it."""
        self._frame = 0
        self._fast: Timer | None = None
        self._calm = False
        """Whether the fast looks stand still."""
        self._grown_at = 0
        self._written_at: float | None = None
        self._began_at = 0.0

    def compose(self) -> ComposeResult:
        """What is used, a pane for each stream and one for both, the terminal, and where a search is typed."""
        yield UsageLine(lambda: self.quiet_s, id="usage")
        yield OutputPane("stdout", self._pens, id="out")
        yield OutputPane("stderr", self._pens, id="err")
        yield OutputPane("stdout and ▌stderr", self._pens, id="both")
        yield TerminalPane(self._pens, id="terminal")
        yield SearchBar(id="search")
        yield RemovedLine(id="removed")
        if self._whole:
            yield OutputBar(id="output-buttons")

    def on_mount(self) -> None:
        """Look for growth from now on."""
        # While nothing grows the fast one stands still: it is most of what a cockpit at rest uses.
        self._fast = self.set_interval(1 / FRAMES_PER_S, self._tick)
        self.set_interval(CALM_FRAMES / FRAMES_PER_S, self._look_calmly)
        self.set_interval(1.0, self._ask_when_written)

    @property
    def streams(self) -> tuple[OutputPane, OutputPane]:
        """The panes of stdout and stderr."""
        return self.query_one("#out", OutputPane), self.query_one("#err", OutputPane)

    @property
    def panes(self) -> tuple[OutputPane, OutputPane, OutputPane]:
        """The panes of stdout, stderr and both."""
        return (*self.streams, self.query_one("#both", OutputPane))

    @property
    def quiet_s(self) -> float:
        """For how many seconds nothing was written. 0 as long as nobody knows."""
        return max(0.0, time.time() - self._written_at) if self._written_at is not None else 0.0

    @property
    def terminal(self) -> TerminalPane:
        """The terminal of a command that has one."""
        return self.query_one(TerminalPane)

    @property
    def visible_panes(self) -> list[OutputPane]:
        """Those that are on the screen."""
        return [pane for pane in self.panes if pane.display]

    @property
    def current(self) -> OutputPane:
        """The pane that a command is about: the one with the focus, else the first that has something to show."""
        panes = self.visible_panes
        focused = [pane for pane in panes if pane.has_focus]
        return (focused or [pane for pane in panes if not pane.silent] or panes or self.panes)[0]

    def show(self, supervision: Supervision, record: CallRecord | None) -> None:
        """Show the output of a call, once something has run."""
        key = (record.id, record.attempt) if record is not None and record.attempt is not None else None
        self.display = key is not None
        self.query_one(UsageLine).of(record if key is not None else None)
        if key == self._shown:
            return
        self._shown = key
        self._written_at = None
        self._began_at = record.process.started_at if record is not None and record.process is not None else 0.0
        self._terminal = record is not None and record.spec.tty
        again = self.run is not None and key is not None and self.run.call_id == key[0]
        self.run = RunOutput(supervision, key[0]) if key is not None else None
        self._reads, self._index = (self.run.reads, self.run.times()) if self.run is not None else ({}, None)
        over = record is not None and isinstance(record.state, Ended)
        self.as_screen = self._terminal and (self.as_screen if again else not over)
        if self._terminal and over and not again and self.run is not None:
            self.run_worker(self._draw_screen_of_the_past(self.run), group="past-screen", exclusive=True)
        self.query_one(RemovedLine).of(supervision, record if self._whole else None)
        self._fill()
        self.terminal.show(supervision, record if self._terminal else None, recorded=over or not self._whole)
        self._arrange()
        self._wake()

    async def _draw_screen_of_the_past(self, run: RunOutput) -> None:
        """A program that drew on its whole screen cannot be read as lines."""
        try:
            chunk = await run.reads["out"](0, LOOKED_AT)
        except WhisperError:
            return
        if run is self.run and _DRAWS.search(chunk.data) is not None:
            self.as_screen = True
            self._arrange()
            self._wake()

    def _fill(self) -> None:
        """Give every pane its streams."""
        for pane, stream in zip(self.streams, STREAMS, strict=True):
            pane.show({stream: self._reads[stream]} if self._reads else {}, self._index)
        self._fill_both()
        self.streams[0].title = "terminal" if self._terminal else "stdout"

    def _fill_both(self) -> None:
        self.panes[2].show(self._reads if self.merged and not self._terminal else {}, self._index)

    def forget(self) -> None:
        """What was shown came over a connection that is gone."""
        self._shown = None

    def recolour(self, pens: Pens) -> None:
        """Draw with other colours."""
        for pane in (*self.panes, self.terminal):
            pane.recolour(pens)

    def choose_next(self) -> None:
        """Show both streams, only the first, only the second; of a terminal, its screen or its lines."""
        self.merged = False
        if self._terminal:
            self.as_screen = not self.as_screen
        else:
            self.choice = NEXT[self.choice]
        self._fill_both()
        self._arrange()

    def toggle_merged(self) -> None:
        """Show both streams as one text, or each on its own again."""
        self.merged = not self.merged
        self._fill_both()
        self._arrange()
        self._wake()

    def toggle_side(self) -> None:
        """Put the streams side by side where they stand one above the other, and the other way round."""
        self.merged = False
        self.choice = "both"
        self.side = not self.has_class("-side")
        self._fill_both()
        self._arrange()

    async def toggle_wrap(self) -> None:
        """Wrap long lines, or cut them off."""
        self.wraps = not self.wraps
        await self._restyle()

    async def toggle_stamps(self) -> None:
        """Show when each line came, or not."""
        self.stamps = not self.stamps
        await self._restyle()
        self._wake()

    async def _restyle(self) -> None:
        for pane in self.panes:
            await pane.set_style(wraps=self.wraps, stamps=self.stamps)

    async def toggle_follow(self) -> None:
        """Hold the panes still, or follow them again."""
        visible = self.visible_panes
        focused = [pane for pane in visible if pane.has_focus] or visible
        following = any(pane.view is not None and pane.view.following for pane in focused)
        for pane in focused:
            await pane.move("hold" if following else "end")

    def toggle_bytes(self) -> None:
        """Show what is in the current pane as bytes, or as text again."""
        self.current.toggle_bytes()
        self._wake()

    def visible_text(self) -> str:
        """The rows of the current pane that are on the screen, in full."""
        return self.terminal.text() if self.terminal.display else self.current.visible_text()

    def size_of(self, source: Stream | Literal["both"]) -> int:
        """Bytes of a stream, or of both, as far as they are known."""
        views = {stream: pane.view for stream, pane in zip(STREAMS, self.streams, strict=True)}
        return sum(view.size for stream, view in views.items() if view is not None and source in {stream, "both"})

    def find(self, needle: Needle | None) -> None:
        """Search for something in what is shown; of a terminal, in its lines. None: search for nothing any more."""
        if needle is not None and self.as_screen:
            self.choose_next()
        for pane in self.panes:
            pane.find(needle if pane.display else None)
        self._wake()

    @property
    def searching(self) -> bool:
        """Whether anything is searched for."""
        return self.query_one(SearchBar).display or any(pane.finder is not None for pane in self.visible_panes)

    async def go_to_match(self, direction: int) -> bool:
        """Show the next match in the pane with the focus, else in the first pane that has one. Whether there is one."""
        focused = [pane for pane in self.visible_panes if pane.has_focus]
        standing = [pane for pane in self.visible_panes if pane.finder is not None and pane.finder.standing]
        for pane in focused or standing or self.visible_panes:
            if await pane.go_to_match(direction):
                return True
        return False

    async def go_to_first_match(self) -> bool:
        """Show the first match: of stderr where that has one, for errors belong there. Whether there is any."""
        for pane in reversed(self.visible_panes):
            if await pane.go_to_first_match():
                return True
        return False

    def on_resize(self) -> None:
        """Another size may be for another arrangement."""
        self._arrange()

    def _arrange(self) -> None:
        chosen = arrangement(self.choice, self.size, self.side, self._terminal, self.as_screen, merged=self.merged)
        out, err, both = self.panes
        out.display, err.display, both.display = chosen.out, chosen.err, chosen.both
        self.terminal.display = chosen.screen
        self.query(OutputBar).set(display=self.size.height >= ROOM_FOR_BUTTONS)
        self.set_class(chosen.side, "-side")
        self._weigh()

    def _weigh(self) -> None:
        """A stream that is not displayed is mentioned with its size, and a silent one leaves the other its room."""
        out, err = self.streams
        for pane, other in ((out, err), (err, out)):
            hidden = pane.display and not other.display and not self._terminal and other.view is not None
            pane.beside = f" · {other.title} {size(other.view.size)} (o)" if hidden and other.view else ""
            pane.set_class(pane.silent and not other.silent and other.display, "-silent")

    def _wake(self) -> None:
        """Look at once."""
        self._grown_at = self._frame
        self._hurry()
        self.call_after_refresh(self._tick)

    def _hurry(self) -> None:
        self._calm = False
        if self._fast is not None:
            self._fast.resume()

    async def _tick(self) -> None:
        self._frame += 1
        if self._shown is not None and self.display and self._frame - self._grown_at <= CALM_FRAMES:
            await self._look()
        elif self._fast is not None:
            self._calm = True
            self._fast.pause()

    async def _look_calmly(self) -> None:
        """Look while nothing grows, too; but not at nothing."""
        if self._calm and self._shown is not None and self.display:
            await self._look()

    async def _look(self) -> None:
        before = self._sizes()
        for pane in self.panes:
            if pane.display or not (self.merged or self.as_screen):
                await pane.tick()
        if self.as_screen:
            await self.terminal.tick()
        await self._read_times()
        if before != self._sizes():
            self._grown_at = self._frame
            self._hurry()
            self._weigh()

    async def _ask_when_written(self) -> None:
        """When the last output came is asked of the supervisor: it has known the run for longer than it is shown."""
        if (run := self.run) is None or self.query_one(UsageLine).sample is None:
            return
        try:
            chunks = [await run.reads[stream](0, 0) for stream in STREAMS]
        except WhisperError:
            return
        if run is self.run:
            self._written_at = max(chunk.written_at or self._began_at for chunk in chunks)

    async def _read_times(self) -> None:
        """Times are read where they are shown; two streams in one pane read them for themselves."""
        index = self._index
        if index is None or not self.stamps or self.merged:
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
        return [*sizes, self.terminal.stream_size, self._index.count if self._index is not None else 0]
