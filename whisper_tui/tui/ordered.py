"""Ids in the order in which they came, with a position for each: the rows of a list that may be very long."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator


class OrderedIds:
    """Appending is constant, removing anywhere a search and one move of memory, and any row can be asked for."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._ids = list(dict.fromkeys(ids))
        self._tickets = list(range(len(self._ids)))
        self._ticket_of = dict(zip(self._ids, self._tickets, strict=True))
        self._next = len(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._ticket_of

    def __getitem__(self, position: int) -> str:
        return self._ids[position]

    def position(self, id_: str) -> int:
        """Which row an id is, from 0. Raises `KeyError` for one that is not here."""
        return bisect_left(self._tickets, self._ticket_of[id_])

    def append(self, id_: str) -> None:
        """Add an id at the end; nothing happens if it is here."""
        if id_ in self._ticket_of:
            return
        self._ids.append(id_)
        self._tickets.append(self._next)
        self._ticket_of[id_] = self._next
        self._next += 1

    def discard(self, id_: str) -> None:
        """Take an id out; nothing happens if it is not here."""
        if id_ not in self._ticket_of:
            return
        position = self.position(id_)
        del self._ids[position], self._tickets[position], self._ticket_of[id_]
