"""Asks before everything of a run is ended."""

from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whisper_tui.tui.screens.dialog import Dialog
from whisper_tui.tui.words import limit

HowToKill = Literal["term", "kill"]


class ConfirmKillScreen(Dialog[HowToKill]):
    """Enter ends politely, then for good; `k` once more ends at once."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "term", "End it"),
        Binding("k", "kill", "KILL at once"),
    ]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "End it", "term"), ("k", "KILL at once", "kill"))

    def __init__(self, call_id: str, what: str, grace_s: float) -> None:
        super().__init__()
        self._call_id = call_id
        self._what = what
        self._grace_s = grace_s

    def compose(self) -> ComposeResult:
        """What will be ended, and how."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"End call {self._call_id}")
            yield Static(Content(self._what), classes="dialog-text")
            words = f"It is asked to end with SIGTERM. What is still alive after {limit(self._grace_s)} gets SIGKILL."
            yield Static(Content(words), classes="dialog-note")
            yield from self.buttons()

    def action_term(self) -> None:
        """TERM, the grace, KILL."""
        self.dismiss("term")

    def action_kill(self) -> None:
        """KILL."""
        self.dismiss("kill")
