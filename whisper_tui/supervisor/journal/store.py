"""The store: writes each event to the journal, then applies it to the board, then tells watchers and waiters."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

from whisper_tui.model.board import REFUSED_KEPT, Board, advance
from whisper_tui.model.call import Session
from whisper_tui.model.errors import BrokenHistory, InvalidRequest, JournalFailed, Unavailable, UnknownCall
from whisper_tui.model.event import (
    CallEvent,
    Decided,
    DenialAdded,
    DenialLifted,
    EditModeSet,
    Event,
    Finished,
    Granted,
    GrantRevoked,
    GrantUsed,
    Resumed,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    SessionResumed,
    SetAside,
    Spawned,
    Submitted,
    UnaskedSet,
)
from whisper_tui.model.packed_calls import PACKED_AT_ONCE, BoardItem, PackedCalls, own_packing
from whisper_tui.model.state import CallRecord, Unjudged
from whisper_tui.supervisor.health import Health
from whisper_tui.supervisor.journal.journal import Journal
from whisper_tui.supervisor.journal.sqlite_file import damaged

_log = logging.getLogger(__name__)

MOST_RECENT = 4096
"""Limit of recent events in memory; a watcher that is further behind reads the journal."""

LARGEST_RECENT = 32 * 1024 * 1024
"""Limit of their characters in all, as the journal stores them; the newest is kept whatever its size."""


class RecentEvents:
    """The newest events, bounded in number and size, so that watchers rarely read the journal."""

    def __init__(self, most: int = MOST_RECENT, largest: int = LARGEST_RECENT) -> None:
        self._most = most
        self._largest = largest
        self._events: deque[tuple[Event, int]] = deque()
        self._size = 0

    def add(self, event: Event, size: int) -> None:
        """Add an event, and drop the oldest ones beyond the limits."""
        self._events.append((event, size))
        self._size += size
        while len(self._events) > self._most or (self._size > self._largest and len(self._events) > 1):
            self._size -= self._events.popleft()[1]

    def newest(self, count: int, at_once: int) -> tuple[Event, ...] | None:
        """Return the first `at_once` of the last `count` events. None: not all of them are in memory."""
        first = len(self._events) - count
        if first < 0:
            return None
        return tuple(self._events[index][0] for index in range(first, min(first + at_once, len(self._events))))


class Waiters:
    """Futures of coroutines that wait for a change of a call; a cancelled one is removed."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def wait(self, call_id: str) -> None:
        """Wait for the next change of a call."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(call_id, set()).add(waiter)
        try:
            await waiter
        finally:
            others = self._waiting.get(call_id, set())
            others.discard(waiter)
            if not others:
                self._waiting.pop(call_id, None)

    def wake(self, call_id: str) -> None:
        """Wake the coroutines that wait for a call."""
        for waiter in self._waiting.pop(call_id, ()):
            if not waiter.done():
                waiter.set_result(None)

    def wake_all(self) -> None:
        """Wake all waiting coroutines."""
        for call_id in tuple(self._waiting):
            self.wake(call_id)


WAKES = (Decided, SetAside, Spawned, Finished)
"""Events that end a wait for a decision, for a process or for an ending, or that end it early."""

BATCH = 1000
"""Limit of events in one batch for a watcher."""

SESSION_FACTS = (
    SessionOpened, SessionDescribed, SessionResumed, SessionClosed, Granted, GrantUsed, GrantRevoked, DenialAdded,
    DenialLifted, UnaskedSet, EditModeSet,
)  # fmt: skip
"""Events about a session, its standing approvals and its denials, without its messages."""

SESSIONS_SHOWN = 100
"""Number of the newest sessions that a board shows even without calls."""

RETRY_S = 0.5
"""Seconds until an event that could not be journaled is tried again."""

AT_ONCE = 5
"""Calls that are handled before the event loop gets a turn."""


KEPT_AT_ONCE = 200
"""Packed records that are written together while others wait."""

TICKETED, DEDUPLICATED = "t", "d"
"""Marks of a kept record: its call has a ticket, or a deduplication key."""


class KeptWaiting:
    """Keeps packed waiting calls beside the journal, so that the next start lists them without reading their events.

    They serve lists only: the first use of a record reads its events (decision 26).
    """

    def __init__(self, journal: Journal, board: Board) -> None:
        self._journal = journal
        self._board = board
        self._due: list[str] = []
        """Calls whose records were packed and are not kept yet."""
        board.calls.prove = self._prove
        board.calls.on_packed = self._due.append

    def take(self, call_ids: Iterable[str]) -> Iterator[list[str]]:
        """Put the kept ones of these calls on the board; yield those in between, whose events have to be applied."""
        self._journal.packed.forget_ended()
        rows = self._journal.packed.read()
        for is_kept, run in groupby(sorted(call_ids, key=int), rows.__contains__):
            while part := list(islice(run, PACKED_AT_ONCE if is_kept else None)):
                if is_kept:
                    self._add(part, [rows.pop(call_id) for call_id in part])
                else:
                    yield part

    def _add(self, ids: list[str], rows: list[tuple[str, str, bytes]]) -> None:
        part = PackedCalls(
            seq=self._journal.last_seq,
            ids=tuple(ids),
            sessions=tuple(session_id for session_id, _, _ in rows),
            sizes=tuple(len(packed) for _, _, packed in rows),
            records=b"".join(packed for _, _, packed in rows),
            ticketed=tuple(id_ for id_, row in zip(ids, rows, strict=True) if TICKETED in row[1]),
            deduplicated=tuple(id_ for id_, row in zip(ids, rows, strict=True) if DEDUPLICATED in row[1]),
        )
        self._board.add_packed(part, proven=False)

    def prove_for(self, events: Iterable[Event]) -> None:
        """Read the records that these events change, before they are written. Raises `JournalFailed`."""
        # Applying what is written must not fail, and a record that is read later would have the events already.
        calls = self._board.calls
        if not calls.unproven:
            return
        try:
            for event in events:
                if isinstance(event, CallEvent) and not isinstance(event, Submitted):
                    calls.get(event.call_id)
        except Unavailable as error:
            raise JournalFailed(error.message, hint=error.hint) from error

    def _prove(self, call_id: str) -> CallRecord:
        """Read a record from its events, which are all on the board: see `prove_for`."""
        return replay(call_id, self._journal.events_of_call(call_id))

    def keep(self, least: int = KEPT_AT_ONCE) -> None:
        """Keep some packed records, if there are so many of them. Called while the board knows all that is written."""
        if len(self._due) < least:
            return
        board, part = self._board, self._due[:KEPT_AT_ONCE]
        del self._due[:KEPT_AT_ONCE]
        # A preview is looked at when the supervisor starts, so such a call is read anyway.
        rows = [
            (id_, self._marks(id_), packed)
            for id_ in part
            if id_ in board.waiting and id_ not in board.previewed and (packed := board.calls.packed(id_))
        ]
        if rows:
            self._journal.packed.write(rows)

    def keep_all(self) -> None:
        """Keep all packed records."""
        while self._due:
            self.keep(least=1)

    def _marks(self, call_id: str) -> str:
        board = self._board
        return TICKETED * (call_id in board.ticketed) + DEDUPLICATED * (call_id in board.deduplicated)


class Store:
    """Records events: on the disk, then on the board, then for every watcher."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.board = Board()
        self._recent = RecentEvents()
        self._news = asyncio.Event()
        self._waiters = Waiters()
        self._listeners: list[Callable[[Event], None]] = []
        self._unknown: deque[tuple[Event, int]] = deque()
        """Events that are on the disk and not yet on the board, with their sizes."""
        self._telling = False
        self.pending_flush: asyncio.Event | None = None
        """Set once everything that was written up to now is flushed. None: it is."""
        self.fail: Callable[[], None] = lambda: None
        """Stops the supervisor, after a failed flush. Set by whoever runs it."""
        self.health = Health()
        """Health of the journal."""
        self._closed = False
        self._kept = KeptWaiting(journal, self.board)
        self._restore_board()

    def _restore_board(self) -> None:
        calls, sessions = self.journal.call_ids_for_board()
        for batch in self._session_events(sessions, self.journal.last_seq):
            self.board.apply_all(batch)
        for others in self._kept.take(calls):
            for batch in self._call_events(others, self.journal.last_seq):
                self.board.apply_all(batch)
        self.board.seq = self.journal.last_seq
        self._kept.keep_all()

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Have a function called with every fact, in order, once it is on the board.

        What it records itself is made known after that; it may fail, so it belongs into `retry_until_journaled`.
        """
        self._listeners.append(listener)

    def record(self, *events: Event, durable: bool = False) -> None:
        """Write facts and make them known. Raises `JournalFailed`, and then nothing has changed."""
        self._unknown.extend(zip(self._written(events, durable=durable), self.journal.sizes, strict=True))
        # A listener may record facts itself; they are announced after the present one, in their order.
        if not self._telling:
            self._make_known()
            self._kept.keep()

    def record_and_flush(self, *events: Event) -> None:
        """Write facts and make them known, and have them flushed with those of others (group commit, decision 1).

        Whoever wrote them waits for `flushed` before anything follows from them. Raises `JournalFailed`, as `record`.
        """
        if self.pending_flush is None:
            # Called before anything that the facts wake up, because callbacks are called in their order.
            self.pending_flush = asyncio.Event()
            asyncio.get_running_loop().call_soon(self._flush_now, self.pending_flush)
        self.record(*events)

    async def flushed(self) -> None:
        """Wait until everything that was written up to now survives a power cut."""
        if self.pending_flush is not None:
            await self.pending_flush.wait()

    def _flush_now(self, done: asyncio.Event) -> None:
        try:
            self.journal.flush()
        except OSError as error:
            # What the system could not write it may have dropped, so that a second flush proves nothing. Whoever
            # waits never goes on, and the next supervisor judges by what is on the disk.
            hint = "Look for errors of the disk in the log of the system; the supervisor stops"
            self.health.note(JournalFailed(f"the journal cannot be flushed: {error}", hint=hint))
            self.fail()
            return
        self.pending_flush = None
        done.set()

    def retry_until_journaled(self, consequence: Callable[[], None]) -> None:
        """Do a consequence of facts now, or as soon as the journal accepts it (decision 1).

        `consequence` is called again, whole, until it raises no `JournalFailed`: it has to look where things stand.
        """
        try:
            consequence()
        except JournalFailed:
            asyncio.get_running_loop().call_later(RETRY_S, self._retry_again, consequence)

    def retry_each_until_journaled(self, consequence: Callable[[str], None], call_ids: Iterable[str]) -> None:
        """Do what follows for each of many calls, a few at a time: others are answered in between.

        By its turn a call may have gone on: `consequence` has to look where it stands.
        """
        self.retry_until_journaled(partial(self._retry_some, consequence, deque(call_ids)))

    def _retry_some(self, consequence: Callable[[str], None], left: deque[str]) -> None:
        for _ in range(min(AT_ONCE, len(left))):
            consequence(left[0])
            left.popleft()
        if left:
            rest = partial(self._retry_some, consequence, left)
            asyncio.get_running_loop().call_soon(self._retry_again, rest)

    def _retry_again(self, consequence: Callable[[], None]) -> None:
        if not self._closed:
            self.retry_until_journaled(consequence)

    def _written(self, events: tuple[Event, ...], *, durable: bool) -> tuple[Event, ...]:
        try:
            self._kept.prove_for(events)
            written = self.journal.append(events, durable=durable)
        except JournalFailed as error:
            self.health.note(error)
            raise
        self.health.over()
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
                if isinstance(event, Resumed):
                    self._waiters.wake_all()
                elif isinstance(event, WAKES):
                    self._waiters.wake(event.call_id)
        finally:
            self._telling = False
        # A new event for each round: clearing one would lose the wakeup of a slow watcher.
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def change(self, call_id: str) -> None:
        """Wait until a call was decided, has a process or its ending, or until everything goes on after a pause."""
        await self._waiters.wait(call_id)

    async def wait_until(self, call_id: str, reached: Callable[[CallRecord], bool]) -> CallRecord:
        """Return the record of a call as soon as `reached` holds for it."""
        while not reached(record := self.call(call_id)):
            await self.change(call_id)
        await self.flushed()
        return record

    def is_open(self, call_id: str) -> bool:
        """True if anything can still happen to a call."""
        record = self.board.calls.get(call_id)
        return record is not None and record.is_open

    async def news(self) -> None:
        """Wait for the next event."""
        await self._news.wait()

    def call(self, call_id: str) -> CallRecord:
        """Return any call of the journal. Raises `UnknownCall`."""
        known = self.board.calls.get(call_id)
        if known is not None:
            return known
        events = self.journal.events_of_call(call_id)
        if not events and (why := self.journal.damage.why_unknown(call_id)):
            raise UnknownCall(why, hint="whisper-tui history verify names what is damaged")
        return replay(call_id, events)

    def session(self, session_id: str) -> Session | None:
        """Return any session of the journal."""
        known = self.board.sessions.get(session_id)
        if known is not None:
            return known
        return self._past(session_id).sessions.get(session_id)

    def bring_back(self, session_id: str) -> Session | None:
        """A session that the board may have forgotten, put back on it with the denials that are in force for it."""
        if session_id not in self.board.sessions:
            past = self._past(session_id)
            self.board.sessions.update(past.sessions)
            self.board.denials.update(past.denials)
        return self.board.sessions.get(session_id)

    def _past(self, session_id: str) -> Board:
        """A board of the session alone, from the journal."""
        past = Board()
        for batch in self.journal.events_of_sessions([session_id]):
            past.apply_all(batch)
        return past

    def watch(self, after: int | None) -> AsyncIterator[tuple[Event, ...]]:
        """Events after a number, endless; None: first those that make up the board of now, and an empty batch.

        What is handed over is let go of, so that who takes long over it does not hold it here, too.
        """
        if after is not None:
            return self._follow(after)
        last = self.journal.last_seq
        return self._follow(last, self._board_events(up_to=last))

    def watch_board(self, packing: str) -> AsyncIterator[tuple[BoardItem, ...]]:
        """The board of now, its waiting calls packed and the first of them early, an empty batch, and events.

        Raises `InvalidRequest` if the caller packs records in another way.
        """
        if packing != own_packing():
            raise InvalidRequest("this supervisor packs records in another way", hint="Watch without packed records")
        last, waiting = self.journal.last_seq, ((part,) for part in self.board.packed_waiting())
        others = [id_ for id_ in self.board.calls if id_ not in self.board.waiting or id_ in self.board.previewing]
        sessions = {line.session_id for line in map(self.board.calls.line, others) if line is not None}
        opening = self._session_events(sessions.union(self.board.open_in), last)
        return self._follow(last, chain(opening, islice(waiting, 1), self._call_events(others, last), waiting))

    async def _follow(self, after: int, past: Iterator[tuple[BoardItem, ...]] | None = None) -> AsyncIterator[Any]:
        """Yield batches of the past and an empty one, if there are any, and then the events after a number."""
        if past is not None:
            while ready := list(islice(past, 1)):
                yield ready.pop()
                # Building a large board for one watcher must not stall the others.
                await asyncio.sleep(0)
            yield ()
        while not self._closed:
            # Taken before looking: a fact that arrives in between sets this very event.
            news = self._news
            events, reached = self._after(after)
            if events:
                after = reached
                await self.flushed()
                yield events.pop()
            elif reached > after:
                after = reached
            else:
                await news.wait()

    def close(self) -> None:
        """End all watches and close the journal."""
        self._closed = True
        self._news.set()
        self.journal.close()

    def _after(self, seq: int) -> tuple[list[tuple[Event, ...]], int]:
        """Return the next batch, if there is a newer event that can be read, and the number up to which it goes."""
        behind = self.journal.last_seq - seq
        if behind <= 0:
            return [], seq
        recent = self._recent.newest(behind, BATCH)
        batch, reached = self.journal.events_after(seq, BATCH) if recent is None else (recent, recent[-1].seq)
        return [self._with_old_sessions(batch)] if batch else [], reached

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
        """Yield the events that make up the board, by session and call; later events come with the live stream."""
        limit = self.journal.last_seq if up_to is None else up_to
        calls, sessions = self.journal.call_ids_for_board()
        yield from self._session_events(sessions, limit)
        yield from self._call_events(calls, limit)

    def _session_events(self, sessions: set[str], limit: int) -> Iterator[tuple[Event, ...]]:
        """Yield what concerns no call: pause, level, refused attempts, rules, and sessions of interest."""
        sessions = sessions | self.journal.session_ids(SESSIONS_SHOWN)
        sessions |= {session.id for session in self.board.sessions.values() if session.closed_at is None}
        told = (
            self.journal.pause(),
            self.journal.unasked(),
            self.journal.review(),
            self.journal.refused(REFUSED_KEPT),
            self.journal.rules(),
            self.journal.phones(),
        )
        for source in (told, self.journal.events_of_sessions(sessions)):
            yield from filter(None, map(partial(_up_to, limit), source))

    def _call_events(self, calls: Iterable[str], limit: int) -> Iterator[tuple[Event, ...]]:
        yield from filter(None, map(partial(_up_to, limit), self.journal.events_of_calls(calls)))


def open_store(path: Path) -> Store:
    """Open the journal in a file and the board that follows from it. Raises `BadStateDirectory`."""
    try:
        return Store(Journal(path))
    except (BrokenHistory, ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        # Damage beside the events can make anything of a number, a type or an order.
        _log.exception("the journal %s contradicts itself", path)
        raise damaged(path, "what it says contradicts itself") from error


def _up_to(limit: int, batch: tuple[Event, ...]) -> tuple[Event, ...]:
    return tuple(event for event in batch if event.seq <= limit)


def replay(call_id: str, events: tuple[Event, ...]) -> CallRecord:
    """Return the record that results from a call's events. Raises `UnknownCall` if there are none."""
    record: CallRecord | None = None
    for event in events:
        if isinstance(event, Submitted):
            record = CallRecord(call=event.call, state=Unjudged())
        elif record is not None and isinstance(event, CallEvent):
            record = advance(record, event)
    if record is None:
        raise UnknownCall(f"there is no call {call_id}", hint="whisper-tui list and whisper-tui history show the calls")
    return record
