"""Looking at a call: what its words mean here and now, and what the policy says about it."""

from collections.abc import Callable

from whisper_tui.model.board import Board
from whisper_tui.model.call import ToolCall
from whisper_tui.model.command import CommandSpec, Function
from whisper_tui.model.decision import Grant
from whisper_tui.model.event import Judged
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import Verdict
from whisper_tui.policy.evaluate import Question, evaluate
from whisper_tui.policy.functions import evaluate_function
from whisper_tui.policy.rules import Rules
from whisper_tui.supervisor.environments import Environments
from whisper_tui.supervisor.resolve import resolve


class Judge:
    """Evaluates calls against the rules of the user and the memory of the session."""

    def __init__(
        self, board: Board, environments: Environments, rules: Callable[[], Rules], clock: Callable[[], float]
    ) -> None:
        self._board = board
        self._environments = environments
        self._rules = rules
        self._clock = clock
        self._grants: dict[str, dict[str, list[str]]] = {}
        """Ids of remembered approvals by session and by what they cover."""

    def remember(self, grant: Grant) -> None:
        """Take a remembered approval into account from now on."""
        self._grants.setdefault(grant.session_id, {}).setdefault(grant.spec.identity(), []).append(grant.id)

    def judge(self, call: ToolCall, spec: CommandSpec) -> Judged:
        """The verdict about a command of a call, as a fact that is yet to be recorded."""
        session = self._board.sessions.get(call.session_id)
        resolved = resolve(spec, self._environments.of(call.session_id))
        question = Question(
            session_id=call.session_id,
            session_root=session.root if session else "",
            spec=spec,
            description=call.description,
            resolved=resolved,
        )
        covering = self._grants.get(call.session_id, {}).get(spec.identity(), ())
        memory = [self._board.grants[grant_id] for grant_id in covering if grant_id in self._board.grants]
        if isinstance(spec.command, Function):
            verdict = evaluate_function(question, spec.command, self._rules(), memory)
        else:
            verdict = evaluate(question, self._rules(), memory)
        return Judged(at=self._clock(), call_id=call.id, verdict=verdict, resolved=resolved)

    def judge_again(self, record: CallRecord) -> Judged | None:
        """Look once more before the start. None: it may start as it was decided.

        A command whose meaning has changed since is asked again, and so is one whose rule or remembered
        approval no longer holds. A human's approval of the same command stands, unless a rule denies it by now.
        """
        again = self.judge(record.call, record.spec)
        if again.verdict.kind == "refuse":
            return again
        if again.resolved != record.resolved:
            reason = "what it would start has changed since it was approved"
            return again.model_copy(update={"verdict": _asked(again.verdict, reason)})
        by_human = record.decided_by is not None and record.decided_by.surface not in {"rule", "memory"}
        if again.verdict.kind == "ask" and not by_human:
            reason = f"what allowed it no longer holds: {again.verdict.reason}"
            return again.model_copy(update={"verdict": _asked(again.verdict, reason)})
        return None


def _asked(verdict: Verdict, reason: str) -> Verdict:
    return verdict.model_copy(update={"kind": "ask", "reason": reason, "rule": None, "grant_id": None})
