"""A line over everything while the supervisor cannot be reached."""

from textual.content import Content
from textual.widgets import Static

from whisper_tui.model.errors import WhisperError
from whisper_tui.tui.words import limit, told


class Banner(Static):
    """Says what was lost, that nothing stops because of it, and what happens next."""

    def lost(self, error: WhisperError, retry_in_s: float | None) -> None:
        """Show that the connection is gone."""
        then = (
            f"Trying again in {limit(retry_in_s)}."
            if retry_in_s is not None
            else "Leave with q and start whisper-tui again."
        )
        comfort = "" if error.hint else "Commands that run go on. "
        self.update(Content(f"✘ {told(error)} {comfort}{then}"))
        self.display = True

    def back(self) -> None:
        """Show nothing."""
        self.display = False
