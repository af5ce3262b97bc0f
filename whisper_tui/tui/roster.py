"""The calls in sections, as the list shows them: kept in step with a board, change by change, filtered and grouped."""

from collections.abc import Iterable, Iterator

from whisper_tui.model.board import Board
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.grouped import GroupedTickets
from whisper_tui.tui.listed import Listed, listed, searched_words
from whisper_tui.tui.narrowing import WORK, Narrowing
from whisper_tui.tui.recent import RecentCalls
from whisper_tui.tui.section_rows import SectionRows
from whisper_tui.tui.sections import NEWEST_FIRST, SECTIONS, Grouping, Place, Section, section_of


class Roster:
    """Which call is in which row. Everything costs the same with 100 rows and with 100,000.

    A filter is worked out slice by slice: whoever shows the rows calls `search_on` between two frames. Groups stand in
    the order in which the first of their calls was found.
    """

    def __init__(self, board: Board, grouping: Grouping = "arrival", work: int = WORK) -> None:
        """`work`: how much of a search is done at once."""
        self.board = board
        self._work = work
        self.filter = ""
        self.grouping: Grouping = grouping
        self._next_ticket = 0
        self._ticket_of: dict[str, int] = {}
        """A call has a new ticket in each section that it comes into."""
        self._listed: dict[int, Listed] = {}
        self._all = SectionRows(self._listed)
        self._shown = self._all
        self._narrowing: Narrowing | None = None
        self._sessions_found: dict[str, bool] = {}
        """Whether the name of a session matches the filter."""
        for id_ in self._board_order():
            self._move(id_)
        self._recent = RecentCalls(board)

    def _board_order(self) -> Iterator[str]:
        board = self.board
        for ids in (board.settled, board.unsettled, board.running, board.queued, board.held, board.waiting):
            yield from ids

    def update(self, ids: Iterable[str]) -> None:
        """Put calls where their state belongs now; forget those that the board has forgotten."""
        for id_ in ids:
            if self._move(id_):
                self._recent.came(self.board.calls[id_])

    def _move(self, id_: str) -> bool:
        """Put a call where its state belongs now. Returns whether it is listed for the first time."""
        record = self.board.calls.get(id_)
        now = section_of(record) if record is not None else None
        ticket = self._ticket_of.get(id_)
        if now is (self._listed[ticket].section if ticket is not None else None):
            return False
        if ticket is not None:
            self._shown.discard(ticket)
            self._all.discard(ticket)
            del self._ticket_of[id_], self._listed[ticket]
        if now is not None and record is not None:
            self._list(listed(record, now))
        return ticket is None

    def _list(self, call: Listed) -> None:
        ticket = self._next_ticket
        self._next_ticket += 1
        self._ticket_of[call.id] = ticket
        self._listed[ticket] = call
        self._all.add(ticket)
        if self._shown is not self._all and self._matches(ticket):
            self._shown.add(ticket)

    def narrow(self, text: str) -> None:
        """Show only the calls whose words hold this text, whatever its case. Empty: all."""
        wanted = text.strip().casefold()
        if wanted == self.filter:
            return
        within_found = wanted.startswith(self.filter) and not self.searching
        source = self._shown if within_found else self._all
        self.filter = wanted
        self._sessions_found = {}
        self._narrowing = None
        self._shown = self._all
        if wanted:
            self._shown = SectionRows(self._listed)
            self._narrowing = Narrowing(source.snapshot().values(), self._shown, self._matches, self._work)
            self.search_on()

    @property
    def searching(self) -> bool:
        """Whether there may be more calls that the filter lets through than are shown."""
        return self._narrowing is not None

    def search_on(self) -> None:
        """Look for some more of what the filter lets through."""
        if self._narrowing is not None:
            self._narrowing.go_on()
            if self._narrowing.over:
                self._narrowing = None

    def _matches(self, ticket: int) -> bool:
        call = self._listed.get(ticket)
        if call is None:
            return False
        words = call.words
        if words is None:
            record = self.board.calls.get(call.id)
            words = searched_words(record) if record is not None else ""
        if self.filter in words:
            return True
        found = self._sessions_found.get(call.session_id)
        if found is None:
            session = self.board.sessions.get(call.session_id)
            found = session is not None and self.filter in session.name.casefold()
            self._sessions_found[call.session_id] = found
        return found

    def passes(self, id_: str) -> bool:
        """Whether the filter lets a call through, found yet or not."""
        ticket = self._ticket_of.get(id_)
        return ticket is not None and (not self.filter or self._matches(ticket))

    def group(self, grouping: Grouping) -> None:
        """Put the calls that wait together in another way."""
        self.grouping = grouping

    @property
    def groups(self) -> GroupedTickets | None:
        """The calls that wait, in their groups. None: they are not grouped."""
        return self._shown.groups(self.grouping)

    def group_title(self, key: str) -> str:
        """What a group has in common, as the agent wrote it."""
        if self.grouping != "session":
            return key
        session = self.board.sessions.get(key)
        if session is None:
            return key
        pid = f"pid {session.pid}" if session.pid is not None else key
        return f"{session.name} · {session.client.name if session.client else pid}"

    def beside(self, record: CallRecord) -> tuple[CallRecord, ...]:
        """The last calls of the same session, without this one, the newest first."""
        return self._recent.beside(record)

    @property
    def totals(self) -> dict[Section, int]:
        """How many calls each section has, whether the filter lets them through or not."""
        return {section: len(self._all.of(section)) for section in SECTIONS}

    def count(self, section: Section) -> int:
        """How many rows of a section are shown."""
        return len(self._shown.of(section))

    def id_at(self, place: Place) -> str | None:
        """The call in a row."""
        tickets = self._shown.of(place.section, self.grouping)
        if not 0 <= place.row < len(tickets):
            return None
        row = len(tickets) - 1 - place.row if place.section in NEWEST_FIRST else place.row
        return self._listed[tickets[row]].id

    def place_of(self, id_: str) -> Place | None:
        """The row of a call. None: it is not shown."""
        ticket = self._ticket_of.get(id_)
        if ticket is None:
            return None
        section = self._listed[ticket].section
        tickets = self._shown.of(section, self.grouping)
        if ticket not in tickets:
            return None
        position = tickets.position(ticket)
        return Place(section, len(tickets) - 1 - position if section in NEWEST_FIRST else position)

    def first(self) -> str | None:
        """The topmost row there is."""
        for section in SECTIONS:
            if (id_ := self.id_at(Place(section, 0))) is not None:
                return id_
        return None

    def next_waiting(self, after: Place | None) -> str | None:
        """The waiting call that comes into a row that was left, else the last, else none."""
        waiting = self.count("waiting")
        if not waiting:
            return None
        row = after.row if after is not None and after.section == "waiting" else 0
        return self.id_at(Place("waiting", min(row, waiting - 1)))

    def step(self, id_: str | None, by: int) -> str | None:
        """The call so many rows below, or above, stopping at the ends."""
        place = self.place_of(id_) if id_ is not None else None
        if place is None:
            return self.first()
        flat = sum(self.count(section) for section in SECTIONS[: SECTIONS.index(place.section)]) + place.row
        return self.flat(flat + by)

    def flat(self, row: int) -> str | None:
        """The call in a row counted over all sections, stopping at the ends."""
        total = sum(self.count(section) for section in SECTIONS)
        row = max(0, min(row, total - 1))
        for section in SECTIONS:
            if row < self.count(section):
                return self.id_at(Place(section, row))
            row -= self.count(section)
        return None
