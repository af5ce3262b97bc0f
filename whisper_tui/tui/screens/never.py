"""Asks what shall never run in a session."""

import shlex
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Label, Static

from whisper_tui.model.text import visible
from whisper_tui.tui.refusals import Refusal
from whisper_tui.tui.screens.dialog import Dialog

EXPLAINED = (
    "Calls of this session that begin with these words, or hold a command that does, are denied by this cockpit, as"
    " long as it is open: this one, those that wait and those that come. It is no rule: what hides the words is asked"
    " as before."
)


@dataclass(frozen=True)
class NeverChoice:
    """Words and a reason; no words lift what was refused before."""

    words: tuple[str, ...]
    reason: str = ""


class NeverScreen(Dialog[NeverChoice]):
    """Two fields: the beginning, and what the agent is told."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+x", "lift", "Ask again", priority=True)]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Enter", "Deny from now on", "deny"),
        ("Ctrl+X", "Ask again about all of them", "lift"),
    )

    def __init__(self, session: str, words: tuple[str, ...], held: tuple[Refusal, ...]) -> None:
        """`words` are suggested; `held` is what is refused in the session already."""
        super().__init__()
        self._session = session
        self._words = words
        self._held = held

    def compose(self) -> ComposeResult:
        """What it means, the fields, and what is refused already."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Never in the session {self._session}")
            yield Static(Content(EXPLAINED), classes="dialog-text")
            yield Label("The words that it begins with")
            yield Input(visible(shlex.join(self._words)), id="words")
            yield Label("What the agent is told, word for word")
            yield Input(placeholder="Not in this session.", id="reason")
            yield Static("", id="problem", classes="dialog-problem")
            if self._held:
                shown = ", ".join(repr(" ".join(refusal.words)) for refusal in self._held)
                yield Static(Content(visible(f"Denied already: {shown}.")), classes="dialog-note")
            yield from self.buttons()

    def on_mount(self) -> None:
        """The words first."""
        self.query_one("#choose-lift").display = bool(self._held)
        for field in self.query(Input):
            field.cursor_blink = False
        self.query_one("#words", Input).focus()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_deny()

    def action_deny(self) -> None:
        """Refuse from now on."""
        try:
            words = tuple(shlex.split(self.query_one("#words", Input).value))
        except ValueError:
            words = ()
        if not words:
            self.query_one("#problem", Static).update(Content("Type the words, with every quote closed."))
            return
        reason = self.query_one("#reason", Input).value.strip() or "Not in this session."
        self.dismiss(NeverChoice(words, reason))

    def action_lift(self) -> None:
        """Refuse nothing of this session any more."""
        if self._held:
            self.dismiss(NeverChoice(()))
