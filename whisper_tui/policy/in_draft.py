"""The verdict on a call of a session with a draft: its command runs there unasked, and a human is asked about the rest.

Whatever lets a command run, it runs in the draft: its agent has to find its own changes (decision 44).
"""

from whisper_tui.model.call import FileEdits, Function
from whisper_tui.model.verdict import DRAFT_RULE, HELD_BACK_RULE, IN_DRAFT, PreviewCondition, UndoPlan, Verdict
from whisper_tui.policy.can_be_held_back import not_held_back
from whisper_tui.policy.evaluate import may_be_denied
from whisper_tui.policy.rules.rule import EVERYTHING, Rules
from whisper_tui.policy.view import Question, view

NOT_IN_DRAFT = (
    "this session is a draft: its commands change a private view of the files, which this would pass by. "
    "Use a command of the supervised shell instead, or ask the human to end the draft"
)
_ANYTHING = PreviewCondition(writes_within=(EVERYTHING,), deletes=2**40, exit_code=None)
"""The permission of a command in a draft: whatever stays there. None of it is real."""
_UNDECIDED: dict[str, object] = {
    "kind": "ask",
    "rule": None,
    "grant_id": None,
    "sandbox": None,
    "preview": None,
    "allow_if_preview": (),
    "held_back": False,
}


def verdict_in_draft(question: Question, rules: Rules, verdict: Verdict) -> Verdict:
    """Return the verdict on a call of a session with a draft, from that on the same call without one."""
    if verdict.kind == "refuse":
        return verdict
    command = question.spec.command
    if isinstance(command, FileEdits) or question.by_agent or question.own_shell:
        return verdict.model_copy(update={**_UNDECIDED, "kind": "refuse", "reason": NOT_IN_DRAFT, "undo": None})
    if isinstance(command, Function) or question.spec.place:
        where = f"at {question.spec.place}" if question.spec.place else "by its agent"
        if verdict.kind == "ask" or (isinstance(command, Function) and command.about in {"web", "subagent"}):
            return verdict
        reason = f"it is carried out {where}, not in the draft of its session"
        return verdict.model_copy(update={**_UNDECIDED, "reason": reason})
    undecided = {**_UNDECIDED, "undo": UndoPlan(how="none", why=IN_DRAFT)}
    if verdict.kind == "ask" and verdict.rule not in {None, HELD_BACK_RULE}:
        return verdict.model_copy(update={**undecided, "rule": verdict.rule})
    seen = view(command)
    doubt = rules.broken or may_be_denied(question, rules, seen) or not_held_back(question, seen, verdict.risks)
    if doubt:
        return verdict.model_copy(update={**undecided, "reason": f"it leaves the draft of its session: {doubt}"})
    held = {"rule": DRAFT_RULE, "preview": "always", "allow_if_preview": (_ANYTHING,), "held_back": True}
    return verdict.model_copy(update={**undecided, **held})
