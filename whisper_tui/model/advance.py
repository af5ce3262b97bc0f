"""The record of a call after one more fact about it."""

from typing import assert_never

from whisper_tui.model.errors import BrokenHistory
from whisper_tui.model.event import (
    AgentGaveUp,
    AgentReturned,
    BackgroundSeen,
    CallEvent,
    Claimed,
    Decided,
    Finished,
    Judged,
    Settled,
    SignalSent,
    Spawned,
    Started,
    Submitted,
)
from whisper_tui.model.state import CallRecord, CallState, Ended, Held, Queued, Running, Starting, Unjudged, Waiting


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
            starting = Starting(attempt=event.attempt, since=event.at)
            return _with(record, starting, limits=event.limits, attempts=event.attempt)
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
            change: dict[str, object] = {"signals": (*record.signals, event.number)}
            if event.by.surface == "agent":
                change["agent_signals"] = (*record.agent_signals, event.number)
            return change
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
    if event.verdict.kind != "ask" or not isinstance(record.state, Unjudged | Held | Queued | Starting):
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
        blocked=event.blocked,
    )


def _settle(record: CallRecord) -> CallRecord:
    gone = tuple(process.model_copy(update={"alive": False}) for process in record.background)
    if not isinstance(record.state, Ended):
        raise BrokenHistory(f"call {record.id} was settled before it ended")
    return _with(record, record.state.model_copy(update={"settled": True}), background=gone)
