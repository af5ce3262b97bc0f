"""Lists what could not be decided, one by one."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from whisper_tui.tui.screens.dialog import Dialog, StyleFiles


class FailuresScreen(Dialog[None]):
    """There is nothing to choose: it is read and left."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "failures.tcss"]
    LEAVE = "Close"

    def __init__(self, title: str, failures: tuple[tuple[str, str], ...]) -> None:
        """`failures`: ids of calls, each with a sentence."""
        super().__init__()
        self._title = title
        self._failures = failures

    def compose(self) -> ComposeResult:
        """A line for each."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(self._title)
            with VerticalScroll():
                for call_id, sentence in self._failures:
                    yield Static(Content(f"Call {call_id}: {sentence}"), classes="dialog-text")
            yield from self.buttons()
