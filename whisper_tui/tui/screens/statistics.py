"""What a session comes to, in figures that grow while its calls are read."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from whisper_tui.export.calls import PAGE, newest_first
from whisper_tui.export.statistics import Statistics
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import HistoryQuery, Supervision
from whisper_tui.model.text import visible
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles
from whisper_tui.tui.spans import BLANK, Paragraph, Span
from whisper_tui.tui.widgets.paragraphs_view import ParagraphsView
from whisper_tui.tui.words import count, duration, told

LABEL = 24


class StatisticsScreen(Dialog[None]):
    """The figures of one session."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "statistics.tcss"]
    LEAVE = "Close"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("i,q", "leave", "Close")]

    def __init__(self, supervision: Supervision, session_id: str, name: str) -> None:
        super().__init__()
        self._supervision = supervision
        self._session_id = session_id
        self._called = name
        self.statistics = Statistics()

    def compose(self) -> ComposeResult:
        """The figures, and how they are meant."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Session {visible(self._called)} in figures")
            yield ParagraphsView(id="figures")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Begin to read."""
        self._show("Reading …")
        self.run_worker(self._read(), name="figures")

    async def _read(self) -> None:
        query = HistoryQuery(limit=PAGE, session_id=self._session_id)
        try:
            async for page in newest_first(self._supervision, query):
                for record in page:
                    self.statistics.add(record)
                self._show("Reading …")
        except WhisperError as error:
            self._show(told(error))
        else:
            self._show("")

    def _show(self, state: str) -> None:
        view = self.query_one(ParagraphsView)
        view.show(figures_paragraphs(self.statistics, state), from_top=False)


def figures_paragraphs(found: Statistics, state: str) -> tuple[Paragraph, ...]:
    """The figures in rows, and below them how they are computed."""
    wait, saved = found.median_wait_s, found.saved_s
    rows = (
        ("Calls", f"{found.calls:,}"),
        ("A human was asked", f"{found.asked:,}"),
        ("  approved", f"{found.approved:,}" + (f", {found.edited:,} of them edited" if found.edited else "")),
        ("  denied", f"{found.denied:,}"),
        ("  still waiting", f"{found.waiting:,}"),
        ("Allowed by rules", f"{found.allowed_by_rule:,}"),
        ("Refused by rules", f"{found.refused_by_rule:,}"),
        ("Allowed by memory", f"{found.allowed_by_memory:,}"),
        ("Median time to decide", duration(wait) if wait is not None else "nobody has decided yet"),
        ("Time saved by memory", duration(saved) if saved is not None else "cannot be said yet"),
    )
    note = (
        "The time to decide is that from a call's arrival to the human's decision. Memory has saved the calls that"
        f" remembered approvals let through ({count(found.allowed_by_memory, 'call')}), each the median time to decide."
    )
    found_rows = [
        Paragraph((Span(value, "strong"),), margin=(Span(f" {label:<{LABEL}}", "label"),)) for label, value in rows
    ]
    return (*found_rows, BLANK, Paragraph((Span(note, "muted"),), margin=(Span(" "),)), *_state(state))


def _state(state: str) -> tuple[Paragraph, ...]:
    return (BLANK, Paragraph((Span(state, "waiting"),), margin=(Span(" "),))) if state else ()
