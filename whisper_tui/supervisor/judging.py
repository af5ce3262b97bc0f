"""Judging a command without running it, as a session in a directory would have it judged."""

from collections.abc import Mapping

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.question import Question
from whisper_tui.policy.rules import Rules
from whisper_tui.supervisor.resolve import resolve


def judge_alone(
    spec: CommandSpec, rules: Rules, environment: Mapping[str, str], *, root: str, tool: str = "", now: float
) -> tuple[Verdict, Resolved]:
    """The verdict about a command that nobody has submitted, and what its words mean here."""
    resolved = resolve(spec, environment)
    question = Question(
        session_id="", session_root=root, spec=spec, description="", resolved=resolved, tool=tool, now=now
    )
    return evaluate(question, rules, ()), resolved
