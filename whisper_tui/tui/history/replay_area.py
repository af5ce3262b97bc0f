"""Recorded output and the line under it: shown in full, or as it was at any time of the run."""

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from whisper_tui.model.port import Supervision
from whisper_tui.model.removed import output_was_removed
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.commands.history import HISTORY
from whisper_tui.tui.history.playing import Player, Recording, played
from whisper_tui.tui.history.replay_bar import ReplayBar
from whisper_tui.tui.output.pens import Pens
from whisper_tui.tui.widgets.button_bar import ButtonBar
from whisper_tui.tui.widgets.output_area import OutputArea

FRAMES_PER_S = 30
BUTTONS = frozenset(
    f"history-{word}" for word in ("play", "faster", "slower", "back", "ahead", "begin", "finish", "layout")
)


class ReplayArea(Vertical):
    """Shows the output of one call at a time."""

    def __init__(self, pens: Pens, clock: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._pens = pens
        self._clock = clock
        self._supervision: Supervision | None = None
        self.player: Player | None = None
        """Where in the output one is. None: nothing ran."""

    def compose(self) -> ComposeResult:
        """The output, and the line."""
        yield OutputArea(self._pens, whole=False, id="past-output")
        yield ReplayBar(id="past-bar")
        yield ButtonBar((command for command in HISTORY if command.id in BUTTONS), id="past-buttons")

    def on_mount(self) -> None:
        """Let a player's time pass."""
        self.set_interval(1 / FRAMES_PER_S, self._frame)

    async def show(self, supervision: Supervision, record: CallRecord | None) -> None:
        """Show all output of a call, then learn when it came. None: there is no call. Raises `WhisperError`."""
        self._supervision = supervision
        ran = record is not None and record.process is not None
        self.display = ran
        self.player = Player(Recording(supervision, record), self._clock) if ran and record is not None else None
        self._show_output()
        player = self.player
        gone = player is not None and await output_was_removed(supervision, player.recording.record)
        self.query_one(ReplayBar).gone = gone
        while player is not None and await player.recording.load():
            pass
        self.query_one(ReplayBar).refresh()

    async def grown(self, record: CallRecord) -> None:
        """The call has gone on. Raises `WhisperError`."""
        if self.player is not None:
            self.player.recording.record = record
            await self.player.recording.load()
            self.query_one(ReplayBar).refresh()

    def _show_output(self) -> None:
        """Show the output from where the player is: what came later must be forgotten."""
        area, player = self.query_one(OutputArea), self.player
        area.forget()
        if self._supervision is not None:
            port = played(self._supervision, player) if player is not None else self._supervision
            area.show(port, player.recording.record if player is not None else None)
        self.query_one(ReplayBar).show(player)

    def toggle(self) -> None:
        """Play, or pause; after the end, from the beginning."""
        if self.player is not None:
            anew = self.player.at is None
            self.player.toggle()
            if anew:
                self._show_output()
            self.query_one(ReplayBar).refresh()

    def faster(self, steps: int) -> None:
        """Play faster, or slower."""
        if self.player is not None:
            self.player.faster(steps)
            self.query_one(ReplayBar).refresh()

    def skip(self, by_s: float) -> None:
        """Go so many seconds on, or back."""
        if self.player is not None:
            self.player.skip(by_s)
            self._show_output()

    def to(self, at_s: float) -> None:
        """Go to a time; beyond the end, all is shown."""
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
