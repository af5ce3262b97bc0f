"""The list of calls as a widget: the layout of its lines, the selection, the filter bar."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer
from textual.widgets import Input

from whisper_tui.model.board import Board
from whisper_tui.model.state import CallRecord, HostState, PlaceState, Unjudged, Waiting
from whisper_tui.present.session_text import session_column, session_mark
from whisper_tui.present.spans import Line, Span
from whisper_tui.tui.cockpit.call_roster import SECTIONS, CallRoster, RowPlace
from whisper_tui.tui.cockpit.call_row import (
    empty_line,
    greyed,
    group_line,
    heading_line,
    host_column,
    place_key,
    row_line,
)
from whisper_tui.tui.cockpit.grouped_rows import Section, TicketGroup
from whisper_tui.tui.cockpit_context import CallSelected, CommandRequested, FilterChanged, FilterLeft
from whisper_tui.tui.lines import ROLE_CLASSES, base_style, drawn


@dataclass(frozen=True)
class Block:
    """A section in lines: its heading, its rows and an empty line."""

    section: Section
    start: int
    """The line of the heading."""
    count: int
    row_lines: int
    """Lines per row."""
    groups: int
    """Headings of groups among the rows."""
    folded: bool = False
    """True if only the heading is there."""

    @property
    def end(self) -> int:
        """The line after its last one."""
        # An empty waiting section has one line of text.
        return self.start + 2 + (0 if self.folded else max(1, self.count * self.row_lines + self.groups))


@dataclass(frozen=True)
class ListLine:
    """The content of one line."""

    section: Section
    place: RowPlace | None = None
    """The row of a call. None: a heading, or the text of an empty section."""
    part: int = 0
    """The number of the line within its row."""
    heading: bool = False
    group: TicketGroup | None = None
    """The group of which this is the heading."""


class ListLayout:
    """The lines of a roster: all sections with rows, and always the waiting one."""

    def __init__(self, roster: CallRoster, waiting_lines: int = 2, *, folded: bool = False) -> None:
        """`waiting_lines`: lines per row of a waiting call; `folded`: what is set aside has only its heading."""
        self.folded = folded
        """True if what is set aside is folded to its heading."""
        self.blocks: list[Block] = []
        self._groups = roster.groups
        self._waiting_lines = waiting_lines
        line = 0
        for section in SECTIONS:
            count = roster.count(section)
            if count or section == "waiting":
                groups = self._groups.groups if self._groups is not None and section == "waiting" else 0
                shut = folded and section == "aside"
                block = Block(section, line, count, self.row_lines(section), groups, shut)
                self.blocks.append(block)
                line = block.end
        self.height = max(0, line - 1)
        """The number of lines in all."""

    @property
    def open_height(self) -> int:
        """The number of lines without those of ended calls."""
        return max((block.end - 1 for block in self.blocks if block.section != "ended"), default=0)

    def row_lines(self, section: Section) -> int:
        """Return the number of lines per row of a section."""
        return self._waiting_lines if section == "waiting" else 1

    def line_of(self, place: RowPlace) -> int:
        """Return the first line of a row."""
        for block in self.blocks:
            if block.section == place.section:
                headings = self._groups.headings_through(place.row) if block.groups and self._groups else 0
                return block.start + 1 + place.row * block.row_lines + headings
        return 0

    def headings_above(self, place: RowPlace) -> int:
        """Return the number of lines above a row that its headings take once they stay on the topmost lines."""
        return 2 if self._groups is not None and place.section == "waiting" else 1

    def at(self, line: int) -> ListLine | None:
        """Return the content of a line. None: it is empty."""
        for block in self.blocks:
            if not block.start <= line < block.end:
                continue
            if line == block.start:
                return ListLine(block.section, heading=True)
            if block.folded:
                return None
            if block.groups and line < block.end - 1:
                return self._grouped(block, line - block.start - 1)
            row, part = divmod(line - block.start - 1, block.row_lines)
            if row < block.count:
                return ListLine(block.section, RowPlace(block.section, row), part)
            return ListLine(block.section) if block.count == 0 and line == block.start + 1 else None
        return None

    def on_screen(self, y: int, top: int) -> ListLine | None:
        """Return the content of a line of the screen, which begins at line `top`.

        The headings of the section and the group of scrolled rows stay on the topmost lines.
        """
        found = self.at(top + y)
        if found is None or y > 1:
            return found
        if y == 0:
            return ListLine(found.section, heading=True)
        if found.place is None or self._groups is None or found.section != "waiting":
            return found
        return ListLine(found.section, group=self._groups.group_at(found.place.row))

    def _grouped(self, block: Block, line: int) -> ListLine | None:
        if self._groups is None or not len(self._groups):
            return None
        group, row, part = self._groups.at_line(line, block.row_lines)
        if row is None:
            return ListLine(block.section, group=group)
        return ListLine(block.section, RowPlace(block.section, row), part) if row < block.count else None


class FilterBar(Input):
    """The field of the filter, shown while one is typed or set: Enter keeps it, Esc clears it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "All calls", show=False)]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(placeholder="command, words, session, number", compact=True, id=id)
        self.cursor_blink = False

    def open(self) -> None:
        """Show the field and focus it."""
        self.display = True
        self.screen.set_focus(self)

    def clear_filter(self) -> None:
        """Clear and hide the field."""
        self.value = ""
        self.display = False

    def action_give_up(self) -> None:
        """Clear the filter and leave the field."""
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


# Between two slices the screen is drawn and keys are handled, however many calls are searched (decision 26).
FRAME_S = 1 / 60
"""Seconds between two slices of a search."""
WIDE_ROW = 64
"""Least width of the list for waiting calls with one line each, which they get where two lines each do not fit."""
MOST_PINNED = 3
"""Runs that need input and stay on the topmost lines while their rows are scrolled away."""
MOST_TOPMOST = 1 + MOST_PINNED
"""Rows that stay on the topmost lines: the first waiting call comes before those runs."""

BELOW_RUNNING: frozenset[Section] = frozenset({"behind", "ended"})
"""The sections for which one scrolls runs away."""


class CallList(ScrollView, can_focus=True, inherit_bindings=False):
    """The list of all calls. Exactly one call is selected if there is any."""

    COMPONENT_CLASSES = ROLE_CLASSES | {"role--row", "role--row-idle"}
    # A drag over the rows would start Textual's text selection instead of selecting a call.
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "end_of(-1)", "First call", show=False),
        Binding("end", "end_of(1)", "Last call", show=False),
    ]

    def __init__(self, clock: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.clock = clock
        self.roster = CallRoster(Board())
        self.standing_still: Callable[[CallRecord], tuple[bool, float | None]] = lambda record: (record.paused, None)
        """Returns True for a paused run, and the time since which it has needed input."""
        self.need_input: Callable[[], Collection[str]] = tuple
        """Returns the runs that need input."""
        self.selected: str | None = None
        self.choice: int | None = None
        """The number of the person's choice that selected the call. None: it was selected by itself."""
        self.loading_calls = True
        """True until the calls that there are have come from the supervisor."""
        self._choices = 0
        self._marked: Collection[str] = ()
        self.hosts: dict[str, HostState] = {}
        """The machines by their names, if the cockpit shows several."""
        self.places: dict[str, PlaceState] = {}
        """The places where commands run besides those machines, by their names."""
        self._layout_now = ListLayout(self.roster)
        self._line: int | None = None
        self._pins = 0
        """The number of rows that may stay on the topmost lines."""
        self._search: Timer | None = None
        """The timer of the next slice of a search."""
        self.room_lent = 0
        """Lines that the list does without for now, and has again in a moment."""
        self._untouched = True
        """True until a call was selected by hand; until then, the topmost call is selected."""
        self.is_left_over = False
        """True if nothing else waited when the person decided the selected call, and no other was selected since."""
        self._awaited: str | None = None
        """The call to select as soon as it is listed, unless another one is selected by hand before."""

    def show(self, roster: CallRoster, selected: str | None = None) -> None:
        """List the calls of another roster, with `selected` selected as soon as it is among them."""
        self.roster = roster
        self.selected = selected
        # After a reconnection the calls come one after the other, and this one may be among the last.
        self._awaited = None if self._untouched else selected
        self.choice = None
        self._line = None
        self.scroll_to(y=0, animate=False, immediate=True)
        self.changed()

    def draw_ages(self) -> None:
        """Draw the ages of the calls anew, if there are any."""
        if any(self.roster.totals.values()):
            self.refresh()

    def changed(self) -> None:
        """Draw the changed roster with the selected call in place, and select a call if none is."""
        self._lay_out()
        if self._awaited is not None and self._awaited in self.roster.board.calls:
            awaited, self._awaited = self._awaited, None
            if self.roster.passes(awaited):
                self.select(awaited, by_hand=False)
        # Decision keys act on the selected call, so it must be one that is listed: a call that runs as edited may have
        # no word of the filter any more.
        if self._untouched or self.selected is None or not self.roster.passes(self.selected):
            self.select(self.roster.first(), by_hand=False)
            # `select` clears it, but nobody has chosen anything.
            self._untouched = True
        self._keep_in_place()
        self.refresh()
        if self.roster.searching and self._search is None:
            self._search = self.set_timer(FRAME_S, self._search_on)

    def _search_on(self) -> None:
        self._search = None
        self.roster.search_on()
        self.changed()

    def regroup(self) -> None:
        """Draw the rows in their new order, and scroll to the selected one."""
        # Without a former line, `changed` does not try to keep the row where it was.
        self._line = None
        self.changed()
        self._bring_into_view()

    def _layout_of(self) -> ListLayout:
        """Return the layout in which a waiting call has a line of its own for its command, unless that does not fit."""
        whole = ListLayout(self.roster, folded=self._folds)
        if self.size.width < WIDE_ROW or whole.open_height <= self.size.height + self.room_lent:
            return whole
        return ListLayout(self.roster, waiting_lines=1, folded=self._folds)

    def _pinned(self, above: Section) -> list[RowPlace]:
        """Return the rows above a section that need a human: the first waiting call, and runs that need input.

        Below them and a heading there is room for the selected row.
        """
        if above == "waiting":
            return []
        waiting = [RowPlace("waiting", 0)] if self.roster.count("waiting") else []
        if above not in BELOW_RUNNING:
            return waiting
        places = (self.roster.place_of(id_) for id_ in self.need_input())
        runs = [place for place in places if place is not None and place.section == "running"]
        room = max(0, self.size.height - 1 - self._layout_now.row_lines(above))
        return (waiting + runs[:MOST_PINNED])[:room]

    def _pinned_away(self, top: int) -> list[RowPlace]:
        """Return those of them that are scrolled away if line `top` is the topmost one."""
        # A heading covers the topmost line, and between two sections is an empty one.
        below = (self._layout_now.at(line) for line in (top + 1, top + 2))
        first = next((line for line in below if line is not None), None)
        if first is None:
            return []
        return [place for place in self._pinned(first.section) if self._layout_now.line_of(place) <= top]

    @property
    def _folds(self) -> bool:
        """True if what is set aside is out of the way: the selected call is not among it."""
        place = self.roster.place_of(self.selected) if self.selected is not None else None
        return place is None or place.section != "aside"

    def _lay_out(self) -> None:
        self._layout_now = self._layout_of()
        height = self._layout_now.height
        if height != self.virtual_size.height:
            self.virtual_size = Size(0, height)

    def select(self, call_id: str | None, *, by_hand: bool) -> None:
        """Select a call and bring it into view. A filter that hides it ends."""
        self._untouched = self.is_left_over = False
        if call_id is not None and self.roster.filter and not self.roster.passes(call_id):
            # What is undone, or is gone to from another list, would be on the card and have no cursor.
            self.roster.narrow("")
            self.screen.query_one(FilterBar).clear_filter()
            self._lay_out()
            self.refresh()
        if by_hand:
            self._awaited = None
        if call_id == self.selected and not by_hand:
            return
        before = self._rows_of_selected()
        self.selected = call_id
        self._choices += by_hand
        self.choice = self._choices if by_hand else None
        if self._folds != self._layout_now.folded:
            self._lay_out()
            self.refresh()
        self._line = self._line_of_selected()
        self._bring_into_view()
        self.refresh(*before, *self._rows_of_selected())
        # Not through the parents: what one of them posts while it handles a message of its own goes no higher than it.
        self.screen.post_message(CallSelected(call_id, by_hand))

    def show_marks(self, marked: Collection[str]) -> None:
        """Draw a mark before these calls."""
        self._marked = frozenset(marked)
        self.refresh()

    def show_hosts(self, hosts: Collection[HostState]) -> None:
        """Draw the machine of each call, in grey where it is not reached."""
        self.hosts = {host.name: host for host in hosts}
        self.refresh()

    def show_places(self, places: Collection[PlaceState]) -> None:
        """Draw what runs at a place that is not reached in grey."""
        self.places = {place.name: place for place in places}
        self.refresh()

    def step(self, by: int) -> None:
        """Select the call this many rows below, or above if negative."""
        if (call_id := self.roster.step(self.selected, by)) is not None:
            self.select(call_id, by_hand=True)
            self._bring_into_view()

    def action_page(self, direction: int) -> None:
        """Move the selection by about one screen."""
        place = self.roster.place_of(self.selected) if self.selected else None
        lines = self._layout_now.row_lines(place.section) if place else 1
        self.step(direction * max(1, self.size.height // lines - 1))

    def action_end_of(self, direction: int) -> None:
        """Select the first or the last call."""
        self.step(direction * 1_000_000_000)

    def _line_of_selected(self) -> int | None:
        place = self.roster.place_of(self.selected) if self.selected is not None else None
        return self._layout_now.line_of(place) if place is not None else None

    def _rows_of_selected(self) -> tuple[Region, ...]:
        """Return the regions of the selected call on the screen, also where it stays on the topmost lines."""
        place = self.roster.place_of(self.selected) if self.selected is not None else None
        if place is None or not self.size:
            return ()
        line = self._layout_now.line_of(place) - self.scroll_offset.y
        rows = [Region(0, line, self.size.width, self._layout_now.row_lines(place.section))]
        topmost = ((y, self.on_screen(y)) for y in range(1, min(1 + MOST_TOPMOST, self.size.height)))
        rows += [Region(0, y, self.size.width, 1) for y, found in topmost if found is not None and found.place == place]
        return tuple(region for region in rows if region.overlaps(self.size.region))

    def _keep_in_place(self) -> None:
        """Scroll so that rows added or removed above the selected one do not move it on the screen."""
        before, self._line = self._line, self._line_of_selected()
        pins, self._pins = self._pins, len(self._pinned("ended"))
        if before is None or self._line is None or (before == self._line and self._pins <= pins):
            return
        # A person who has scrolled away from the selection reads something else, which must not move.
        if not 0 <= before - self.scroll_offset.y < self.size.height:
            return
        # After a longer way the neighbours are other calls anyway.
        if abs(self._line - before) <= self.size.height:
            self.scroll_to(y=self.scroll_offset.y + self._line - before, animate=False, immediate=True)
        self._bring_into_view()

    def _bring_into_view(self) -> None:
        if self._line is None or self.selected is None or not self.size.height:
            return
        place = self.roster.place_of(self.selected)
        # The headings that stay on the topmost lines would cover it.
        first = self._line - (self._layout_now.headings_above(place) + len(self._pinned(place.section)) if place else 1)
        height = self._line - first + (self._layout_now.row_lines(place.section) if place else 1)
        self.scroll_to_region(Region(0, first, 1, height), animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Lay out rows whose height depends on the size, and keep the selected call in view."""
        if self._layout_now.row_lines("waiting") != self._layout_of().row_lines("waiting"):
            self.regroup()
        self._bring_into_view()

    def on_click(self, event: events.Click) -> None:
        """Select the clicked call; a click on the heading of the waiting calls changes their grouping.

        A click on the heading of what is set aside unfolds that.
        """
        found = self.on_screen(event.y)
        if found is not None and found.heading and found.section == "waiting":
            self.post_message(CommandRequested("group"))
        if found is not None and found.heading and found.section == "aside":
            self.select(self.roster.id_at(RowPlace("aside", 0)), by_hand=True)
        if found is not None and found.place is not None:
            self.select(self.roster.id_at(found.place), by_hand=True)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the list."""
        width = self.size.width
        found = self.on_screen(y)
        if found is None:
            return Strip.blank(width, base_style(self))
        if found.heading:
            return drawn(self, self._heading(found.section, width), width)
        if found.group is not None:
            title, number = self.roster.group_title(found.group.key), len(found.group.tickets)
            by_session = self.roster.grouping == "session"
            mark = (session_mark(found.group.key), Span(" ")) if by_session else ()
            return drawn(self, group_line(title, number, width, mark), width)
        if found.place is None:
            filtered, searching = bool(self.roster.filter), self.roster.searching
            unreached = [host.name for host in self.hosts.values() if not host.reached]
            line = empty_line(filtered=filtered, searching=searching, loading=self.loading_calls, unreached=unreached)
            return drawn(self, line, width)
        return self._row(found.place, found.part, width)

    def on_screen(self, y: int) -> ListLine | None:
        """Return the content of a line of the screen. On the topmost lines are the rows above that need a human."""
        top = self.scroll_offset.y
        away = self._pinned_away(top) if y <= MOST_TOPMOST else []
        if y == 0 and away and away[0].section == "waiting":
            return ListLine("waiting", heading=True)
        if 1 <= y <= len(away):
            return ListLine(away[y - 1].section, away[y - 1])
        return self._layout_now.on_screen(y, top)

    def _heading(self, section: Section, width: int) -> Line:
        roster = self.roster
        shown, total = roster.count(section), roster.totals[section]
        return heading_line(section, shown, total, width, roster.grouping, searching=roster.searching)

    def _row(self, place: RowPlace, part: int, width: int) -> Strip:
        call_id = self.roster.id_at(place)
        record = self.roster.board.calls.get(call_id) if call_id is not None else None
        if record is None:
            return Strip.blank(width, base_style(self))
        session = self.roster.board.sessions.get(record.call.session_id)
        whole = self._layout_now.row_lines(place.section) == 1
        still, silent_since = self.standing_still(record)
        origin = host_column(record.host, self.hosts) if self.hosts else ()
        if len(self.roster.board.sessions) > 1:
            origin = (*origin, *session_column(record.call.session_id))
        away = self._is_away(record)
        line = row_line(
            record,
            session,
            part,
            width - 1,
            self.clock(),
            whole=whole,
            still=still,
            silent_since=silent_since,
            origin=origin,
            places=self.places,
        )
        if away or ((at := self.hosts.get(record.host)) is not None and not at.reached):
            line = greyed(line)
        mark = Span("✓", "strong") if part == 0 and call_id in self._marked else None
        if call_id == self.selected:
            return drawn(self, (mark or Span("▌" if self.has_focus else "▏"), *line), width, self._selected_style())
        return drawn(self, self._plain(line, mark), width)

    def _is_away(self, record: CallRecord) -> bool:
        """True if a call runs, or shall run, at a place that is not reached."""
        place = self.places.get(place_key(record))
        over = isinstance(record.state, Unjudged | Waiting) or not record.is_open
        return place is not None and place.is_away and not over

    def _plain(self, line: Line, mark: Span | None) -> Line:
        return (mark or Span(" "), *line)

    def _selected_style(self) -> Style:
        name = "role--row" if self.has_focus else "role--row-idle"
        return self.get_component_rich_style(name) + Style(bold=True)


def places_of(screen: Screen[Any]) -> Mapping[str, PlaceState]:
    """Return the places that a cockpit's list knows, by their names."""
    lists = screen.query(CallList)
    return lists.first().places if lists else {}


class CallColumn(Vertical):
    """The list of calls with its filter."""

    def __init__(self, clock: Callable[[], float], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._clock = clock

    def compose(self) -> ComposeResult:
        """Build the filter and the list."""
        yield FilterBar(id="filter")
        yield CallList(self._clock, id="calls")

    @on(FilterChanged)
    def _filter_changed(self, message: FilterChanged) -> None:
        calls = self.query_one(CallList)
        calls.roster.narrow(message.text)
        # Decision keys act on the selected call, so it must be one that is listed.
        if calls.selected is None or not calls.roster.passes(calls.selected):
            calls.select(calls.roster.first(), by_hand=False)
        calls.regroup()

    @on(FilterLeft)
    def _filter_left(self) -> None:
        self.query_one(CallList).focus()


def select_next(calls: CallList, roster: CallRoster, call_id: str) -> None:
    """Select the next waiting call after this one was decided; without any, keep it selected."""
    # The person may have selected another call while the supervisor answered.
    if calls.selected != call_id:
        return
    calls.select(call_id, by_hand=True)
    place = roster.place_of(call_id)
    # The answer to the decision can be here before the event that moves the call to another section.
    if place is not None and place.section == "waiting":
        below = roster.step(call_id, 1) if place.row + 1 < roster.count("waiting") else None
        following = below or (roster.step(call_id, -1) if place.row else None)
    else:
        following = roster.next_waiting(place)
    if following is not None and following != call_id:
        calls.select(following, by_hand=False)
    else:
        calls.is_left_over = True


def select_next_waiting(calls: CallList, roster: CallRoster, before: RowPlace | None, *, first: bool) -> None:
    """Select a waiting call if the selected one, which was at `before`, no longer needs the person.

    It was decided elsewhere, or the person decided it and has selected nothing since; then `first` counts: True if
    nothing has waited until now. A run, and output that has the focus, are not taken away.
    """
    if calls.selected is None or before is None or not roster.count("waiting"):
        return
    place = roster.place_of(calls.selected)
    if place is None or place.section == "waiting":
        return
    over = first and calls.is_left_over and calls.has_focus and place.section in {"ended", "aside"}
    if before.section == "waiting" or over:
        calls.select(roster.next_waiting(before), by_hand=False)
