"""The list of calls of the past: it draws the rows on the screen, and asks for more when its end comes near."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from whisper_tui.tui.history.past_calls import PastCall
from whisper_tui.tui.history.times import column
from whisper_tui.tui.spans import ROLE_CLASSES, Line, Span, fitted, width_of
from whisper_tui.tui.widgets.drawn import base_style, drawn


class PastList(ScrollView, can_focus=True, inherit_bindings=False):
    """One row a call, newest first, and a last line that says whether there is more."""

    COMPONENT_CLASSES = ROLE_CLASSES | {"role--row", "role--row-idle"}
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "Up", show=False),
        Binding("down,j", "step(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "step(-1000000000)", "Newest", show=False),
        Binding("end,G", "step(1000000000)", "Oldest so far", show=False),
    ]

    @dataclass
    class Selected(Message):
        """Another call is to be shown."""

        call_id: str | None

    class Wanted(Message):
        """The end of what was found is near."""

        def can_replace(self, message: Message) -> bool:
            """One is as good as many."""
            return isinstance(message, PastList.Wanted)

    def __init__(self, clock: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._clock = clock
        self._found: list[PastCall] = []
        self._last: Line = ()
        self._told: str | None = None
        self.row = 0
        """The selected row."""

    @property
    def selected(self) -> PastCall | None:
        """The selected call."""
        return self._found[self.row] if self.row < len(self._found) else None

    def show(self, found: list[PastCall], last: Line, *, anew: bool) -> None:
        """Draw what was found so far; `last` stands below it. `anew`: it is another search."""
        self._found, self._last = found, last
        if anew:
            self.row = 0
            self.scroll_to(y=0, animate=False, immediate=True)
        self.virtual_size = Size(0, len(found) + 1)
        self._tell()
        self._want()
        self.refresh()

    def action_step(self, by: int) -> None:
        """Select the call so many rows below, or above."""
        self.select(self.row + by)

    def action_page(self, direction: int) -> None:
        """Go about one screen up or down."""
        self.select(self.row + direction * max(1, self.size.height - 1))

    def select(self, row: int) -> None:
        """Select a row and bring it into view."""
        row = max(0, min(row, len(self._found) - 1))
        self.row = row
        self._tell()
        below = 1 if row == len(self._found) - 1 else 0
        self.scroll_to_region(Region(0, row, 1, 1 + below), animate=False, force=True, immediate=True)
        self._want()
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scrolling may come near the end."""
        super().watch_scroll_y(old_value, new_value)
        self._want()

    def on_click(self, event: events.Click) -> None:
        """Select what is clicked."""
        row = event.y + self.scroll_offset.y
        if row < len(self._found):
            self.select(row)

    def _tell(self) -> None:
        """Say which call is selected, where it is another one."""
        call_id = self.selected.id if self.selected is not None else None
        if call_id != self._told:
            self._told = call_id
            self.post_message(self.Selected(call_id))

    def _want(self) -> None:
        seen = max(self.row, self.scroll_offset.y + self.size.height)
        if seen + self.size.height >= len(self._found):
            self.post_message(self.Wanted())

    def render_line(self, y: int) -> Strip:
        """One call, or the line below all."""
        width, row = self.size.width, y + self.scroll_offset.y
        if row == len(self._found):
            return drawn(self, (Span(" "), *self._last), width)
        if row > len(self._found):
            return Strip.blank(width, base_style(self))
        past = self._found[row]
        right = (Span(" "), past.outcome, Span(" "))
        left: Line = (past.mark, Span(f" {column(past.at, self._clock())} ", "muted"), *past.words)
        line = (*fitted(left, max(0, width - 1 - width_of(right))), *right)
        if row == self.row:
            return drawn(self, (Span("▌"), *line), width, self._selected_style())
        return drawn(self, (Span(" "), *line), width)

    def _selected_style(self) -> Style:
        name = "role--row" if self.has_focus else "role--row-idle"
        return self.get_component_rich_style(name) + Style(bold=True)
