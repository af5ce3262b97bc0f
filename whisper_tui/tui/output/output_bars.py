"""The lines around output: the search field, the buttons, and the note about removed output."""

from contextlib import suppress
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from whisper_tui.model.api import Supervision, output_was_removed
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.present.spans import Span
from whisper_tui.present.words import REMOVED
from whisper_tui.tui.button_bar import ButtonBar
from whisper_tui.tui.lines import LineView


class SearchBar(Input):
    """The search field, shown while typing. Enter searches, Esc ends the search."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "End the search", show=False)]

    class SearchRequested(Message):
        """Search for these words; empty ends the search."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(placeholder="search the output: Enter searches, ] and [ go to matches", compact=True, id=id)
        self.cursor_blink = False

    def open(self) -> None:
        """Show the field with the last search."""
        self.display = True
        self.select_all()
        self.screen.set_focus(self)

    def action_give_up(self) -> None:
        """End the search."""
        self.display = False
        self.post_message(self.SearchRequested(""))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.display = False
        self.post_message(self.SearchRequested(event.value))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()


BUTTONS = (
    *("search", "next-match", "previous-match", "errors", "follow", "layout", "wrap", "interleave"),
    *("save", "copy", "pager", "timestamps", "arrange", "bytes"),
)


class OutputBar(ButtonBar):
    """The buttons below the panes, where there is room."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(BUTTONS, id=id)


class RemovedLine(LineView):
    """The note that output was removed; hidden while all of it is there."""

    def of(self, supervision: Supervision, record: CallRecord | None) -> None:
        """Check whether the output of a call is still on the disk; None hides the note."""
        self.display = False
        self.workers.cancel_group(self, "look")
        if record is not None:
            self.run_worker(self._look(supervision, record), group="look")

    async def _look(self, supervision: Supervision, record: CallRecord) -> None:
        with suppress(WhisperError):
            self.display = await output_was_removed(supervision, record)
            self.show((Span(f" {REMOVED}", "risk"),))
