"""Secrets on the screen: a call that waits is shown whole, any other without its secrets, until a person asks.

What is drawn may be masked; whatever decides, runs again or copies takes the call as it is.
"""

from collections.abc import Callable

from textual.screen import Screen
from textual.timer import Timer

from whisper_tui.model.masked_calls import mask_unless_undecided
from whisper_tui.model.state import CallRecord
from whisper_tui.present.spans import Paragraph, Span, labelled

REVEALED_S = 10.0
"""Seconds for which the secrets of one call are shown."""


class RevealedSecrets:
    """The call of a screen that is shown with its secrets for some seconds."""

    def __init__(self, screen: Screen[None], draw: Callable[[], object]) -> None:
        """`draw` shows the selected call anew."""
        self._screen = screen
        self._draw = draw
        self._call_id: str | None = None
        self._timer: Timer | None = None
        self._last: tuple[CallRecord, CallRecord] | None = None
        """The record that was masked last, and what came of it; it is asked for again and again."""
        self._hides = False

    def shown(self, record: CallRecord) -> CallRecord:
        """A call as it is drawn."""
        return record if record.id == self._call_id else self._masked(record)

    def note(self, record: CallRecord, key: str) -> tuple[Paragraph, ...]:
        """Return the note above a call with secrets: hidden, or shown for the moment."""
        if not self.hides(record):
            return ()
        shown = record.id == self._call_id
        words = "shown" if shown else f"hidden{f'; {key} shows them for {REVEALED_S:.0f} seconds' if key else ''}"
        return (labelled("Secrets", (Span(words, "risk" if shown else "muted"),)),)

    def hides(self, record: CallRecord) -> bool:
        """True if a call has secrets that are masked unless revealed."""
        self._masked(record)
        return self._hides

    def conceals(self, record: CallRecord) -> bool:
        """True if secrets of a call are masked on the screen now."""
        return record.id != self._call_id and self.hides(record)

    def _masked(self, record: CallRecord) -> CallRecord:
        if self._last is None or self._last[0] is not record:
            masked = mask_unless_undecided(record)
            self._hides = masked is not record and (masked.spec, masked.call) != (record.spec, record.call)
            self._last = record, masked
        return self._last[1]

    def reveal(self, record: CallRecord) -> str:
        """Show the secrets of a call for some seconds, or hide them again. Returns what is said about it."""
        if record.id == self._call_id:
            self._hide()
            return f"The secrets of call {record.id} are hidden."
        if not self.hides(record):
            return f"Nothing in call {record.id} is hidden."
        if self._timer is not None:
            self._timer.stop()
        self._call_id = record.id
        self._timer = self._screen.set_timer(REVEALED_S, self._hide)
        self._draw()
        return f"The secrets of call {record.id} are shown for {REVEALED_S:.0f} seconds."

    def _hide(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._call_id = self._timer = None
        self._draw()
