"""A line over everything while the supervisor is of another version."""

from textual.content import Content
from textual.widgets import Static

from whisper_tui.model.text import visible


class VersionBar(Static):
    """Says which versions there are, and what can be done."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.display = False

    def say(self, text: str) -> None:
        """Show this."""
        self.update(Content(f"⇅ {visible(text)}"))
        self.display = True
