"""The calls that match, newest first, fetched as far as somebody looks."""

from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from whisper_tui.model.port import HistoryQuery, Supervision
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.command_text import one_line
from whisper_tui.tui.describe import standing
from whisper_tui.tui.history.filters import Filters
from whisper_tui.tui.spans import Line, Span
from whisper_tui.tui.unmasking import listed_command

PAGE = 100
"""Calls asked for at once."""
WINDOW = 25_000
"""Calls that are searched for words at once: few enough that the answer comes before anybody waits for it."""
AHEAD = 100
"""Calls that match, fetched beyond those that are looked at."""


class PastCall(NamedTuple):
    """What the list shows of a call. The call itself is asked for when it is selected."""

    id: str
    at: float
    """When it came, in seconds since the epoch."""
    session_id: str
    mark: Span
    words: Line
    outcome: Span


def past_call(record: CallRecord, now: float) -> PastCall:
    """A call as it is listed."""
    first, *others = standing(record, now)
    sign, _, word = first.text.partition(" ")
    return PastCall(
        id=record.id,
        at=record.call.submitted_at,
        session_id=record.call.session_id,
        mark=Span(sign, first.role),
        words=one_line(listed_command(record)),
        outcome=Span(word, first.role) if word else others[0],
    )


class PastCalls:
    """What was found so far. A million calls that are not looked at cost nothing."""

    def __init__(
        self, supervision: Supervision, filters: Filters, *, me: str, clock: Callable[[], float], page: int = PAGE
    ) -> None:
        self.filters = filters
        self.found: list[PastCall] = []
        self.ended = False
        """Whether everything that there is was looked at."""
        self.looked_at = 0
        """How many calls were looked at to find these."""
        self.back_to: float | None = None
        """When the oldest call came that was looked at."""
        self._supervision = supervision
        self._me = me
        self._clock = clock
        self._page = page
        self._before: str | None = None
        self._since = filters.since(clock())
        self._until = filters.until(clock())

    async def more(self, wanted: int) -> AsyncIterator[None]:
        """Look on until so many calls are found in all, or there is nothing more; tells after each page."""
        if self._until is not None and self._before is None:
            self._before = await first_at_or_after(self._supervision, self._until)
        while not self.ended and len(self.found) < wanted:
            if self.filters.text.strip():
                await self._search()
            else:
                page = await self._supervision.history(self.filters.query(self._page, self._before))
                self.looked_at += self._take(page)
                self.ended = self.ended or len(page) < self._page
            yield

    async def _search(self) -> None:
        """Look for words in a window of calls, and go on below it, or below the last of a full page."""
        before = int(self._before) if self._before is not None else await _beyond_newest(self._supervision)
        after = max(0, before - 1 - WINDOW)
        page = await self._supervision.history(self.filters.query(self._page, str(before), str(after)))
        self._take(page)
        if len(page) < self._page:
            self._before = str(after + 1)
            await self._reach_back(after)
        self.looked_at += before - int(self._before or before)

    async def _reach_back(self, after: int) -> None:
        """Everything above this call was looked at: how old that is, and whether anything is left."""
        older = await self._supervision.history(HistoryQuery(limit=1, before=str(after + 1)))
        if not older:
            self.ended = True
            return
        self.back_to = older[0].call.submitted_at
        self.ended = self.ended or (self._since is not None and self.back_to < self._since)

    def _take(self, page: tuple[CallRecord, ...]) -> int:
        """Keep what matches; returns how many were looked at until one was too old."""
        now = self._clock()
        for number, record in enumerate(page):
            if self._since is not None and record.call.submitted_at < self._since:
                self.ended = True
                return number
            self.back_to = record.call.submitted_at
            self._before = record.id
            if self.filters.matches(record, self._me):
                self.found.append(past_call(record, now))
        return len(page)


async def _beyond_newest(supervision: Supervision) -> int:
    newest = await supervision.history(HistoryQuery(limit=1))
    return int(newest[0].id) + 1 if newest else 1


async def first_at_or_after(supervision: Supervision, at: float) -> str:
    """The smallest id from which on calls came at that time or later; ids grow as time does."""
    low, high = 0, await _beyond_newest(supervision)
    while low < high:
        middle = (low + high) // 2
        below = await supervision.history(HistoryQuery(limit=1, before=str(middle + 1)))
        if below and below[0].call.submitted_at >= at:
            high = int(below[0].id)
        else:
            low = middle + 1
    return str(low)
