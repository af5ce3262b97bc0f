"""The rows of the list of calls: sections that follow a board, and the facts by which they are filtered and grouped."""

import sys
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import PurePosixPath
from typing import Literal, get_args

from whisper_tui.model.board import Board
from whisper_tui.model.packed_calls import CallLine, Lines
from whisper_tui.model.state import CallRecord
from whisper_tui.present.session_text import session_words
from whisper_tui.tui.cockpit.grouped_rows import GroupedTickets, ListedCall, OrderedTickets, Section

SECTIONS: tuple[Section, ...] = get_args(Section)
"""From top to bottom: waits for a human, was set aside, waits for a worker, runs, left background processes, ended."""
NEWEST_FIRST: frozenset[Section] = frozenset({"behind", "ended"})

Grouping = Literal["arrival", "session", "similarity", "risk"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
"""The order of waiting calls: by arrival, by session, similar ones together, or by risk."""
RISK_GROUPS = ("severe risk", "some risk", "not read", "not flagged")
"""The groups of calls by their risk, from the top."""


@dataclass(frozen=True)
class RowPlace:
    """A row of the list: its section, and its number within the section."""

    section: Section
    row: int


def section_of(board: Board, id_: str) -> Section | None:
    """Return the section of a call. None: the policy has not judged it yet, or it is not on the board."""
    if id_ in board.waiting:
        return "waiting"
    if id_ in board.aside:
        return "aside"
    if id_ in board.queued or id_ in board.held:
        return "queued"
    if id_ in board.running or id_ in board.held_back:
        return "running"
    if id_ in board.unsettled:
        return "behind"
    return "ended" if id_ in board.calls and id_ not in board.unjudged else None


LONGEST_SIMILARITY = 60
"""Most characters of a similarity key; calls that differ after them count as similar."""


def similarity_key(line: CallLine) -> str:
    """Return the prefixes of a call's commands as the policy reads them, else its first word."""
    if line.prefixes:
        return " · ".join(dict.fromkeys(" ".join(prefix) for prefix in line.prefixes))[:LONGEST_SIMILARITY]
    if line.carried_out:
        return line.carried_out[:LONGEST_SIMILARITY]
    if isinstance(line.command, list):
        program = line.command[0]
        return (PurePosixPath(program).name or program)[:LONGEST_SIMILARITY]
    words = line.command.split(maxsplit=1)
    return words[0][:LONGEST_SIMILARITY] if words else "nothing"


LONGEST_SEARCHED = 2000
"""Most characters of searched text that are kept per call; longer text is computed again for each search."""


def listed(id_: str, line: CallLine, section: Section) -> ListedCall:
    """Return the facts about a call that the list keeps. `id_`: the board's, so that it is kept once."""
    words = searched_words(line)
    waits = section == "waiting"
    return ListedCall(
        id_,
        section,
        # Many calls share these texts.
        sys.intern(line.session_id),
        sys.intern(similarity_key(line)) if waits else "",
        _risk_group(line) if waits else "",
        words if len(words) <= LONGEST_SEARCHED else None,
    )


def _risk_group(line: CallLine) -> str:
    if line.risks:
        return RISK_GROUPS[0 if any("grave" in risk[1:] for risk in line.risks) else 1]
    return RISK_GROUPS[2 if line.not_inspected else 3]


def searched_words(line: CallLine) -> str:
    """Return the casefolded text by which a filter finds a call."""
    # Without the session's name, which can change; the roster compares it separately.
    text = " ".join(line.command) if isinstance(line.command, list) else line.command
    place = f" @{line.place}" if line.place else ""
    return f"{text}\n{line.description}\n{line.id} {line.tool}{place}".casefold()


class SectionRows:
    """The tickets of each section, and those of the waiting calls in all groupings."""

    def __init__(self, listed: Mapping[int, ListedCall]) -> None:
        """`listed` holds the call of every ticket that is here."""
        self._listed = listed
        self._rows = {section: OrderedTickets() for section in SECTIONS}
        # Maintained continuously: the key that regroups 100,000 calls must not sort them (decision 26).
        self._grouped: dict[Grouping, GroupedTickets] = {
            "session": GroupedTickets(lambda ticket: listed[ticket].session_id),
            "similarity": GroupedTickets(lambda ticket: listed[ticket].similarity),
            "risk": GroupedTickets(lambda ticket: listed[ticket].risk, RISK_GROUPS),
        }

    def add(self, ticket: int) -> None:
        """Add a ticket to its section."""
        section = self._listed[ticket].section
        self._rows[section].add(ticket)
        if section == "waiting":
            for grouped in self._grouped.values():
                grouped.add(ticket)

    def discard(self, ticket: int) -> None:
        """Remove a ticket from its section, if it is there."""
        section = self._listed[ticket].section
        self._rows[section].discard(ticket)
        if section == "waiting":
            for grouped in self._grouped.values():
                grouped.discard(ticket)

    def of(self, section: Section, grouping: Grouping = "arrival") -> OrderedTickets | GroupedTickets:
        """Return the rows of a section, those of waiting calls in their groups."""
        if section == "waiting" and grouping in self._grouped:
            return self._grouped[grouping]
        return self._rows[section]

    def groups(self, grouping: Grouping) -> GroupedTickets | None:
        """Return the groups of waiting calls. None: they are not grouped."""
        return self._grouped.get(grouping)

    def snapshot(self) -> dict[Section, list[int]]:
        """Return a copy of each section."""
        return {section: rows.copy() for section, rows in self._rows.items()}


# Counted in calls, not in time, so that the same keys show the same screens on every machine (decision 26).
WORK = 12_000
"""Units of work in one slice: one for each call that is compared, FOUND more for each that matches."""
FOUND = 24


class FilterSearch:
    """Fills rows with matching calls slice by slice, the topmost sections first."""

    def __init__(
        self,
        source: Iterable[Iterable[int]],
        into: SectionRows,
        matches: Callable[[int], bool],
        work: int = WORK,
    ) -> None:
        """`source` must not change meanwhile; the caller adds calls that arrive later."""
        self._tickets: Iterator[int] = (ticket for tickets in source for ticket in tickets)
        self._into = into
        self._matches = matches
        self._work = work
        self.over = False

    def go_on(self) -> None:
        """Search the next slice."""
        left = self._work
        for ticket in self._tickets:
            left -= 1
            if self._matches(ticket):
                self._into.add(ticket)
                left -= FOUND
            if left <= 0:
                return
        self.over = True


KEPT = 6
"""Calls kept per session: five, and the selected one, which is left out."""


class RecentCalls:
    """The newest calls of each session."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._of: dict[str, list[tuple[int, str]]] = {}
        """By session: the numbers and ids of its newest calls, in the order of their numbers."""

    def came(self, session_id: str, id_: str) -> None:
        """Note a call that is listed for the first time."""
        recent = self._of.setdefault(session_id, [])
        # Calls that have ended come after those that wait, although they may be older.
        insort(recent, (_number(id_), id_))
        if len(recent) > KEPT:
            del recent[0]

    def beside(self, record: CallRecord) -> tuple[CallRecord, ...]:
        """Return other calls of the session, the newest first."""
        calls = self._board.calls
        # The board forgets closed sessions; their calls are in the journal only.
        recent = reversed(self._of.get(record.call.session_id, ()))
        found = [calls[id_] for _, id_ in recent if id_ != record.id and id_ in calls]
        return tuple(found[: KEPT - 1])


def _number(id_: str) -> int:
    return int(id_.rpartition(":")[2])


class CallRoster:
    """Maps calls to rows and back. Every operation costs the same with 100 rows and with 100,000 (decision 26).

    A filter is applied slice by slice: the widget calls `search_on` between two frames. Groups are in the order in
    which the first of their calls was found.
    """

    def __init__(self, board: Board, grouping: Grouping = "arrival", work: int = WORK) -> None:
        """`work`: the size of a slice."""
        self.board = board
        self._work = work
        self.filter = ""
        self.grouping: Grouping = grouping
        self._ticket_of: dict[str, int] = {}
        """The ticket of each call: its place in time within its section."""
        self._listed: dict[int, ListedCall] = {}
        """The calls of the tickets, which are given in ascending order."""
        self._tickets = count()
        self._all = SectionRows(self._listed)
        self._shown = self._all
        self._search: FilterSearch | None = None
        self._sessions_found: dict[str, bool] = {}
        """True for sessions whose name matches the filter, False for others; a cache."""
        self._recent = RecentCalls(board)
        self.update(board.calls.lines(self._board_order()))

    def _board_order(self) -> Iterator[str]:
        board = self.board
        yield from (*board.settled, *board.unsettled, *board.running, *board.held_back)
        for ids in (board.queued, board.held, board.aside, board.waiting):
            yield from ids

    def update(self, lines: Lines) -> None:
        """Move calls to the section of their state; forget those that the board has forgotten."""
        for id_, line in lines.items():
            if self._move(id_, line) and line is not None:
                self._recent.came(line.session_id, id_)

    def _move(self, id_: str, line: CallLine | None) -> bool:
        """Move a call to the section of its state. Returns True if it is listed for the first time."""
        now = section_of(self.board, id_)
        ticket = self._ticket_of.get(id_)
        if now is (self._listed[ticket].section if ticket is not None else None):
            return False
        if ticket is not None:
            # Before the entry is deleted: the groups look up the key of the ticket in it.
            self._shown.discard(ticket)
            self._all.discard(ticket)
            del self._ticket_of[id_]
            del self._listed[ticket]
        if now is not None and line is not None:
            self._list(listed(id_, line, now))
        return ticket is None

    def _list(self, call: ListedCall) -> None:
        # A new, higher ticket per section: rows are in the order in which calls came into their section.
        ticket = self._ticket_of[call.id] = next(self._tickets)
        self._listed[ticket] = call
        self._all.add(ticket)
        if self._shown is not self._all and self._matches(ticket):
            self._shown.add(ticket)

    def narrow(self, text: str) -> None:
        """Show only the calls that contain this text, in any case; all calls if it is empty."""
        wanted = text.strip().casefold()
        if wanted == self.filter:
            return
        # A longer filter matches a subset, so it only searches what a finished search has found.
        within_found = wanted.startswith(self.filter) and not self.searching
        source = self._shown if within_found else self._all
        self.filter = wanted
        self._sessions_found = {}
        self._search = None
        self._shown = self._all
        if wanted:
            self._shown = SectionRows(self._listed)
            self._search = FilterSearch(source.snapshot().values(), self._shown, self._matches, self._work)
            self.search_on()

    @property
    def searching(self) -> bool:
        """True while the search for calls that match the filter is not finished."""
        return self._search is not None

    def search_on(self) -> None:
        """Search the next slice, if a search is in progress."""
        if self._search is not None:
            self._search.go_on()
            if self._search.over:
                self._search = None

    def _matches(self, ticket: int) -> bool:
        if ticket not in self._listed:
            return False
        words = self._listed[ticket].words
        if words is None:
            # The text was too long to be kept for every call.
            line = self.board.calls.line(self._listed[ticket].id)
            words = searched_words(line) if line is not None else ""
        if self.filter in words:
            return True
        session_id = self._listed[ticket].session_id
        found = self._sessions_found.get(session_id)
        if found is None:
            session = self.board.sessions.get(session_id)
            found = session is not None and self.filter in session_words(session, session_id).casefold()
            self._sessions_found[session_id] = found
        return found

    def passes(self, id_: str) -> bool:
        """True if a call matches the filter, even if the search has not reached it."""
        ticket = self._ticket_of.get(id_)
        return ticket is not None and (not self.filter or self._matches(ticket))

    def group(self, grouping: Grouping) -> None:
        """Group the waiting calls in another way."""
        self.grouping = grouping

    @property
    def groups(self) -> GroupedTickets | None:
        """The groups of waiting calls. None: they are not grouped."""
        return self._shown.groups(self.grouping)

    def group_title(self, key: str) -> str:
        """Return the title of a group. It may hold text of an agent."""
        if self.grouping != "session":
            return key
        session = self.board.sessions.get(key)
        if session is None:
            return key
        pid = f"pid {session.pid}" if session.pid is not None else key
        return f"{session.name} · {session.client.name if session.client else pid}"

    def beside(self, record: CallRecord) -> tuple[CallRecord, ...]:
        """Return the last other calls of the session, the newest first."""
        return self._recent.beside(record)

    @property
    def totals(self) -> dict[Section, int]:
        """The number of calls in each section, without the filter."""
        return {section: len(self._all.of(section)) for section in SECTIONS}

    def count(self, section: Section) -> int:
        """Return the number of rows of a section with the filter."""
        return len(self._shown.of(section))

    def id_at(self, place: RowPlace) -> str | None:
        """Return the call in a row."""
        tickets = self._shown.of(place.section, self.grouping)
        if not 0 <= place.row < len(tickets):
            return None
        row = len(tickets) - 1 - place.row if place.section in NEWEST_FIRST else place.row
        return self._listed[tickets[row]].id

    def place_of(self, id_: str) -> RowPlace | None:
        """Return the row of a call. None: it is not shown."""
        ticket = self._ticket_of.get(id_)
        if ticket is None:
            return None
        section = self._listed[ticket].section
        tickets = self._shown.of(section, self.grouping)
        if ticket not in tickets:
            return None
        position = tickets.position(ticket)
        return RowPlace(section, len(tickets) - 1 - position if section in NEWEST_FIRST else position)

    def first(self) -> str | None:
        """Return the call in the topmost row."""
        for section in SECTIONS:
            if (id_ := self.id_at(RowPlace(section, 0))) is not None:
                return id_
        return None

    def next_waiting(self, after: RowPlace | None) -> str | None:
        """Return the waiting call that takes the place of a row, else the last one, else None."""
        waiting = self.count("waiting")
        if not waiting:
            return None
        row = after.row if after is not None and after.section == "waiting" else 0
        return self.id_at(RowPlace("waiting", min(row, waiting - 1)))

    def step(self, id_: str | None, by: int) -> str | None:
        """Return the call this many rows below, or above if negative, stopping at the ends."""
        place = self.place_of(id_) if id_ is not None else None
        if place is None:
            return self.first()
        flat = sum(self.count(section) for section in SECTIONS[: SECTIONS.index(place.section)]) + place.row
        return self.flat(flat + by)

    def next_in(self, section: Section, after: str | None, wanted: Callable[[CallRecord], bool]) -> str | None:
        """Return the next call of a section that is wanted, below a call, from the top again after the last one."""
        place = self.place_of(after) if after is not None else None
        rows = self.count(section)
        start = place.row + 1 if place is not None and place.section == section else 0
        for row in (*range(start, rows), *range(start)):
            id_ = self.id_at(RowPlace(section, row))
            record = self.board.calls.get(id_) if id_ is not None else None
            if record is not None and wanted(record):
                return id_
        return None

    def flat(self, row: int) -> str | None:
        """Return the call in a row counted over all sections, stopping at the ends."""
        total = sum(self.count(section) for section in SECTIONS)
        row = max(0, min(row, total - 1))
        for section in SECTIONS:
            if row < self.count(section):
                return self.id_at(RowPlace(section, row))
            row -= self.count(section)
        return None
