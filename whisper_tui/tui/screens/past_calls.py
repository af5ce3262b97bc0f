"""The list of calls that match the filters, newest first, fetched page by page as somebody scrolls (decision 26)."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, TypeVar, get_args

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
from textual.widgets import Button

from whisper_tui.model.api import HistoryQuery, Supervision, all_sessions
from whisper_tui.model.board import Board
from whisper_tui.model.ending import Denied, Exited, Lost, Withdrawn
from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Waiting
from whisper_tui.present.call_text import standing
from whisper_tui.present.command_text import call_line
from whisper_tui.present.quantities import history_column
from whisper_tui.present.spans import Line, Span
from whisper_tui.tui.cockpit_context import CommandRequested
from whisper_tui.tui.command_definition import in_force
from whisper_tui.tui.lines import ROLE_CLASSES, base_style, drawn, fitted, width_of

VerdictIs = Literal["any", "allowed", "asked", "refused"]
EndingIs = Literal["any", "exit 0", "failed", "denied", "withdrawn", "lost", "still open"]
DeciderIs = Literal["anyone", "a human", "me", "a rule", "memory", "nobody yet"]
PeriodIs = Literal["any", "last hour", "last 24 hours", "last 7 days", "last 30 days", "earlier"]

SECONDS: dict[PeriodIs, float] = {
    "last hour": 3600,
    "last 24 hours": 86_400,
    "last 7 days": 7 * 86_400,
    "last 30 days": 30 * 86_400,
}
EARLIER_S = SECONDS["last 30 days"]
"""The age in seconds from which calls are *earlier*."""

Choice = TypeVar("Choice", VerdictIs, EndingIs, DeciderIs, PeriodIs)


@dataclass(frozen=True)
class Filters:
    """The conditions that calls of the list meet."""

    text: str = ""
    session_id: str | None = None
    verdict: VerdictIs = "any"
    ending: EndingIs = "any"
    decider: DeciderIs = "anyone"
    period: PeriodIs = "any"
    machine: str = ""
    """The machine whose history it is, in a cockpit over several."""

    @property
    def narrow(self) -> bool:
        """True if any filter is set."""
        return self != Filters(machine=self.machine)

    def query(self, limit: int, before: str | None, after: str | None = None) -> HistoryQuery:
        """Return the part of the filters that the journal can apply (decision 26)."""
        return HistoryQuery(
            limit=limit,
            before=before,
            after=after,
            session_id=self.session_id or all_sessions(self.machine),
            text=self.text.strip(),
            open_only=self.ending == "still open",
        )

    def since(self, now: float) -> float | None:
        """Return the arrival of the oldest matching call in seconds since the epoch; None without that limit."""
        seconds = SECONDS.get(self.period)
        return now - seconds if seconds is not None else None

    def until(self, now: float) -> float | None:
        """Return the arrival of the newest matching call; None without that limit."""
        return now - EARLIER_S if self.period == "earlier" else None

    def matches(self, record: CallRecord, me: str) -> bool:
        """True if a call meets the filters that the journal cannot apply. `me`: the name of this person."""
        return self._judged_like_that(record) and self._ended_like_that(record) and self._decided_like_that(record, me)

    def _judged_like_that(self, record: CallRecord) -> bool:
        if self.verdict == "any":
            return True
        kind = record.verdict.kind if record.verdict is not None else None
        return kind == {"allowed": "allow", "asked": "ask", "refused": "refuse"}[self.verdict]

    def _ended_like_that(self, record: CallRecord) -> bool:
        ending = record.state.ending if isinstance(record.state, Ended) else None
        match self.ending:
            case "any":
                return True
            case "exit 0":
                return isinstance(ending, Exited) and ending.code == 0
            case "failed":
                other = isinstance(ending, Denied | Withdrawn | Lost) or ending is None or ending.kind == "handed_over"
                return not other and not (isinstance(ending, Exited) and ending.code == 0)
            case "still open":
                return record.is_open
            case kind:
                return ending is not None and ending.kind == kind

    def _decided_like_that(self, record: CallRecord, me: str) -> bool:
        surface = record.decided_by.surface if record.decided_by is not None else None
        match self.decider:
            case "anyone":
                return True
            case "nobody yet":
                return surface is None
            case "a rule":
                return surface == "rule"
            case "memory":
                return surface == "memory"
            case "me":
                return is_human(record) and record.decided_by is not None and record.decided_by.who == me
            case "a human":
                return is_human(record)


def is_human(record: CallRecord) -> bool:
    """True if a human decided the call."""
    return record.decided_by is not None and record.decided_by.surface not in {"rule", "memory", "agent"}


def _following(choices: tuple[Choice, ...], now: Choice) -> Choice:
    return choices[(choices.index(now) + 1) % len(choices)]


NEXT: dict[str, Callable[[Filters], Filters]] = {
    "verdict": lambda now: replace(now, verdict=_following(get_args(VerdictIs), now.verdict)),
    "ending": lambda now: replace(now, ending=_following(get_args(EndingIs), now.ending)),
    "decider": lambda now: replace(now, decider=_following(get_args(DeciderIs), now.decider)),
    "period": lambda now: replace(now, period=_following(get_args(PeriodIs), now.period)),
}
"""Each filter with the function that sets its next choice."""


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
    left = record.agent_gave_up is not None and isinstance(record.state, Waiting | Held | Queued)
    gone = ", agent gone" if left else ""
    return PastCall(
        id=record.id,
        at=record.call.submitted_at,
        session_id=record.call.session_id,
        mark=Span(sign, first.role),
        words=call_line(record),
        outcome=Span(f"{word}{gone}", first.role) if word else others[0],
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
            self._before = await first_at_or_after(self._supervision, self._until, self.filters.machine)
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
        machine = self.filters.machine
        before = int(self._before) if self._before is not None else await _beyond_newest(self._supervision, machine)
        after = max(0, before - 1 - WINDOW)
        page = await self._supervision.history(self.filters.query(self._page, str(before), str(after)))
        self._take(page)
        if len(page) < self._page:
            self._before = str(after + 1)
            await self._reach_back(after)
        self.looked_at += before - int(self._before or before)

    async def _reach_back(self, after: int) -> None:
        """Note how far back the search has come, and whether older calls are left."""
        query = HistoryQuery(limit=1, before=str(after + 1), session_id=all_sessions(self.filters.machine))
        older = await self._supervision.history(query)
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
            self._before = str(record.number)
            if self.filters.matches(record, self._me):
                self.found.append(past_call(record, now))
        return len(page)


async def _beyond_newest(supervision: Supervision, machine: str) -> int:
    newest = await supervision.history(HistoryQuery(limit=1, session_id=all_sessions(machine)))
    return newest[0].number + 1 if newest else 1


async def first_at_or_after(supervision: Supervision, at: float, machine: str = "") -> str:
    """Return the smallest id of the calls that came at a time or later."""
    # Ids grow with time, so a binary search needs twenty reads for a million calls.
    low, high = 0, await _beyond_newest(supervision, machine)
    while low < high:
        middle = (low + high) // 2
        query = HistoryQuery(limit=1, before=str(middle + 1), session_id=all_sessions(machine))
        below = await supervision.history(query)
        if below and below[0].call.submitted_at >= at:
            high = below[0].number
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
