"""The picture of everything now: a fold of the events."""

from collections import deque
from collections.abc import Iterable
from typing import assert_never

from whisper_tui.model.advance import advance
from whisper_tui.model.call import Session, ToolCall
from whisper_tui.model.decision import Grant
from whisper_tui.model.errors import BrokenHistory
from whisper_tui.model.event import (
    AttemptRefused,
    Event,
    Granted,
    GrantEvent,
    GrantRevoked,
    GrantUsed,
    Paused,
    Resumed,
    RulesChanged,
    SessionClosed,
    SessionDescribed,
    SessionEvent,
    SessionOpened,
    SessionResumed,
    SessionSaid,
    Submitted,
)
from whisper_tui.model.idle_sessions import IdleSessions
from whisper_tui.model.records import Records
from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Running, Starting, Unjudged, Waiting
from whisper_tui.model.weight import weight

ENDED_KEPT = 1000
"""How many settled calls a board remembers; older ones are in the journal."""
ENDED_LARGEST = 64 * 1024 * 1024
"""Bytes of memory, about, that they take together at most."""
SAID_KEPT = 200
"""How much of what was said in a session a board remembers."""
REFUSED_KEPT = 100
"""How many refused attempts to decide a board remembers."""


class Board:
    """Sessions, calls and remembered approvals, by id; every part keeps the order of arrival."""

    def __init__(self) -> None:
        self.seq = 0
        """Number of the last event applied."""
        self.sessions: dict[str, Session] = {}
        self.said: dict[str, deque[SessionSaid]] = {}
        """What was said in each session, oldest first. Sessions in which nothing was said are not here."""
        self.calls = Records()
        self.open_in: dict[str, dict[str, None]] = {}
        """By session: ids of its calls to which anything can still happen. Sessions without any are not here."""
        self.grants: dict[str, Grant] = {}
        self.paused: Paused | None = None
        """Since when, and through whom, every run is held still. None: everything goes on."""
        self.refused: deque[AttemptRefused] = deque(maxlen=REFUSED_KEPT)
        """Attempts to decide by those who may not, oldest first."""
        self.rules: dict[str, RulesChanged] = {}
        """By path: what a file of rules says and how much of it is trusted, as it was journaled last."""
        self.ticketed: dict[str, None] = {}
        """Ids of the calls that have a ticket, whatever their state."""
        self.twinned: dict[str, None] = {}
        """Ids of the calls that another one may be the same as, whatever their state."""
        self.unjudged: dict[str, None] = {}
        """Ids of the calls that the policy has not looked at, or has let through without a decision yet."""
        self.waiting: dict[str, None] = {}
        """Ids of the calls that a human has to decide, oldest first."""
        self.held: dict[str, None] = {}
        """Ids of the approved calls whose agents have not shown the ticket yet."""
        self.queued: dict[str, None] = {}
        self.running: dict[str, None] = {}
        """Ids of the calls that are starting or running."""
        self.unsettled: dict[str, None] = {}
        """Ids of the ended calls of which something is still alive."""
        self.settled: deque[str] = deque()
        """Ids of the calls that are over, oldest first."""
        self._idle = IdleSessions()
        self._settled: deque[tuple[int, str]] = deque()
        """What the same calls take in memory, and their sessions."""
        self._weight = 0

    def apply_all(self, events: Iterable[Event]) -> None:
        """Apply events in their order."""
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Take one more fact into the picture. Raises `BrokenHistory` for a fact about an unknown thing."""
        match event:
            case SessionOpened() | SessionDescribed() | SessionResumed() | SessionSaid() | SessionClosed():
                self._apply_to_session(event)
            case Granted() | GrantUsed() | GrantRevoked():
                self._apply_to_grant(event)
            case Paused() | Resumed():
                self.paused = event if isinstance(event, Paused) else None
            case AttemptRefused():
                self.refused.append(event)
            case RulesChanged():
                self.rules[event.path] = event
            case Submitted():
                self._place(self.calls.get(event.call.id), CallRecord(call=event.call, state=Unjudged()))
            case _:
                before = self.record(event.call_id)
                self._place(before, advance(before, event))
        self.seq = max(self.seq, event.seq)

    def waiting_in(self, session_id: str) -> tuple[str, ...]:
        """Ids of the calls of a session that a human has to decide."""
        return tuple(call_id for call_id in self.open_in.get(session_id, ()) if call_id in self.waiting)

    def record(self, call_id: str) -> CallRecord:
        """The record of a call. Raises `BrokenHistory` when the board does not know it."""
        try:
            return self.calls[call_id]
        except KeyError:
            raise BrokenHistory(f"no call {call_id} on the board") from None

    def _apply_to_session(self, event: SessionEvent) -> None:
        match event:
            case SessionOpened(session=session):
                self.sessions[session.id] = session
                self._idle.opened(session.id)
                return
            case SessionSaid():
                self.said.setdefault(event.session_id, deque(maxlen=SAID_KEPT)).append(event)
                return
            case SessionDescribed(client=client):
                change: dict[str, object] = {"client": client}
            case SessionResumed(pid=pid):
                change = {"pid": pid, "closed_at": None, "closed_because": None}
            case SessionClosed(why=why):
                change = {"closed_at": event.at, "closed_because": why}
            case _:
                assert_never(event)
        known = self.sessions.get(event.session_id)
        if known is None:
            raise BrokenHistory(f"no session {event.session_id} on the board")
        self.sessions[known.id] = known.model_copy(update=change)
        if isinstance(event, SessionClosed):
            self._idle.closed(known.id)
            self._forget_idle_sessions()
        else:
            self._idle.opened(known.id)

    def _forget_idle_sessions(self) -> None:
        """With what was said and approved in them."""
        for session_id in self._idle.take_surplus():
            self.sessions.pop(session_id, None)
            self.said.pop(session_id, None)
            for grant_id in [grant.id for grant in self.grants.values() if grant.session_id == session_id]:
                del self.grants[grant_id]

    def _apply_to_grant(self, event: GrantEvent) -> None:
        if isinstance(event, Granted):
            self.grants[event.grant.id] = event.grant
            return
        known = self.grants.get(event.grant_id)
        if known is None:
            raise BrokenHistory(f"no remembered approval {event.grant_id} on the board")
        change = {"uses": known.uses + 1} if isinstance(event, GrantUsed) else {"revoked_at": event.at}
        self.grants[known.id] = known.model_copy(update=change)

    def _place(self, before: CallRecord | None, record: CallRecord) -> None:
        """Put a record where its state belongs; forget the oldest settled ones beyond what is kept."""
        old, new = self._shelf(before) if before is not None else None, self._shelf(record)
        if old is not new and old is not None:
            old.pop(record.id, None)
        self.calls[record.id] = record
        if new is not None:
            new.setdefault(record.id)
            if before is None:
                self._meet(record.call)
        elif before is None or before.is_open:
            self._settle(record)

    def _meet(self, call: ToolCall) -> None:
        self._idle.call_came(call.session_id)
        self.open_in.setdefault(call.session_id, {})[call.id] = None
        if call.ticket is not None:
            self.ticketed[call.id] = None
        if call.twin is not None:
            self.twinned[call.id] = None

    def _settle(self, record: CallRecord) -> None:
        session_id = record.call.session_id
        if (others := self.open_in.get(session_id)) is not None:
            others.pop(record.id, None)
            if not others:
                del self.open_in[session_id]
        self.settled.append(record.id)
        taken = weight(record.call)
        self._settled.append((taken, session_id))
        self._weight += taken
        while len(self.settled) > ENDED_KEPT or (self._weight > ENDED_LARGEST and len(self.settled) > 1):
            self._forget_settled()
        self._forget_idle_sessions()

    def _forget_settled(self) -> None:
        """The oldest one, without asking for its record, which may be packed."""
        call_id, (taken, session_id) = self.settled.popleft(), self._settled.popleft()
        del self.calls[call_id]
        self._weight -= taken
        self._idle.call_went(session_id)
        self.ticketed.pop(call_id, None)
        self.twinned.pop(call_id, None)

    def _shelf(self, record: CallRecord) -> dict[str, None] | None:
        match record.state:
            case Unjudged():
                return self.unjudged
            case Waiting():
                return self.waiting
            case Held():
                return self.held
            case Queued():
                return self.queued
            case Starting() | Running():
                return self.running
            case Ended(settled=False):
                return self.unsettled
            case Ended():
                return None
            case _ as never:
                assert_never(never)
