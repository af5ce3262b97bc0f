"""Sums over the beginning of a list of numbers that changes: finding and changing cost the same, however long it is."""

from collections.abc import Iterable


class Sums:
    """A Fenwick tree over pairs of numbers: the rows and the headings of groups."""

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self._rows = [0]
        self._heads = [0]
        for rows, heads in pairs:
            self.append(rows, heads)

    def __len__(self) -> int:
        return len(self._rows) - 1

    def append(self, rows: int, heads: int) -> None:
        """One more pair at the end."""
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
        """The sums of all pairs before a position."""
        rows = heads = 0
        while position:
            rows += self._rows[position]
            heads += self._heads[position]
            position -= position & -position
        return rows, heads

    def find(self, target: int, *, per_row: int = 1, per_head: int = 0) -> int:
        """The last position with no more than `target` before it, where each row and each heading counts so much."""
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
