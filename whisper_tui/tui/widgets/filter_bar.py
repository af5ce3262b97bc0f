"""Where a filter for the list is typed."""

from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Input

from whisper_tui.tui.messages import FilterChanged, FilterLeft


class FilterBar(Input):
    """Shown while a filter is typed or holds. Enter keeps it, Esc lists all calls again."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "All calls", show=False)]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(placeholder="command, words, session, number", compact=True, id=id)
        self.cursor_blink = False

    def open(self) -> None:
        """Begin to type."""
        self.display = True
        self.screen.set_focus(self)

    def clear_filter(self) -> None:
        """Hold no filter any more."""
        self.value = ""
        self.display = False

    def action_give_up(self) -> None:
        """List all calls again."""
        self.clear_filter()
        self.post_message(FilterLeft())

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(FilterChanged(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not event.value.strip():
            self.clear_filter()
        self.post_message(FilterLeft())
