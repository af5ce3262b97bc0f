"""The search in the history, page by page, on one machine or merged over several (decision 26)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar, get_args

from whisper_tui.model.api import HistoryQuery, Supervision, all_sessions
from whisper_tui.model.ending import Denied, Exited, Lost, Withdrawn
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Waiting
from whisper_tui.present.call_text import standing
from whisper_tui.present.command_text import call_line
from whisper_tui.present.spans import Line, Span

VerdictIs = Literal["any", "allowed", "asked", "refused"]
EndingIs = Literal["any", "exit 0", "failed", "denied", "withdrawn", "lost", "still open"]
DeciderIs = Literal["anyone", "a human", "me", "a rule", "memory", "nobody yet"]
PeriodIs = Literal["any", "last hour", "last 24 hours", "last 7 days", "last 30 days", "earlier"]

SECONDS: dict[PeriodIs, float] = {
    "last hour": 3600,
    "last 24 hours": 86_400,
    "last 7 days": 7 * 86_400,
    "last 30 days": 30 * 86_400,
}
EARLIER_S = SECONDS["last 30 days"]
"""The age in seconds from which calls are *earlier*."""

Choice = TypeVar("Choice", VerdictIs, EndingIs, DeciderIs, PeriodIs)


@dataclass(frozen=True)
class Filters:
    """The conditions that calls of the list meet."""

    text: str = ""
    session_id: str | None = None
    verdict: VerdictIs = "any"
    ending: EndingIs = "any"
    decider: DeciderIs = "anyone"
    period: PeriodIs = "any"
    machine: str = ""
    """The machine whose history it is, in a cockpit over several."""

    @property
    def narrow(self) -> bool:
        """True if any filter is set."""
        return self != Filters(machine=self.machine)

    def query(self, limit: int, before: str | None, after: str | None = None) -> HistoryQuery:
        """Return the part of the filters that the journal can apply (decision 26)."""
        return HistoryQuery(
            limit=limit,
            before=before,
            after=after,
            session_id=self.session_id or all_sessions(self.machine),
            text=self.text.strip(),
            open_only=self.ending == "still open",
        )

    def since(self, now: float) -> float | None:
        """Return the arrival of the oldest matching call in seconds since the epoch; None without that limit."""
        seconds = SECONDS.get(self.period)
        return now - seconds if seconds is not None else None

    def until(self, now: float) -> float | None:
        """Return the arrival of the newest matching call; None without that limit."""
        return now - EARLIER_S if self.period == "earlier" else None

    def matches(self, record: CallRecord, me: str) -> bool:
        """True if a call meets the filters that the journal cannot apply. `me`: the name of this person."""
        return self._judged_like_that(record) and self._ended_like_that(record) and self._decided_like_that(record, me)

    def _judged_like_that(self, record: CallRecord) -> bool:
        if self.verdict == "any":
            return True
        kind = record.verdict.kind if record.verdict is not None else None
        return kind == {"allowed": "allow", "asked": "ask", "refused": "refuse"}[self.verdict]

    def _ended_like_that(self, record: CallRecord) -> bool:
        ending = record.state.ending if isinstance(record.state, Ended) else None
        match self.ending:
            case "any":
                return True
            case "exit 0":
                return isinstance(ending, Exited) and ending.code == 0
            case "failed":
                other = isinstance(ending, Denied | Withdrawn | Lost) or ending is None or ending.kind == "handed_over"
                return not other and not (isinstance(ending, Exited) and ending.code == 0)
            case "still open":
                return record.is_open
            case kind:
                return ending is not None and ending.kind == kind

    def _decided_like_that(self, record: CallRecord, me: str) -> bool:
        surface = record.decided_by.surface if record.decided_by is not None else None
        match self.decider:
            case "anyone":
                return True
            case "nobody yet":
                return surface is None
            case "a rule":
                return surface == "rule"
            case "memory":
                return surface == "memory"
            case "me":
                return is_human(record) and record.decided_by is not None and record.decided_by.who == me
            case "a human":
                return is_human(record)


def is_human(record: CallRecord) -> bool:
    """True if a human decided the call."""
    return record.decided_by is not None and record.decided_by.surface not in {"rule", "memory", "agent"}


def _following(choices: tuple[Choice, ...], now: Choice) -> Choice:
    return choices[(choices.index(now) + 1) % len(choices)]


NEXT: dict[str, Callable[[Filters], Filters]] = {
    "verdict": lambda now: replace(now, verdict=_following(get_args(VerdictIs), now.verdict)),
    "ending": lambda now: replace(now, ending=_following(get_args(EndingIs), now.ending)),
    "decider": lambda now: replace(now, decider=_following(get_args(DeciderIs), now.decider)),
    "period": lambda now: replace(now, period=_following(get_args(PeriodIs), now.period)),
}
"""Each filter with the function that sets its next choice."""


PAGE = 100
"""Calls of one read."""
WINDOW = 25_000
"""Calls of one full-text search, few enough for an answer without a noticeable delay."""
AHEAD = 100
"""Matching calls fetched beyond the screen."""


class PastCall(NamedTuple):
    """A row of the list. The record itself is read when the row is selected."""

    id: str
    host: str
    at: float
    """Arrival, in seconds since the epoch."""
    session_id: str
    mark: Span
    words: Line
    outcome: Span


def past_call(record: CallRecord, now: float) -> PastCall:
    """Return the row of a call."""
    first, *others = standing(record, now)
    sign, _, word = first.text.partition(" ")
    left = record.agent_gave_up is not None and isinstance(record.state, Waiting | Held | Queued)
    gone = ", agent gone" if left and not record.agent_went_on else ""
    return PastCall(
        id=record.id,
        host=record.host,
        at=record.call.submitted_at,
        session_id=record.call.session_id,
        mark=Span(sign, first.role),
        words=call_line(record),
        outcome=Span(f"{word}{gone}", first.role) if word else others[0],
    )


class PastCalls:
    """The matching calls found so far."""

    def __init__(
        self, supervision: Supervision, filters: Filters, *, me: str, clock: Callable[[], float], page: int = PAGE
    ) -> None:
        self.filters = filters
        self.found: list[PastCall] = []
        self.ended = False
        """True once the whole history is searched."""
        self.looked_at = 0
        """The number of calls searched so far."""
        self.back_to: float | None = None
        """The arrival of the oldest call searched so far."""
        self._supervision = supervision
        self._me = me
        self._clock = clock
        self._page = page
        self._before: str | None = None
        self._since = filters.since(clock())
        self._until = filters.until(clock())

    async def more(self, wanted: int) -> AsyncIterator[None]:
        """Search on until `wanted` calls are found in all or the history ends; yields after each page."""
        if self._until is not None and self._before is None:
            self._before = await first_at_or_after(self._supervision, self._until, self.filters.machine)
        while not self.ended and len(self.found) < wanted:
            if self.filters.text.strip():
                await self._search()
            else:
                page = await self._supervision.history(self.filters.query(self._page, self._before))
                self.looked_at += self._take(page)
                self.ended = self.ended or len(page) < self._page
            yield

    async def _search(self) -> None:
        """Search a window of calls for words; the next one begins below it, or below the last call of a full page."""
        machine = self.filters.machine
        before = int(self._before) if self._before is not None else await _beyond_newest(self._supervision, machine)
        after = max(0, before - 1 - WINDOW)
        page = await self._supervision.history(self.filters.query(self._page, str(before), str(after)))
        self._take(page)
        if len(page) < self._page:
            self._before = str(after + 1)
            await self._reach_back(after)
        self.looked_at += before - int(self._before or before)

    async def _reach_back(self, after: int) -> None:
        """Note how far back the search has come, and whether older calls are left."""
        query = HistoryQuery(limit=1, before=str(after + 1), session_id=all_sessions(self.filters.machine))
        older = await self._supervision.history(query)
        if not older:
            self.ended = True
            return
        self.back_to = older[0].call.submitted_at
        self.ended = self.ended or (self._since is not None and self.back_to < self._since)

    def _take(self, page: tuple[CallRecord, ...]) -> int:
        """Keep the matching calls of a page. Return how many were searched before one was too old."""
        now = self._clock()
        for number, record in enumerate(page):
            if self._since is not None and record.call.submitted_at < self._since:
                self.ended = True
                return number
            self.back_to = record.call.submitted_at
            self._before = str(record.number)
            if self.filters.matches(record, self._me):
                self.found.append(past_call(record, now))
        return len(page)


class MergedPastCalls:
    """The matching calls of several machines as one list, in the order of our time."""

    def __init__(self, machines: Mapping[str, PastCalls]) -> None:
        self.found: list[PastCall] = []
        self.missing: dict[str, WhisperError] = {}
        """The machines whose calls are not in the list, or not all of them, and why."""
        self._machines = machines
        self._taken = dict.fromkeys(machines, 0)

    @property
    def ended(self) -> bool:
        """True if the whole history of each machine that answers is searched and in the list."""
        return all(self._is_over(name) for name in self._machines)

    @property
    def looked_at(self) -> int:
        """The number of calls searched so far."""
        return sum(past.looked_at for past in self._machines.values())

    @property
    def back_to(self) -> float | None:
        """The time back to which all of these machines were searched. None: not all have answered."""
        searched = [past.back_to for name, past in self._machines.items() if not self._is_over(name)]
        every = searched or [past.back_to for past in self._machines.values() if past.back_to is not None]
        return max((at for at in every if at is not None), default=None) if None not in every else None

    async def more(self, wanted: int) -> AsyncIterator[None]:
        """Search on until `wanted` calls are found in all or all histories end; yields after each step."""
        while not self.ended and len(self.found) < wanted:
            # Until each machine has told its next call, a newer one than those that are known may come.
            await asyncio.gather(*map(self._look_on, self._lacking()))
            while not self._lacking() and not self.ended:
                self._take_newest()
            yield

    def _lacking(self) -> list[str]:
        return [name for name in self._machines if not self._is_over(name) and self._next(name) is None]

    def _next(self, name: str) -> PastCall | None:
        found = self._machines[name].found
        return found[self._taken[name]] if self._taken[name] < len(found) else None

    def _is_over(self, name: str) -> bool:
        return self._next(name) is None and (self._machines[name].ended or name in self.missing)

    async def _look_on(self, name: str) -> None:
        past = self._machines[name]
        try:
            async for _ in past.more(len(past.found) + 1):
                pass
        except WhisperError as error:
            # The others are shown without it, and the list says so.
            self.missing[name] = error

    def _take_newest(self) -> None:
        known = {name: call for name in self._machines if (call := self._next(name)) is not None}
        name = max(known, key=lambda name: known[name].at)
        self._taken[name] += 1
        self.found.append(known[name])


async def _beyond_newest(supervision: Supervision, machine: str) -> int:
    newest = await supervision.history(HistoryQuery(limit=1, session_id=all_sessions(machine)))
    return newest[0].number + 1 if newest else 1


async def first_at_or_after(supervision: Supervision, at: float, machine: str = "") -> str:
    """Return the smallest id of the calls that came at a time or later."""
    # Ids grow with time, so a binary search needs twenty reads for a million calls.
    low, high = 0, await _beyond_newest(supervision, machine)
    while low < high:
        middle = (low + high) // 2
        query = HistoryQuery(limit=1, before=str(middle + 1), session_id=all_sessions(machine))
        below = await supervision.history(query)
        if below and below[0].call.submitted_at >= at:
            high = below[0].number
        else:
            low = middle + 1
    return str(low)
