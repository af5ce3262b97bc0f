"""Standing approvals: an index by the commands that they cover, and a preview on past calls."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from whisper_tui.model.board import Board
from whisper_tui.model.call import CarriedOut, CommandSpec, Session
from whisper_tui.model.decision import (
    MOST_OPTIONS,
    Approve,
    Coverage,
    Decider,
    Grant,
    RuleScope,
    Scope,
    ToolScope,
)
from whisper_tui.model.errors import Refused
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import READ_ONLY_RULE, SUBAGENT_RULE, Resolved
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.grants import (
    grant_is_over,
    is_exact,
    options_behind,
    saved_rule,
    saved_tool_rules,
    scope_problem,
)
from whisper_tui.policy.rules.matching import applies, reaches
from whisper_tui.policy.rules.rule import NO_RULES, Effect, Rule, Rules
from whisper_tui.policy.tool_calls import evaluate_carried_out, tool_rule_matches
from whisper_tui.policy.view import Question, view

FIRST_LOOK = 64
"""Size of the index at its first sweep. The next sweep comes at twice the remaining size."""


@dataclass
class _SessionGrants:
    """Ids of the approvals of one session."""

    exact: dict[str, dict[str, None]] = field(default_factory=dict)
    """Ids of approvals of one exact command, by the command."""
    wide: dict[str, None] = field(default_factory=dict)
    """Ids of approvals of a prefix."""

    def add(self, grant: Grant) -> None:
        ids = self.exact.setdefault(grant.spec.identity(), {}) if is_exact(grant) else self.wide
        ids[grant.id] = None


class GrantIndex:
    """Index of the standing approvals, built lazily by session; expired ones are swept out."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._sessions: dict[str, _SessionGrants] = {}
        self._size = 0
        """Sessions and approvals together, with those that came since it was looked which are over."""
        self._look_at = FIRST_LOOK

    def add(self, grant: Grant, now: float) -> None:
        """Add an approval."""
        # A session that was not asked about yet is read from the board as a whole later.
        if grant.session_id in self._sessions:
            self._put(grant)
            self._look(now)

    def about(self, session_id: str, spec: CommandSpec, now: float) -> Iterator[Grant]:
        """Return the approvals of a session that may cover a command."""
        if session_id not in self._sessions:
            self._take_up(session_id)
        known = self._sessions[session_id]
        exact = known.exact.get(spec.identity(), ()) if known.exact else ()
        for grant_id in (*exact, *known.wide):
            if grant_id in self._board.grants:
                yield self._board.grants[grant_id]
        self._look(now)

    def __len__(self) -> int:
        """Number of sessions and approvals in the index."""
        return self._size

    def _take_up(self, session_id: str) -> None:
        self._sessions[session_id] = _SessionGrants()
        self._size += 1
        for grant in self._board.grants.values():
            if grant.session_id == session_id:
                self._put(grant)

    def _put(self, grant: Grant) -> None:
        self._sessions[grant.session_id].add(grant)
        self._size += 1

    def _look(self, now: float) -> None:
        """Remove expired approvals, once they can be half of the index."""
        if self._size < self._look_at:
            return
        still = [session_id for session_id in self._sessions if self._is_open(session_id)]
        self._sessions = {session_id: _SessionGrants() for session_id in still}
        self._size = len(still)
        for grant in self._board.grants.values():
            if grant.session_id in self._sessions and not grant_is_over(grant, now):
                self._put(grant)
        self._look_at = max(FIRST_LOOK, 2 * self._size)

    def _is_open(self, session_id: str) -> bool:
        session = self._board.sessions.get(session_id)
        return session is not None and session.closed_at is None


def check_scope(scope: Scope, spec: CommandSpec) -> None:
    """Raise `Refused` for a scope that a command cannot be approved for."""
    problem = scope_problem(scope, spec)
    if problem is not None:
        longer = "Choose a longer beginning, or once"
        hint = "Choose another scope, or once" if isinstance(scope, ToolScope) else longer
        raise Refused(f"this cannot be remembered like that: {problem}", hint=hint)


def coverage(
    scope: Scope, spec: CommandSpec, root: str, records: Sequence[CallRecord], home: str = "", *, reading: bool = False
) -> Coverage:
    """Try a scope for `spec` in the workspace `root` on past calls, newest first, as if there were no other rule.

    `home`: the user's home directory, for patterns of files. `reading`: what only reads is allowed, and beside it the
    scope covers `npm test | tail`.
    """
    memory, rules = _given(scope, spec, root)
    rules = rules.model_copy(update={"read_only": reading})
    looked_at, covered = 0, []
    for record in records:
        command = record.call.spec.command
        # An approval of a command says nothing about tools, and the other way round.
        if isinstance(command, CarriedOut) is not isinstance(spec.command, CarriedOut):
            continue
        looked_at += 1
        question = replace(_question(record, root), home=home)
        if isinstance(command, CarriedOut):
            verdict = evaluate_carried_out(question, command, rules, memory)
            # What is allowed without this approval says nothing about it.
            allowed = verdict.kind == "allow" and verdict.rule != SUBAGENT_RULE
        else:
            verdict = evaluate(question, rules, memory)
            allowed = verdict.kind == "allow" and verdict.rule != READ_ONLY_RULE
        if allowed:
            covered.append(record.id)
    found = Coverage(looked_at=looked_at, calls=tuple(covered))
    return with_approved(found, scope, spec, root, records) if isinstance(scope, RuleScope) else found


def with_approved(
    found: Coverage, scope: RuleScope, spec: CommandSpec, root: str, records: Iterable[CallRecord]
) -> Coverage:
    """Add the past calls that begin as a rule says, that a human has approved, and that their options let it cover."""
    alike = [
        record
        for record in records
        if record.decided_by_human and isinstance(record.decision, Approve) and record.spec.place == spec.place
        if not isinstance(record.spec.command, CarriedOut) and scope_problem(scope, record.spec) is None
    ]
    own = (*options_behind(spec, scope.words), *scope.options)

    def further(past: Iterable[CallRecord]) -> tuple[str, ...]:
        options = dict.fromkeys(option for record in past for option in options_behind(record.spec, scope.words))
        return tuple(option for option in options if option not in own)[: MOST_OPTIONS - len(scope.options)]

    memory, rules = _given(scope.model_copy(update={"options": (*scope.options, *further(alike))}), spec, root)
    covered = [r for r in alike if evaluate(_question(r, root, r.spec), rules, memory).kind == "allow"]
    return found.model_copy(update={"approved": len(covered), "options": further(covered)})


PastCall = tuple[CallRecord, Session | None]
"""A past call with its session."""


def rule_coverage(effect: Effect, rule: Rule, past: Iterable[PastCall]) -> Coverage:
    """Try a rule on past calls, newest first: those that it alone would allow, or would match if it asks or denies.

    A disabled rule is tried as if it were enabled.
    """
    rule = rule.model_copy(update={"disabled": False})
    rules = Rules(allow=(rule,)) if effect == "allow" else NO_RULES
    looked_at, found = 0, []
    for record, session in past:
        command = record.call.spec.command
        looked_at += 1
        trust = session.trust if session is not None else "untrusted_external"
        question = replace(_question(record, session.root if session is not None else ""), trust=trust)
        if isinstance(command, CarriedOut):
            matched = tool_rule_matches(effect, rule, question, command)
        elif effect == "allow":
            matched = evaluate(question, rules, ()).kind == "allow"
        else:
            matched = applies(effect, rule, question) and reaches(rule, command, view(command))
        if matched:
            found.append(record.id)
    return Coverage(looked_at=looked_at, calls=tuple(found))


def _given(scope: Scope, spec: CommandSpec, root: str) -> tuple[tuple[Grant, ...], Rules]:
    if isinstance(scope, RuleScope):
        rule = saved_rule(scope, spec, call_id="", root=root if scope.where == "project" else None, now=0.0)
        return (), Rules(allow=(rule,))
    if isinstance(scope, ToolScope) and scope.is_rule:
        where = root if scope.where == "project" else None
        return (), Rules(allow=saved_tool_rules(scope, call_id="", root=where, now=0.0))
    # The limits are for the future; the preview asks which calls the words would have matched.
    unlimited = scope if isinstance(scope, str) else scope.model_copy(update={"uses": None, "minutes": None})
    by = Decider(surface="memory")
    grant = Grant(id="g0", session_id="", spec=spec, from_call="", granted_at=0.0, by=by, scope=unlimited)
    return (grant,), NO_RULES


def _question(record: CallRecord, root: str, spec: CommandSpec | None = None) -> Question:
    """Return the question about a past call; `spec`: about what a human has approved in the place of the request."""
    return Question(
        session_id="",
        session_root=root,
        spec=spec or record.call.spec,
        description=record.call.description,
        resolved=record.resolved or Resolved(),
        tool=record.call.tool,
        own_shell=record.call.ticket is not None,
    )
