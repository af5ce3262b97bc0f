"""Ids in groups, each group under a heading: rows and lines of a list that may be very long."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from whisper_tui.tui.ordered import OrderedIds
from whisper_tui.tui.sums import Sums

SPARE = 64
"""Groups that may be empty before the list of groups is written anew."""


@dataclass(eq=False)
class Group:
    """Ids that belong together, in the order in which they came."""

    key: str
    slot: int
    """Its place among all groups, empty ones included."""
    ids: OrderedIds = field(default_factory=OrderedIds)


class GroupedIds:
    """Groups keep the order in which their first id came, so that none moves while somebody looks at it."""

    def __init__(self, key_of: Callable[[str], str], ids: Iterable[str] = ()) -> None:
        self._key_of = key_of
        self._slots: list[Group] = []
        self._group_of: dict[str, Group] = {}
        self._by_key: dict[str, Group] = {}
        self._sums = Sums()
        self._gather(ids)

    def _gather(self, ids: Iterable[str]) -> None:
        gathered: dict[str, list[str]] = {}
        for id_ in ids:
            gathered.setdefault(self._key_of(id_), []).append(id_)
        for slot, (key, members) in enumerate(gathered.items()):
            group = Group(key, slot, OrderedIds(members))
            self._slots.append(group)
            self._by_key[key] = group
            self._group_of.update(dict.fromkeys(members, group))
            self._sums.append(len(group.ids), 1)

    def __len__(self) -> int:
        return len(self._group_of)

    def __iter__(self) -> Iterator[str]:
        return (id_ for group in self._slots for id_ in group.ids)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._group_of

    def __getitem__(self, row: int) -> str:
        if not 0 <= row < len(self):
            raise IndexError(row)
        slot = self._sums.find(row)
        return self._slots[slot].ids[row - self._sums.before(slot)[0]]

    @property
    def groups(self) -> int:
        """How many groups hold anything."""
        return len(self._by_key)

    def position(self, id_: str) -> int:
        """Which row an id is, from 0, headings not counted. Raises `KeyError` for one that is not here."""
        group = self._group_of[id_]
        return self._sums.before(group.slot)[0] + group.ids.position(id_)

    def append(self, id_: str) -> None:
        """Add an id at the end of its group, or as a new group at the end; nothing happens if it is here."""
        if id_ in self._group_of:
            return
        key = self._key_of(id_)
        group = self._by_key.get(key)
        if group is None:
            group = self._by_key[key] = Group(key, len(self._slots))
            self._slots.append(group)
            self._sums.append(0, 1)
        group.ids.append(id_)
        self._group_of[id_] = group
        self._sums.add(group.slot, 1, 0)

    def discard(self, id_: str) -> None:
        """Take an id out, and its group with the last one; nothing happens if it is not here."""
        group = self._group_of.pop(id_, None)
        if group is None:
            return
        group.ids.discard(id_)
        empty = not len(group.ids)
        self._sums.add(group.slot, -1, -1 if empty else 0)
        if empty:
            del self._by_key[group.key]
            if len(self._slots) > SPARE + 2 * len(self._by_key):
                self._close_ranks()

    def _close_ranks(self) -> None:
        """Forget the groups that are empty."""
        self._slots = [group for group in self._slots if len(group.ids)]
        for slot, group in enumerate(self._slots):
            group.slot = slot
        self._sums = Sums((len(group.ids), 1) for group in self._slots)

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
