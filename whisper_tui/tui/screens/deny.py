"""Asks why a call is denied."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from whisper_tui.model.decision import Deny
from whisper_tui.model.text import visible
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles
from whisper_tui.tui.words import count

NO_REASON = "Press Enter again to deny it without a reason."


class DenyScreen(Dialog[Deny]):
    """One line of text; an empty one has to be confirmed, because a reason is what helps the agent most."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "deny.tcss"]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Deny", "deny"),)

    def __init__(
        self, what: str, session: str, others: int, *, stop_session: bool, recent: tuple[str, ...] = ()
    ) -> None:
        """`what` is denied, with `others` of the session if that is stopped; `recent`: reasons given before."""
        super().__init__()
        self._what = what
        self._session = session
        self._others = others
        self._stop_session = stop_session
        self._recent = recent
        self._warned = False

    def compose(self) -> ComposeResult:
        """A field, what happens to the text, and the texts before."""
        with Vertical(classes="dialog") as dialog:
            whole = f"{count(self._others + 1, 'waiting call')} of {self._session}"
            dialog.border_title = Content(f"Deny {whole if self._stop_session else self._what}")
            if self._stop_session:
                others = count(self._others, "other waiting call")
                text = f"{others} of the session {self._session} will be denied with it."
                yield Static(Content(text), classes="dialog-problem")
            yield Static(Content("The agent is given your reason word for word."), classes="dialog-note")
            yield Input(placeholder="What should it do instead?", id="reason", select_on_focus=False)
            yield Static("", classes="dialog-problem", id="warning")
            if self._recent:
                yield Static(Content("↓ Reasons that you gave before"), classes="dialog-note")
                yield OptionList(*(Option(Content(visible(reason))) for reason in self._recent), id="recent")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Type at once."""
        self.query_one("#warning").display = False
        reason = self.query_one(Input)
        reason.cursor_blink = False
        reason.focus()

    def key_down(self) -> None:
        """From the field to the reasons before."""
        if self._recent and self.focused is self.query_one(Input):
            self.query_one(OptionList).focus()

    @on(OptionList.OptionSelected)
    def _again(self, event: OptionList.OptionSelected) -> None:
        """Put a reason into the field, to be sent or changed."""
        reason = self.query_one(Input)
        reason.value = self._recent[event.option_index]
        reason.cursor_position = len(reason.value)
        reason.focus()

    @on(Input.Changed)
    def _typed(self) -> None:
        self._warned = False
        self.query_one("#warning").display = False

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_deny()

    def action_deny(self) -> None:
        """Deny with the text; without one, only when asked twice."""
        reason = self.query_one(Input).value.strip()
        if not reason and not self._warned:
            self._warned = True
            warning = self.query_one("#warning", Static)
            warning.update(Content(NO_REASON))
            warning.display = True
            return
        self.dismiss(Deny(reason=reason, stop_session=self._stop_session))
