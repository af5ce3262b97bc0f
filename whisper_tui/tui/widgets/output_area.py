"""Both streams of a run: side by side where it is wide, one above the other where it is high, else one at a time."""

from functools import partial
from typing import Literal

from textual.app import ComposeResult
from textual.containers import Container

from whisper_tui.model.port import Supervision
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.output.pens import Pens
from whisper_tui.tui.widgets.output_pane import OutputPane
from whisper_tui.tui.words import size

FRAMES_PER_S = 30
CALM_FRAMES = 4
"""While nothing grows, only every so many frames look for growth."""
WIDE = 100
"""Columns from which the streams stand side by side."""
HIGH = 12
"""Rows from which the streams stand one above the other."""

Choice = Literal["both", "out", "err"]
NEXT: dict[Choice, Choice] = {"both": "out", "out": "err", "err": "both"}


class OutputArea(Container):
    """One timer asks for growth, whatever the number of lines that arrive."""

    def __init__(self, pens: Pens, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._pens = pens
        self.choice: Choice = "both"
        self._shown: tuple[str, int | None] | None = None
        self._terminal = False
        self._frame = 0
        self._grown_at = 0

    def compose(self) -> ComposeResult:
        """A pane for each stream."""
        yield OutputPane("stdout", self._pens, id="out")
        yield OutputPane("stderr", self._pens, id="err")

    def on_mount(self) -> None:
        """Look for growth from now on."""
        self.set_interval(1 / FRAMES_PER_S, self._tick)

    @property
    def panes(self) -> tuple[OutputPane, OutputPane]:
        """The panes of stdout and stderr."""
        return self.query_one("#out", OutputPane), self.query_one("#err", OutputPane)

    def show(self, supervision: Supervision, record: CallRecord | None) -> None:
        """Show the output of a call, once something has run."""
        key = (record.id, record.attempt) if record is not None and record.attempt is not None else None
        self.display = key is not None
        if key == self._shown:
            return
        self._shown = key
        self._terminal = record is not None and record.spec.tty
        streams: tuple[Stream, Stream] = ("out", "err")
        for pane, stream in zip(self.panes, streams, strict=True):
            pane.show(partial(supervision.read_output, key[0], stream) if key is not None else None)
        self.panes[0].title = "terminal" if self._terminal else "stdout"
        self._arrange()
        self._grown_at = self._frame
        self.call_after_refresh(self._tick)

    def forget(self) -> None:
        """What was shown came over a connection that is gone."""
        self._shown = None

    def recolour(self, pens: Pens) -> None:
        """Draw with other colours."""
        for pane in self.panes:
            pane.recolour(pens)

    def choose_next(self) -> None:
        """Show both streams, only the first, only the second."""
        self.choice = NEXT[self.choice]
        self._arrange()

    async def toggle_follow(self) -> None:
        """Hold the panes still, or follow them again."""
        visible = [pane for pane in self.panes if pane.display]
        focused = [pane for pane in visible if pane.has_focus] or visible
        following = any(pane.view is not None and pane.view.following for pane in focused)
        for pane in focused:
            await pane.move("hold" if following else "end")

    def on_resize(self) -> None:
        """Another size may be for another arrangement."""
        self._arrange()

    def _arrange(self) -> None:
        out, err = self.panes
        side = self.size.width >= WIDE
        single = self.choice == "both" and not side and self.size.height < HIGH
        out.display = self.choice != "err" or self._terminal
        err.display = not self._terminal and (self.choice == "err" or (self.choice == "both" and not single))
        self.set_class(side, "-side")
        self._single = single
        self._weigh()

    def _weigh(self) -> None:
        """A stream that is not displayed is mentioned with its size, and a silent one leaves the other its room."""
        out, err = self.panes
        for pane, other in ((out, err), (err, out)):
            hidden = pane.display and not other.display and not self._terminal and other.view is not None
            pane.beside = f" · {other.title} {size(other.view.size)} (o)" if hidden and other.view else ""
            pane.set_class(pane.silent and not other.silent and other.display, "-silent")

    async def _tick(self) -> None:
        if self._shown is None or not self.display:
            return
        self._frame += 1
        if self._frame - self._grown_at > CALM_FRAMES and self._frame % CALM_FRAMES:
            return
        before = self._sizes()
        for pane in self.panes:
            await pane.tick()
        if before != self._sizes():
            self._grown_at = self._frame
            self._weigh()

    def _sizes(self) -> list[int]:
        return [pane.view.size if pane.view is not None else 0 for pane in self.panes]
