"""Tickets in groups, each group under a heading: rows and lines of a list that may be very long."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from whisper_tui.tui.ordered import OrderedTickets
from whisper_tui.tui.sums import Sums

SPARE = 64
"""Groups that may be empty before the list of groups is written anew."""


@dataclass(eq=False, slots=True)
class Group:
    """Tickets that belong together, in ascending order."""

    key: str
    slot: int
    """Its place among all groups, empty ones included."""
    tickets: OrderedTickets = field(default_factory=OrderedTickets)


class GroupedTickets:
    """Groups keep the order in which their first ticket came, so that none moves while somebody looks at it."""

    def __init__(self, key_of: Callable[[int], str]) -> None:
        """`key_of` tells the group of every ticket that is here, and the same as long as it is."""
        self._key_of = key_of
        self._count = 0
        self._slots: list[Group] = []
        self._by_key: dict[str, Group] = {}
        self._sums = Sums()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return (ticket for group in self._slots for ticket in group.tickets)

    def __contains__(self, ticket: int) -> bool:
        group = self._by_key.get(self._key_of(ticket))
        return group is not None and ticket in group.tickets

    def __getitem__(self, row: int) -> int:
        if not 0 <= row < self._count:
            raise IndexError(row)
        slot = self._sums.find(row)
        return self._slots[slot].tickets[row - self._sums.before(slot)[0]]

    @property
    def groups(self) -> int:
        """How many groups hold anything."""
        return len(self._by_key)

    def position(self, ticket: int) -> int:
        """Which row a ticket is, from 0, headings not counted. Raises `KeyError` for one that is not here."""
        group = self._by_key[self._key_of(ticket)]
        return self._sums.before(group.slot)[0] + group.tickets.position(ticket)

    def add(self, ticket: int) -> None:
        """Put a ticket into its group, or into a new group at the end; nothing happens if it is here."""
        key = self._key_of(ticket)
        group = self._by_key.get(key)
        if group is None:
            group = self._by_key[key] = Group(key, len(self._slots))
            self._slots.append(group)
            self._sums.append(0, 1)
        before = len(group.tickets)
        group.tickets.add(ticket)
        added = len(group.tickets) - before
        self._count += added
        self._sums.add(group.slot, added, 0)

    def discard(self, ticket: int) -> None:
        """Take a ticket out, and its group with the last one; nothing happens if it is not here."""
        group = self._by_key.get(self._key_of(ticket))
        if group is None or ticket not in group.tickets:
            return
        group.tickets.discard(ticket)
        self._count -= 1
        empty = not len(group.tickets)
        self._sums.add(group.slot, -1, -1 if empty else 0)
        if empty:
            del self._by_key[group.key]
            if len(self._slots) > SPARE + 2 * len(self._by_key):
                self._close_ranks()

    def _close_ranks(self) -> None:
        """Forget the groups that are empty."""
        self._slots = [group for group in self._slots if len(group.tickets)]
        for slot, group in enumerate(self._slots):
            group.slot = slot
        self._sums = Sums((len(group.tickets), 1) for group in self._slots)

    def group_at(self, row: int) -> Group:
        """The group that a row belongs to."""
        return self._slots[self._sums.find(row)]

    def headings_through(self, row: int) -> int:
        """How many headings stand above a row, that of its own group included."""
        return self._sums.before(self._sums.find(row))[1] + 1

    def at_line(self, line: int, lines_of_row: int) -> tuple[Group, int | None, int]:
        """What stands in a line from 0: a group, its row or None for its heading, and which line of the row."""
        slot = self._sums.find(line, per_row=lines_of_row, per_head=1)
        rows, heads = self._sums.before(slot)
        within = line - rows * lines_of_row - heads
        if within <= 0:
            return self._slots[slot], None, 0
        row, part = divmod(within - 1, lines_of_row)
        return self._slots[slot], rows + row, part
