"""Numbers in ascending order, with a position for each: the rows of a list that may be very long."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator


class OrderedTickets:
    """Eight bytes a row. Adding and removing is a search and one move of memory, and any row can be asked for."""

    def __init__(self, tickets: Iterable[int] = ()) -> None:
        """`tickets`: in ascending order."""
        self._tickets = array("q", tickets)

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[int]:
        return iter(self._tickets)

    def __contains__(self, ticket: int) -> bool:
        position = bisect_left(self._tickets, ticket)
        return position < len(self._tickets) and self._tickets[position] == ticket

    def __getitem__(self, position: int) -> int:
        return self._tickets[position]

    def position(self, ticket: int) -> int:
        """Which row a ticket is, from 0. Raises `KeyError` for one that is not here."""
        position = bisect_left(self._tickets, ticket)
        if position == len(self._tickets) or self._tickets[position] != ticket:
            raise KeyError(ticket)
        return position

    def add(self, ticket: int) -> None:
        """Put a ticket where it belongs; nothing happens if it is here."""
        if not self._tickets or ticket > self._tickets[-1]:
            self._tickets.append(ticket)
        elif ticket not in self:
            self._tickets.insert(bisect_left(self._tickets, ticket), ticket)

    def discard(self, ticket: int) -> None:
        """Take a ticket out; nothing happens if it is not here."""
        if ticket in self:
            del self._tickets[bisect_left(self._tickets, ticket)]

    def copy(self) -> "OrderedTickets":
        """The same tickets, which no longer change with these."""
        return OrderedTickets(self._tickets)
