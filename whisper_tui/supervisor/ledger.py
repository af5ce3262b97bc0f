"""The journal, the board that it makes, and whoever watches: every fact enters here and nowhere else."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from whisper_tui.model.advance import advance
from whisper_tui.model.board import REFUSED_KEPT, Board
from whisper_tui.model.call import Session
from whisper_tui.model.errors import JournalFailed, UnknownCall
from whisper_tui.model.event import (
    CallEvent,
    Event,
    Granted,
    GrantRevoked,
    GrantUsed,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    SessionResumed,
    Submitted,
)
from whisper_tui.model.state import CallRecord, Unjudged
from whisper_tui.supervisor.journal import Journal
from whisper_tui.supervisor.recent import Recent
from whisper_tui.supervisor.trouble import Trouble

BATCH = 1000
"""Events handed to a watcher at once."""

SESSION_FACTS = (SessionOpened, SessionDescribed, SessionResumed, SessionClosed, Granted, GrantUsed, GrantRevoked)
"""What makes a session as it is, with its remembered approvals; what was said in it is told once."""

SESSIONS_SHOWN = 100
"""How many of the newest sessions a board knows even when they have no calls."""

RETRY_S = 0.5
"""Seconds until a fact that could not be journaled is tried again."""

AT_ONCE = 5
"""Calls that are seen to before others are answered."""


class Ledger:
    """Records facts: first on disk, then on the board, then to everybody who watches."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.board = Board()
        self._recent = Recent()
        self._news = asyncio.Event()
        self._listeners: list[Callable[[Event], None]] = []
        self._unknown: deque[tuple[Event, int]] = deque()
        """Facts that are on the disk and not on the board yet, with their sizes."""
        self._telling = False
        self.trouble = Trouble()
        """Why the last fact could not be written."""
        self._closed = False
        for batch in self._board_events():
            self.board.apply_all(batch)
        self.board.seq = journal.last_seq

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Have a function called with every fact, in order, once it is on the board.

        What it records itself is made known after that; it may fail, so it belongs into `see_to`.
        """
        self._listeners.append(listener)

    def record(self, *events: Event, durable: bool = False) -> None:
        """Write facts and make them known. Raises `JournalFailed`, and then nothing has changed."""
        self._unknown.extend(zip(self._written(events, durable=durable), self.journal.sizes, strict=True))
        if not self._telling:
            self._make_known()

    def see_to(self, consequence: Callable[[], None]) -> None:
        """Do what follows from facts by itself: now, or as soon as the journal takes it.

        `consequence` is called again, whole, until it raises no `JournalFailed`: it has to look where things stand.
        """
        try:
            consequence()
        except JournalFailed:
            asyncio.get_running_loop().call_later(RETRY_S, self._see_to_again, consequence)

    def see_to_each(self, consequence: Callable[[str], None], call_ids: Iterable[str]) -> None:
        """Do what follows for each of many calls, a few at a time: others are answered in between.

        By its turn a call may have gone on: `consequence` has to look where it stands.
        """
        self.see_to(partial(self._see_to_some, consequence, deque(call_ids)))

    def _see_to_some(self, consequence: Callable[[str], None], left: deque[str]) -> None:
        for _ in range(min(AT_ONCE, len(left))):
            consequence(left[0])
            left.popleft()
        if left:
            rest = partial(self._see_to_some, consequence, left)
            asyncio.get_running_loop().call_soon(self._see_to_again, rest)

    def _see_to_again(self, consequence: Callable[[], None]) -> None:
        if not self._closed:
            self.see_to(consequence)

    def _written(self, events: tuple[Event, ...], *, durable: bool) -> tuple[Event, ...]:
        try:
            written = self.journal.append(events, durable=durable)
        except JournalFailed as error:
            self.trouble.note(error)
            raise
        self.trouble.over()
        return written

    def _make_known(self) -> None:
        """In the order in which they were written, also those that a listener records meanwhile."""
        self._telling = True
        try:
            while self._unknown:
                event, size = self._unknown.popleft()
                self.board.apply(event)
                self._recent.add(event, size)
                for listener in self._listeners:
                    listener(event)
        finally:
            self._telling = False
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def news(self) -> None:
        """Wait for the next fact."""
        await self._news.wait()

    def call(self, call_id: str) -> CallRecord:
        """Any call ever. Raises `UnknownCall`."""
        known = self.board.calls.get(call_id)
        return known if known is not None else replay(call_id, self.journal.events_of_call(call_id))

    def session(self, session_id: str) -> Session | None:
        """Any session ever."""
        known = self.board.sessions.get(session_id)
        if known is not None:
            return known
        past = Board()
        for batch in self.journal.events_of_sessions([session_id]):
            past.apply_all(batch)
        return past.sessions.get(session_id)

    def bring_back(self, session_id: str) -> Session | None:
        """A session that the board may have forgotten, put back on it."""
        session = self.session(session_id)
        if session is not None:
            self.board.sessions.setdefault(session_id, session)
        return session

    async def watch(self, after: int | None) -> AsyncIterator[tuple[Event, ...]]:
        """Events after a number, endless; None: first those that make up the board of now.

        What is handed over is let go of, so that who takes long over it does not hold it here, too.
        """
        if after is None:
            after = self.journal.last_seq
            past = self._board_events(up_to=after)
            while ready := list(islice(past, 1)):
                yield ready.pop()
                await asyncio.sleep(0)
        while not self._closed:
            news = self._news
            if ready := self._after(after):
                after = ready[0][-1].seq
                yield ready.pop()
            else:
                await news.wait()

    def close(self) -> None:
        """Let the watchers go and close the journal."""
        self._closed = True
        self._news.set()
        self.journal.close()

    def _after(self, seq: int) -> list[tuple[Event, ...]]:
        """The next batch; none if nothing has happened since."""
        behind = self.journal.last_seq - seq
        if behind <= 0:
            return []
        recent = self._recent.newest(behind, BATCH)
        return [self._with_old_sessions(self.journal.events_after(seq, BATCH) if recent is None else recent)]

    def _with_old_sessions(self, batch: tuple[Event, ...]) -> tuple[Event, ...]:
        """Before a session that comes back, what made it: it may be older than all that a watcher was told."""
        told: list[Event] = []
        for event in batch:
            if isinstance(event, SessionResumed):
                past = next(self.journal.events_of_sessions([event.session_id]))
                told += (fact for fact in past if fact.seq < event.seq and isinstance(fact, SESSION_FACTS))
            told.append(event)
        return tuple(told)

    def _board_events(self, up_to: int | None = None) -> Iterator[tuple[Event, ...]]:
        """What makes up the board, session by session and call by call; later facts are left to the live stream."""
        limit = self.journal.last_seq if up_to is None else up_to
        calls, sessions = self.journal.call_ids_for_board()
        sessions |= self.journal.session_ids(SESSIONS_SHOWN)
        sessions |= {session.id for session in self.board.sessions.values() if session.closed_at is None}
        shown = (self.journal.events_of_sessions(sessions), self.journal.events_of_calls(calls))
        told = (self.journal.pause(), self.journal.refused(REFUSED_KEPT), self.journal.rules())
        for source in (told, *shown):
            yield from filter(None, map(partial(_up_to, limit), source))


def _up_to(limit: int, batch: tuple[Event, ...]) -> tuple[Event, ...]:
    return tuple(event for event in batch if event.seq <= limit)


def replay(call_id: str, events: tuple[Event, ...]) -> CallRecord:
    """The record that a call's events make. Raises `UnknownCall` when there are none."""
    record: CallRecord | None = None
    for event in events:
        if isinstance(event, Submitted):
            record = CallRecord(call=event.call, state=Unjudged())
        elif record is not None and isinstance(event, CallEvent):
            record = advance(record, event)
    if record is None:
        raise UnknownCall(f"there is no call {call_id}", hint="whisper-tui list and whisper-tui history show the calls")
    return record
