"""Asks for a line that a running command shall read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from whisper_tui.tui.screens.dialog import Dialog

NOTE = "The command reads it; the journal never does."
HIDDEN = "The command asks for a secret: what you type is hidden. Ctrl+T shows it."
LOOK_S = 0.25
"""Seconds between two looks at whether the command asks for a secret."""


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

    def __init__(self, call_id: str, last_line: str, hidden: Callable[[], bool] = lambda: False) -> None:
        """`hidden`: whether the command does not want typed letters on the screen, as far as is known now."""
        super().__init__()
        self._hidden = hidden
        self._chosen = False
        """Whether the person has said what to show."""
        self._call_id = call_id
        self._last_line = last_line

    def compose(self) -> ComposeResult:
        """What the command said last, and a field."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Type into call {self._call_id}")
            if self._last_line:
                yield Static(Content(self._last_line), classes="dialog-text")
            yield Static(Content(NOTE), classes="dialog-note", id="line-note")
            yield Input(id="line")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Type at once."""
        field = self.query_one(Input)
        field.cursor_blink = False
        field.focus()
        self._look()
        self.set_interval(LOOK_S, self._look)

    def _look(self) -> None:
        """Hide what is typed once the command asks for a secret. Nothing is shown again by itself."""
        field = self.query_one(Input)
        if not self._chosen and not field.password and self._hidden():
            field.password = True
            self.query_one("#line-note", Static).update(Content(HIDDEN))

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
        self._chosen = True
        field.password = not field.password
        self.query_one("#line-note", Static).update(Content(NOTE))
