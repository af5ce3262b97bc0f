"""Judging tools that the agent's side carries out itself: no rule about commands speaks of them."""

from collections.abc import Iterable

from whisper_tui.model.command import Function
from whisper_tui.model.decision import Grant
from whisper_tui.model.verdict import Verdict
from whisper_tui.policy.question import Question
from whisper_tui.policy.risks import ALWAYS_ASKED, risks_of
from whisper_tui.policy.rules import Rules


def evaluate_function(question: Question, function: Function, rules: Rules, memory: Iterable[Grant]) -> Verdict:
    """Such a call is asked, unless a rule denies the whole tool or exactly this call was approved for the session."""
    risks = risks_of(question)
    for rule in rules.deny:
        if rule.anything and rule.tool == function.tool:
            reason = rule.justification or f"the rule {rule.name!r} denies this tool"
            return Verdict(kind="refuse", reason=reason, rule=rule.name, risks=risks)
    doubt = question.resolved.problem or next((risk.sentence for risk in risks if risk.id in ALWAYS_ASKED), None)
    if doubt:
        return Verdict(kind="ask", reason=doubt, risks=risks)
    for grant in memory:
        if grant.revoked_at is None and grant.session_id == question.session_id and _same(grant, question):
            reason = f"approved for this session with call {grant.from_call}"
            return Verdict(kind="allow", reason=reason, grant_id=grant.id, risks=risks)
    return Verdict(kind="ask", reason="the agent's side carries out this tool itself, if you agree", risks=risks)


def _same(grant: Grant, question: Question) -> bool:
    return grant.spec.identity() == question.spec.identity()
