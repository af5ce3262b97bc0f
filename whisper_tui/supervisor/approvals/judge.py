"""Judgement of calls: examines a command where it would run, and asks the policy for a verdict."""

import asyncio
import logging
import shlex
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TypeVar
from weakref import WeakValueDictionary

from whisper_tui.model.board import Board
from whisper_tui.model.call import (
    CallRequest,
    CarriedOut,
    CommandSpec,
    Function,
    Session,
    Shell,
    ToolCall,
    UnaskedLevel,
)
from whisper_tui.model.decision import Grant, SessionDenial, beginnings
from whisper_tui.model.errors import Refused, Unavailable, WhisperError
from whisper_tui.model.event import Judged
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import OwnShell, Resolved, UndoPlan, Verdict
from whisper_tui.policy.evaluate import evaluate, undo_plan
from whisper_tui.policy.in_draft import verdict_in_draft
from whisper_tui.policy.risks.call_risks import PAST_HOOK
from whisper_tui.policy.rules.matching import place_by_rule, reaches
from whisper_tui.policy.rules.rule import Rule, Rules, UndoneBy, stricter
from whisper_tui.policy.tool_calls import evaluate_carried_out
from whisper_tui.policy.view import CommandView, Question, view
from whisper_tui.supervisor.approvals.command_files import changed_files, changes_shell, what_changed
from whisper_tui.supervisor.approvals.resolve import Examined, Looked, found_code, resolve, with_code
from whisper_tui.supervisor.approvals.session_grants import GrantIndex
from whisper_tui.supervisor.places.place_files import AskedPlace, FarUser, examine_at
from whisper_tui.supervisor.places.place_settings import Placement
from whisper_tui.supervisor.runs.sandbox_profile import sandbox_problem
from whisper_tui.supervisor.runs.sandboxed_docker import docker_problem
from whisper_tui.supervisor.sessions import Environments

_log = logging.getLogger(__name__)
T = TypeVar("T")


def refused_on_error(judge: Callable[[], tuple[Verdict, Resolved]]) -> tuple[Verdict, Resolved]:
    """Return the verdict of `judge`, or after an internal error a refusal: fail closed (decision 1).

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
    examined: Looked = None,
    cwd_here: str = "",
) -> tuple[Verdict, Resolved]:
    """Return the verdict about a command that was not submitted, and its resolution.

    `examined`: what was found of it at its place. None: it is examined now. `cwd_here`: what its directory stands for.
    """

    def judge() -> tuple[Verdict, Resolved]:
        found = examined() if examined is not None else None
        resolved = found.resolved if found is not None else resolve(spec, environment, own, root=root)
        question = Question(
            session_id="",
            session_root=root,
            spec=spec,
            description="",
            resolved=resolved,
            tool=tool,
            sandbox_problem=sandbox_problem(),
            docker_problem=_docker_problem(spec, environment),
            cwd_here=cwd_here,
            home=(found.home or "") if found is not None else "",
            now=now,
        )
        found = found or Examined(resolved, found_code(resolved, spec, root, environment))
        return with_code(evaluate(question, rules, ()), found)

    return refused_on_error(judge)


def _docker_problem(spec: CommandSpec, environment: Mapping[str, str]) -> str:
    """Return why no sandbox answers the docker of a command. Empty: it does, or the command runs none."""
    return docker_problem(environment) if "docker" in view(spec.command).names else ""


BLOCKED_KEPT = 1000
"""Limit of commands that are remembered because their sandbox blocked something."""

KILLED = "the supervisor was killed meanwhile, or its journal was changed, so a recorded approval no longer counts"
"""The reason to ask again about an approved call that had not started when the supervisor was killed."""

ClientsRules = Callable[[Session, Mapping[str, str]], Rules]
"""Returns, for a session and its environment, the stricter rules of its agent client's own configuration."""


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
        own: Iterable[str | PurePath] = (),
        undo: UndoneBy = "severe",
        placement: Placement | None = None,
        lost_denial: Callable[[str], str | None] = lambda session_id: None,
    ) -> None:
        """`own`: whisper_tui's directories, which no command may read without approval.

        `undo`: the commands whose changes are kept. `lost_denial`: returns why a denial of a session may be missing.
        """
        self.placement = placement or Placement()
        self._undo: UndoneBy = undo
        self.has_draft: Callable[[str], bool] = lambda session_id: False
        """True for the id of a session whose commands run in a draft."""
        self.view_problem: Callable[[], str] = lambda: ""
        """Returns why no command can run in a view of the files here, as a clause. Empty: one can, as far as known."""
        self._board = board
        self._lost_denial = lost_denial
        self._environments = environments
        self._rules = rules
        self._clients_rules = clients_rules
        self._clock = clock
        self._own = tuple(map(str, own))
        self._remembered = GrantIndex(board)
        self._sandbox_problem = sandbox_problem()
        self._blocked: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Sessions and commands whose sandbox blocked something, newest last."""
        for call_id in board.settled:
            self.note_ending(board.calls[call_id])

    def remember(self, grant: Grant) -> None:
        """Take a standing approval into account from now on."""
        self._remembered.add(grant, self._clock())

    def note_ending(self, record: CallRecord) -> None:
        """Remember a command whose sandbox blocked something, so that a human is asked the next time."""
        if not record.failed_in_sandbox:
            return
        self._blocked[record.call.session_id, record.spec.identity()] = None
        # At worst the sandbox stops the oldest of these commands once more.
        if len(self._blocked) > BLOCKED_KEPT:
            self._blocked.popitem(last=False)

    def placed(self, request: CallRequest) -> CallRequest:
        """Return a request with the place where its command runs. Raises `Refused`."""
        session = self._board.sessions.get(request.session_id)
        if session is None:
            return request

        def by_rule() -> str:
            question = Question(
                session_id=session.id,
                session_root=session.root,
                spec=request.spec,
                description=request.description,
                resolved=Resolved(),
                tool=request.tool,
                trust=session.trust,
                now=self._clock(),
            )
            return place_by_rule(question, self._rules(session.root))

        return self.placement.placed(request, session, by_rule)

    def examination(self, session_id: str, spec: CommandSpec, *, code: bool = True) -> Callable[[], Examined]:
        """Return a function that reads from the disk all that judging a command needs, and that any thread may call.

        `code`: also that of its scripts, which a human is shown.
        """
        session = self._board.sessions.get(session_id)
        root, environment = self._root(session, spec), dict(self._environments.of(session_id))
        given = OwnShell(program=session.shell if session else "", profile=self._environments.profile_of(session_id))
        # The agent's own shell, and what its profile defines, are on this machine.
        shell = None if given == OwnShell() or spec.place else given

        def examine() -> Examined:
            resolved = resolve(spec, environment, self._own, root=root, shell=shell)
            found = found_code(resolved, spec, root, environment) if code else ()
            return Examined(resolved, found, docker_problem=_docker_problem(spec, environment))

        return examine

    def examination_there(
        self, session_id: str, spec: CommandSpec, root: str | None = None
    ) -> Callable[[FarUser], Examined]:
        """Return a function that examines a command with the files and the login environment of its place.

        `root`: the workspace there. None: that of the session.
        """
        root = self._root(self._board.sessions.get(session_id), spec) if root is None else root

        def examine(user: FarUser) -> Examined:
            own = self.placement.own_there(spec.place, user.home, user.environment)
            resolved = resolve(spec, user.environment, own, root=root)
            return Examined(resolved, found_code(resolved, spec, root, user.environment), user.home)

        return examine

    def _known(self, call: ToolCall, spec: CommandSpec) -> Examined:
        """Return what was last known of a command at a place: it is examined there before it starts."""
        record = self._board.calls.get(call.id)
        if record is not None and record.resolved is not None and record.spec == spec:
            return Examined(record.resolved)
        return unknown_there(f"nobody has looked at {spec.place} yet")

    def reads_little(self, session_id: str, spec: CommandSpec) -> bool:
        """True if the examination of a command reads nothing but the workspace's own directory.

        The workspace's rules are read from there at each judgement, so that this delays nobody more.
        """
        session = self._board.sessions.get(session_id)
        return isinstance(spec.command, Function) and session is not None and spec.cwd == session.root

    def judge(
        self,
        call: ToolCall,
        spec: CommandSpec,
        *,
        used: str | None = None,
        examined: Looked = None,
    ) -> Judged:
        """The verdict about a command of a call, as a fact that is yet to be recorded.

        `used` is the standing approval that has let this very call through: its own use does not count against it.
        `examined` returns what was found on the disk a moment ago, if that was already read. The event loop cannot
        read the disk of a place: without it, such a command is taken for what it was when it was examined.
        """
        here = partial(self._known, call, spec) if spec.place else self.examination(call.session_id, spec)
        examine = examined or here
        verdict, resolved = refused_on_error(lambda: self._verdict(call, spec, used, examine()))
        return Judged(at=self._clock(), call_id=call.id, verdict=verdict, resolved=resolved)

    def _verdict(
        self, call: ToolCall, spec: CommandSpec, used: str | None, examined: Examined
    ) -> tuple[Verdict, Resolved]:
        session, resolved = self._board.sessions.get(call.session_id), examined.resolved
        root = session.root_here if session else ""
        question = Question(
            session_id=call.session_id,
            session_root=self._root(session, spec),
            spec=spec,
            description=call.description,
            resolved=resolved,
            tool=call.tool,
            own_shell=call.ticket is not None,
            cwd_here=self.placement.here(spec.place, spec.cwd, root) if spec.place else "",
            place_problem=self.placement.problem(spec.place),
            by_agent=call.by_agent,
            trust=session.trust if session else "untrusted_external",
            sandbox_problem=self._sandbox_problem,
            docker_problem=examined.docker_problem,
            home=examined.home or self._environments.of(call.session_id).get("HOME", ""),
            was_blocked=bool(self._blocked) and (call.session_id, spec.identity()) in self._blocked,
            in_draft=self.has_draft(call.session_id),
            now=self._clock(),
        )
        memory = self._memory(call.session_id, spec, used)
        rules = self.rules_of(call.session_id)
        if session is not None and not session.relayed and self._clients_rules is not None:
            # A client's own rules can only restrict: its allow list was not written for this program (decision 10).
            rules = stricter(rules, self._clients_rules(session, self._environments.of(session.id)))
        if isinstance(spec.command, CarriedOut):
            verdict = evaluate_carried_out(question, spec.command, rules, memory)
        else:
            verdict = evaluate(question, rules, memory)
        if question.in_draft:
            verdict = verdict_in_draft(question, rules, verdict)
        verdict, resolved = with_code(self._unless_denied(call.session_id, spec, verdict, resolved), examined)
        if call.past_hook:
            verdict = verdict.model_copy(update={"risks": (PAST_HOOK, *verdict.risks)})
        if isinstance(spec.command, CarriedOut) or question.in_draft:
            return verdict, resolved
        # The last of all: the code of scripts counts as well.
        plan = undo_plan(replace(question, resolved=resolved), rules, verdict, self._undo)
        if plan is not None and plan.how == "view" and (problem := self.view_problem()):
            # Before the approval: who was promised an undo would be asked a second time.
            plan = UndoPlan(how="none", why=f"no view of the files can be made here: {problem}")
        return verdict.model_copy(update={"undo": plan}), resolved

    def rules_of(self, session_id: str) -> Rules:
        """Return the rules of a session, with as much running unasked as a human has said of it."""
        session = self._board.sessions.get(session_id)
        rules = self._rules(session.root_here if session is not None else "")
        level = self._board.unasked_in(session_id, self._clock())
        return rules.at(level.level) if level is not None else rules

    def levels(self) -> dict[str, UnaskedLevel]:
        """Return how much runs unasked now, by the ids of open sessions for which it is said, and by "" in others."""
        now, levels = self._clock(), dict[str, UnaskedLevel]()
        sessions = (session for session in self._board.sessions.values() if session.closed_at is None)
        for session_id in ("", *(session.id for session in sessions if session.unasked and session.unasked.holds(now))):
            said = self._board.unasked_in(session_id, now)
            until = said.until if said is not None else None
            levels[session_id] = UnaskedLevel(level=self.rules_of(session_id).level, until=until)
        return levels

    def _root(self, session: Session | None, spec: CommandSpec) -> str:
        """Return the workspace of a session where a command runs."""
        root = session.root if session is not None else ""
        if session is not None and session.relayed:
            return root
        return self.placement.there(spec.place, root, root) if spec.place else root

    def _unless_denied(self, session_id: str, spec: CommandSpec, verdict: Verdict, resolved: Resolved) -> Verdict:
        """Return the verdict, or the refusal by a session denial, which beats all that allows or asks (decision 11)."""
        if verdict.kind == "refuse":
            return verdict
        denial = self._denial_of(session_id, spec, verdict, resolved)
        if denial is None:
            doubt = self._lost_denial(session_id)
            return verdict if doubt is None else _doubted(verdict, doubt)
        reason = f"the human denied {shlex.join(denial.words)!r} for this session"
        refused = {"kind": "refuse", "reason": reason, "rule": None, "grant_id": None, "sandbox": None}
        return verdict.model_copy(update={**refused, "denial_id": denial.id})

    def _denial_of(
        self, session_id: str, spec: CommandSpec, verdict: Verdict, resolved: Resolved
    ) -> SessionDenial | None:
        denials = self._board.denials_of(session_id)
        if not denials:
            return None
        begins = tuple(beginnings(spec.command, verdict, resolved))
        # Words that expansions lead to are denied like words that are written out (decision 29).
        begins += tuple(each.argv for each in view(Shell(text=resolved.literal or "")).plain or ())
        seen = view(spec.command)
        return next((each for each in denials if each.matches(begins) or _reaches(each, spec, seen)), None)

    def _memory(self, session_id: str, spec: CommandSpec, used: str | None) -> list[Grant]:
        """Return the standing approvals that may cover a command; `used` as it was before its use."""
        known = {grant.id: grant for grant in self._remembered.about(session_id, spec, self._clock())}
        # Its only use was spent on this very call, which must not revoke it.
        own = self._board.grants.get(used) if used is not None else None
        if own is not None:
            known[own.id] = own.model_copy(update={"uses": own.uses - 1}) if own.uses else own
        return list(known.values())

    def judge_again(self, record: CallRecord, examined: Looked = None) -> Judged | None:
        """Look once more before the start. None: it may start as it was decided.

        `examined` returns what was found at the place where it runs; on this machine it is looked up here.

        A command whose meaning has changed since is asked again, and so is one whose rule or remembered
        approval no longer holds. A human's approval of the same command stands, unless a rule denies it by now, and
        unless a program or script of it is another file: rules and memory are about words, a human may have read it.
        """
        again = self._unlike_before(record, examined)
        if again is None or record.spec.place:
            return again
        session, environment = self._board.sessions.get(record.call.session_id), self._environments
        root, variables = self._root(session, record.spec), environment.of(record.call.session_id)
        found = Examined(again.resolved, found_code(again.resolved, record.spec, root, variables))
        verdict, resolved = with_code(again.verdict, found)
        return again.model_copy(update={"verdict": verdict, "resolved": resolved})

    def _unlike_before(self, record: CallRecord, there: Looked) -> Judged | None:
        """Return the second judgement if the call must not start by the first one, without the code of its scripts."""
        used = record.decided_by.who if record.decided_by and record.decided_by.surface == "memory" else None
        # On the event loop, before each start, nothing is read that decides nothing.
        here = None if record.spec.place else self.examination(record.call.session_id, record.spec, code=False)
        again = self.judge(record.call, record.spec, used=used, examined=there or here)
        # A rule that denies now outranks even a human's earlier approval.
        if again.verdict.kind == "refuse":
            return again
        by_human = record.decided_by_human
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
        if again.verdict.kind == "ask" and not by_human and not _permits_effects(record, again.verdict):
            reason = f"what allowed it no longer holds: {again.verdict.reason}"
            return again.model_copy(update={"verdict": _asked(again.verdict, reason)})
        return None

    def judge_after_kill(self, record: CallRecord, examined: Looked = None) -> Judged | None:
        """Look at an approved call whose supervisor was killed before it started. None: a rule lets it start anyway.

        The journal may have been written by anybody since. What a rule decided can be decided again; a human's word
        cannot be told from a forged one.
        """
        if record.decided_by is not None and record.decided_by.surface == "rule":
            again = self.judge_again(record, examined)
            if again is None or again.verdict.kind == "ask":
                return again
        else:
            again = self.judge(record.call, record.spec, examined=examined)
        return again.model_copy(update={"verdict": _asked(again.verdict, KILLED)})


UNKNOWN_THERE = "so what would run there is unknown"


def _reaches(denial: SessionDenial, spec: CommandSpec, seen: CommandView) -> bool:
    """True if a command begins with the denied words as the policy reads it, wherever it has further options."""
    return reaches(Rule(name=denial.id, prefix=denial.words), spec.command, seen)


def unknown_there(why: str) -> Examined:
    """Return the examination of a command at a place that has not answered."""
    return Examined(Resolved(problem=f"{why}, {UNKNOWN_THERE}"))


def is_unknown(resolved: Resolved | None) -> bool:
    """True if a command was judged while its place did not answer."""
    return resolved is not None and (resolved.problem or "").endswith(UNKNOWN_THERE)


def check_known(resolved: Resolved | None) -> None:
    """Raise `Refused` if an approval is to be remembered for a command of which nobody knows what it would run."""
    if is_unknown(resolved):
        raise Refused("what would run there is unknown, so its approval cannot be remembered", hint="Approve it once")


EXAMINERS = 8
"""Commands of different sessions that are examined at the same time."""


SUBMIT_AGAIN = "Submit the call again: nothing was recorded"


class Examinations:
    """Examines commands in threads, those of a session one after the other, so that none overtakes another.

    A slow disk, a large script or a long text holds up the session that has submitted it, and no other (decision 15).
    """

    def __init__(self, judge: Judge, places: Callable[[str], AskedPlace]) -> None:
        """`places`: returns the connection to a place. Raises `Unavailable`."""
        self.judge = judge
        self._places = places
        # Threads of its own: where a disk does not answer, all other work in threads goes on.
        self._threads = ThreadPoolExecutor(EXAMINERS, thread_name_prefix="examine")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def close(self) -> None:
        """Examine nothing more. A thread that waits for a disk ends later."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @asynccontextmanager
    async def of(self, session_id: str, spec: CommandSpec) -> AsyncIterator[Callable[[], Examined]]:
        """Examine a command when it is its turn; the next one of its session is examined afterwards."""
        turn = self._turns.get(session_id)
        if turn is None:
            turn = self._turns[session_id] = asyncio.Lock()
        async with turn:
            if spec.place:
                yield await self._there_or_unknown(session_id, spec)
                return
            examine = self.judge.examination(session_id, spec)
            if self.judge.reads_little(session_id, spec):
                yield examine
                return
            try:
                examined = asyncio.get_running_loop().run_in_executor(self._threads, examine)
            except RuntimeError:
                # Its turn came after the end of the threads, which say so in no other way.
                raise Unavailable("the supervisor is stopping", hint=SUBMIT_AGAIN) from None
            # The error of an examination is one of the judgement, which refuses the call.
            await asyncio.wait([examined])
            yield examined.result

    async def there(self, session_id: str, spec: CommandSpec, root: str | None = None) -> Callable[[], Examined]:
        """Examine a command at its place. Raises `Unavailable` if the place does not answer."""
        try:
            found = await self.look_at(spec.place, self.judge.examination_there(session_id, spec, root), spec.cwd)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001  as above: it is one of the judgement
            return partial(_raise, error)
        return lambda: found

    async def of_text(self, text: str, root: str, place: str) -> tuple[CommandSpec, Callable[[], Examined]]:
        """Examine at a place a command that nobody has submitted. Raises `Refused` if there is no such place."""
        placement = self.judge.placement
        there = placement.known(place)
        spec = CommandSpec(command=Shell(text=text), cwd=placement.there(there, root, root), place=there)
        return spec, await self._there_or_unknown("", spec, spec.cwd)

    async def look_at(self, place: str, look: Callable[[FarUser], T], directory: str) -> T:
        """Return what a function finds in the files of a place, mostly in one directory. Raises `Unavailable`."""
        try:
            return await examine_at(self._places(place), look, self._threads, (directory,))
        except RuntimeError:
            raise Unavailable("the supervisor is stopping", hint=SUBMIT_AGAIN) from None

    async def _there_or_unknown(
        self, session_id: str, spec: CommandSpec, root: str | None = None
    ) -> Callable[[], Examined]:
        try:
            return await self.there(session_id, spec, root)
        except Unavailable as error:
            return partial(unknown_there, error.message)


def _raise(error: Exception) -> Examined:
    raise error


def _doubted(verdict: Verdict, doubt: str) -> Verdict:
    """Return a verdict that asks if a rule would have let the call run. What the human has approved since stands."""
    if verdict.kind == "ask":
        reason = f"{verdict.reason}; besides, {doubt}"
        return verdict.model_copy(update={"reason": reason, "allow_if_preview": (), "held_back": False})
    return verdict if verdict.grant_id is not None else _asked(verdict, doubt)


def _permits_effects(record: CallRecord, verdict: Verdict) -> bool:
    """True if a rule had the changes of a preview made real, and still permits just such changes (decision 12)."""
    before = record.verdict.allow_if_preview if record.verdict is not None else ()
    return record.applies and bool(before) and verdict.allow_if_preview == before


def _means_another(before: Resolved, now: Resolved, *, by_human: bool) -> bool:
    """True if a command would start another program or file now than when it was approved (decision 11)."""
    ignored: dict[str, object] = {"files": {}, "contents": {}, "places": (), "helpers": (), "code": (), "literal": None}
    ignored |= {"literal_places": (), "own_shell": None}
    # Without a human's approval it runs in no shell of the agent.
    if by_human and changes_shell(before, now):
        return True
    if by_human:
        ignored |= {"repository": None, "git_is_neutral": False}
    return before.model_copy(update=ignored) != now.model_copy(update=ignored)


def _asked(verdict: Verdict, reason: str) -> Verdict:
    decided = {"rule": None, "grant_id": None, "denial_id": None}
    return verdict.model_copy(update={"kind": "ask", "reason": reason, **decided})
