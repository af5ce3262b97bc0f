"""Rows of a list of any length: their facts in little memory, their order, and groups found with a Fenwick tree."""

import json
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Section = Literal["waiting", "aside", "queued", "running", "behind", "ended"]


class CallKind(NamedTuple):
    """Facts that a call shares with others."""

    section: Section
    session_id: str
    similarity: str
    """The key of its group while it waits; empty afterwards."""
    risk: str
    """The name of its risk while it waits; empty afterwards."""


class ListedCall(NamedTuple):
    """A call in a section of the list."""

    id: str
    kind: CallKind
    words: str | None
    """The text that is searched by the filter. None: it is too long to be kept."""


BLOCK = 256
"""Tickets in one block of listed calls."""


MOST_SHARED = 4096
"""Facts that are shared at once; after as many others, they are shared anew."""


class _Block:
    """Calls with successive tickets. None: the call has another ticket by now, or is gone."""

    __slots__ = ("ids", "kinds", "listed", "words")

    def __init__(self) -> None:
        self.ids: list[str | None] = []
        self.kinds: list[CallKind | None] = []
        self.words: list[str | None] | bytes = []
        self.listed = 0
        """The number of its calls that are listed."""


class ListedCalls:
    """The listed calls by their tickets, which are given in ascending order.

    In blocks, because a dictionary of 100,000 tuples and texts takes 30 MB. Calls share their section, session, group
    and risk; the words of a full block are compressed, and those of the block that was searched last are kept.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._kinds: dict[CallKind, CallKind] = {}
        self._next = 0
        self._searched: tuple[int, list[str | None]] = (-1, [])

    def __contains__(self, ticket: int) -> bool:
        block = self._blocks.get(ticket // BLOCK)
        return block is not None and ticket % BLOCK < len(block.ids) and block.ids[ticket % BLOCK] is not None

    def add(self, call: ListedCall) -> int:
        """Add a call, and return its ticket, which is higher than all before."""
        ticket = self._next
        self._next += 1
        if not ticket % BLOCK and (full := self._blocks.get(ticket // BLOCK - 1)) is not None:
            self._close(ticket // BLOCK - 1, full)
        block = self._blocks.setdefault(ticket // BLOCK, _Block())
        block.ids.append(call.id)
        block.kinds.append(self._kinds.setdefault(call.kind, call.kind))
        if len(self._kinds) > MOST_SHARED:
            self._kinds.clear()
        if isinstance(block.words, list):
            block.words.append(call.words)
        block.listed += 1
        return ticket

    def _close(self, number: int, block: _Block) -> None:
        """Compress the words of a block to which no call is added any more."""
        if block.listed:
            block.words = zlib.compress(json.dumps(block.words).encode(), 1)
        else:
            del self._blocks[number]

    def discard(self, ticket: int) -> None:
        """Remove a call."""
        number, at = divmod(ticket, BLOCK)
        block = self._blocks[number]
        block.ids[at] = block.kinds[at] = None
        block.listed -= 1
        if not block.listed and len(block.ids) == BLOCK and number != (self._next - 1) // BLOCK:
            del self._blocks[number]

    def id(self, ticket: int) -> str:
        """Return the id of a call."""
        return self._blocks[ticket // BLOCK].ids[ticket % BLOCK] or ""

    def kind(self, ticket: int) -> CallKind:
        """Return the facts of a call. Raises `KeyError` if the call is not listed."""
        kind = self._blocks[ticket // BLOCK].kinds[ticket % BLOCK]
        if kind is None:
            raise KeyError(ticket)
        return kind

    def words(self, ticket: int) -> str | None:
        """Return the text of a call that is searched by the filter."""
        number, at = divmod(ticket, BLOCK)
        words = self._blocks[number].words
        if isinstance(words, bytes):
            if self._searched[0] != number:
                self._searched = number, json.loads(zlib.decompress(words))
            words = self._searched[1]
        return words[at]


class OrderedTickets:
    """Ascending numbers in an array: eight bytes per row, binary search, one memory move to insert or delete."""

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
        """Return the row of a ticket, from 0. Raises `KeyError` if it is not here."""
        position = bisect_left(self._tickets, ticket)
        if position == len(self._tickets) or self._tickets[position] != ticket:
            raise KeyError(ticket)
        return position

    def add(self, ticket: int) -> bool:
        """Add a ticket in order. Returns False if it is here already."""
        tickets = self._tickets
        # New tickets are the highest ones, so that nearly every call of this is an append.
        if not tickets or ticket > tickets[-1]:
            tickets.append(ticket)
        elif ticket not in self:
            tickets.insert(bisect_left(tickets, ticket), ticket)
        else:
            return False
        return True

    def discard(self, ticket: int) -> None:
        """Remove a ticket, if it is here."""
        if ticket in self:
            del self._tickets[bisect_left(self._tickets, ticket)]

    def copy(self) -> "OrderedTickets":
        """Return an independent copy."""
        return OrderedTickets(self._tickets)


class FenwickTree:
    """A Fenwick tree over pairs of numbers: the rows and the headings of groups."""

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        # Index 0 stays unused: the lowest set bit of an index is the length of the range that it sums.
        self._rows = [0]
        self._heads = [0]
        for rows, heads in pairs:
            self.append(rows, heads)

    def __len__(self) -> int:
        return len(self._rows) - 1

    def append(self, rows: int, heads: int) -> None:
        """Append a pair."""
        at = len(self._rows)
        step = 1
        while step < at & -at:
            rows += self._rows[at - step]
            heads += self._heads[at - step]
            step <<= 1
        self._rows.append(rows)
        self._heads.append(heads)

    def add(self, position: int, rows: int, heads: int) -> None:
        """Change the pair at a position, from 0."""
        at = position + 1
        while at < len(self._rows):
            self._rows[at] += rows
            self._heads[at] += heads
            at += at & -at

    def before(self, position: int) -> tuple[int, int]:
        """Return the sums of all pairs before a position."""
        rows = heads = 0
        while position:
            rows += self._rows[position]
            heads += self._heads[position]
            position -= position & -position
        return rows, heads

    def find(self, target: int, *, per_row: int = 1, per_head: int = 0) -> int:
        """Return the last position with at most `target` before it; rows and headings have these weights."""
        position = 0
        step = 1 << len(self).bit_length()
        while step:
            further = position + step
            if further < len(self._rows):
                weight = self._rows[further] * per_row + self._heads[further] * per_head
                if weight <= target:
                    position = further
                    target -= weight
            step >>= 1
        return min(position, max(0, len(self) - 1))


SPARE = 64
"""Empty groups that are kept before the list of groups is compacted."""


@dataclass(eq=False, slots=True)
class TicketGroup:
    """Tickets that belong together, in ascending order."""

    key: str
    slot: int
    """Its place among all groups, empty ones included."""
    tickets: OrderedTickets = field(default_factory=OrderedTickets)


class GroupedTickets:
    """Tickets in groups, which are in the order in which their first ticket came."""

    def __init__(
        self,
        kind_of: Callable[[int], CallKind],
        key_of: Callable[[CallKind], str],
        ranked: Iterable[str] = (),
    ) -> None:
        """`key_of` returns the group of a call, which never changes; `ranked` groups come first, in this order."""
        self._kind_of = kind_of
        self._key_of = key_of
        self._count = 0
        self._slots = [TicketGroup(key, slot) for slot, key in enumerate(ranked)]
        self._ranked = {group.key: group for group in self._slots}
        self._by_key: dict[str, TicketGroup] = {}
        self._sums = FenwickTree((0, 0) for _ in self._slots)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return (ticket for group in self._slots for ticket in group.tickets)

    def __contains__(self, ticket: int) -> bool:
        group = self._by_key.get(self._key_of(self._kind_of(ticket)))
        return group is not None and ticket in group.tickets

    def __getitem__(self, row: int) -> int:
        if not 0 <= row < self._count:
            raise IndexError(row)
        slot = self._sums.find(row)
        return self._slots[slot].tickets[row - self._sums.before(slot)[0]]

    @property
    def groups(self) -> int:
        """The number of groups that are not empty."""
        return len(self._by_key)

    def position(self, ticket: int) -> int:
        """Return the row of a ticket, from 0, without headings. Raises `KeyError` if it is not here."""
        group = self._by_key[self._key_of(self._kind_of(ticket))]
        return self._sums.before(group.slot)[0] + group.tickets.position(ticket)

    def add(self, ticket: int, kind: CallKind) -> None:
        """Add the ticket of such a call to its group, or to a new group at the end, unless it is here already."""
        key = self._key_of(kind)
        group = self._by_key.get(key)
        if group is None:
            group = self._by_key[key] = self._begin(key)
        if group.tickets.add(ticket):
            self._count += 1
            self._sums.add(group.slot, 1, 0)

    def _begin(self, key: str) -> TicketGroup:
        """Return a group for its first ticket: in its rank, or at the end."""
        if (ranked := self._ranked.get(key)) is not None:
            self._sums.add(ranked.slot, 0, 1)
            return ranked
        # At the end, so that no group moves while somebody looks at it.
        group = TicketGroup(key, len(self._slots))
        self._slots.append(group)
        self._sums.append(0, 1)
        return group

    def discard(self, ticket: int) -> None:
        """Remove a ticket, if it is here, and its group with the last ticket."""
        group = self._by_key.get(self._key_of(self._kind_of(ticket)))
        if group is None or ticket not in group.tickets:
            return
        group.tickets.discard(ticket)
        self._count -= 1
        empty = not len(group.tickets)
        self._sums.add(group.slot, -1, -1 if empty else 0)
        if empty:
            del self._by_key[group.key]
            # The empty slot stays, because removing one renumbers all others; many at once cost the same.
            if len(self._slots) > SPARE + 2 * len(self._by_key):
                self._compact()

    def _compact(self) -> None:
        """Remove the empty slots, except those with a rank."""
        self._slots = [group for group in self._slots if len(group.tickets) or group.key in self._ranked]
        for slot, group in enumerate(self._slots):
            group.slot = slot
        self._sums = FenwickTree((len(group.tickets), 1 if len(group.tickets) else 0) for group in self._slots)

    def group_at(self, row: int) -> TicketGroup:
        """Return the group of a row."""
        return self._slots[self._sums.find(row)]

    def headings_through(self, row: int) -> int:
        """Return the number of headings above a row, that of its own group included."""
        return self._sums.before(self._sums.find(row))[1] + 1

    def at_line(self, line: int, lines_of_row: int) -> tuple[TicketGroup, int | None, int]:
        """Return the group, row and part of a line, counted from 0. The row is None for the heading of the group."""
        slot = self._sums.find(line, per_row=lines_of_row, per_head=1)
        rows, heads = self._sums.before(slot)
        within = line - rows * lines_of_row - heads
        if within <= 0:
            return self._slots[slot], None, 0
        row, part = divmod(within - 1, lines_of_row)
        return self._slots[slot], rows + row, part
