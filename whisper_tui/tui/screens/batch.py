"""Shows everything that is about to be decided at once, before it is."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whisper_tui.model.state import CallRecord
from whisper_tui.tui.batch_text import batch_paragraphs
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles
from whisper_tui.tui.widgets.paragraphs_view import ParagraphsView
from whisper_tui.tui.words import count

BatchChoice = Literal["approve", "deny", "unmark"]


class BatchScreen(Dialog[BatchChoice]):
    """Nothing that has not been on the screen is approved at the first key."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "batch.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "approve", "Approve all of these", priority=True),
        Binding("d", "deny", "Deny all of these"),
        Binding("u", "unmark", "Unmark all of these"),
    ]

    def __init__(self, records: tuple[CallRecord, ...], sessions: Mapping[str, str]) -> None:
        """`sessions`: names of the calls' sessions, by the ids of the calls."""
        super().__init__()
        self._records = records
        self._sessions = sessions
        self._warned = False
        many = len(records)
        self.CHOICES = (  # type: ignore[misc]
            ("Ctrl+S", "Approve it" if many == 1 else f"Approve all {many:,}", "approve"),
            ("d", "Deny it" if many == 1 else f"Deny all {many:,}", "deny"),
            ("u", "Unmark", "unmark"),
        )

    def compose(self) -> ComposeResult:
        """The calls, and the buttons."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Decide about {count(len(self._records), 'call')}")
            yield ParagraphsView(id="batch")
            yield Static("", id="batch-problem", classes="dialog-problem")
            yield from self.buttons()

    def on_mount(self) -> None:
        """From the first call on."""
        view = self.query_one(ParagraphsView)
        view.show(batch_paragraphs(self._records, self._sessions), from_top=True)
        view.focus()

    def on_paragraphs_view_hidden(self, message: ParagraphsView.Hidden) -> None:
        """Say that there is more."""
        more = f" ▼ {count(message.below, 'more line')} " if message.below else ""
        self.query_one(".dialog").border_subtitle = Content(more)

    def action_approve(self) -> None:
        """Approve all; what was never on the screen is told once."""
        rows = self.query_one(ParagraphsView).unseen
        if rows and not self._warned:
            self._warned = True
            words = f"{count(rows, 'line')} of what will run not seen yet. Press again to approve all the same."
            self.query_one(Static).update(Content(words))
            return
        self.dismiss("approve")

    def action_deny(self) -> None:
        """Deny all, after a reason."""
        self.dismiss("deny")

    def action_unmark(self) -> None:
        """Decide nothing, and forget the marks."""
        self.dismiss("unmark")
