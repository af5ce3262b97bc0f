"""The dialogs of decisions: the reason of a denial, a session's denied commands, and several calls at once."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Label, Static
from textual.widgets.option_list import Option

from whisper_tui.model.decision import Deny
from whisper_tui.model.secrets import masked_words
from whisper_tui.model.state import CallRecord
from whisper_tui.model.text import visible
from whisper_tui.present.call_text import place_paragraphs, returned_paragraphs
from whisper_tui.present.command_text import command_paragraphs, command_title, head_and_tail_line, meaning_paragraphs
from whisper_tui.present.quantities import count
from whisper_tui.present.security_text import own_shell_paragraphs
from whisper_tui.present.spans import BLANK, Paragraph, Span, labelled, said
from whisper_tui.present.verdict_text import findings
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles
from whisper_tui.tui.paragraphs_view import ParagraphsView
from whisper_tui.tui.row_list import RowList

NO_REASON = "Press Enter again to deny it without a reason."


class DenyScreen(Dialog[Deny]):
    """Asks for the reason of a denial."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/deny.tcss"]
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
        """Build the field, its explanation and the earlier reasons."""
        with Vertical(classes="dialog") as dialog:
            whole = f"{count(self._others + 1, 'waiting call')} of {self._session}"
            dialog.border_title = Content(f"Deny {whole if self._stop_session else self._what}")
            if self._stop_session and self._others:
                others = count(self._others, "other waiting call")
                text = f"{others} of the session {self._session} will be denied with it."
                yield Static(Content(text), classes="dialog-problem")
            yield Static(Content("The agent is given your reason word for word."), classes="dialog-note")
            # With select_on_focus, the first typed letter would replace an earlier reason that was put back here.
            yield Input(placeholder="What should it do instead?", id="reason", select_on_focus=False)
            yield Static("", classes="dialog-problem", id="warning")
            if self._recent:
                yield Static(Content("↓ Your earlier reasons"), classes="dialog-note")
                yield RowList(*(Option(Content(visible(reason))) for reason in self._recent), id="recent")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Focus the field for the reason."""
        self.query_one("#warning").display = False
        reason = self.query_one(Input)
        reason.cursor_blink = False
        reason.focus()

    def key_down(self) -> None:
        """Move the focus from the field to the earlier reasons."""
        if self._recent and self.focused is self.query_one(Input):
            reasons = self.query_one(RowList)
            reasons.focus()
            reasons.highlighted = 0
            self._fill(0)

    @on(RowList.OptionHighlighted)
    def _again(self, event: RowList.OptionHighlighted) -> None:
        """Put a reason into the field, to be sent or changed; the list highlights its first row by itself."""
        if self.focused is self.query_one(RowList):
            self._fill(event.option_index)

    def _fill(self, at: int) -> None:
        reason = self.query_one(Input)
        # The stored text, not the shown one, in which control characters are written out.
        reason.value = self._recent[at]
        reason.cursor_position = len(reason.value)

    @on(RowList.OptionSelected)
    def _clicked(self, event: RowList.OptionSelected) -> None:
        """Put a reason into the field, and go on there."""
        self._fill(event.option_index)
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _typed(self) -> None:
        self._warned = False
        self.query_one("#warning").display = False

    def action_deny(self) -> None:
        """Deny with the text; without a text, only at the second time."""
        reason = self.query_one(Input).value.strip()
        # The reason is all that an agent learns about a denial, so that a second Enter is asked for without one.
        if not reason and not self._warned:
            self._warned = True
            warning = self.query_one("#warning", Static)
            warning.update(Content(NO_REASON))
            warning.display = True
            return
        self.dismiss(Deny(reason=reason, stop_session=self._stop_session))


EXPLAINED = (
    "Denies this call, and every waiting and future call of this session whose command begins with these words, also"
    " while no cockpit is open. The words are compared as plain text: a command that disguises them still needs"
    " approval."
)


@dataclass(frozen=True)
class SessionDenialChoice:
    """The words to deny and the reason for the agent; empty words lift all denials of the session."""

    words: tuple[str, ...]
    reason: str = ""


class SessionDenialScreen(Dialog[SessionDenialChoice]):
    """Asks for the first words of the commands to deny, and for a message to the agent."""

    # An Input takes Ctrl+X for itself (cut), hence the priority.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+x", "lift", "Ask again", priority=True)]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Enter", "Deny from now on", "deny"),
        ("Ctrl+X", "Ask again about all", "lift"),
    )

    def __init__(self, session: str, words: tuple[str, ...], held: tuple[tuple[str, ...], ...]) -> None:
        """`words` are suggested; `held` are denied in the session already."""
        super().__init__()
        self._session = session
        self._words = words
        self._held = held

    def compose(self) -> ComposeResult:
        """The explanation, the fields, and the denials that are in force."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Deny for session {self._session}")
            yield Static(Content(EXPLAINED), classes="dialog-text")
            yield Label("First words of the command")
            yield Input(visible(shlex.join(self._words)), id="words")
            yield Label("Message to the agent")
            yield Input(placeholder="Not in this session.", id="reason")
            yield Static("", id="problem", classes="dialog-problem")
            if self._held:
                shown = ", ".join(repr(" ".join(masked_words(words))) for words in self._held)
                yield Static(Content(visible(f"Denied already: {shown}.")), classes="dialog-note")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Focus the words."""
        self.query_one("#choose-lift").display = bool(self._held)
        for field in self.query(Input):
            field.cursor_blink = False
        self.query_one("#words", Input).focus()

    def action_deny(self) -> None:
        """Deny these words from now on."""
        try:
            words = tuple(shlex.split(self.query_one("#words", Input).value))
        except ValueError:
            words = ()
        if not words:
            self.query_one("#problem", Static).update(Content("Type the words, with every quote closed."))
            return
        reason = self.query_one("#reason", Input).value.strip() or "Not in this session."
        self.dismiss(SessionDenialChoice(words, reason))

    def action_lift(self) -> None:
        """Lift all denials of this session."""
        if self._held:
            self.dismiss(SessionDenialChoice(()))


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
        *place_paragraphs(spec),
        *own_shell_paragraphs(record),
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
        *returned_paragraphs(record),
        *(
            Paragraph(said(f"{each.sentence}.", each.sign.role), (Span(f" {each.sign.text} ", each.sign.role),))
            for each in findings(record)
        ),
        *(replace(paragraph, decides=True) for paragraph in decides),
        BLANK,
    )


def _directory(record: CallRecord) -> str:
    # The directory after symbolic links is the one that the command works in.
    real = record.resolved.cwd if record.resolved else None
    return real or record.call.spec.cwd


BatchChoice = Literal["approve", "deny", "aside", "unmark"]


class BatchScreen(Dialog[BatchChoice]):
    """Shows several calls in full, to approve, deny or unmark all of them."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/batch.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "deny", "Deny all of these"),
        Binding("z", "aside", "Set all of these aside, or bring them back if all are"),
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
            ("Enter", "Approve it" if many == 1 else f"Approve all {many:,}", "approve"),
            ("d", "Deny it" if many == 1 else f"Deny all {many:,}", "deny"),
            ("z", "Bring back" if all(record.aside for record in records) else "Set aside", "aside"),
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

    def action_aside(self) -> None:
        """Set all of them aside without an answer, or bring them back."""
        self.dismiss("aside")

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
