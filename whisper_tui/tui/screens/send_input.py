"""Asks for a line that a running command shall read."""

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from whisper_tui.tui.screens.dialog import Dialog


@dataclass(frozen=True)
class LineWanted:
    """What is typed, and whether the input ends with it."""

    text: str
    ends: bool = False


class SendInputScreen(Dialog[LineWanted]):
    """One line, an empty one too; nothing of it is kept anywhere."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+d", "end", "End of input", priority=True),
        Binding("ctrl+t", "hide", "Hide it", priority=True),
    ]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Enter", "Send", "send"),
        ("Ctrl+D", "End of input", "end"),
        ("Ctrl+T", "Hide", "hide"),
    )

    def __init__(self, call_id: str, last_line: str) -> None:
        super().__init__()
        self._call_id = call_id
        self._last_line = last_line

    def compose(self) -> ComposeResult:
        """What the command said last, and a field."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Type into call {self._call_id}")
            if self._last_line:
                yield Static(Content(self._last_line), classes="dialog-text")
            yield Static(Content("The command reads it; the journal never does."), classes="dialog-note")
            yield Input(id="line")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Type at once."""
        field = self.query_one(Input)
        field.cursor_blink = False
        field.focus()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_send()

    def action_send(self) -> None:
        """Send what is typed, as one line."""
        self.dismiss(LineWanted(self.query_one(Input).value))

    def action_end(self) -> None:
        """Send what is typed, and let the command find the end of its input behind it."""
        self.dismiss(LineWanted(self.query_one(Input).value, ends=True))

    def action_hide(self) -> None:
        """For a password: show dots, or the letters again."""
        field = self.query_one(Input)
        field.password = not field.password
