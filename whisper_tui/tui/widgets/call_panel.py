"""The middle of the cockpit: the heading of a call, the call in full, and the buttons that decide about it.

Whoever approves asks `CallPanel.unseen` first: it is how many rows of the command, and of what it means, have not
been on the screen since the call was shown there.
"""

from textual.app import ComposeResult
from textual.containers import Vertical

from whisper_tui.model.call import Session
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.tui.commands import BY_ID
from whisper_tui.tui.describe import describe, heading
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.spans import Line, Paragraph, Span
from whisper_tui.tui.widgets.action_bar import ActionBar
from whisper_tui.tui.widgets.line_view import LineView
from whisper_tui.tui.widgets.paragraphs_view import ParagraphsView
from whisper_tui.tui.words import count

HEADING_AND_BUTTONS = 2
LEAST_ROWS = 4
"""Rows that a call gets however small the terminal is."""
NOTHING: Line = (Span("No call yet", "strong"),)


class CallPanel(Vertical):
    """Shows one record at a time."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.record: CallRecord | None = None
        """What is on the screen; what is decided is decided about this."""
        self._heading: Line = NOTHING
        self._hidden: Line = ()
        self._rows = 0
        self._room: int | None = None

    def compose(self) -> ComposeResult:
        """Heading, text, buttons."""
        yield LineView(id="call-heading")
        yield ParagraphsView(id="call-detail")
        yield ActionBar(id="call-actions")

    @property
    def unseen(self) -> int:
        """Rows of the command, of what it means, of where and with which variables it runs, that were never shown."""
        return self.query_one(ParagraphsView).unseen if self.record is not None else 0

    def page(self, direction: int) -> None:
        """Show the next part of the call, or the one before."""
        self.query_one(ParagraphsView).page(direction)

    def show(
        self,
        record: CallRecord | None,
        session: Session | None,
        now: float,
        recent: tuple[CallRecord, ...] = (),
        *,
        drawn: CallRecord | None = None,
        note: tuple[Paragraph, ...] = (),
        still: bool = False,
        silent_since: float | None = None,
    ) -> None:
        """Show a call as it is now, with other calls of its session. None: there is no call.

        `drawn` is the call without what nobody is to read here, `note` is said above it; `still` and `silent_since`
        are as for `heading`.
        """
        another = record is None or self.record is None or record.id != self.record.id
        self.record = record
        paragraphs = (*note, *describe(drawn or record, session, now, recent)) if record is not None else ()
        self._heading = heading(record, now, still=still, silent_since=silent_since) if record is not None else NOTHING
        self.query_one(ParagraphsView).show(paragraphs, from_top=another)
        self.query_one(ActionBar).show(record, still=still)
        self._draw_heading()

    def on_paragraphs_view_hidden(self, message: ParagraphsView.Hidden) -> None:
        """Say how much is not on the screen."""
        message.stop()
        parts = [f"▲ {count(message.above, 'line')}"] if message.above else []
        parts += [f"▼ {count(message.below, 'more line')}"] if message.below else []
        self._hidden = (Span("  ".join(parts) + " ", "running"),) if parts else ()
        if message.unseen and self.record is not None and isinstance(self.record.state, Waiting):
            key = in_force(self.app).command(BY_ID["page-call-down"]).key_name
            words = f"▼ {count(message.unseen, 'line')} not seen yet{f' ({key})' if key else ''} "
            self._hidden = (Span(words, "risk"),)
        self._rows = message.rows
        self._draw_heading()
        self.leave_room(self._room)

    def leave_room(self, room: int | None) -> None:
        """Be no higher than the text needs, and than `room` rows. None: be as high as there is room."""
        self._room = room
        height = None if room is None else max(LEAST_ROWS, min(self._rows + HEADING_AND_BUTTONS, room))
        self.styles.height = "1fr" if height is None else height

    def on_descendant_focus(self) -> None:
        """A sign says that keys go here."""
        self._draw_heading()

    def on_descendant_blur(self) -> None:
        """Keys go elsewhere."""
        self._draw_heading()

    def _draw_heading(self) -> None:
        sign = Span("▌", "running") if self.query_one(ParagraphsView).has_focus else Span(" ")
        self.query_one("#call-heading", LineView).show((sign, *self._heading), self._hidden)
