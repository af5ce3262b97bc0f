"""The list of past calls, newest first, fetched as somebody scrolls, with the fields and buttons that filter it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Button, Input

from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.present.quantities import history_column
from whisper_tui.present.session_text import session_column
from whisper_tui.present.spans import Line, Span, said
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.call_row import host_column
from whisper_tui.tui.cockpit_context import CommandRequested
from whisper_tui.tui.command_definition import in_force
from whisper_tui.tui.lines import ROLE_CLASSES, base_style, drawn, fitted, width_of
from whisper_tui.tui.row_list import LIST_KEYS
from whisper_tui.tui.screens.past_search import Filters, MergedPastCalls, PastCall, PastCalls

IDS = ("history-verdict", "history-ending", "history-decider", "history-period", "history-session")


class FilterButtons(Horizontal):
    """A button for each filter."""

    def compose(self) -> ComposeResult:
        """The buttons, without focus because each has a key."""
        for command in map(in_force(self.app).by_id, IDS):
            button = Button("", id=f"chip-{command.id}", compact=True)
            button.can_focus = False
            button.tooltip = command.help
            yield button

    def show(self, filters: Filters, session: str) -> None:
        """Show the choices. `session`: the name of the chosen session, if any."""
        chosen = {
            "history-verdict": filters.verdict,
            "history-ending": filters.ending,
            "history-decider": filters.decider,
            "history-period": filters.period,
            "history-session": session if filters.session_id is not None else "any",
        }
        for command in map(in_force(self.app).by_id, chosen):
            value = chosen[command.id]
            some = value not in {"any", "anyone"}
            button = self.query_one(f"#chip-{command.id}", Button)
            words = f"{command.label.lower()}: {value}" if some else command.label
            button.label = Content.assemble((f"{command.key_name} ", "bold"), words)
            button.set_class(some, "-chosen")
            button.refresh(layout=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.post_message(CommandRequested((event.button.id or "").removeprefix("chip-")))


class SearchBox(Input):
    """The search field; Esc and Enter return the focus to the list."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,down", "done", "To the list", show=False)]

    def action_done(self) -> None:
        """Focus the list."""
        self.screen.query_one(PastList).focus()


async def know_session(session_id: str, board: Board, supervision: Supervision) -> None:
    """Add a session to the board if it is missing, so that its calls can be shown with its name."""
    if session_id not in board.sessions:
        session = await supervision.session(session_id)
        board.sessions.setdefault(session_id, session)


def last_line(past: PastCalls | MergedPastCalls, looked: str, problem: str, *, loading: bool) -> Line:
    """Return the line below the last call: whether there are more, or why not all are listed."""
    if problem:
        return said(problem, "bad")
    if isinstance(past, MergedPastCalls) and past.missing:
        name, error = next(iter(past.missing.items()))
        others = f" and {len(past.missing) - 1} more" if len(past.missing) > 1 else ""
        return said(f"Not all calls of {name}{others}: {error_text(error)}", "bad")
    if loading:
        return (Span("… " + (looked or "searching"), "muted"),)
    if not past.found:
        return (Span("No matching calls.", "muted"),)
    return (Span("End of the history.", "muted"),) if past.ended else (Span("… scroll for older calls", "muted"),)


class PastList(ScrollView, can_focus=True, inherit_bindings=False):
    """One row a call, newest first, and a last line about the state of the search."""

    COMPONENT_CLASSES = ROLE_CLASSES | {"role--row", "role--row-idle"}
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [*LIST_KEYS]

    @dataclass
    class Selected(Message):
        """Another call was selected."""

        call_id: str | None

    class MoreNeeded(Message):
        """The end of the rows is near."""

        def can_replace(self, message: Message) -> bool:
            """Coalesce repeated requests."""
            return isinstance(message, PastList.MoreNeeded)

    def __init__(self, clock: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._clock = clock
        self._found: list[PastCall] = []
        self._last: Line = ()
        self._told: str | None = None
        self.hosts: Collection[str] = ()
        """The machines whose calls are listed, each with its name. Empty: it is one."""
        self.row = 0
        """The selected row."""

    @property
    def selected(self) -> PastCall | None:
        """The selected row, if any."""
        return self._found[self.row] if self.row < len(self._found) else None

    def show(self, found: list[PastCall], last: Line, *, anew: bool) -> None:
        """Show rows and the line below them. `anew`: they belong to another search."""
        self._found, self._last = found, last
        if anew:
            self.row = 0
            self.scroll_to(y=0, animate=False, immediate=True)
        self.virtual_size = Size(0, len(found) + 1)
        self._tell()
        self._want()
        self.refresh()

    def action_cursor_up(self) -> None:
        """Select the row above."""
        self.select(self.row - 1)

    def action_cursor_down(self) -> None:
        """Select the row below."""
        self.select(self.row + 1)

    def action_page_up(self) -> None:
        """Move the selection up by a page."""
        self.select(self.row - max(1, self.size.height - 1))

    def action_page_down(self) -> None:
        """Move the selection down by a page."""
        self.select(self.row + max(1, self.size.height - 1))

    def action_first(self) -> None:
        """Select the newest call."""
        self.select(0)

    def action_last(self) -> None:
        """Select the oldest call so far."""
        self.select(len(self._found) - 1)

    def select(self, row: int) -> None:
        """Select a row and scroll it into view."""
        row = max(0, min(row, len(self._found) - 1))
        self.row = row
        self._tell()
        # With the last row, the line below it comes into view, which tells if there are older calls.
        below = 1 if row == len(self._found) - 1 else 0
        self.scroll_to_region(Region(0, row, 1, 1 + below), animate=False, force=True, immediate=True)
        self._want()
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Ask for more rows when scrolling comes near the end."""
        super().watch_scroll_y(old_value, new_value)
        self._want()

    def on_click(self, event: events.Click) -> None:
        """Select the clicked row."""
        row = event.y + self.scroll_offset.y
        if row < len(self._found):
            self.select(row)

    def _tell(self) -> None:
        """Post the selection if it has changed."""
        call_id = self.selected.id if self.selected is not None else None
        if call_id != self._told:
            self._told = call_id
            self.post_message(self.Selected(call_id))

    def _want(self) -> None:
        seen = max(self.row, self.scroll_offset.y + self.size.height)
        if seen + self.size.height >= len(self._found):
            self.post_message(self.MoreNeeded())

    def render_line(self, y: int) -> Strip:
        """Draw a row or the last line."""
        width, row = self.size.width, y + self.scroll_offset.y
        if row == len(self._found):
            return drawn(self, (Span(" "), *self._last), width)
        if row > len(self._found):
            return Strip.blank(width, base_style(self))
        past = self._found[row]
        right = (Span(" "), past.outcome, Span(" "))
        host = host_column(past.host, self.hosts) if self.hosts else ()
        when = Span(f" {history_column(past.at, self._clock())} ", "muted")
        left: Line = (past.mark, when, *host, *session_column(past.session_id), *past.words)
        line = (*fitted(left, max(0, width - 1 - width_of(right))), *right)
        if row == self.row:
            return drawn(self, (Span("▌"), *line), width, self._selected_style())
        return drawn(self, (Span(" "), *line), width)

    def _selected_style(self) -> Style:
        name = "role--row" if self.has_focus else "role--row-idle"
        return self.get_component_rich_style(name) + Style(bold=True)
