"""Where calls come in, are decided and are taken back: everything before a command starts."""

from collections.abc import Callable
from pathlib import Path

from whisper_tui.model.call import CallRequest, ToolCall
from whisper_tui.model.command import CommandSpec, Function
from whisper_tui.model.decision import Approve, Decider, Decision, Deny, Grant, RuleScope, Scope
from whisper_tui.model.ending import Denied, Withdrawn
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, JournalFailed, Refused
from whisper_tui.model.event import (
    AgentGaveUp,
    AgentReturned,
    Decided,
    Event,
    Finished,
    Granted,
    GrantRevoked,
    GrantUsed,
    Judged,
    Started,
    Submitted,
)
from whisper_tui.model.state import CallRecord, Unjudged, Waiting
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.memory import is_exact, is_over, saved_rule
from whisper_tui.policy.rules import Rule
from whisper_tui.supervisor.capacity import Capacity
from whisper_tui.supervisor.coverage import check_scope
from whisper_tui.supervisor.judge import Judge
from whisper_tui.supervisor.keepable import check_keepable
from whisper_tui.supervisor.ledger import Ledger
from whisper_tui.supervisor.twins import Twins


class Desk:
    """Takes calls in, has them judged, and records what is decided. First decision wins."""

    def __init__(
        self,
        ledger: Ledger,
        judge: Judge,
        clock: Callable[[], float],
        keep_rule: Callable[[Rule], None] | None = None,
    ) -> None:
        self._ledger = ledger
        self._judge = judge
        self._clock = clock
        self._keep_rule = keep_rule
        """Writes a rule to the user's rules. None: this supervisor has none."""
        self._twins = Twins(ledger, clock)
        self._capacity = Capacity(ledger)

    def submit(self, request: CallRequest, at_once: Callable[[ToolCall], Started | None]) -> str:
        """Journal a call together with its verdict. The same key in the same session is the same call.

        So is one with the same twin, where the request wants to join it. `at_once`: asked whether a call that is
        allowed starts in this moment.
        """
        if request.key is not None:
            known = self._ledger.journal.call_with_key(request.session_id, request.key)
            if known is not None:
                self._welcome_back(known)
                return known
        if (twin := self._twins.of(request)) is not None:
            self._welcome_back(twin)
            return twin
        call = ToolCall(
            id=str(self._ledger.journal.last_call + 1),
            submitted_at=self._clock(),
            **{name: getattr(request, name) for name in CallRequest.model_fields},
        )
        check_keepable(call)
        size = self._capacity.check(call)
        judged = self._judge.judge(call, call.spec)
        started = at_once(call) if judged.verdict.kind == "allow" else None
        facts = (Submitted(at=call.submitted_at, call=call), judged, *self._consequences(call, judged))
        self._record(*facts, *((started,) if started is not None else ()))
        self._ledger.journal.last_call += 1
        self._capacity.take(call, size)
        return call.id

    def leave(self, record: CallRecord, why: str) -> None:
        """Mark a call as one whose agent does not wait for the answer. Its answer can still be had by asking again."""
        if record.agent_gave_up is None:
            self._record(AgentGaveUp(at=self._clock(), call_id=record.id, why=why))

    def _welcome_back(self, call_id: str) -> None:
        if self._ledger.call(call_id).agent_gave_up is not None:
            self._record(AgentReturned(at=self._clock(), call_id=call_id))

    def judge_waiting(self, record: CallRecord) -> None:
        """Judge a call that was journaled without a verdict."""
        if isinstance(record.state, Unjudged):
            judged = self._judge.judge(record.call, record.spec)
            self._record(judged, *self._consequences(record.call, judged))

    def decide(self, call_id: str, decision: Decision, by: Decider, seen: str) -> None:
        """Record a human's decision about a waiting call."""
        record = self._waiting(call_id)
        if seen != record.seen_digest():
            raise ChangedSinceSeen(f"call {call_id} has changed since it was shown", hint="Look at it again")
        check_keepable(decision)
        if isinstance(decision, Deny):
            self._deny(record, decision, by)
        else:
            self._approve(record, decision, by)

    def withdraw(self, record: CallRecord, why: str) -> None:
        """End a call that has not started."""
        self._record(Finished(at=self._clock(), call_id=record.id, ending=Withdrawn(why=why)))

    def turn_back(self, record: CallRecord, again: Judged) -> None:
        """Carry out a second look that keeps a queued call from starting."""
        if again.verdict.kind == "refuse":
            self._record(again, *self._refusal(record.call, again))
        else:
            self._record(again)

    def doubt_approvals(self) -> None:
        """After a supervisor was killed: ask again about what is approved and has not started, and remember nothing."""
        board = self._ledger.board
        for call_id in (*board.held, *board.queued):
            again = self._judge.judge_after_kill(board.calls[call_id])
            if again is not None:
                self._record(again)
        by = Decider(surface="rule", who="the supervisor was killed")
        for grant in tuple(board.grants.values()):
            if not is_over(grant, self._clock()):
                self.revoke(grant.id, by)

    def revoke(self, grant_id: str, by: Decider) -> None:
        """Forget a remembered approval."""
        grant = self._ledger.board.grants.get(grant_id)
        if grant is None or grant.revoked_at is not None:
            raise Refused(f"there is no remembered approval {grant_id}", hint="whisper-tui approvals lists them")
        self._record(GrantRevoked(at=self._clock(), grant_id=grant_id, session_id=grant.session_id, by=by))

    def _approve(self, record: CallRecord, decision: Approve, by: Decider) -> None:
        now = self._clock()
        if decision.edited == record.call.spec:
            decision = decision.model_copy(update={"edited": None})
        _check_same_tool(record.call.spec, decision.edited)
        facts: list[Event] = [Decided(at=now, call_id=record.id, decision=decision, by=by)]
        resolved = record.resolved
        if decision.edited is not None:
            judged = self._judge.judge(record.call, decision.edited)
            if judged.verdict.kind == "refuse":
                raise Refused(
                    f"the edited command is denied: {judged.verdict.reason}", hint="Edit it again, or deny it"
                )
            allowed = judged.verdict.model_copy(update={"kind": "allow"})
            facts.append(judged.model_copy(update={"verdict": allowed}))
            resolved = judged.resolved
        scope, grant = decision.remember, None
        if scope is not None:
            check_scope(scope, decision.edited or record.call.spec)
        if isinstance(scope, RuleScope):
            self._save(scope, decision, record, now)
        elif scope is not None:
            grant = self._grant(record, decision, scope, by, now)
            if is_exact(grant):
                grant = grant.model_copy(update={"files": self._scripts(record, resolved)})
            facts.append(Granted(at=now, grant=grant))
        self._record_with_rule(scope, *facts)
        if grant is not None:
            self._ledger.journal.last_grant += 1
            self._judge.remember(grant)
        if scope is not None:
            self._let_through(grant)

    def _save(self, scope: RuleScope, decision: Approve, record: CallRecord, now: float) -> None:
        """Write the rule before the approval is recorded: what cannot be kept is not approved like that."""
        if self._keep_rule is None:
            raise Refused("this supervisor keeps no rules", hint="Approve it for the session")
        session = self._ledger.board.sessions.get(record.call.session_id)
        root = session.root if session and scope.where == "project" else None
        spec = decision.edited or record.call.spec
        self._keep_rule(saved_rule(scope, spec, call_id=record.id, root=root, now=now, sandbox=decision.sandbox))

    def _record_with_rule(self, scope: Scope | None, *facts: Event) -> None:
        try:
            self._record(*facts)
        except JournalFailed as error:
            if not isinstance(scope, RuleScope):
                raise
            message = f"the rule was saved, and the approval was not: {error.message}"
            raise JournalFailed(message, hint="Approve it again once that is mended, or remove the rule") from error

    def _grant(self, record: CallRecord, decision: Approve, scope: Scope, by: Decider, now: float) -> Grant:
        minutes = None if isinstance(scope, str) else scope.minutes
        return Grant(
            id=f"g{self._ledger.journal.last_grant + 1}",
            session_id=record.call.session_id,
            spec=decision.edited or record.call.spec,
            from_call=record.id,
            granted_at=now,
            by=by,
            scope=scope,
            until=None if minutes is None else now + 60 * minutes,
            sandbox=decision.sandbox,
        )

    def _scripts(self, record: CallRecord, resolved: Resolved | None) -> dict[str, str]:
        """The scripts of the workspace that it runs, as they were when they were shown: agents can rewrite them."""
        session = self._ledger.board.sessions.get(record.call.session_id)
        if session is None or resolved is None:
            return {}
        root = Path(session.root).resolve()
        return {path: held for path, held in resolved.contents.items() if Path(path).resolve().is_relative_to(root)}

    def _let_through(self, grant: Grant | None) -> None:
        """What is remembered also answers for what waits already. None: a rule was saved, for every session."""
        board = self._ledger.board
        exact = grant.spec.identity() if grant is not None and is_exact(grant) else None

        def judge(call_id: str) -> None:
            record = board.calls.get(call_id)
            if record is None or not isinstance(record.state, Waiting):
                return
            if exact is None or record.call.spec.identity() == exact:
                judged = self._judge.judge(record.call, record.call.spec)
                if judged.verdict.kind == "allow":
                    self._record(judged, *self._consequences(record.call, judged))

        self._ledger.see_to_each(judge, board.waiting if grant is None else board.waiting_in(grant.session_id))

    def _deny(self, record: CallRecord, decision: Deny, by: Decider) -> None:
        facts = self._denial(record.id, decision, by)
        if decision.stop_session:
            same = decision.model_copy(update={"stop_session": False})
            others = self._ledger.board.waiting_in(record.call.session_id)
            facts += tuple(fact for each in others if each != record.id for fact in self._denial(each, same, by))
        self._record(*facts)

    def _denial(self, call_id: str, decision: Deny, by: Decider) -> tuple[Event, ...]:
        now = self._clock()
        ending = Denied(by=by, reason=decision.reason)
        return (
            Decided(at=now, call_id=call_id, decision=decision, by=by),
            Finished(at=now, call_id=call_id, ending=ending),
        )

    def _consequences(self, call: ToolCall, judged: Judged) -> tuple[Event, ...]:
        """What follows from a verdict without a human: nothing where one is asked."""
        match judged.verdict.kind:
            case "refuse":
                return self._refusal(call, judged)
            case "allow":
                return self._permission(call, judged)
            case _:
                return ()

    def _refusal(self, call: ToolCall, judged: Judged) -> tuple[Event, ...]:
        by = Decider(surface="rule", who=judged.verdict.rule or "")
        return self._denial(call.id, Deny(reason=judged.verdict.reason), by)

    def _permission(self, call: ToolCall, judged: Judged) -> tuple[Event, ...]:
        verdict, now = judged.verdict, self._clock()
        if verdict.grant_id is None:
            by = Decider(surface="rule", who=verdict.rule or "")
            return (Decided(at=now, call_id=call.id, decision=Approve(sandbox=verdict.sandbox), by=by),)
        by = Decider(surface="memory", who=verdict.grant_id)
        used = GrantUsed(at=now, grant_id=verdict.grant_id, session_id=call.session_id, call_id=call.id)
        return (Decided(at=now, call_id=call.id, decision=Approve(sandbox=verdict.sandbox), by=by), used)

    def _waiting(self, call_id: str) -> CallRecord:
        record = self._ledger.call(call_id)
        if not isinstance(record.state, Waiting):
            raise AlreadyDecided(
                f"call {call_id} does not wait for a decision: it is {record.state.kind}",
                hint=f"whisper-tui show {call_id} tells what became of it",
            )
        return record

    def _record(self, *facts: Event) -> None:
        """What a human decided is flushed to the disk before anything follows from it.

        What a rule decides is flushed with the start that follows: lost before that, nothing has run, and nobody's
        word is lost.
        """
        self._ledger.record(*facts, durable=any(map(_must_last, facts)))


def _must_last(fact: Event) -> bool:
    """Whether it is a human's word, or a start: what is on no disk must not have an effect."""
    if isinstance(fact, Decided):
        return fact.by.surface not in {"rule", "memory"}
    return isinstance(fact, Granted | GrantRevoked | Started)


def _check_same_tool(asked: CommandSpec, edited: CommandSpec | None) -> None:
    """Whoever asked for a tool of its own can carry out nothing else, and nobody else can carry it out."""
    if edited is None:
        return
    tools = [spec.command.tool if isinstance(spec.command, Function) else None for spec in (asked, edited)]
    if tools[0] != tools[1]:
        raise Refused("a tool's call cannot be edited into another kind of call", hint="Deny it and say what to do")
