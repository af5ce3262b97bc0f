"""The line under replayed output: what was reached, of how much, and how fast it goes on."""

from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from whisper_tui.tui.history.playing import Player
from whisper_tui.tui.spans import ROLE_CLASSES, Line, Span, width_of
from whisper_tui.tui.widgets.drawn import base_style, drawn
from whisper_tui.tui.words import REMOVED

SIGN = 3
"""Columns of the sign that plays and pauses when it is clicked."""


class ReplayBar(Widget):
    """A click on the sign plays or pauses; one on the bar goes there."""

    COMPONENT_CLASSES = ROLE_CLASSES
    ALLOW_SELECT = False

    class Toggled(Message):
        """Play or pause."""

    @dataclass
    class Sought(Message):
        """Go to a time."""

        at_s: float

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.player: Player | None = None
        self.gone = False
        """Whether what was printed is no longer on the disk."""
        self._bar = (0, 0)
        """Column of the bar, and how many it has."""

    def show(self, player: Player | None) -> None:
        """Draw where a player is. None: nothing ran."""
        self.player = player
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The line."""
        width = self.size.width
        if y > 0 or self.player is None:
            return Strip.blank(width, base_style(self))
        if self.gone:
            return drawn(self, (Span(f"   {REMOVED}", "risk"),), width)
        if not self.player.recording.rows:
            return drawn(self, (Span("   There is nothing to play in time.", "muted"),), width)
        return drawn(self, self._line(self.player, width), width)

    def _line(self, player: Player, width: int) -> Line:
        length = player.recording.length_s
        at = length if player.at is None else player.at
        left: Line = (
            Span(" ▮▮" if player.playing else " ▶ ", "running"),
            Span(f" {_clock(at)} of {_clock(length)} ", "text"),
        )
        words = "playing" if player.playing else "all of it" if player.at is None else "paused"
        right: Line = (Span(f" speed {player.speed:g}", "text"), Span(f" · {words} ", "muted"))
        room = max(0, width - width_of(left) - width_of(right))
        done = room if length <= 0 else min(room, round(room * at / length))
        self._bar = (width_of(left), room)
        return (*left, Span("━" * done, "running"), Span("─" * (room - done), "frame"), *right)

    def on_click(self, event: events.Click) -> None:
        """Play, pause, or go somewhere."""
        start, room = self._bar
        if event.x < SIGN:
            self.post_message(self.Toggled())
        elif self.player is not None and room and start <= event.x < start + room:
            self.post_message(self.Sought((event.x - start) / room * self.player.recording.length_s))


def _clock(seconds: float) -> str:
    """A time as players show it: 0:07.4, 12:07, 1:02:07."""
    whole = int(seconds)
    if seconds < 60:
        return f"0:{seconds:04.1f}"
    minutes = f"{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{whole // 3600}:{minutes}" if whole >= 3600 else minutes.removeprefix("0")
