"""The conversation with the agent of a session: its messages, and a field for the next one."""

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.event import LONGEST_SAID, SessionSaid
from whisper_tui.present.quantities import clock_time
from whisper_tui.present.session_text import session_words
from whisper_tui.present.spans import BLANK, Line, Paragraph, Span, said
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles
from whisper_tui.tui.paragraphs_view import ParagraphsView

MODEL: Line = (Span(" │ ", "frame"),)
HUMAN: Line = (Span(" ┃ ", "waiting"),)


def talk_paragraphs(conversation: Iterable[SessionSaid]) -> tuple[Paragraph, ...]:
    """Return the messages with author and time, oldest first."""
    found: list[Paragraph] = []
    for event in conversation:
        by_model = event.by.surface == "agent"
        who = said(event.by.who or "the model", "strong") if by_model else said(event.by.who or "the task", "waiting")
        when = Span(f"  {clock_time(event.at)}", "muted")
        found.append(Paragraph((*who, when), margin=(Span(" "),)))
        margin = MODEL if by_model else HUMAN
        found += [Paragraph(said(line), margin, margin) for line in event.text.split("\n")]
        found.append(BLANK)
    return tuple(found)


LOOK_S = 0.2
"""Seconds between two checks for new messages."""
SILENT = Paragraph((Span("No messages yet.", "muted"),), margin=(Span(" "),))


class ConversationScreen(Dialog[None]):
    """Shows the conversation and sends messages to the agent, which reads them when it is idle."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/conversation.tcss"]
    LEAVE = "Close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "page(-1)", "Page up", priority=True),
        Binding("pagedown", "page(1)", "Page down", priority=True),
    ]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Send", "say"),)

    def __init__(self, cockpit: CockpitContext, session_id: str) -> None:
        super().__init__()
        self._cockpit = cockpit
        self._session_id = session_id
        self._last: SessionSaid | None = None

    def compose(self) -> ComposeResult:
        """Build the messages and the input line."""
        session = self._cockpit.board.sessions.get(self._session_id)
        name = session_words(session, self._session_id)
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Conversation with {name}")
            yield ParagraphsView(id="said")
            yield Static("", id="talk-note", classes="dialog-note")
            yield Input(placeholder="Message to the agent", id="say", max_length=LONGEST_SAID)
            yield from self.buttons()

    def on_mount(self) -> None:
        """Focus the input line if the agent reads messages."""
        field = self.query_one(Input)
        field.cursor_blink = False
        self.query_one(ParagraphsView).show((SILENT,), from_top=True)
        # A poll of the board in this process: events only redraw the screen below the dialog.
        self.set_interval(LOOK_S, self._look)
        self._look()
        if field.display:
            field.focus()

    def _look(self) -> None:
        """Show new messages, with the newest in view."""
        board = self._cockpit.board
        session = board.sessions.get(self._session_id)
        problem = ""
        if session is None or session.closed_at is not None:
            problem = "The session is closed: its agent cannot receive messages any more."
        elif not session.hears:
            problem = "This agent does not read messages; one started with `whisper-tui agent --stay` does."
        for widget in (self.query_one(Input), self.query_one("#choose-say")):
            widget.display = not problem
        note = problem or "The agent reads messages when it has finished its present task."
        self.query_one("#talk-note", Static).update(Content(note))
        conversation = board.said.get(self._session_id)
        if conversation and conversation[-1] is not self._last:
            self._last = conversation[-1]
            view = self.query_one(ParagraphsView)
            view.show(talk_paragraphs(conversation), from_top=False)
            # The height of the new text is known only once it is laid out.
            self.call_after_refresh(lambda: view.scroll_end(animate=False))

    async def action_say(self) -> None:
        """Send the typed message."""
        field = self.query_one(Input)
        text = field.value.strip()
        if not text:
            return
        try:
            await self._cockpit.supervision.say(self._session_id, text, self._cockpit.me)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
        else:
            # Only now, so that a message that could not be sent need not be typed again.
            field.value = ""

    def action_page(self, direction: int) -> None:
        """Scroll the messages by a page."""
        self.query_one(ParagraphsView).page(direction)
