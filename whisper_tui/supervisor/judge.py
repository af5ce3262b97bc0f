"""Looking at a call: what its words mean here and now, and what the policy says about it."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from whisper_tui.model.board import Board
from whisper_tui.model.call import Session, ToolCall
from whisper_tui.model.command import CommandSpec, Function
from whisper_tui.model.decision import Grant
from whisper_tui.model.event import Judged
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.functions import evaluate_function
from whisper_tui.policy.question import Question
from whisper_tui.policy.rules import Rules, stricter
from whisper_tui.supervisor.environments import Environments
from whisper_tui.supervisor.files_behind import changed_files, what_changed
from whisper_tui.supervisor.judging import refused_on_error
from whisper_tui.supervisor.remembered import Remembered
from whisper_tui.supervisor.resolve import resolve
from whisper_tui.supervisor.sandboxing import sandbox_problem

BLOCKED_KEPT = 1000
"""How many commands that a sandbox has kept from something are remembered."""

KILLED = "the supervisor was killed meanwhile, or its journal was changed, and then a recorded approval starts nothing"
"""Why a call is asked about again that was approved and had not started."""

ClientsRules = Callable[[Session, Mapping[str, str]], Rules]
"""What the agent client of a session, with this environment, denies or wants to be asked by itself."""


class Judge:
    """Evaluates calls against the rules of the user and the memory of the session."""

    def __init__(
        self,
        board: Board,
        environments: Environments,
        rules: Callable[[str], Rules],
        clock: Callable[[], float],
        clients_rules: ClientsRules | None = None,
        *,
        own: Sequence[str] = (),
    ) -> None:
        """`own`: whisper_tui's directories, which no command looks into unasked."""
        self._board = board
        self._environments = environments
        self._rules = rules
        self._clients_rules = clients_rules
        self._clock = clock
        self._own = tuple(own)
        self._remembered = Remembered(board)
        self._sandbox_problem = sandbox_problem()
        self._blocked: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Sessions and commands that a sandbox has kept from something, newest last."""
        for call_id in board.settled:
            self.note_ending(board.calls[call_id])

    def remember(self, grant: Grant) -> None:
        """Take a remembered approval into account from now on."""
        self._remembered.add(grant, self._clock())

    def note_ending(self, record: CallRecord) -> None:
        """Remember a command that its sandbox has kept from something: next time a human is asked about it."""
        if not record.failed_in_sandbox:
            return
        self._blocked[record.call.session_id, record.spec.identity()] = None
        if len(self._blocked) > BLOCKED_KEPT:
            self._blocked.popitem(last=False)

    def judge(self, call: ToolCall, spec: CommandSpec, *, used: str | None = None) -> Judged:
        """The verdict about a command of a call, as a fact that is yet to be recorded.

        `used` is the remembered approval that has let this very call through: its own use does not count against it.
        """
        verdict, resolved = refused_on_error(lambda: self._verdict(call, spec, used))
        return Judged(at=self._clock(), call_id=call.id, verdict=verdict, resolved=resolved)

    def _verdict(self, call: ToolCall, spec: CommandSpec, used: str | None) -> tuple[Verdict, Resolved]:
        session = self._board.sessions.get(call.session_id)
        resolved = resolve(spec, self._environments.of(call.session_id), self._own)
        question = Question(
            session_id=call.session_id,
            session_root=session.root if session else "",
            spec=spec,
            description=call.description,
            resolved=resolved,
            tool=call.tool,
            own_shell=call.ticket is not None,
            trust=session.trust if session else "untrusted_external",
            sandbox_problem=self._sandbox_problem,
            was_blocked=(call.session_id, spec.identity()) in self._blocked,
            now=self._clock(),
        )
        memory = self._memory(call.session_id, spec, used)
        rules = self._rules(question.session_root)
        if session is not None and self._clients_rules is not None:
            rules = stricter(rules, self._clients_rules(session, self._environments.of(session.id)))
        if isinstance(spec.command, Function):
            return evaluate_function(question, spec.command, rules, memory), resolved
        return evaluate(question, rules, memory), resolved

    def _memory(self, session_id: str, spec: CommandSpec, used: str | None) -> list[Grant]:
        """The remembered approvals that may be about a command, with the used one as it was before that."""
        known = {grant.id: grant for grant in self._remembered.about(session_id, spec, self._clock())}
        own = self._board.grants.get(used) if used is not None else None
        if own is not None:
            known[own.id] = own.model_copy(update={"uses": own.uses - 1}) if own.uses else own
        return list(known.values())

    def judge_again(self, record: CallRecord) -> Judged | None:
        """Look once more before the start. None: it may start as it was decided.

        A command whose meaning has changed since is asked again, and so is one whose rule or remembered
        approval no longer holds. A human's approval of the same command stands, unless a rule denies it by now, and
        unless a program or script of it is another file: rules and memory are about words, a human may have read it.
        """
        used = record.decided_by.who if record.decided_by and record.decided_by.surface == "memory" else None
        again = self.judge(record.call, record.spec, used=used)
        if again.verdict.kind == "refuse":
            return again
        by_human = record.decided_by is not None and record.decided_by.surface not in {"rule", "memory"}
        before = record.resolved or Resolved()
        if _means_another(before, again.resolved, by_human=by_human) or (
            by_human and any(changed_files(before, again.resolved))
        ):
            changed = what_changed(before, again.resolved)
            reason = f"what it would start has changed since it was approved: {changed}"
            return again.model_copy(update={"verdict": _asked(again.verdict, reason)})
        if not by_human and again.verdict.kind == "allow" and again.verdict.sandbox != record.sandbox:
            reason = "the rule that allowed it now says something else about its sandbox"
            return again.model_copy(update={"verdict": _asked(again.verdict, reason)})
        if again.verdict.kind == "ask" and not by_human:
            reason = f"what allowed it no longer holds: {again.verdict.reason}"
            return again.model_copy(update={"verdict": _asked(again.verdict, reason)})
        return None

    def judge_after_kill(self, record: CallRecord) -> Judged | None:
        """Look at an approved call whose supervisor was killed before it started. None: a rule lets it start anyway.

        The journal may have been written by anybody since. What a rule decided can be decided again; a human's word
        cannot be told from a forged one.
        """
        if record.decided_by is not None and record.decided_by.surface == "rule":
            again = self.judge_again(record)
            if again is None or again.verdict.kind == "ask":
                return again
        else:
            again = self.judge(record.call, record.spec)
        return again.model_copy(update={"verdict": _asked(again.verdict, KILLED)})


def _means_another(before: Resolved, now: Resolved, *, by_human: bool) -> bool:
    """Where links lead is judged anew with the rest; the repository only matters to a git that looks unasked."""
    ignored: dict[str, object] = {"files": {}, "contents": {}, "places": (), "helpers": ()}
    if by_human:
        ignored |= {"repository": None, "git_is_neutral": False}
    return before.model_copy(update=ignored) != now.model_copy(update=ignored)


def _asked(verdict: Verdict, reason: str) -> Verdict:
    return verdict.model_copy(update={"kind": "ask", "reason": reason, "rule": None, "grant_id": None})
