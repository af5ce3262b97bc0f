"""The seam of the policy: from a call, the rules and the memory to a verdict, without touching anything."""

from collections.abc import Iterable
from dataclasses import dataclass

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.decision import Grant
from whisper_tui.model.verdict import Resolved, Risk, Verdict
from whisper_tui.policy.risks import ALWAYS_ASKED, risks_of
from whisper_tui.policy.rules import Rules


@dataclass(frozen=True)
class Question:
    """What is judged: the command, who asks, and what its words mean on this machine."""

    session_id: str
    session_root: str
    spec: CommandSpec
    description: str
    resolved: Resolved


def evaluate(question: Question, rules: Rules, memory: Iterable[Grant]) -> Verdict:
    """Judge a call. Deny beats ask, ask beats allow; what nothing is known about is asked."""
    command = question.spec.command
    risks = risks_of(question)
    for rule in rules.deny:
        if rule.matches(command):
            reason = rule.justification or f"the rule {rule.name!r} denies this command"
            return Verdict(kind="refuse", reason=reason, rule=rule.name, risks=risks)
    if rules.broken:
        return Verdict(
            kind="ask", reason=f"the rules cannot be read, so everything is asked: {rules.broken}", risks=risks
        )
    doubt = _doubt(question, risks)
    if doubt:
        return Verdict(kind="ask", reason=doubt, risks=risks)
    for rule in rules.allow:
        if rule.matches(command) and not question.spec.environment:
            reason = rule.justification or f"the rule {rule.name!r} allows this command"
            return Verdict(kind="allow", reason=reason, rule=rule.name, risks=risks)
    for grant in memory:
        if _covers(grant, question):
            reason = f"approved for this session with call {grant.from_call}"
            return Verdict(kind="allow", reason=reason, grant_id=grant.id, risks=risks)
    return Verdict(kind="ask", reason="no rule and no remembered approval is about this command", risks=risks)


def _covers(grant: Grant, question: Question) -> bool:
    """A remembered approval holds for this session and for exactly this command in exactly this directory."""
    if grant.revoked_at is not None or grant.session_id != question.session_id:
        return False
    return grant.spec.identity() == question.spec.identity()


def _doubt(question: Question, risks: tuple[Risk, ...]) -> str | None:
    """Why this command is asked whatever any rule or memory says."""
    if question.resolved.problem:
        return question.resolved.problem
    for risk in risks:
        if risk.id in ALWAYS_ASKED:
            return risk.sentence
    return None
