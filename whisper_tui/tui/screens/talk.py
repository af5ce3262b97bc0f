"""The conversation of a session: what its model says, and a line for what it shall do next."""

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.event import LONGEST_SAID, SessionSaid
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles
from whisper_tui.tui.spans import Paragraph, Span
from whisper_tui.tui.talk_text import talk_paragraphs
from whisper_tui.tui.widgets.paragraphs_view import ParagraphsView
from whisper_tui.tui.words import called, told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

LOOK_S = 0.2
"""How often it is looked whether more was said."""
SILENT = Paragraph((Span("Nothing was said yet.", "muted"),), margin=(Span(" "),))


class TalkScreen(Dialog[None]):
    """Enter says what is typed; the agent reads it when it is done with what it does."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "talk.tcss"]
    LEAVE = "Close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "page(-1)", "Page up", priority=True),
        Binding("pagedown", "page(1)", "Page down", priority=True),
    ]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Say it", "say"),)

    def __init__(self, cockpit: "CockpitScreen", session_id: str) -> None:
        super().__init__()
        self._cockpit = cockpit
        self._session_id = session_id
        self._last: SessionSaid | None = None

    def compose(self) -> ComposeResult:
        """What was said, and the line."""
        session = self._cockpit.board.sessions.get(self._session_id)
        name = called(session, self._session_id)
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"The session {name}")
            yield ParagraphsView(id="said")
            yield Static("", id="talk-note", classes="dialog-note")
            yield Input(placeholder="What shall it do next?", id="say", max_length=LONGEST_SAID)
            yield from self.buttons()

    def on_mount(self) -> None:
        """Type at once, if the agent reads it."""
        field = self.query_one(Input)
        field.cursor_blink = False
        self.query_one(ParagraphsView).show((SILENT,), from_top=True)
        self.set_interval(LOOK_S, self._look)
        self._look()
        if field.display:
            field.focus()

    def _look(self) -> None:
        """Show what was said since, with its end in view."""
        board = self._cockpit.board
        session = board.sessions.get(self._session_id)
        problem = ""
        if session is None or session.closed_at is not None:
            problem = "The session is closed: nothing can be said to its agent any more."
        elif not session.hears:
            problem = "This agent does not read what is said to it; whisper-tui agent --stay does."
        for widget in (self.query_one(Input), self.query_one("#choose-say")):
            widget.display = not problem
        note = problem or "The agent reads it as soon as it is done with what it does now."
        self.query_one("#talk-note", Static).update(Content(note))
        conversation = board.said.get(self._session_id)
        if conversation and conversation[-1] is not self._last:
            self._last = conversation[-1]
            view = self.query_one(ParagraphsView)
            view.show(talk_paragraphs(conversation), from_top=False)
            self.call_after_refresh(lambda: view.scroll_end(animate=False))

    @on(Input.Submitted)
    async def _submitted(self) -> None:
        await self.action_say()

    async def action_say(self) -> None:
        """Say what is typed; it stays in the field if it could not be said."""
        field = self.query_one(Input)
        text = field.value.strip()
        if not text:
            return
        try:
            await self._cockpit.supervision.say(self._session_id, text, self._cockpit.me)
        except WhisperError as error:
            self._cockpit.tell(told(error), severity="warning")
        else:
            field.value = ""

    def action_page(self, direction: int) -> None:
        """Read what was said before."""
        self.query_one(ParagraphsView).page(direction)
