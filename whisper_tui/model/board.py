"""The picture of everything now: a fold of the events."""

from collections import deque
from collections.abc import Iterable
from typing import assert_never

from whisper_tui.model.call import Session, ToolCall
from whisper_tui.model.decision import Grant
from whisper_tui.model.errors import BrokenHistory
from whisper_tui.model.event import (
    AgentGaveUp,
    AgentReturned,
    AttemptRefused,
    BackgroundSeen,
    CallEvent,
    Claimed,
    Decided,
    Event,
    Finished,
    Granted,
    GrantEvent,
    GrantRevoked,
    GrantUsed,
    Judged,
    Paused,
    Resumed,
    SessionClosed,
    SessionDescribed,
    SessionEvent,
    SessionOpened,
    SessionResumed,
    SessionSaid,
    Settled,
    SignalSent,
    Spawned,
    Started,
    Submitted,
)
from whisper_tui.model.records import Records
from whisper_tui.model.state import CallRecord, CallState, Ended, Held, Queued, Running, Starting, Unjudged, Waiting
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
        self._weights: deque[int] = deque()
        """Of the same calls."""
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
        self._weights.append(weight(record.call))
        self._weight += self._weights[-1]
        while len(self.settled) > ENDED_KEPT or (self._weight > ENDED_LARGEST and len(self.settled) > 1):
            self._weight -= self._weights.popleft()
            for known in (self.calls, self.ticketed, self.twinned):
                known.pop(self.settled[0], None)
            self.settled.popleft()

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


def advance(record: CallRecord, event: CallEvent) -> CallRecord:
    """The record after one more event about its call."""
    match event:
        case Submitted():
            return record
        case Judged():
            return _judged(record, event)
        case Decided():
            change = {"decision": event.decision, "decided_by": event.by, "decided_at": event.at}
            return _with(record, _decided(record, event), **change)
        case Claimed():
            return _with(record, Queued(since=event.at), claim=event.claim)
        case Started():
            return _with(record, Starting(attempt=event.attempt, since=event.at), limits=event.limits)
        case Spawned():
            return _with(record, Running(attempt=event.attempt, process=event.process))
        case BackgroundSeen():
            return _with(record, record.state, background=event.processes)
        case SignalSent() | AgentGaveUp() | AgentReturned():
            return _with(record, record.state, **_note(record, event))
        case Finished():
            return _with(record, _ended(record, event))
        case Settled():
            return _settle(record)
        case _:
            assert_never(event)


def _with(record: CallRecord, state: CallState, **change: object) -> CallRecord:
    return record.model_copy(update={"state": state, **change})


def _note(record: CallRecord, event: SignalSent | AgentGaveUp | AgentReturned) -> dict[str, object]:
    """What is noted beside a call, which stays where it is."""
    match event:
        case SignalSent():
            return {"signals": (*record.signals, event.number)}
        case AgentGaveUp():
            return {"agent_gave_up": event.why, "stopping": event.stopping}
        case AgentReturned():
            return {"agent_gave_up": None}


def _decided(record: CallRecord, event: Decided) -> CallState:
    """An approved call waits for a worker, or first for its agent to show the ticket."""
    if event.decision.kind != "approve":
        return record.state
    if record.call.ticket is not None and record.claim is None:
        return Held(since=event.at)
    return Queued(since=event.at)


def _judged(record: CallRecord, event: Judged) -> CallRecord:
    """Only *ask* moves a call: an allowed or refused one waits for the decision that says so."""
    change: dict[str, object] = {"verdict": event.verdict, "resolved": event.resolved}
    if event.verdict.kind != "ask" or not isinstance(record.state, Unjudged | Held | Queued):
        return _with(record, record.state, **change)
    if isinstance(record.state, Unjudged):
        return _with(record, Waiting(since=event.at), **change)
    back = Waiting(
        since=event.at,
        returned_because=event.verdict.reason,
        edited_before=record.spec if record.edited else None,
    )
    return _with(record, back, decision=None, decided_by=None, decided_at=None, **change)


def _ended(record: CallRecord, event: Finished) -> Ended:
    return Ended(
        at=event.at,
        ending=event.ending,
        attempt=record.attempt,
        process=record.process,
        output=event.output,
        usage=event.usage,
        settled=record.attempt is None,
    )


def _settle(record: CallRecord) -> CallRecord:
    gone = tuple(process.model_copy(update={"alive": False}) for process in record.background)
    if not isinstance(record.state, Ended):
        raise BrokenHistory(f"call {record.id} was settled before it ended")
    return _with(record, record.state.model_copy(update={"settled": True}), background=gone)
