"""The list of matching calls, newest first, fetched page by page as somebody scrolls (decision 26)."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from whisper_tui.model.api import HistoryQuery, Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.state import CallRecord
from whisper_tui.present.call_text import standing
from whisper_tui.present.command_text import call_line
from whisper_tui.present.quantities import history_column
from whisper_tui.present.spans import Line, Span
from whisper_tui.tui.history.history_filters import Filters
from whisper_tui.tui.lines import ROLE_CLASSES, base_style, drawn, fitted, width_of


async def know_session(session_id: str, board: Board, supervision: Supervision) -> None:
    """Add a session to the board if it is missing, so that its calls can be shown with its name."""
    if session_id not in board.sessions:
        session = await supervision.session(session_id)
        board.sessions.setdefault(session_id, session)


PAGE = 100
"""Calls of one read."""
WINDOW = 25_000
"""Calls of one full-text search, few enough for an answer without a noticeable delay."""
AHEAD = 100
"""Matching calls fetched beyond the screen."""


class PastCall(NamedTuple):
    """A row of the list. The record itself is read when the row is selected."""

    id: str
    at: float
    """Arrival, in seconds since the epoch."""
    session_id: str
    mark: Span
    words: Line
    outcome: Span


def past_call(record: CallRecord, now: float) -> PastCall:
    """Return the row of a call."""
    first, *others = standing(record, now)
    sign, _, word = first.text.partition(" ")
    return PastCall(
        id=record.id,
        at=record.call.submitted_at,
        session_id=record.call.session_id,
        mark=Span(sign, first.role),
        words=call_line(record),
        outcome=Span(word, first.role) if word else others[0],
    )


class PastCalls:
    """The matching calls found so far."""

    def __init__(
        self, supervision: Supervision, filters: Filters, *, me: str, clock: Callable[[], float], page: int = PAGE
    ) -> None:
        self.filters = filters
        self.found: list[PastCall] = []
        self.ended = False
        """True once the whole history is searched."""
        self.looked_at = 0
        """The number of calls searched so far."""
        self.back_to: float | None = None
        """The arrival of the oldest call searched so far."""
        self._supervision = supervision
        self._me = me
        self._clock = clock
        self._page = page
        self._before: str | None = None
        self._since = filters.since(clock())
        self._until = filters.until(clock())

    async def more(self, wanted: int) -> AsyncIterator[None]:
        """Search on until `wanted` calls are found in all or the history ends; yields after each page."""
        if self._until is not None and self._before is None:
            self._before = await first_at_or_after(self._supervision, self._until)
        while not self.ended and len(self.found) < wanted:
            if self.filters.text.strip():
                await self._search()
            else:
                page = await self._supervision.history(self.filters.query(self._page, self._before))
                self.looked_at += self._take(page)
                self.ended = self.ended or len(page) < self._page
            yield

    async def _search(self) -> None:
        """Search a window of calls for words; the next one begins below it, or below the last call of a full page."""
        before = int(self._before) if self._before is not None else await _beyond_newest(self._supervision)
        after = max(0, before - 1 - WINDOW)
        page = await self._supervision.history(self.filters.query(self._page, str(before), str(after)))
        self._take(page)
        if len(page) < self._page:
            self._before = str(after + 1)
            await self._reach_back(after)
        self.looked_at += before - int(self._before or before)

    async def _reach_back(self, after: int) -> None:
        """Note how far back the search has come, and whether older calls are left."""
        older = await self._supervision.history(HistoryQuery(limit=1, before=str(after + 1)))
        if not older:
            self.ended = True
            return
        self.back_to = older[0].call.submitted_at
        self.ended = self.ended or (self._since is not None and self.back_to < self._since)

    def _take(self, page: tuple[CallRecord, ...]) -> int:
        """Keep the matching calls of a page. Return how many were searched before one was too old."""
        now = self._clock()
        for number, record in enumerate(page):
            if self._since is not None and record.call.submitted_at < self._since:
                self.ended = True
                return number
            self.back_to = record.call.submitted_at
            self._before = record.id
            if self.filters.matches(record, self._me):
                self.found.append(past_call(record, now))
        return len(page)


async def _beyond_newest(supervision: Supervision) -> int:
    newest = await supervision.history(HistoryQuery(limit=1))
    return int(newest[0].id) + 1 if newest else 1


async def first_at_or_after(supervision: Supervision, at: float) -> str:
    """Return the smallest id of the calls that came at a time or later."""
    # Ids grow with time, so a binary search needs twenty reads for a million calls.
    low, high = 0, await _beyond_newest(supervision)
    while low < high:
        middle = (low + high) // 2
        below = await supervision.history(HistoryQuery(limit=1, before=str(middle + 1)))
        if below and below[0].call.submitted_at >= at:
            high = int(below[0].id)
        else:
            low = middle + 1
    return str(low)


class PastList(ScrollView, can_focus=True, inherit_bindings=False):
    """One row a call, newest first, and a last line about the state of the search."""

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

    def action_step(self, by: int) -> None:
        """Move the selection by rows."""
        self.select(self.row + by)

    def action_page(self, direction: int) -> None:
        """Move the selection by pages."""
        self.select(self.row + direction * max(1, self.size.height - 1))

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
        left: Line = (past.mark, Span(f" {history_column(past.at, self._clock())} ", "muted"), *past.words)
        line = (*fitted(left, max(0, width - 1 - width_of(right))), *right)
        if row == self.row:
            return drawn(self, (Span("▌"), *line), width, self._selected_style())
        return drawn(self, (Span(" "), *line), width)

    def _selected_style(self) -> Style:
        name = "role--row" if self.has_focus else "role--row-idle"
        return self.get_component_rich_style(name) + Style(bold=True)
