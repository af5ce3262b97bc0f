"""Judging a command without running it, and without losing it where judging itself goes wrong."""

import logging
from collections.abc import Callable, Mapping, Sequence

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.question import Question
from whisper_tui.policy.rules import Rules
from whisper_tui.supervisor.resolve import resolve
from whisper_tui.supervisor.sandboxing import sandbox_problem

_log = logging.getLogger(__name__)


def refused_on_error(judge: Callable[[], tuple[Verdict, Resolved]]) -> tuple[Verdict, Resolved]:
    """What `judge` says. An internal error refuses the command: what is denied may be exactly what was not found out.

    Without this the call would be lost: not in the journal, unseen by any human, and without a sentence for the agent.
    """
    try:
        return judge()
    except WhisperError:
        raise
    except Exception as error:  # noqa: BLE001 whatever it is, the call must not be lost
        _log.exception("judging a command failed")
        reason = (
            f"whisper_tui itself failed while it judged this command ({type(error).__name__}), so it does not run. "
            "Write it in a simpler way; the details are in the supervisor's log"
        )
        return Verdict(kind="refuse", reason=reason), Resolved(problem="it could not be judged")


def judge_alone(
    spec: CommandSpec,
    rules: Rules,
    environment: Mapping[str, str],
    *,
    root: str,
    tool: str = "",
    own: Sequence[str] = (),
    now: float,
) -> tuple[Verdict, Resolved]:
    """The verdict about a command that nobody has submitted, and what its words mean here."""

    def judge() -> tuple[Verdict, Resolved]:
        resolved = resolve(spec, environment, own)
        question = Question(
            session_id="",
            session_root=root,
            spec=spec,
            description="",
            resolved=resolved,
            tool=tool,
            sandbox_problem=sandbox_problem(),
            now=now,
        )
        return evaluate(question, rules, ()), resolved

    return refused_on_error(judge)
