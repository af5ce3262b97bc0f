"""The approval queue: admits, decides and withdraws calls before they start."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

from whisper_tui.model.call import (
    DENY_INSTEAD,
    NO_CHANGE,
    CallRequest,
    CommandSpec,
    Session,
    ToolCall,
)
from whisper_tui.model.decision import (
    Approve,
    Decider,
    Decision,
    Deny,
    Grant,
    RuleScope,
    Scope,
    SessionDenial,
    ToolScope,
    beginnings,
)
from whisper_tui.model.desk_proof import DeskProof
from whisper_tui.model.ending import Denied, Withdrawn
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, JournalFailed, Refused
from whisper_tui.model.event import (
    AgentGaveUp,
    AgentReturned,
    Decided,
    DenialAdded,
    DenialLifted,
    Event,
    Finished,
    Granted,
    GrantRevoked,
    GrantUsed,
    Judged,
    SetAside,
    Started,
    Submitted,
    UnaskedSet,
)
from whisper_tui.model.phone_proof import PhoneProof
from whisper_tui.model.state import CallRecord, Unjudged, Waiting
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.rules.grants import grant_is_over, is_exact, saved_rule, saved_tool_rules
from whisper_tui.policy.rules.rule import Rule
from whisper_tui.supervisor.approvals.admission import (
    Capacity,
    Deduplicator,
    check_place,
    check_preview,
    check_same_files,
    check_same_tool,
)
from whisper_tui.supervisor.approvals.desk_signatures import check_signed
from whisper_tui.supervisor.approvals.judge import Examinations, check_known
from whisper_tui.supervisor.approvals.resolve import Examined, Looked
from whisper_tui.supervisor.approvals.session_grants import check_scope
from whisper_tui.supervisor.journal.journal import check_storable
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.runs.sandbox_profile import sandbox_problem
from whisper_tui.system import host_files

Proof = PhoneProof | DeskProof | None
"""Of a decision. None: it is not signed."""


class ApprovalQueue:
    """Admits calls, has them judged, and records decisions. The first decision wins."""

    def __init__(
        self,
        store: Store,
        examinations: Examinations,
        clock: Callable[[], float],
        keep_rule: Callable[[Rule], None] | None = None,
    ) -> None:
        self._store = store
        self.examinations, self.judge = examinations, examinations.judge
        self._clock = clock
        self._record = partial(record_facts, store)
        self._keep_rule = keep_rule
        """Writes a rule to the user's rules. None: rules cannot be saved."""
        self.denials = SessionDenials(store, clock)
        self._deduplicator = Deduplicator(store, clock)
        self._capacity = Capacity(store)

    async def submit(
        self,
        request: CallRequest,
        try_start_now: Callable[[ToolCall], Started | None],
        check_session: Callable[[str], object],
    ) -> str:
        """Judge a call, queue it, decide it if no human has to, and start it if it is its turn. Return its id.

        `try_start_now` returns the start of an allowed call if a worker is free; `check_session` raises `Refused`.
        """
        check_session(request.session_id)
        request, new = self.judge.placed(request), None
        # Before anything is read: a flood of calls must cost little (decision 15).
        if self._same_call(request) is None:
            new = self._new_call(request)
            self._capacity.check(new)
        async with self.examinations.of(request.session_id, request.spec) as examined:
            check_session(request.session_id)
            call_id = self._submit(request, new, examined, try_start_now)
        await self._store.flushed()  # Out of turn, so that the next call of this session can share the flush.
        return call_id

    def close(self) -> None:
        """End the threads that examine commands, once they have nothing to do."""
        self.examinations.close()

    def _submit(
        self,
        request: CallRequest,
        new: ToolCall | None,
        examined: Callable[[], Examined],
        try_start_now: Callable[[ToolCall], Started | None],
    ) -> str:
        if (known := self._same_call(request)) is not None:
            self._welcome_back(known)
            return known
        # Others may have been submitted since it was checked.
        call = self._new_call(request) if new is None else new.model_copy(update=self._numbered())
        size = self._capacity.check(call)
        judged = self.judge.judge(call, call.spec, examined=examined)
        decided = self._decision_without_human(call, judged)
        started = try_start_now(call) if _may_start_now(judged) else None
        # All of it in one transaction: an allowed call costs one wait for the disk, not four.
        self._record(Submitted(at=call.submitted_at, call=call), judged, *decided, *filter(None, (started,)))
        # Only after the write: a failed submission must not leave a gap in the numbers.
        self._store.journal.last_call += 1
        self._capacity.take(call, size)
        return call.id

    def _same_call(self, request: CallRequest) -> str | None:
        if request.key is not None:
            known = self._store.journal.call_with_key(request.session_id, request.key)
            if known is not None:
                return known
        return self._deduplicator.of(request)

    def _new_call(self, request: CallRequest) -> ToolCall:
        call = ToolCall(**self._numbered(), **{name: getattr(request, name) for name in CallRequest.model_fields})
        check_storable(call)
        return call

    def _numbered(self) -> dict[str, Any]:
        return {"id": str(self._store.journal.last_call + 1), "submitted_at": self._clock()}

    def leave(self, record: CallRecord, why: str, *, stopping: bool = False) -> None:
        """Mark a call whose agent no longer waits for the answer; `stopping`: it also wants the run to be ended."""
        if record.agent_gave_up is None or (stopping and not record.stopping):
            self._record(AgentGaveUp(at=self._clock(), call_id=record.id, why=why, stopping=stopping))

    def _welcome_back(self, call_id: str) -> None:
        if self._store.call(call_id).agent_gave_up is not None:
            self._record(AgentReturned(at=self._clock(), call_id=call_id))

    def judge_waiting(self, record: CallRecord) -> None:
        """Judge a call that was journaled without a verdict."""
        if isinstance(record.state, Unjudged):
            self.record_judged(record.call, self.judge.judge(record.call, record.spec))

    def record_judged(self, call: ToolCall, judged: Judged) -> None:
        """Record a verdict, and the decision that follows from it without a human."""
        self._record(judged, *self._decision_without_human(call, judged))

    def decide(
        self,
        call_id: str,
        decision: Decision,
        by: Decider,
        seen: str,
        examined: Looked = None,
        *,
        proof: Proof = None,
    ) -> None:
        """Record a decision about a waiting call: a human's, or that of a rule on effects.

        `examined`: what an edited command is at its place; `proof`: of a decision from a phone, or of
        a signed one of the desk, whose signature was verified.
        """
        record = self._waiting(call_id)
        # The human decided about another version of the call than the one that would run (decision 23).
        if seen != record.seen_digest():
            raise ChangedSinceSeen(f"call {call_id} has changed since it was shown", hint="Look at it again")
        check_storable(decision)
        if isinstance(proof, DeskProof):
            check_signed(proof, record, decision, by, self._clock())
        if isinstance(decision, Deny):
            self._deny(record, decision, by, proof)
        else:
            self._approve(record, check_preview(record, decision), by, examined, proof)

    def set_aside(self, call_id: str, by: Decider, *, back: bool) -> None:
        """Record that a human moves a waiting call out of the way, or back; nothing if it is there already."""
        record = self._waiting(call_id)
        if record.is_held_back:
            raise Refused(
                f"nobody is asked about call {call_id} yet: it is held back until its effects are known",
                hint="It can be set aside once it waits for you",
            )
        if (record.aside is None) == back:
            return
        self._record(SetAside(at=self._clock(), call_id=call_id, back=back, by=by))

    def withdraw(self, record: CallRecord, why: str) -> None:
        """End a call that has not started."""
        self._record(Finished(at=self._clock(), call_id=record.id, ending=Withdrawn(why=why)))

    def requeue_for_approval(self, record: CallRecord, again: Judged) -> None:
        """Record a second judgement that keeps a queued call from starting."""
        if again.verdict.kind != "refuse" and record.edited:
            again = self._of_the_request(record, again)
        if again.verdict.kind == "refuse":
            self._record(again, *self._refusal(record.call, again))
        else:
            self._record(again)

    def _of_the_request(self, record: CallRecord, again: Judged) -> Judged:
        """Return a second judgement of an edited command as one of the request, which waits again without the edit.

        Otherwise the request would have the risks of the edit, and could be approved by those.
        """
        requested = self.judge.judge(record.call, record.call.spec)
        verdict = requested.verdict
        if verdict.kind == "refuse":
            return requested
        kept = again.verdict.undo if again.verdict.undo is not None and again.verdict.undo.why else verdict.undo
        asked: dict[str, object] = {"kind": "ask", "reason": again.verdict.reason, "undo": kept}
        asked |= {"rule": None, "grant_id": None, "allow_if_preview": (), "held_back": False}
        return requested.model_copy(update={"verdict": verdict.model_copy(update=asked)})

    def doubt_approvals(self) -> None:
        """After a kill: ask again about approved calls that have not started, and drop all that was granted."""
        board = self._store.board
        for call_id in (*board.held, *board.queued):
            record = board.calls[call_id]
            again = self.judge.judge_after_kill(record)
            if again is not None:
                self.requeue_for_approval(record, again)
        by = Decider(surface="rule", who="the supervisor was killed")
        for grant in tuple(board.grants.values()):
            if not grant_is_over(grant, self._clock()):
                self.revoke(grant.id, by)
        levels = [(None, board.unasked), *((session.id, session.unasked) for session in board.sessions.values())]
        for session_id, level in levels:
            if level is not None and level.runs_work:
                self._record(UnaskedSet(at=self._clock(), session_id=session_id, level=None, by=by))

    def revoke(self, grant_id: str, by: Decider) -> None:
        """Revoke a standing approval."""
        grant = self._store.board.grants.get(grant_id)
        if grant is None or grant.revoked_at is not None:
            raise Refused(f"there is no standing approval {grant_id}", hint="whisper-tui approvals lists them")
        self._record(GrantRevoked(at=self._clock(), grant_id=grant_id, session_id=grant.session_id, by=by))

    def _approve(self, record: CallRecord, decision: Approve, by: Decider, examined: Looked, proof: Proof) -> None:
        now = self._clock()
        decision = check_place(record.call, decision, self.judge.placement, self._store.session(record.call.session_id))
        if decision.edited is not None and not record.call.takes_change:
            raise Refused(NO_CHANGE, hint=DENY_INSTEAD)
        check_same_tool(record.call.spec, decision.edited)
        if decision.sandbox is not None and not (decision.edited or record.call.spec).place and sandbox_problem():
            raise Refused(
                f"call {record.id} cannot run in a sandbox here: {sandbox_problem()}",
                hint="It keeps waiting. Approve it without a sandbox, or deny it",
            )
        # An agent that does not wait may never ask for this answer.
        waits = record.agent_gave_up is None
        heard = self._store.board.unheard_in(record.call.session_id) if waits else ()
        facts: list[Event] = []
        resolved = record.resolved
        if decision.edited is not None:
            judged = self.judge.judge(record.call, decision.edited, examined=examined)
            if judged.verdict.kind == "refuse":
                raise Refused(
                    f"the edited command is denied: {judged.verdict.reason}", hint="Edit it again, or deny it"
                )
            check_same_files(record.resolved, judged.resolved)
            allowed = judged.verdict.model_copy(update={"kind": "allow"})
            facts.append(judged.model_copy(update={"verdict": allowed}))
            resolved = judged.resolved
        decided = decision
        if decision.sandbox is not None and resolved is not None:
            # What is remembered opens the programs of each of its calls anew.
            decided = decision.model_copy(update={"sandbox": resolved.opened_in(decision.sandbox)})
        facts.insert(0, Decided(at=now, call_id=record.id, decision=decided, by=by, heard=heard, proof=proof))
        scope, grant = decision.remember, None
        if scope is not None:
            check_scope(scope, decision.edited or record.call.spec)
            check_known(resolved)
        if saves_rule(scope):
            # Before the decision is journaled: without the rule the approval would say more than it does.
            self._save(scope, decision, record, now)
        elif scope is not None:
            grant = self._grant(record, decision, scope, by, now)
            # Rules approve words, humans approve files: the scripts must be the same next time (decision 11).
            if is_exact(grant):
                grant = grant.model_copy(
                    update={"files": _scripts(self._store.board.sessions.get(grant.session_id), grant.spec, resolved)}
                )
            facts.append(Granted(at=now, grant=grant))
        self._record_with_rule(scope, *facts)
        if grant is not None:
            self._store.journal.last_grant += 1
            self.judge.remember(grant)
        if scope is not None:
            self._let_through(grant)

    def _save(self, scope: RuleScope | ToolScope, decision: Approve, record: CallRecord, now: float) -> None:
        """Write the rule of an approval, before the approval is recorded. Raises an error if it cannot be written."""
        if self._keep_rule is None:
            raise Refused("this supervisor keeps no rules", hint="Approve it for the session")
        session = self._store.board.sessions.get(record.call.session_id)
        root = session.root if session and scope.where == "project" else None
        spec = decision.edited or record.call.spec
        if isinstance(scope, ToolScope):
            for rule in saved_tool_rules(scope, call_id=record.id, root=root, now=now):
                self._keep_rule(rule)
            return
        self._keep_rule(saved_rule(scope, spec, call_id=record.id, root=root, now=now, sandbox=decision.sandbox))

    def _record_with_rule(self, scope: Scope | None, *facts: Event) -> None:
        try:
            self._record(*facts)
        except JournalFailed as error:
            if not saves_rule(scope):
                raise
            message = f"the rule was saved, and the approval was not: {error.message}"
            raise JournalFailed(message, hint="Approve it again once that is fixed, or remove the rule") from error

    def _grant(self, record: CallRecord, decision: Approve, scope: Scope, by: Decider, now: float) -> Grant:
        minutes = None if isinstance(scope, str) else scope.minutes
        return Grant(
            id=f"g{self._store.journal.last_grant + 1}",
            session_id=record.call.session_id,
            spec=decision.edited or record.call.spec,
            from_call=record.id,
            granted_at=now,
            by=by,
            scope=scope,
            until=None if minutes is None else now + 60 * minutes,
            sandbox=decision.sandbox,
        )

    def judge_again(self, session_id: str | None, exact: str | None = None) -> None:
        """Judge the waiting calls of a session again, after more may run unasked. None: those of all sessions.

        `exact`: only calls with this identity.
        """
        board = self._store.board

        def judge(call_id: str) -> None:
            record = board.calls.get(call_id)
            if record is None or not isinstance(record.state, Waiting):
                return
            if exact is None or record.call.spec.identity() == exact:
                judged = self.judge.judge(record.call, record.call.spec)
                if judged.verdict.kind == "allow" or (judged.verdict.held_back and record.preview is None):
                    self.record_judged(record.call, judged)

        waiting = (*board.waiting, *board.aside) if session_id is None else board.waiting_in(session_id)
        self._store.retry_each_until_journaled(judge, waiting)

    def _let_through(self, grant: Grant | None) -> None:
        """Judge the waiting calls again after an approval was remembered. None: a rule was saved, for every session."""
        exact = grant.spec.identity() if grant is not None and is_exact(grant) else None
        self.judge_again(grant.session_id if grant is not None else None, exact)

    def _deny(self, record: CallRecord, decision: Deny, by: Decider, proof: Proof) -> None:
        now = self._clock()
        facts = denial_facts(record.id, decision, by, now, proof=proof)
        if decision.stop_session:
            same = decision.model_copy(update={"stop_session": False})
            # One transaction: no call of the session may be approved between two of its denials.
            others = self._store.board.waiting_in(record.call.session_id)
            facts += tuple(fact for each in others if each != record.id for fact in denial_facts(each, same, by, now))
        self._record(*facts)

    def _decision_without_human(self, call: ToolCall, judged: Judged) -> tuple[Event, ...]:
        """Return the decision that a verdict implies. None: a human is asked."""
        match judged.verdict.kind:
            case "refuse":
                return self._refusal(call, judged)
            case "allow":
                return self._permission(call, judged)
            case _:
                return ()

    def _refusal(self, call: ToolCall, judged: Judged) -> tuple[Event, ...]:
        denial = self._store.board.denials.get(judged.verdict.denial_id or "")
        if denial is not None:
            by = Decider(surface="memory", who=denial.id)
            return denial_facts(call.id, Deny(reason=denial.reason), by, self._clock(), denial.words)
        by = Decider(surface="rule", who=judged.verdict.rule or "")
        return denial_facts(call.id, Deny(reason=judged.verdict.reason), by, self._clock())

    def _permission(self, call: ToolCall, judged: Judged) -> tuple[Event, ...]:
        verdict, now = judged.verdict, self._clock()
        granted = verdict.grant_id is not None
        by = Decider(surface="memory" if granted else "rule", who=(verdict.grant_id or verdict.rule) or "")
        heard = self._store.board.unheard_in(call.session_id)
        decided = Decided(at=now, call_id=call.id, decision=Approve(sandbox=verdict.sandbox), by=by, heard=heard)
        if verdict.grant_id is None:
            return (decided,)
        return (decided, GrantUsed(at=now, grant_id=verdict.grant_id, session_id=call.session_id, call_id=call.id))

    def _waiting(self, call_id: str) -> CallRecord:
        record = self._store.call(call_id)
        if not isinstance(record.state, Waiting):
            raise AlreadyDecided(
                f"call {call_id} does not wait for a decision: it is {record.state.kind}",
                hint=f"whisper-tui show {call_id} shows its outcome",
            )
        return record


def _may_start_now(judged: Judged) -> bool:
    """True if an allowed call may start without its record: how its changes are kept is decided with that."""
    return judged.verdict.kind == "allow" and judged.verdict.undo is None


def _scripts(session: Session | None, spec: CommandSpec, resolved: Resolved | None) -> dict[str, str]:
    """Return digests of the workspace's scripts that a command runs: agents can rewrite them later."""
    if session is None or resolved is None:
        return {}
    # The workspace is on this machine: at a place every script counts.
    if spec.place:
        return dict(resolved.contents)
    above = host_files.realpath(session.root).rstrip("/") + "/"
    return {path: held for path, held in resolved.contents.items() if host_files.realpath(path).startswith(above)}


def saves_rule(scope: Scope | None) -> TypeGuard[RuleScope | ToolScope]:
    """True if an approval with this scope is saved as a rule."""
    return isinstance(scope, RuleScope) or (isinstance(scope, ToolScope) and scope.is_rule)


def record_facts(store: Store, *facts: Event) -> None:
    """Record facts; a human's decision is flushed to the disk before anything follows from it (decision 1)."""
    # What a rule decides is flushed with the start: if it is lost before that, nothing has run and no word is lost.
    durable = any(map(_must_last, facts))
    if durable and any(isinstance(fact, Decided) for fact in facts):
        store.record_and_flush(*facts)
    else:
        store.record(*facts, durable=durable)


def denial_facts(
    call_id: str,
    decision: Deny,
    by: Decider,
    now: float,
    for_session: tuple[str, ...] = (),
    *,
    proof: Proof = None,
) -> tuple[Event, ...]:
    """Return the decision and the ending of a denied call; `for_session`: the words of the session denial."""
    ending = Denied(by=by, reason=decision.reason, for_session=for_session)
    return (
        Decided(at=now, call_id=call_id, decision=decision, by=by, proof=proof),
        Finished(at=now, call_id=call_id, ending=ending),
    )


def _must_last(fact: Event) -> bool:
    """True for events that must survive a power cut before their effect: a human's decision, and a start."""
    if isinstance(fact, Decided):
        return fact.by.surface not in {"rule", "memory"}
    return isinstance(fact, Granted | GrantRevoked | DenialAdded | DenialLifted | Started | SetAside)


class SessionDenials:
    """Adds, applies and lifts the denials for a session (decision 11)."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._record = partial(record_facts, store)

    def add(self, session_id: str, words: tuple[str, ...], reason: str, by: Decider) -> str:
        """Deny the calls of a session that begin with these words, those that wait included. Returns the denial's id.

        Calls that are approved and have not started meet it when they are judged again before their start.
        """
        board, now = self._store.board, self._clock()
        if session_id not in board.sessions:
            raise Refused(f"there is no session {session_id}", hint="whisper-tui list shows calls and their sessions")
        denial = SessionDenial(
            id=f"d{self._store.journal.last_denial + 1}",
            session_id=session_id,
            words=words,
            reason=reason,
            denied_at=now,
            by=by,
        )
        check_storable(denial)
        replaced = tuple(each.id for each in board.denials_of(session_id) if each.words == words)
        lifted = (DenialLifted(at=now, session_id=session_id, denial_id=each, by=by) for each in replaced)
        self._record(*lifted, DenialAdded(at=now, denial=denial))
        self._store.journal.last_denial += 1
        self._deny_waiting(denial)
        return denial.id

    def apply_all(self) -> None:
        """After a restart: deny the waiting calls that an earlier supervisor did not come to."""
        for denial in tuple(self._store.board.denials.values()):
            self._deny_waiting(denial)

    def lift(self, denial_id: str, by: Decider) -> None:
        """Deny nothing by it any more; what it has denied stays denied."""
        denial = self._store.board.denials.get(denial_id)
        if denial is None:
            raise Refused(f"there is no session denial {denial_id}", hint="whisper-tui approvals --denied lists them")
        self._record(DenialLifted(at=self._clock(), session_id=denial.session_id, denial_id=denial_id, by=by))

    def _deny_waiting(self, denial: SessionDenial) -> None:
        """Deny the waiting calls of a session that a denial matches, in the name of the human who gave it."""
        board, decision = self._store.board, Deny(reason=denial.reason)

        def deny(call_id: str) -> None:
            record = board.calls.get(call_id)
            if record is None or not isinstance(record.state, Waiting) or denial.id not in board.denials:
                return
            if denial.matches(beginnings(record.call.spec.command, record.verdict, record.resolved)):
                self._record(*denial_facts(call_id, decision, denial.by, self._clock(), denial.words))

        self._store.retry_each_until_journaled(deny, board.waiting_in(denial.session_id))
