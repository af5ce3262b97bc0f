"""All calls in sections: a list that draws only the rows on the screen, however many there are."""

from collections.abc import Callable, Collection
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from whisper_tui.model.board import Board
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.list_row import empty_line, group_line, heading_line, row_line
from whisper_tui.tui.messages import CallSelected, CommandWanted
from whisper_tui.tui.roster import Roster
from whisper_tui.tui.sections import Place, Section
from whisper_tui.tui.spans import ROLE_CLASSES, Line, Span
from whisper_tui.tui.widgets.drawn import base_style, drawn
from whisper_tui.tui.widgets.list_layout import ListLayout

FRAME_S = 1 / 60
"""Between two slices of a search through very many calls, so that each is drawn and keys are answered."""
WIDE_ROW = 64
"""Columns from which a row that waits fits in one line."""


class CallList(ScrollView, can_focus=True, inherit_bindings=False):
    """The queue and everything after it. Exactly one call is selected as long as there is any."""

    COMPONENT_CLASSES = ROLE_CLASSES | {"role--row", "role--row-idle"}
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
        self.roster = Roster(Board())
        self.standing_still: Callable[[CallRecord], tuple[bool, float | None]] = lambda record: (record.paused, None)
        """Whether a run is paused, and since when it has needed input."""
        self.selected: str | None = None
        self.choice: int | None = None
        """The number of the choice that selected the call. None: nobody chose it."""
        self._choices = 0
        self._marked: Collection[str] = ()
        self._layout_now = ListLayout(self.roster)
        self._line: int | None = None
        self._search: Timer | None = None
        """Goes on with a search."""
        self._untouched = True
        """Whether nobody has chosen a call yet: then the topmost one is selected."""

    def show(self, roster: Roster, selected: str | None = None) -> None:
        """List other calls; `selected` stays selected if it is among them, without a word."""
        self.roster = roster
        self.selected = selected
        self.choice = None
        self._line = None
        self.scroll_to(y=0, animate=False, immediate=True)
        self.changed()

    def changed(self) -> None:
        """The roster has changed: draw it, keeping the selected call under the eye, and select one if none is."""
        self._layout_now = self._layout_of()
        height = self._layout_now.height
        if height != self.virtual_size.height:
            self.virtual_size = Size(0, height)
        if self._untouched or self.selected is None or self.selected not in self.roster.board.calls:
            self.select(self.roster.first(), by_hand=False)
            self._untouched = True
        self._keep_under_the_eye()
        self.refresh()
        if self.roster.searching and self._search is None:
            self._search = self.set_timer(FRAME_S, self._search_on)

    def _search_on(self) -> None:
        self._search = None
        self.roster.search_on()
        self.changed()

    def regroup(self) -> None:
        """The rows stand elsewhere all at once: show the selected one, wherever it is now."""
        self._line = None
        self.changed()
        self._bring_into_view()

    @property
    def _waiting_lines(self) -> int:
        return 1 if self.size.width >= WIDE_ROW else 2

    def _layout_of(self) -> ListLayout:
        return ListLayout(self.roster, self._waiting_lines)

    def select(self, call_id: str | None, *, by_hand: bool) -> None:
        """Select a call and bring it into view."""
        self._untouched = False
        if call_id == self.selected and not by_hand:
            return
        before = self._rows_of_selected()
        self.selected = call_id
        self._choices += by_hand
        self.choice = self._choices if by_hand else None
        self._line = self._line_of_selected()
        self._bring_into_view()
        self.refresh(*before, *self._rows_of_selected())
        self.post_message(CallSelected(call_id, by_hand))

    def show_marks(self, marked: Collection[str]) -> None:
        """Draw a sign before these calls."""
        self._marked = frozenset(marked)
        self.refresh()

    def step(self, by: int) -> None:
        """Select the call so many rows below, or above."""
        if (call_id := self.roster.step(self.selected, by)) is not None:
            self.select(call_id, by_hand=True)
            self._bring_into_view()

    def action_page(self, direction: int) -> None:
        """Go about one screen up or down."""
        place = self.roster.place_of(self.selected) if self.selected else None
        lines = self._layout_now.row_lines(place.section) if place else 1
        self.step(direction * max(1, self.size.height // lines - 1))

    def action_end_of(self, direction: int) -> None:
        """Go to the first or to the last call."""
        self.step(direction * 1_000_000_000)

    def _line_of_selected(self) -> int | None:
        place = self.roster.place_of(self.selected) if self.selected is not None else None
        return self._layout_now.line_of(place) if place is not None else None

    def _rows_of_selected(self) -> tuple[Region, ...]:
        """Where the selected call is drawn."""
        place = self.roster.place_of(self.selected) if self.selected is not None else None
        if place is None or not self.size:
            return ()
        line = self._layout_now.line_of(place) - self.scroll_offset.y
        region = Region(0, line, self.size.width, self._layout_now.row_lines(place.section))
        return (region,) if region.overlaps(self.size.region) else ()

    def _keep_under_the_eye(self) -> None:
        """Rows that come and go above the selected one must not move it."""
        before, self._line = self._line, self._line_of_selected()
        if before is None or self._line is None or before == self._line:
            return
        if not 0 <= before - self.scroll_offset.y < self.size.height:
            return
        if abs(self._line - before) <= self.size.height:
            self.scroll_to(y=self.scroll_offset.y + self._line - before, animate=False, immediate=True)
        self._bring_into_view()

    def _bring_into_view(self) -> None:
        if self._line is None or self.selected is None or not self.size.height:
            return
        place = self.roster.place_of(self.selected)
        first = self._line - (self._layout_now.headings_above(place) if place else 0)
        height = self._line - first + (self._layout_now.row_lines(place.section) if place else 1)
        self.scroll_to_region(Region(0, first, 1, height), animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Another width may be for rows of another height; keep the selected call in view."""
        if self._layout_now.row_lines("waiting") != self._waiting_lines:
            self.regroup()
        self._bring_into_view()

    def on_click(self, event: events.Click) -> None:
        """Select what is clicked; the heading of what waits groups it in another way."""
        found = self._layout_now.at(event.y + self.scroll_offset.y)
        if found is not None and found.heading and found.section == "waiting":
            self.post_message(CommandWanted("group"))
        if found is not None and found.place is not None:
            self.select(self.roster.id_at(found.place), by_hand=True)

    def render_line(self, y: int) -> Strip:
        """One line of the list."""
        width = self.size.width
        found = self._layout_now.at(y + self.scroll_offset.y)
        if found is None:
            return Strip.blank(width, base_style(self))
        if found.heading:
            return drawn(self, self._heading(found.section, width), width)
        if found.group is not None:
            title, number = self.roster.group_title(found.group.key), len(found.group.tickets)
            return drawn(self, group_line(title, number, width), width)
        if found.place is None:
            filtered, searching = bool(self.roster.filter), self.roster.searching
            return drawn(self, empty_line(filtered=filtered, searching=searching), width)
        return self._row(found.place, found.part, width)

    def _heading(self, section: Section, width: int) -> Line:
        roster = self.roster
        shown, total = roster.count(section), roster.totals[section]
        return heading_line(section, shown, total, width, roster.grouping, searching=roster.searching)

    def _row(self, place: Place, part: int, width: int) -> Strip:
        call_id = self.roster.id_at(place)
        record = self.roster.board.calls.get(call_id) if call_id is not None else None
        if record is None:
            return Strip.blank(width, base_style(self))
        session = self.roster.board.sessions.get(record.call.session_id)
        whole = self._layout_now.row_lines(place.section) == 1
        still, silent_since = self.standing_still(record)
        line = row_line(
            record, session, part, width - 1, self.clock(), whole=whole, still=still, silent_since=silent_since
        )
        mark = Span("✓", "strong") if part == 0 and call_id in self._marked else None
        if call_id == self.selected:
            return drawn(self, (mark or Span("▌" if self.has_focus else "▏"), *line), width, self._selected_style())
        return drawn(self, self._plain(line, mark), width)

    def _plain(self, line: Line, mark: Span | None) -> Line:
        return (mark or Span(" "), *line)

    def _selected_style(self) -> Style:
        name = "role--row" if self.has_focus else "role--row-idle"
        return self.get_component_rich_style(name) + Style(bold=True)
