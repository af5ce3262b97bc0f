"""Rows of a list of any length: their order, and the groups that they are in."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Literal, NamedTuple

Section = Literal["waiting", "aside", "queued", "running", "behind", "ended"]


class ListedCall(NamedTuple):
    """A call in a section of the list."""

    id: str
    section: Section
    session_id: str
    similarity: str
    """The key of its group while it waits; empty afterwards."""
    risk: str
    """The name of its risk while it waits; empty afterwards."""
    words: str | None
    """The text that is searched by the filter. None: it is too long to be kept."""


class OrderedTickets(list[int]):
    """Numbers in ascending order: binary search, one memory move to insert or delete."""

    def __contains__(self, ticket: int) -> bool:  # type: ignore[override]
        position = bisect_left(self, ticket)
        return position < len(self) and self[position] == ticket

    def position(self, ticket: int) -> int:
        """Return the row of a ticket, from 0. Raises `KeyError` if it is not here."""
        position = bisect_left(self, ticket)
        if position == len(self) or self[position] != ticket:
            raise KeyError(ticket)
        return position

    def add(self, ticket: int) -> None:
        """Add a ticket in order, unless it is here already."""
        # New tickets are the highest ones, so that nearly every call of this is an append.
        if not self or ticket > self[-1]:
            self.append(ticket)
        elif ticket not in self:
            self.insert(bisect_left(self, ticket), ticket)

    def discard(self, ticket: int) -> None:
        """Remove a ticket, if it is here."""
        if ticket in self:
            del self[bisect_left(self, ticket)]


class TicketGroup(NamedTuple):
    """Tickets that belong together, in ascending order."""

    key: str
    tickets: OrderedTickets


class GroupedTickets:
    """Tickets in groups, which are in the order in which their first ticket came."""

    def __init__(self, key_of: Callable[[int], str], ranked: Iterable[str] = ()) -> None:
        """`key_of` returns the group of a ticket, which never changes; `ranked` groups come first, in this order."""
        self._key_of = key_of
        self._ranked = frozenset(ranked)
        # A new group comes to the end, so that no group moves while somebody looks at it.
        self._groups = {key: OrderedTickets() for key in ranked}
        self._shown: list[str] | None = None
        """The keys of the groups that are not empty, in their order. None: they have to be looked up again."""
        self._before: list[int] = []
        """The number of rows before each of these."""

    def __len__(self) -> int:
        self._look_up()
        return self._before[-1]

    def __iter__(self) -> Iterator[int]:
        return (ticket for tickets in self._groups.values() for ticket in tickets)

    def __contains__(self, ticket: int) -> bool:
        tickets = self._groups.get(self._key_of(ticket))
        return tickets is not None and ticket in tickets

    def __getitem__(self, row: int) -> int:
        if not 0 <= row < len(self):
            raise IndexError(row)
        number = self._number_at(row)
        return self._group(number).tickets[row - self._before[number]]

    def _look_up(self) -> list[str]:
        # Once after a change. Where each of 100,000 calls is a group of its own, that takes a frame (decision 26).
        if self._shown is None:
            self._shown = list(filter(self._groups.get, self._groups))
            self._before = list(accumulate(map(len, filter(None, self._groups.values())), initial=0))
        return self._shown

    def _group(self, number: int) -> TicketGroup:
        key = self._look_up()[number]
        return TicketGroup(key, self._groups[key])

    def _number_at(self, row: int) -> int:
        return bisect_right(self._before, row) - 1

    @property
    def groups(self) -> int:
        """The number of groups that are not empty."""
        return len(self._look_up())

    def position(self, ticket: int) -> int:
        """Return the row of a ticket that is here, from 0, without headings."""
        key = self._key_of(ticket)
        number = self._look_up().index(key)
        return self._before[number] + self._groups[key].position(ticket)

    def add(self, ticket: int) -> None:
        """Add a ticket to its group, or to a new group at the end, unless it is here already."""
        self._groups.setdefault(self._key_of(ticket), OrderedTickets()).add(ticket)
        self._shown = None

    def discard(self, ticket: int) -> None:
        """Remove a ticket, if it is here, and its group with the last ticket."""
        key = self._key_of(ticket)
        tickets = self._groups.get(key)
        if tickets is None:
            return
        tickets.discard(ticket)
        self._shown = None
        if not tickets and key not in self._ranked:
            del self._groups[key]

    def group_at(self, row: int) -> TicketGroup:
        """Return the group of a row."""
        self._look_up()
        return self._group(self._number_at(row))

    def headings_through(self, row: int) -> int:
        """Return the number of headings above a row, that of its own group included."""
        self._look_up()
        return self._number_at(row) + 1

    def at_line(self, line: int, lines_of_row: int) -> tuple[TicketGroup, int | None, int]:
        """Return the group, row and part of a line, counted from 0. The row is None for the heading of the group."""
        groups = self._look_up()
        number = bisect_right(range(len(groups)), line, key=lambda at: self._before[at] * lines_of_row + at) - 1
        within = line - self._before[number] * lines_of_row - number
        if not within:
            return self._group(number), None, 0
        row, part = divmod(within - 1, lines_of_row)
        return self._group(number), self._before[number] + row, part
