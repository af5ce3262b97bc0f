"""The calls in sections, as the list shows them: kept in step with a board, change by change, filtered and grouped."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from whisper_tui.model.board import Board
from whisper_tui.model.command import Argv
from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Running, Starting, Waiting
from whisper_tui.tui.grouped import GroupedIds
from whisper_tui.tui.likeness import likeness
from whisper_tui.tui.ordered import OrderedIds
from whisper_tui.tui.recent import RecentCalls

Section = Literal["waiting", "queued", "running", "behind", "ended"]
SECTIONS: tuple[Section, ...] = get_args(Section)
"""From top to bottom: waits for a human, waits for a worker, runs, has left something behind, is over."""
NEWEST_FIRST: frozenset[Section] = frozenset({"behind", "ended"})

Grouping = Literal["arrival", "session", "likeness"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
"""How the calls that wait are put together: one after the other, by session, or those that are alike."""


@dataclass(frozen=True)
class Place:
    """A row of the list: which section, and which row of it from its top."""

    section: Section
    row: int


def section_of(record: CallRecord) -> Section | None:
    """Where a call is listed. None: it is not yet judged, so there is nothing to show."""
    match record.state:
        case Waiting():
            return "waiting"
        case Held() | Queued():
            return "queued"
        case Starting() | Running():
            return "running"
        case Ended(settled=False):
            return "behind"
        case Ended():
            return "ended"
        case _:
            return None


class Roster:
    """Which call is in which row.

    Everything costs the same with 100 rows and with 100,000, save another filter and another grouping.
    """

    def __init__(self, board: Board, grouping: Grouping = "arrival") -> None:
        self.board = board
        self.filter = ""
        self.grouping: Grouping = grouping
        self._where: dict[str, Section] = {}
        self.totals: dict[Section, int] = dict.fromkeys(SECTIONS, 0)
        self._shown: dict[Section, OrderedIds | GroupedIds] = {section: self._rows(section) for section in SECTIONS}
        for id_ in self._board_order():
            self._move(id_)
        self._recent = RecentCalls(board)

    def _rows(self, section: Section, ids: Iterable[str] = ()) -> OrderedIds | GroupedIds:
        if section != "waiting" or self.grouping == "arrival":
            return OrderedIds(ids)
        return GroupedIds(self._group_key, ids)

    def _group_key(self, id_: str) -> str:
        record = self.board.calls[id_]
        return record.call.session_id if self.grouping == "session" else likeness(record)

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
        before = self._where.get(id_)
        if now is before:
            return False
        if before is not None:
            del self._where[id_]
            self.totals[before] -= 1
            self._shown[before].discard(id_)
        if now is not None and record is not None:
            self._where[id_] = now
            self.totals[now] += 1
            if self._matches(record, self.filter):
                self._shown[now].append(id_)
        return before is None

    def narrow(self, text: str) -> None:
        """Show only the calls whose words hold this text, whatever its case. Empty: all."""
        wanted = text.strip().casefold()
        source: Mapping[Section, Iterable[str]] = self._shown if wanted.startswith(self.filter) else self._all()
        self.filter = wanted
        self._show(source)

    def group(self, grouping: Grouping) -> None:
        """Put the calls that wait together in another way."""
        self.grouping = grouping
        self._show(self._all())

    @property
    def groups(self) -> GroupedIds | None:
        """The calls that wait, in their groups. None: they are not grouped."""
        waiting = self._shown["waiting"]
        return waiting if isinstance(waiting, GroupedIds) else None

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

    def _show(self, source: Mapping[Section, Iterable[str]]) -> None:
        calls = self.board.calls
        self._shown = {
            section: self._rows(section, (id_ for id_ in ids if self._matches(calls[id_], self.filter)))
            for section, ids in source.items()
        }

    def _all(self) -> dict[Section, list[str]]:
        found: dict[Section, list[str]] = {section: [] for section in SECTIONS}
        for id_ in self._board_order():
            if section := self._where.get(id_):
                found[section].append(id_)
        return found

    def _matches(self, record: CallRecord, wanted: str) -> bool:
        if not wanted:
            return True
        command = record.spec.command
        text = " ".join(command.words()) if isinstance(command, Argv) else command.text
        if wanted in text.casefold() or wanted in record.call.description.casefold():
            return True
        session = self.board.sessions.get(record.call.session_id)
        words = f"{record.id} {record.call.tool} {session.name if session else ''}"
        return wanted in words.casefold()

    def count(self, section: Section) -> int:
        """How many rows of a section are shown."""
        return len(self._shown[section])

    def id_at(self, place: Place) -> str | None:
        """The call in a row."""
        ids = self._shown[place.section]
        if not 0 <= place.row < len(ids):
            return None
        return ids[len(ids) - 1 - place.row] if place.section in NEWEST_FIRST else ids[place.row]

    def place_of(self, id_: str) -> Place | None:
        """The row of a call. None: it is not shown."""
        section = self._where.get(id_)
        if section is None or id_ not in self._shown[section]:
            return None
        ids = self._shown[section]
        position = ids.position(id_)
        return Place(section, len(ids) - 1 - position if section in NEWEST_FIRST else position)

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
