"""Which rows of a text have been on the screen: whoever approves must have had a chance to read."""

from bisect import bisect_left
from collections.abc import Hashable


class SeenRows:
    """Counts among the rows that matter those that were never shown. Another text or width begins anew."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._seen = bytearray()
        self._text: Hashable = None
        self.missing = 0
        """Rows that matter and have not been on the screen."""

    def of(self, rows: list[int], text: Hashable) -> None:
        """The rows that matter are these now, in ascending order; what was seen of the same `text` stays seen."""
        if text != self._text or len(rows) != len(self._rows):
            self._seen = bytearray(len(rows))
            self.missing = len(rows)
            self._text = text
        self._rows = rows

    def show(self, first: int, count: int) -> None:
        """So many rows from the first one are on the screen."""
        if not self.missing:
            return
        start, end = bisect_left(self._rows, first), bisect_left(self._rows, first + count)
        self.missing -= self._seen.count(0, start, end)
        self._seen[start:end] = b"\x01" * (end - start)
