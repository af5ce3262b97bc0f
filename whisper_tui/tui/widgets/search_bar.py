"""Where it is typed what is searched for in output."""

from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input


class SearchBar(Input):
    """Shown while it is typed. Enter searches, Esc ends the search."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "End the search", show=False)]

    class Wanted(Message):
        """These words are to be found; none: nothing any more."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(placeholder="find in the output; Enter searches, then ] and [ go on", compact=True, id=id)
        self.cursor_blink = False

    def open(self) -> None:
        """Begin to type, with what was searched for last."""
        self.display = True
        self.select_all()
        self.screen.set_focus(self)

    def action_give_up(self) -> None:
        """Search for nothing."""
        self.display = False
        self.post_message(self.Wanted(""))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.display = False
        self.post_message(self.Wanted(event.value))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
