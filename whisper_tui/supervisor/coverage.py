"""What an approval would have let through, had it been given before: the proof beside every offer to remember it."""

from collections.abc import Iterable

from whisper_tui.model.command import CommandSpec, Function
from whisper_tui.model.decision import Coverage, Decider, Grant, RuleScope, Scope
from whisper_tui.model.errors import Refused
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.memory import saved_rule, scope_problem
from whisper_tui.policy.question import Question
from whisper_tui.policy.rules import NO_RULES, Rules

LOOKED_AT = 500
"""Calls of the journal that an approval is tried on."""


def check_scope(scope: Scope, spec: CommandSpec) -> None:
    """Raises `Refused` for a scope that may not be given for a command."""
    problem = scope_problem(scope, spec)
    if problem is not None:
        raise Refused(f"this cannot be remembered like that: {problem}", hint="Choose a longer beginning, or once")


def coverage(scope: Scope, spec: CommandSpec, root: str, records: Iterable[CallRecord]) -> Coverage:
    """Try a scope, given to `spec` in the workspace `root`, on past calls, newest first, as if no other rule were."""
    memory, rules = _given(scope, spec, root)
    looked_at, covered = 0, []
    for record in records:
        if isinstance(record.call.spec.command, Function):
            continue
        looked_at += 1
        if evaluate(_question(record, root), rules, memory).kind == "allow":
            covered.append(record.id)
    return Coverage(looked_at=looked_at, calls=tuple(covered))


def _given(scope: Scope, spec: CommandSpec, root: str) -> tuple[tuple[Grant, ...], Rules]:
    if isinstance(scope, RuleScope):
        rule = saved_rule(scope, spec, call_id="", root=root if scope.where == "project" else None, now=0.0)
        return (), Rules(allow=(rule,))
    unlimited = scope if isinstance(scope, str) else scope.model_copy(update={"uses": None, "minutes": None})
    by = Decider(surface="memory")
    grant = Grant(id="g0", session_id="", spec=spec, from_call="", granted_at=0.0, by=by, scope=unlimited)
    return (grant,), NO_RULES


def _question(record: CallRecord, root: str) -> Question:
    return Question(
        session_id="",
        session_root=root,
        spec=record.call.spec,
        description=record.call.description,
        resolved=record.resolved or Resolved(),
        tool=record.call.tool,
        own_shell=record.call.ticket is not None,
    )
