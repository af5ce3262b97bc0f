"""Looking for the calls that a filter lets through, a slice at a time, so that keys are answered meanwhile."""

from collections.abc import Callable, Iterable, Iterator

from whisper_tui.tui.ordered import OrderedTickets
from whisper_tui.tui.section_rows import SectionRows

WORK = 12_000
"""What is done in one slice: a call looked at counts once, one that is found as often as it costs more."""
FOUND = 24


class Narrowing:
    """Fills rows with what matches, the topmost sections and the oldest calls first."""

    def __init__(
        self,
        source: Iterable[OrderedTickets],
        into: SectionRows,
        matches: Callable[[int], bool],
        work: int = WORK,
    ) -> None:
        """`source` does not change meanwhile; what comes later is up to the caller."""
        self._tickets: Iterator[int] = (ticket for tickets in source for ticket in tickets)
        self._into = into
        self._matches = matches
        self._work = work
        self.over = False

    def go_on(self) -> None:
        """Look at the next slice."""
        left = self._work
        for ticket in self._tickets:
            left -= 1
            if self._matches(ticket):
                self._into.add(ticket)
                left -= FOUND
            if left <= 0:
                return
        self.over = True
