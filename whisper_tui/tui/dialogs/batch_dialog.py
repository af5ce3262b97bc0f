"""The dialogs that decide about several calls at once, and that list the failures of doing so."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from whisper_tui.model.state import CallRecord
from whisper_tui.present.command_text import command_paragraphs, command_title, head_and_tail_line, meaning_paragraphs
from whisper_tui.present.quantities import count
from whisper_tui.present.security_text import not_inspected_sentences, risk_role, risk_sign
from whisper_tui.present.spans import BLANK, Line, Paragraph, Span, labelled, said
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles
from whisper_tui.tui.paragraphs_view import ParagraphsView

WITH: Line = (Span(" with ", "label"),)


def batch_paragraphs(records: tuple[CallRecord, ...], sessions: Mapping[str, str]) -> tuple[Paragraph, ...]:
    """Return the calls in their order; `sessions` are the names of their sessions by id of the call."""
    found: list[Paragraph] = []
    for number, record in enumerate(records, start=1):
        found += _call(record, number, sessions[record.id])
    return tuple(found)


def _call(record: CallRecord, number: int, session: str) -> tuple[Paragraph, ...]:
    spec = record.call.spec
    risks = record.verdict.risks if record.verdict else ()
    title = (
        Span(f"{number}. Call {record.id}", "strong"),
        *said(f"  {session}", "muted"),
        Span(f"  {command_title(spec.command)}", "muted"),
    )
    decides = (
        *command_paragraphs(spec.command, risks),
        *meaning_paragraphs(spec.command, record.resolved),
        *(
            Paragraph(
                (*head_and_tail_line(name, "strong"), Span("=", "muted"), *head_and_tail_line(value, "text")),
                (Span(" with ", "label"),),
            )
            for name, value in sorted(spec.environment.items())
        ),
        labelled("Directory", said(_directory(record)), at_words=False),
    )
    return (
        Paragraph(title, margin=(Span(" ◆ ", "waiting"),)),
        *(
            Paragraph(said(f"{risk.sentence}.", risk_role(risk)), (Span(f" {risk_sign(risk)} ", risk_role(risk)),))
            for risk in risks
        ),
        *(Paragraph(said(f"{text}.", "risk"), (Span(" ? ", "risk"),)) for text in not_inspected_sentences(record)),
        *(replace(paragraph, decides=True) for paragraph in decides),
        BLANK,
    )


def _directory(record: CallRecord) -> str:
    # The directory after symbolic links is the one that the command works in.
    real = record.resolved.cwd if record.resolved else None
    return real or record.call.spec.cwd


BatchChoice = Literal["approve", "deny", "unmark"]


class BatchScreen(Dialog[BatchChoice]):
    """Shows several calls in full, to approve, deny or unmark all of them."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/batch.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "approve", "Approve all of these", priority=True),
        Binding("d", "deny", "Deny all of these"),
        Binding("u", "unmark", "Unmark all of these"),
    ]

    def __init__(self, records: tuple[CallRecord, ...], sessions: Mapping[str, str]) -> None:
        """`sessions`: the names of the calls' sessions by id of the call."""
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
        """Build the calls and the buttons."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Decide about {count(len(self._records), 'call')}")
            yield ParagraphsView(id="batch")
            yield Static("", id="batch-problem", classes="dialog-problem")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Show the calls from the first one on."""
        view = self.query_one(ParagraphsView)
        view.show(batch_paragraphs(self._records, self._sessions), from_top=True)
        view.focus()

    def on_paragraphs_view_hidden(self, message: ParagraphsView.Hidden) -> None:
        """Show how many lines are below."""
        more = f" ▼ {count(message.below, 'more line')} " if message.below else ""
        self.query_one(".dialog").border_subtitle = Content(more)

    def action_approve(self) -> None:
        """Approve all of them."""
        rows = self.query_one(ParagraphsView).unseen
        # Lines that were never on the screen are told once, then the key approves (decision 23).
        if rows and not self._warned:
            self._warned = True
            words = f"{count(rows, 'line')} of the commands not shown. Press again to approve anyway."
            self.query_one(Static).update(Content(words))
            return
        self.dismiss("approve")

    def action_deny(self) -> None:
        """Deny all of them; the reason is asked for afterwards."""
        self.dismiss("deny")

    def action_unmark(self) -> None:
        """Unmark all of them and decide nothing."""
        self.dismiss("unmark")


class FailuresScreen(Dialog[None]):
    """Lists the calls whose decision failed, with the reasons."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/failures.tcss"]
    LEAVE = "Close"

    def __init__(self, title: str, failures: tuple[tuple[str, str], ...]) -> None:
        """`failures`: ids of calls with a sentence each."""
        super().__init__()
        self._title = title
        self._failures = failures

    def compose(self) -> ComposeResult:
        """Build a line per call."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(self._title)
            with VerticalScroll():
                for call_id, sentence in self._failures:
                    yield Static(Content(f"Call {call_id}: {sentence}"), classes="dialog-text")
            yield from self.buttons()
