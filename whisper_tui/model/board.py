"""The present state of all sessions and calls: a fold of the events, bounded in memory."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import assert_never

from whisper_tui.model.call import Session, ToolCall, UnaskedLevel, memory_weight
from whisper_tui.model.decision import Grant, SessionDenial
from whisper_tui.model.errors import BrokenHistory
from whisper_tui.model.event import (
    AgentGaveUp,
    AgentReturned,
    AlarmRaised,
    AttemptRefused,
    BackgroundSeen,
    CallEvent,
    Claimed,
    Decided,
    DenialAdded,
    DenialLifted,
    EditModeSet,
    EditReverted,
    Event,
    Finished,
    Granted,
    GrantEvent,
    GrantRevoked,
    GrantUsed,
    Judged,
    Paused,
    PhoneChanged,
    PhoneYes,
    PreviewDropped,
    PreviewEnded,
    PreviewStarted,
    Resumed,
    Reviewed,
    RulesChanged,
    SessionClosed,
    SessionDescribed,
    SessionEvent,
    SessionOpened,
    SessionResumed,
    SessionSaid,
    SetAside,
    Settled,
    SignalSent,
    Spawned,
    Started,
    Submitted,
    UnaskedSet,
    UndoEnded,
    UndoStarted,
)
from whisper_tui.model.packed_calls import CallRecords, PackedCalls, in_parts
from whisper_tui.model.preview import Preview, Undo
from whisper_tui.model.state import (
    MOST_ALARMS,
    MOST_UNDOS,
    Aside,
    CallRecord,
    CallState,
    Ended,
    Held,
    PendingYes,
    Queued,
    Running,
    Starting,
    Unjudged,
    Waiting,
)


def advance(record: CallRecord, event: CallEvent) -> CallRecord:
    """Return the record after one more event about its call."""
    match event:
        case Submitted():
            return record
        case Judged() | SetAside() | PhoneYes():
            return _waits(record, event)
        case Decided():
            change = {"decision": event.decision, "decided_by": event.by, "decided_at": event.at, "heard": event.heard}
            return _with(record, _decided(record, event), **change)
        case Claimed():
            # The supervisor runs a claimed command, so it waits for a worker like any other (decision 15).
            return _with(record, Queued(since=event.at), claim=event.claim)
        case Started():
            starting = Starting(attempt=event.attempt, since=event.at)
            return _with(record, starting, limits=event.limits, attempts=event.attempt, keeps=event.keeps)
        case Spawned():
            return _with(record, Running(attempt=event.attempt, process=event.process))
        case BackgroundSeen() | SignalSent() | AgentGaveUp() | AgentReturned() | AlarmRaised():
            return _with(record, record.state, **_note(record, event))
        case Finished():
            return _with(record, _ended(record, event))
        case Settled():
            return _settle(record)
        case EditReverted() | UndoStarted() | UndoEnded():
            return _taken_back(record, event)
        case PreviewStarted() | PreviewEnded() | PreviewDropped():
            return _previewed(record, event)
        case _:
            assert_never(event)


def _waits(record: CallRecord, event: Judged | SetAside | PhoneYes) -> CallRecord:
    """Return the record of a call that waits, or comes to wait, in another way."""
    if isinstance(event, Judged):
        return _judged(record, event)
    if not isinstance(record.state, Waiting):
        return record
    change: dict[str, object]
    if isinstance(event, SetAside):
        change = {"aside": None if event.back else Aside(by=event.by, since=event.at)}
    else:
        change = {"yes": None if event.until is None else PendingYes(by=event.by, until=event.until)}
    return _with(record, record.state.model_copy(update=change))


def _taken_back(record: CallRecord, event: EditReverted | UndoStarted | UndoEnded) -> CallRecord:
    match event:
        case EditReverted():
            return _with(record, record.state, reverted_by=event.by)
        case UndoStarted():
            earlier = (*record.earlier_undos, *filter(None, (record.undo,)))[-MOST_UNDOS:]
            undo = Undo(direction=event.direction, by=event.by, at=event.at, paths=event.paths)
            return _with(record, record.state, undo=undo, earlier_undos=earlier)
        case UndoEnded() if record.undo is not None:
            undo = record.undo.model_copy(update={"done": not event.problem, "problem": event.problem})
            if undo.done and undo.direction == "redo":
                # Of an edit only: its undo has an event of its own.
                return _with(record, record.state, undo=undo, reverted_by=None)
        case _:
            return record
    return _with(record, record.state, undo=undo)


def _previewed(record: CallRecord, event: PreviewStarted | PreviewEnded | PreviewDropped) -> CallRecord:
    if isinstance(event, PreviewStarted):
        preview = Preview(attempt=event.attempt, by=event.by, started_at=event.at, edited=event.edited)
        return _with(record, record.state, preview=preview, attempts=event.attempt)
    if record.preview is None or record.preview.attempt != event.attempt:
        return record
    change = {"report": event.report} if isinstance(event, PreviewEnded) else {"dropped": True}
    return _with(record, record.state, preview=record.preview.model_copy(update=change))


def _list(calls: dict[str, None], call_id: str, *, belongs: bool) -> None:
    """Keep a call in a list, or out of it."""
    if belongs:
        calls[call_id] = None
    else:
        calls.pop(call_id, None)


def _with(record: CallRecord, state: CallState, **change: object) -> CallRecord:
    return record.model_copy(update={"state": state, **change})


def _note(
    record: CallRecord, event: BackgroundSeen | SignalSent | AgentGaveUp | AgentReturned | AlarmRaised
) -> dict[str, object]:
    """Return the changed fields beside the state."""
    match event:
        case BackgroundSeen():
            return {"background": event.processes}
        case SignalSent():
            change: dict[str, object] = {"signals": (*record.signals, event.number)}
            if event.by.surface == "agent":
                change["agent_signals"] = (*record.agent_signals, event.number)
            return change
        case AgentGaveUp():
            return {"agent_gave_up": event.why, "stopping": event.stopping}
        case AgentReturned():
            return {"agent_gave_up": None}
        case AlarmRaised():
            alarm = event.alarm.model_copy(update={"at": event.at})
            return {"alarms": (*record.alarms, alarm)[:MOST_ALARMS]}


def _decided(record: CallRecord, event: Decided) -> CallState:
    """Return the state of an approved call: queued, or held until its agent shows the ticket."""
    if event.decision.kind != "approve":
        return record.state
    if record.call.ticket is not None and record.claim is None:
        return Held(since=event.at)
    return Queued(since=event.at)


def _judged(record: CallRecord, event: Judged) -> CallRecord:
    """Return the record with a verdict. Only *ask* changes its state."""
    change: dict[str, object] = {"verdict": event.verdict, "resolved": event.resolved}
    # The decision follows as a fact of its own, in the same transaction.
    if event.verdict.kind != "ask" or not isinstance(record.state, Unjudged | Held | Queued | Starting | Running):
        return _with(record, record.state, **change)
    if isinstance(record.state, Unjudged):
        return _with(record, Waiting(since=event.at), **change)
    back = Waiting(
        since=event.at,
        returned_because=event.verdict.reason,
        edited_before=record.spec if record.edited else None,
    )
    return _with(record, back, decision=None, decided_by=None, decided_at=None, keeps="", **change)


def _ended(record: CallRecord, event: Finished) -> Ended:
    return Ended(
        at=event.at,
        ending=event.ending,
        attempt=record.attempt,
        process=record.process,
        output=event.output,
        usage=event.usage,
        # Without an attempt there is no process that could still be alive.
        settled=record.attempt is None,
        blocked=event.blocked,
        discarded=event.discarded,
        unkept=event.unkept,
        changed=event.changed,
    )


def _settle(record: CallRecord) -> CallRecord:
    gone = tuple(process.model_copy(update={"alive": False}) for process in record.background)
    if not isinstance(record.state, Ended):
        raise BrokenHistory(f"call {record.id} was settled before it ended")
    return _with(record, record.state.model_copy(update={"settled": True}), background=gone)


IDLE_KEPT = 2000
"""Idle sessions that are kept; more than a board has when it is rebuilt from the journal."""


@dataclass
class IdleSessions:
    """LRU list of the closed sessions without calls on the board."""

    _calls: Counter[str] = field(default_factory=Counter)
    """Number of calls on the board, by session."""
    _closed: set[str] = field(default_factory=set)
    _idle: dict[str, None] = field(default_factory=dict)
    """Those that were idle for the longest first."""

    def opened(self, session_id: str) -> None:
        """Note that a session was opened or resumed."""
        self._closed.discard(session_id)
        self._idle.pop(session_id, None)

    def closed(self, session_id: str) -> None:
        """Note that a session was closed."""
        self._closed.add(session_id)
        self._look_at(session_id)

    def call_came(self, session_id: str) -> None:
        """Count one more call of a session."""
        self._calls[session_id] += 1
        self._idle.pop(session_id, None)

    def call_went(self, session_id: str) -> None:
        """Count one call less."""
        self._calls[session_id] -= 1
        if not self._calls[session_id]:
            del self._calls[session_id]
            self._look_at(session_id)

    def take_surplus(self) -> list[str]:
        """Remove and return the sessions to forget."""
        surplus = list(islice(self._idle, max(0, len(self._idle) - IDLE_KEPT)))
        for session_id in surplus:
            self.opened(session_id)
        return surplus

    def _look_at(self, session_id: str) -> None:
        if session_id in self._closed and session_id not in self._calls:
            self._idle[session_id] = None


ENDED_KEPT = 1000
"""Settled calls that a board keeps; older ones are read from the journal."""
ENDED_LARGEST = 64 * 1024 * 1024
"""Approximate bytes of memory that settled calls may take together."""
SAID_KEPT = 200
"""Messages of a session that a board keeps."""
PHONES_KEPT = 100
"""Phones that a board keeps; revoked ones are left out first."""
REFUSED_KEPT = 100
"""Refused attempts to decide that a board keeps."""


class Board:
    """Sessions, calls and standing approvals, by id; every part keeps the order of arrival."""

    def __init__(self) -> None:
        self.seq = 0
        """Number of the last event applied."""
        self.sessions: dict[str, Session] = {}
        self.said: dict[str, deque[SessionSaid]] = {}
        """Messages by session, oldest first; no entry for a session without any."""
        self._unheard: dict[str, tuple[str, ...]] = {}
        """By session: messages to an agent that only listens to answers, and that no answer has told it yet."""
        self.calls = CallRecords()
        self.open_in: dict[str, dict[str, None]] = {}
        """By session: ids of its calls to which anything can still happen. Sessions without any are not here."""
        self.grants: dict[str, Grant] = {}
        self.denials: dict[str, SessionDenial] = {}
        """Session denials in force, oldest first. They outlive the end of their session, which may be resumed."""
        self.paused: Paused | None = None
        """Time and author of the pause in force. None: nothing is paused."""
        self.unasked: UnaskedLevel | None = None
        """How much runs unasked in sessions for which nothing is said. None: as the rules say."""
        self.reviewed_until = 0.0
        """Up to this end of a call, a human has looked at what was changed unasked, in seconds since the epoch."""
        self.unreviewed: dict[str, None] = {}
        """Ids of the calls that have changed files unasked since then, of those that are here."""
        self.refused: deque[AttemptRefused] = deque(maxlen=REFUSED_KEPT)
        """Refused attempts to decide, oldest first."""
        self.rules: dict[str, RulesChanged] = {}
        """By path: the entries of a rule file and the trusted ones among them, as journaled last."""
        self.ticketed, self.deduplicated = dict[str, None](), dict[str, None]()
        """Ids of the calls that have a ticket, and a deduplication key, whatever their state."""
        self.unjudged: dict[str, None] = {}
        """Ids of the calls without a verdict, or with a verdict that no decision has followed yet."""
        self.waiting: dict[str, None] = {}
        self.aside: dict[str, None] = {}
        """Ids of the calls that a human has to decide, oldest first: first those that are not set aside."""
        self.held: dict[str, None] = {}
        """Ids of the approved calls whose agents have not shown the ticket yet."""
        self.queued: dict[str, None] = {}
        self.running: dict[str, None] = {}
        """Ids of the calls that are starting or running."""
        self.promised, self.phones = dict[str, None](), dict[str, PhoneChanged]()
        """Ids of the waiting calls with a pending yes of a phone; and phones by their ids, as they were recorded
        last, at most `PHONES_KEPT`."""
        self.previewing, self.previewed = dict[str, None](), dict[str, None]()
        """Ids of the waiting calls whose preview is running, and of those that have a preview at all."""
        self.held_back: dict[str, None] = {}
        """Ids of the calls about which nobody is asked yet: their effects are just being found out."""
        self.unsettled: dict[str, None] = {}
        """Ids of the ended calls with processes that are still alive."""
        self.settled: deque[str] = deque()
        """Ids of the calls that are over, oldest first."""
        self._idle, self._weight, self._first_applied = IdleSessions(), 0, dict[str, str]()
        self._settled: deque[tuple[int, str]] = deque()
        """Memory of each of the same calls, and its session."""

    def apply_all(self, events: Iterable[Event]) -> None:
        """Apply events in their order."""
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Apply one event. Raises `BrokenHistory` if it is about something unknown."""
        match event:
            case (
                SessionOpened()
                | SessionDescribed()
                | SessionResumed()
                | SessionSaid()
                | SessionClosed()
                | UnaskedSet()
                | EditModeSet()
            ):
                self._apply_to_session(event)
            case Granted() | GrantUsed() | GrantRevoked():
                self._apply_to_grant(event)
            case DenialAdded(denial=denial):
                self.denials[denial.id] = denial
            case DenialLifted():
                self.denials.pop(event.denial_id, None)
            case Paused() | Resumed() | AttemptRefused() | RulesChanged() | PhoneChanged():
                self._note_about_all(event)
            case Reviewed(until=until):
                self.reviewed_until = max(self.reviewed_until, until)
                for call_id in tuple(self.unreviewed):
                    self._note_review(self.calls[call_id])
            case EditReverted() | UndoStarted() | UndoEnded() | AlarmRaised() if event.call_id not in self.calls:
                pass  # These can come long after the call, which the journal knows.
            case Submitted():
                self._place(self.calls.get(event.call.id), CallRecord(call=event.call, state=Unjudged()))
            case _:
                before = self.record(event.call_id)
                after = advance(before, event)
                after = self._with_known_previews(before, after)
                self._place(before, after)
                self._note_preview(after)
                _list(self.promised, after.id, belongs=after.pending_yes is not None)
                self._note_heard(before, after)
        # A resumed session is sent again with its old events, which have smaller numbers.
        self.seq = max(self.seq, event.seq)

    def _note_about_all(self, event: Paused | Resumed | AttemptRefused | RulesChanged | PhoneChanged) -> None:
        """Note an event about no call or session."""
        match event:
            case Paused() | Resumed():
                self.paused = event if isinstance(event, Paused) else None
            case AttemptRefused():
                self.refused.append(event)
            case RulesChanged():
                self.rules[event.path] = event
            case PhoneChanged():
                self.phones[event.device_id] = event
                while len(self.phones) > PHONES_KEPT:
                    # One that is not revoked stays: the supervisor asks the board who it is.
                    revoked = (id_ for id_, each in self.phones.items() if each.change == "revoked")
                    del self.phones[next(revoked, event.device_id)]

    def add_packed(self, part: PackedCalls, *, proven: bool = True) -> None:
        """Add waiting calls that are not here yet. Unless `proven`, lists alone may use what is packed."""
        for call_id, session_id, packed in part.each():
            self.calls.add_packed(call_id, packed, proven=proven)
            self.waiting[call_id] = None
            self._idle.call_came(session_id)
            self.open_in.setdefault(session_id, {})[call_id] = None
        self.seq = max(self.seq, part.seq)
        self.ticketed.update(dict.fromkeys(part.ticketed))
        self.deduplicated.update(dict.fromkeys(part.deduplicated))

    def packed_waiting(self) -> Iterator[PackedCalls]:
        """Return the waiting calls as they are now, in parts, without those whose preview or whose yes is pending."""
        ids = [each for each in self.waiting if each not in self.previewing and each not in self.promised]
        session_of = dict[str, str]()
        for session_id, calls in self.open_in.items():
            session_of.update(dict.fromkeys(calls, session_id))
        marked = self.ticketed.keys() & ids, self.deduplicated.keys() & ids
        return in_parts(self.seq, self.calls.frozen(), ids, session_of, marked)

    def denials_of(self, session_id: str) -> tuple[SessionDenial, ...]:
        """The denials that are in force for a session."""
        return tuple(denial for denial in self.denials.values() if denial.session_id == session_id)

    def waiting_in(self, session_id: str) -> tuple[str, ...]:
        """Ids of the calls of a session that a human has to decide, with those that are set aside."""
        ids = self.open_in.get(session_id, ())
        return tuple(call_id for call_id in ids if call_id in self.waiting or call_id in self.aside)

    def unheard_in(self, session_id: str) -> tuple[str, ...]:
        """Messages that the answer to the next approved call of a session has to tell its agent."""
        return self._unheard.get(session_id, ())

    def _note_said(self, event: SessionSaid) -> None:
        self.said.setdefault(event.session_id, deque(maxlen=SAID_KEPT)).append(event)
        session = self.sessions.get(event.session_id)
        # The events of a resumed session come again.
        if event.is_to_agent and event.seq > self.seq and session is not None and not session.hears:
            self._unheard[event.session_id] = (*self.unheard_in(event.session_id), event.text)

    def _note_heard(self, before: CallRecord, after: CallRecord) -> None:
        if after.heard and not before.heard:
            self._unheard.pop(before.call.session_id, None)

    def _with_known_previews(self, before: CallRecord, after: CallRecord) -> CallRecord:
        if before.applies or not after.applies:
            return after
        # By session: the id of its first call whose preview was approved.
        first = self._first_applied.setdefault(after.call.session_id, after.id)
        return after if first == after.id else after.model_copy(update={"knows_previews": True})

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
                self._note_said(event)
                return
            case SessionDescribed(client=client):
                change: dict[str, object] = {"client": client}
            case SessionResumed(pid=pid, started=started):
                change = {"pid": pid, "started": started, "closed_at": None, "closed_because": None}
            case SessionClosed(why=why):
                change = {"closed_at": event.at, "closed_because": why}
            case UnaskedSet(session_id=session_id):
                if session_id is None:
                    self.unasked = event.level
                else:
                    self._change_session(session_id, {"unasked": event.level})
                return
            case EditModeSet(mode=mode):
                # No level asks about edits alone, so all is asked; and none allows edits alone.
                asked = UnaskedLevel(level="nothing") if mode == "ask" else None
                self._change_session(event.session_id, {"unasked": asked})
                return
            case _:
                assert_never(event)
        self._change_session(event.session_id, change)
        if isinstance(event, SessionClosed):
            self._idle.closed(event.session_id)
            # Only a closed session can become idle, so this is the only place besides the end of a call.
            self._forget_idle_sessions()
        else:
            self._idle.opened(event.session_id)

    def _change_session(self, session_id: str, change: dict[str, object]) -> None:
        known = self.sessions.get(session_id)
        if known is None:
            raise BrokenHistory(f"no session {session_id} on the board")
        self.sessions[session_id] = known.model_copy(update=change)

    def unasked_in(self, session_id: str, now: float) -> UnaskedLevel | None:
        """Return how much a human lets run unasked in a session now. None: as the rules say."""
        session = self.sessions.get(session_id)
        said = (session.unasked if session is not None else None, self.unasked)
        return next((each for each in said if each is not None and each.holds(now)), None)

    def _forget_idle_sessions(self) -> None:
        """Drop the surplus of idle sessions, with their messages, standing approvals and denials."""
        for session_id in self._idle.take_surplus():
            self.sessions.pop(session_id, None)
            self.said.pop(session_id, None)
            self._first_applied.pop(session_id, None)
            for grant_id in [grant.id for grant in self.grants.values() if grant.session_id == session_id]:
                del self.grants[grant_id]
            for denial in self.denials_of(session_id):
                del self.denials[denial.id]

    def _apply_to_grant(self, event: GrantEvent) -> None:
        if isinstance(event, Granted):
            self.grants[event.grant.id] = event.grant
            return
        known = self.grants.get(event.grant_id)
        if known is None:
            raise BrokenHistory(f"no standing approval {event.grant_id} on the board")
        change = {"uses": known.uses + 1} if isinstance(event, GrantUsed) else {"revoked_at": event.at}
        self.grants[known.id] = known.model_copy(update=change)

    def _place(self, before: CallRecord | None, record: CallRecord) -> None:
        """Move a record to the list of its state, and forget the oldest settled ones beyond the limit."""
        old, new = self._shelf(before) if before is not None else None, self._shelf(record)
        # An unchanged shelf keeps the position of the call: the queue stays in the order of arrival.
        if old is not new and old is not None:
            old.pop(record.id, None)
        self.calls[record.id] = record
        if new is not None:
            new.setdefault(record.id)
            if before is None:
                self._meet(record.call)
        elif before is None or before.is_open:
            self._settle(record)
        if isinstance(record.state, Ended) and record.id in self.calls:
            self._note_review(record)

    def _note_review(self, record: CallRecord) -> None:
        ended = record.state.at if isinstance(record.state, Ended) else 0.0
        _list(self.unreviewed, record.id, belongs=record.changed_unasked and ended > self.reviewed_until)

    def _note_preview(self, record: CallRecord) -> None:
        """Keep the lists of previews."""
        if (preview := record.preview) is None:
            return
        waits, ended = isinstance(record.state, Waiting), preview.report is not None or preview.dropped
        _list(self.previewed, record.id, belongs=waits)
        _list(self.previewing, record.id, belongs=waits and not ended)

    def _meet(self, call: ToolCall) -> None:
        self._idle.call_came(call.session_id)
        self.open_in.setdefault(call.session_id, {})[call.id] = None
        if call.ticket is not None:
            self.ticketed[call.id] = None
        if call.dedup_key is not None:
            self.deduplicated[call.id] = None

    def _settle(self, record: CallRecord) -> None:
        session_id = record.call.session_id
        if (others := self.open_in.get(session_id)) is not None:
            others.pop(record.id, None)
            if not others:
                del self.open_in[session_id]
        self.settled.append(record.id)
        taken = memory_weight(record.call)
        self._settled.append((taken, session_id))
        self._weight += taken
        # The newest ended call stays whatever its size, so that a cockpit can show the call that it has just decided.
        while len(self.settled) > ENDED_KEPT or (self._weight > ENDED_LARGEST and len(self.settled) > 1):
            self._forget_settled()
        self._forget_idle_sessions()

    def _forget_settled(self) -> None:
        """Drop the oldest settled call."""
        call_id, (taken, session_id) = self.settled.popleft(), self._settled.popleft()
        # Asking for the record would unpack it; what is needed of it was noted when it settled.
        del self.calls[call_id]
        self._weight -= taken
        self._idle.call_went(session_id)
        for ids in (self.ticketed, self.deduplicated, self.unreviewed):
            ids.pop(call_id, None)

    def _shelf(self, record: CallRecord) -> dict[str, None] | None:
        match record.state:
            case Unjudged():
                return self.unjudged
            case Waiting():
                if record.is_held_back:
                    return self.held_back
                return self.aside if record.aside is not None else self.waiting
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
