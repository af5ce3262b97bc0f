"""The check of an evidence file: its calls, folded from their events, and what contradicts them (decision 41)."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from whisper_tui.model.board import advance
from whisper_tui.model.call import Session
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import Denied
from whisper_tui.model.errors import BrokenHistory
from whisper_tui.model.event import (
    CallEvent,
    Decided,
    DenialAdded,
    DenialLifted,
    Finished,
    Granted,
    GrantRevoked,
    Judged,
    PhoneChanged,
    PhoneYes,
    SessionDescribed,
    SessionOpened,
    Settled,
    Started,
    Submitted,
)
from whisper_tui.model.evidence import (
    Backing,
    CallFound,
    DecisionFound,
    EvidenceReport,
    NotedFound,
    OutputFound,
    SignatureFound,
)
from whisper_tui.model.phone_proof import PhoneProof
from whisper_tui.model.state import CallRecord, Ended, Unjudged
from whisper_tui.supervisor.evidence.bundle_reader import Bundle, BundleProblem, PlacedEvent, read_bundle
from whisper_tui.supervisor.evidence.signed_decisions import signature_of
from whisper_tui.supervisor.journal.sqlite_file import Head
from whisper_tui.supervisor.runs.executor import RunKey

LEEWAY_S = 1.0
"""Seconds between the verdict by a standing approval and the decision that follows from it, at most."""


def check_evidence(path: Path, noted: Head | None = None) -> EvidenceReport:
    """Check a file. `noted`: an end of the journal that was kept elsewhere.

    Raises `InvalidRequest` for another kind of file, and `OSError`.
    """
    try:
        return _Check(read_bundle(path, noted), noted).report()
    except BundleProblem as problem:
        return EvidenceReport(problems=(str(problem),))


class _Check:
    def __init__(self, bundle: Bundle, noted: Head | None) -> None:
        self._bundle = bundle
        self._noted = noted
        self._problems: list[str] = []
        self._sessions: dict[str, Session] = {}
        self._linked_sessions: set[str] = set()
        self._calls: dict[str, list[PlacedEvent]] = defaultdict(list)
        self._phones: dict[str, list[PhoneChanged]] = defaultdict(list)
        self._standing: dict[str, tuple[Granted | DenialAdded, bool]] = {}
        """Standing approvals and denials by their ids, each with True if the file proves it."""
        self._revoked: dict[str, int] = {}
        """The number of the event by which a standing approval or denial ended."""

    def report(self) -> EvidenceReport:
        for placed in self._bundle.events:
            self._sort(placed)
        opening = self._bundle.opening
        if sorted(self._calls) != sorted(opening.calls):
            self._problems.append("its first line names other calls than it holds events of")
        calls = tuple(self._call(call_id, self._calls[call_id]) for call_id in opening.calls if call_id in self._calls)
        self._check_left_out()
        for key in self._bundle.outputs:
            if key.call_id not in self._calls:
                self._problems.append(f"it holds output of call {key.call_id} of which no event says anything")
        noted = self._compared()
        counts = [placed.backing for placed in self._bundle.events]
        return EvidenceReport(
            problems=tuple(self._problems),
            program=opening.program,
            written_at=opening.written_at,
            first=opening.first,
            end=Head(opening.last, bytes.fromhex(opening.end)).text() if opening.first else "",
            shown=counts.count("chain"),
            left_out=self._bundle.left_out,
            masked=counts.count("masked"),
            unlinked=counts.count("nothing"),
            sessions=tuple(self._named(each) for each in opening.sessions if each in self._linked_sessions),
            noted=noted,
            noted_at=self._noted.seq if self._noted is not None and noted == "same" else 0,
            calls=calls,
        )

    def _sort(self, placed: PlacedEvent) -> None:
        match event := placed.event:
            case SessionOpened(session=session):
                if session.id in self._sessions:
                    self._problems.append(f"the session {session.id} was opened twice")
                self._sessions[session.id] = session
                if placed.backing == "chain":
                    self._linked_sessions.add(session.id)
            case SessionDescribed() if placed.backing == "chain":
                if (known := self._sessions.get(event.session_id)) is not None:
                    self._sessions[known.id] = known.model_copy(update={"client": event.client})
            case Granted() | DenialAdded() | GrantRevoked() | DenialLifted():
                self._sort_standing(event, is_proven=placed.backing == "chain")
            case PhoneChanged() if placed.backing != "masked":
                self._phones[event.device_id].append(event)
            case Submitted(call=call):
                self._calls[call.id].append(placed)
            case _:
                if isinstance(event, CallEvent):
                    self._calls[event.call_id].append(placed)

    def _sort_standing(self, event: Granted | DenialAdded | GrantRevoked | DenialLifted, *, is_proven: bool) -> None:
        match event:
            case Granted(grant=grant):
                self._standing[grant.id] = event, is_proven
            case DenialAdded(denial=denial):
                self._standing[denial.id] = event, is_proven
            case GrantRevoked():
                self._revoked[event.grant_id] = event.seq
            case DenialLifted():
                self._revoked[event.denial_id] = event.seq

    def _check_left_out(self) -> None:
        """Note events that are left out although they are about something that is shown: a denial, a revocation."""
        calls = set(self._bundle.opening.calls)
        around = {self._session_of(events) for events in self._calls.values()}
        whole = set(self._bundle.opening.sessions)
        if missing := sorted(whole - around):
            self._problems.append(f"it holds no call of the session {missing[0]}")
        for about in sorted(self._bundle.subjects):
            first, _, second = about.partition(" ")
            if first == "phone" and second in self._phones:
                self._problems.append(f"an event about the phone {second} is left out")
            elif first in calls or first in around or second in whole:
                what = f"the session {second or first}" if first not in calls else f"call {first}"
                self._problems.append(f"an event about {what} is left out")

    def _compared(self) -> NotedFound:
        if self._noted is None:
            return ""
        found = self._bundle.noted_link
        if found is None:
            return "outside"
        if found != self._noted.link:
            self._problems.append(f"the journal up to event {self._noted.seq} is another one than was noted")
            return ""
        return "same"

    def _named(self, session_id: str) -> str:
        found = self._sessions.get(session_id)
        return f"{found.name} ({session_id})" if found is not None else session_id

    @staticmethod
    def _session_of(events: Sequence[PlacedEvent]) -> str:
        first = events[0].event
        return first.call.session_id if isinstance(first, Submitted) else ""

    def _call(self, call_id: str, events: Sequence[PlacedEvent]) -> CallFound:
        first = events[0]
        if not isinstance(first.event, Submitted) or any(isinstance(each.event, Submitted) for each in events[1:]):
            raise BundleProblem(f"the events of call {call_id} do not begin with its request")
        call = first.event.call
        record = CallRecord(call=call, state=Unjudged())
        decisions = list[DecisionFound]()
        shown, yes = [first], None
        for placed in events[1:]:
            event = placed.event
            if isinstance(event, Decided):
                decisions.append(self._decision(event, placed, record, shown, yes))
            self._check_order(call_id, event, record)
            shown = [first, placed] if isinstance(event, Judged) else shown
            yes = event if isinstance(event, PhoneYes) else yes
            try:
                record = advance(record, event)  # type: ignore[arg-type]  # all of them are about this call
            except (BrokenHistory, ValueError, TypeError, LookupError, AttributeError, AssertionError):
                raise BundleProblem(f"event {event.seq} contradicts the events of call {call_id} before it") from None
        session = self._sessions.get(call.session_id)
        is_linked = call.session_id in self._linked_sessions
        client = session.client if session is not None and is_linked else None
        return CallFound(
            id=call_id,
            session=session.name if session is not None and is_linked else "",
            agent=f"{client.name} {client.version}".strip() if client is not None else "",
            command=call.spec,
            description=call.description,
            at=call.submitted_at,
            verdict=record.verdict.reason if record.verdict is not None else "",
            risks=tuple(risk.sentence for risk in record.verdict.risks) if record.verdict is not None else (),
            decisions=tuple(decisions),
            state=record.state.ending.kind if isinstance(record.state, Ended) else record.state.kind,
            backing=_weakest(events),
            is_complete=first.backing != "nothing",
            output=self._output(call_id, events),
        )

    def _check_order(self, call_id: str, event: object, record: CallRecord) -> None:
        """Note what no supervisor writes."""
        denied = isinstance(record.decision, Deny)
        if isinstance(event, Finished) and isinstance(event.ending, Denied):
            if not isinstance(record.decision, Deny) or record.decided_by != event.ending.by:
                self._problems.append(f"call {call_id} ends as denied, and no event says by that decision")
        elif isinstance(event, Started) and not isinstance(record.decision, Approve):
            self._problems.append(f"call {call_id} was started {'although it was denied' if denied else 'unapproved'}")
        elif isinstance(event, Decided) and denied:
            self._problems.append(f"call {call_id} was decided again after it was denied")

    def _decision(
        self,
        event: Decided,
        placed: PlacedEvent,
        record: CallRecord,
        shown: Sequence[PlacedEvent],
        yes: PhoneYes | None,
    ) -> DecisionFound:
        device = event.proof.device_id if isinstance(event.proof, PhoneProof) else ""
        signature = signature_of(event, record, self._phones[device], yes)
        if signature.signed == "left out" and placed.backing == "chain":
            signature = SignatureFound(signed="wrong", phone=event.by.who, why="it is missing")
        if signature.signed == "wrong":
            whose = f"of {'the phone ' if event.by.surface == 'phone' else ''}{event.by.who!r}"
            what = f"the signature {whose} for call {record.id} is not valid: {signature.why}"
            self._problems.append(what)
        standing = self._standing_of(event, record) if event.by.surface == "memory" else ""
        decision = event.decision
        return DecisionFound(
            seq=event.seq,
            at=event.at,
            kind=decision.kind,
            by=event.by,
            reason=decision.reason if isinstance(decision, Deny) else "",
            edited=decision.edited if isinstance(decision, Approve) else None,
            applies=(decision.preview or "") if isinstance(decision, Approve) else "",
            remembered=isinstance(decision, Approve) and decision.remember is not None,
            standing=standing,
            seen="" if any(each.backing == "masked" for each in shown) else record.seen_digest(),
            seen_in=tuple(each.event.seq for each in shown),
            backing=placed.backing,
            signature=signature,
        )

    def _standing_of(self, event: Decided, record: CallRecord) -> str:
        """Return who has given the standing approval or denial of a decision, and note if it did not hold."""
        name = event.by.who
        given, is_proven = self._standing.get(name, (None, False))
        if given is None or given.seq > event.seq:
            self._problems.append(f"call {record.id} was decided by {name}, and no event says who has given that")
            return ""
        held = given.grant if isinstance(given, Granted) else given.denial
        until = given.grant.until if isinstance(given, Granted) else None
        over = self._revoked.get(name, event.seq) < event.seq or (until is not None and event.at > until + LEEWAY_S)
        if over or held.session_id != record.call.session_id:
            self._problems.append(f"call {record.id} was decided by {name}, which did not hold for it any more")
        after = f" after call {given.grant.from_call}" if isinstance(given, Granted) else ""
        doubt = "" if is_proven else ", which is not proven"
        return f"given{after} by {held.by.who or 'somebody'} ({held.by.surface}){doubt}"

    def _output(self, call_id: str, events: Sequence[PlacedEvent]) -> OutputFound:
        noted = [(each.event.digest, each.backing) for each in events if isinstance(each.event, Settled)]
        held = {key: found for key, found in self._bundle.outputs.items() if key.call_id == call_id}
        digest, backing = noted[-1] if noted else (None, "nothing")
        if digest is None:
            return "unproven" if held else ""
        found = held.pop(RunKey(call_id, digest.attempt), None)
        if held:
            self._problems.append(f"it holds output of call {call_id} of which no event says anything")
        if found is None:
            return "" if backing == "masked" else "digest only"
        if found != digest.sha256:
            self._problems.append(f"the output of call {call_id} is not the recorded one")
            return "changed"
        return "same" if backing == "chain" else "unproven"


def _weakest(events: Sequence[PlacedEvent]) -> Backing:
    backings = {placed.backing for placed in events}
    return "nothing" if "nothing" in backings else "masked" if "masked" in backings else "chain"
