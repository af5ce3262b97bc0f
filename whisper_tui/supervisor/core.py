"""The supervisor: the port, implemented over the journal, the policy and an executor."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

from whisper_tui.model.call import CallRequest, ClientInfo, Session, SessionHello
from whisper_tui.model.decision import Decider, Decision
from whisper_tui.model.errors import InvalidRequest, JournalFailed, NotRunning, Refused
from whisper_tui.model.event import AgentGaveUp, AttemptRefused, Decided, Event, Finished, Resumed, SignalSent, Spawned
from whisper_tui.model.home import Home
from whisper_tui.model.port import Pruned, SupervisorStatus
from whisper_tui.model.run import NO_LIMITS, Limits, SignalTarget
from whisper_tui.model.state import CallRecord, Claim, Ended, Held, Queued, Running, Starting, Unjudged, Waiting
from whisper_tui.policy.rules import NO_RULES, Rule, Rules
from whisper_tui.supervisor.claims import Claims
from whisper_tui.supervisor.desk import Desk
from whisper_tui.supervisor.environments import Environments
from whisper_tui.supervisor.executor import Executor
from whisper_tui.supervisor.functions import Functions
from whisper_tui.supervisor.journal import Journal
from whisper_tui.supervisor.judge import ClientsRules, Judge
from whisper_tui.supervisor.ledger import Ledger
from whisper_tui.supervisor.looking import Looking, run_key
from whisper_tui.supervisor.pausing import Pausing
from whisper_tui.supervisor.pool import Pool
from whisper_tui.supervisor.retention import Retention
from whisper_tui.supervisor.rule_trust import RuleTrust
from whisper_tui.supervisor.sessions import Sessions
from whisper_tui.supervisor.settings import RetentionSettings, SupervisorSettings
from whisper_tui.supervisor.unguarded import Gaps, Unguarded
from whisper_tui.supervisor.waiters import Waiters

RETURN_S = 60.0
"""Seconds that agents have to come back after the supervisor was restarted."""

LOOK_EVERY_S = 5.0
"""Seconds between two looks at the agents that have no connection of their own."""

END_S = 15.0
"""Seconds that a shutdown waits for runs that it was told to end."""


class Supervisor(Looking):
    """One user's supervisor. It owns its state directory; nobody else writes there."""

    def __init__(
        self,
        home: Home,
        executor: Executor,
        *,
        rules: Rules | Callable[[str], Rules] = NO_RULES,
        clients_rules: ClientsRules | None = None,
        gaps: Gaps | None = None,
        keep_rule: Callable[[Rule], None] | None = None,
        settings: SupervisorSettings | None = None,
        limits: Limits = NO_LIMITS,
        retention: RetentionSettings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.rules = rules
        """The rules, or what tells those of a workspace: asked at every judgement, so that a change counts at once."""
        self.stopped = asyncio.Event()
        """Set when somebody asked for a shutdown."""
        state = Path(home.state)
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._clock = clock
        settings = settings or SupervisorSettings()
        super().__init__(home, Ledger(Journal(state / "journal.sqlite")), executor, settings, clock())
        self.rule_trust = RuleTrust(self._ledger, clock)
        """What is trusted of the rules on the disk; for whoever reads them."""
        environments = Environments(state / "environments", os.environ)
        own = [str(directory) for directory in home]
        judge = self._judge = Judge(self._ledger.board, environments, self._rules_now, clock, clients_rules, own=own)
        self._unguarded = Unguarded(gaps, self._ledger.board, environments)
        self._sessions = Sessions(self._ledger, environments, clock)
        self._desk = Desk(self._ledger, judge, clock, keep_rule)
        self._functions = Functions(self._ledger, judge, self._desk.turn_back, clock)
        self._claims = Claims(self._ledger, judge, environments, self._desk.turn_back, clock)
        self._pool = Pool(
            ledger=self._ledger,
            executor=executor,
            judge=judge,
            environments=environments,
            settings=settings,
            limits=limits,
            clock=clock,
            private=tuple(own),
            turn_back=self._desk.turn_back,
            fail=self.stopped.set,
        )
        self._pausing = Pausing(self._ledger, executor, clock)
        self._retention = Retention(state / "runs", retention or RetentionSettings(), self._is_open, clock)
        self._waiters = Waiters()
        self._absence: asyncio.TimerHandle | None = None
        self._presence: asyncio.Task[None] | None = None

    def _rules_now(self, root: str) -> Rules:
        return self.rules if isinstance(self.rules, Rules) else self.rules(root)

    async def open(self) -> None:
        """Take back what runs, judge what was left unjudged, and begin to work."""
        self._ledger.listen(self._notice)
        self.rule_trust.open()
        self._rules_now("")
        if not self._ledger.journal.ended_cleanly:
            self._desk.doubt_approvals()
        for call_id in tuple(self._ledger.board.unjudged):
            self._desk.judge_waiting(self._ledger.call(call_id))
        self._functions.open()
        self._claims.open()
        await self._executor.open()
        await self._pool.open()
        self._pausing.open()
        self._retention.open()
        self._absence = asyncio.get_running_loop().call_later(RETURN_S, self._sessions.close_absent)
        self._presence = asyncio.create_task(self._watch_agents())

    async def close(self) -> None:
        """Stop working. Commands go on under their keepers; everything is taken back at the next start."""
        if self._absence is not None:
            self._absence.cancel()
        if self._presence is not None:
            self._presence.cancel()
        self._unguarded.close()
        await self._retention.close()
        await self._pausing.close()
        await self._pool.close()
        await self._executor.close()
        self._ledger.close()

    def _unguarded_now(self) -> tuple[str, ...]:
        return self._unguarded.sentences()

    async def open_session(self, hello: SessionHello) -> Session:
        """Begin, or resume, an agent's session."""
        return self._sessions.open(hello)

    async def describe_session(self, session_id: str, client: ClientInfo) -> None:
        """Say which program the agent is."""
        self._sessions.describe(session_id, client)
        self._unguarded.look(self._sessions.living(session_id))

    async def say(self, session_id: str, text: str, by: Decider) -> None:
        """Add to the conversation of a session."""
        self._sessions.say(session_id, text, by)

    async def close_session(self, session_id: str, why: str) -> None:
        """End a session. What runs goes on; what waits goes on waiting, marked by its closed session."""
        self._sessions.close(session_id, why)

    async def submit(self, request: CallRequest) -> str:
        """Journal and judge a call."""
        self._sessions.living(request.session_id)
        call_id = self._desk.submit(request, self._pool.at_once)
        await self._pool.give_orders()
        return call_id

    async def decided(self, call_id: str) -> CallRecord:
        """Wait until nobody needs to be asked any more."""
        while isinstance((record := self._ledger.call(call_id)).state, Unjudged | Waiting):
            await self._waiters.wait(call_id)
        return record

    async def claim(self, call_id: str, ticket: str, claim: Claim, names: tuple[str, ...] | None = None) -> CallRecord:
        """Start an approved call for the one who shows its ticket."""
        return self._claims.claim(call_id, ticket, claim, names)

    async def hand_over(self, call_id: str, ticket: str) -> CallRecord:
        """Leave an approved call to its agent."""
        if self._pausing.paused:
            raise Refused("everything is paused", hint="Run the command again once it goes on")
        return self._claims.hand_over(call_id, ticket)

    async def started(self, call_id: str) -> CallRecord:
        """Wait until the call has a process or its ending."""
        while not isinstance((record := self._ledger.call(call_id)).state, Running | Ended):
            await self._waiters.wait(call_id)
        return record

    async def begin_function(self, call_id: str) -> CallRecord:
        """Let the caller carry out its own tool, once that is approved."""
        while self._pausing.paused or (record := self._functions.begin(call_id)) is None:
            await self._waiters.wait(call_id)
        return record

    async def end_function(self, call_id: str, problem: str | None = None) -> None:
        """The caller's own tool is done."""
        self._functions.end(call_id, problem)

    async def outcome(self, call_id: str) -> CallRecord:
        """Wait until the call has its ending."""
        while not isinstance((record := self._ledger.call(call_id)).state, Ended):
            await self._waiters.wait(call_id)
        return record

    async def withdraw(self, call_id: str, why: str, *, stop_running: bool = False) -> None:
        """Withdraw a call that has not started; a running one is stopped if told, and else goes on, marked."""
        record = self._ledger.call(call_id)
        match record.state:
            case Unjudged() | Waiting() | Held() | Queued():
                self._desk.withdraw(record, why)
            case Starting() | Running():
                stopping = stop_running or self._settings.when_agent_cancels == "stop"
                if record.agent_gave_up is None or (stopping and not record.stopping):
                    self._ledger.record(AgentGaveUp(at=self._clock(), call_id=call_id, why=why, stopping=stopping))
                if stopping and record.function is None:
                    await self._pool.end(record)
            case Ended():
                pass

    async def leave(self, call_id: str, why: str) -> None:
        """The agent stops waiting for the answer."""
        self._desk.leave(self._ledger.call(call_id), why)

    def watch(self, after: int | None = None) -> AsyncIterator[tuple[Event, ...]]:
        """Numbered events in batches, endless."""
        return self._ledger.watch(after)

    async def decide(self, call_id: str, decision: Decision, by: Decider, seen: str) -> None:
        """Decide about a waiting call."""
        self._desk.decide(call_id, decision, by, seen)

    async def signal(self, call_id: str, number: int, target: SignalTarget, by: Decider) -> None:
        """Send a signal to a run, or to what it left behind."""
        record = self._ledger.call(call_id)
        if record.process is None or not record.is_open:
            raise NotRunning(f"nothing of call {call_id} is alive", hint="whisper-tui ps lists what is")
        if number not in signal.valid_signals():
            raise InvalidRequest(
                f"there is no signal {number} on this system", hint="kill -l lists those that there are"
            )
        self._ledger.record(SignalSent(at=self._clock(), call_id=call_id, number=number, target=target, by=by))
        await self._executor.signal(run_key(record), number, target)

    async def pause(self, by: Decider) -> None:
        """Hold every run still and start nothing."""
        await self._pausing.pause(by)

    async def resume(self, by: Decider) -> None:
        """Let everything go on."""
        await self._pausing.resume(by)

    async def write_stdin(self, call_id: str, data: bytes, *, eof: bool = False) -> None:
        """Write to the command's standard input or terminal."""
        record = self._ledger.call(call_id)
        if not isinstance(record.state, Running) or not record.takes_input:
            raise NotRunning(f"call {call_id} takes no input", hint="Only a running command that accepts input does")
        await self._executor.write_stdin(run_key(record), data, eof=eof)

    async def resize(self, call_id: str, rows: int, columns: int) -> None:
        """Tell the command's terminal its size."""
        record = self._ledger.call(call_id)
        if isinstance(record.state, Running) and record.spec.tty:
            await self._executor.resize(run_key(record), rows, columns)

    async def revoke(self, grant_id: str, by: Decider) -> None:
        """Forget a remembered approval."""
        self._desk.revoke(grant_id, by)

    async def trust_rules(
        self, path: str, by: Decider, digest: str | None = None, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()
    ) -> None:
        """Let what a file of rules allows hold."""
        self._rules_now("")
        if digest is None:
            self.rule_trust.extend(path, add, remove, by)
        else:
            self.rule_trust.trust_all(path, digest, by)

    async def status(self) -> SupervisorStatus:
        """How the supervisor is."""
        agents = sum(session.closed_at is None for session in self.board.sessions.values())
        told = {"busy": self._pool.workers.sentence, "keeps": self._retention.words, "agents": agents}
        return (await super().status()).model_copy(update=told)

    async def prune(self, *, dry_run: bool = False) -> Pruned:
        """Remove recorded output beyond what the user keeps."""
        return await self._retention.prune(dry_run=dry_run)

    def attempt_refused(self, attempt: AttemptRefused) -> None:
        """Record that somebody who may not decide has tried to."""
        self._ledger.record(attempt)

    def _is_open(self, call_id: str) -> bool:
        """Every call to which anything can still happen is on the board."""
        record = self._ledger.board.calls.get(call_id)
        return record is not None and record.is_open

    async def shutdown(self, *, end_runs: bool = False) -> None:
        """Ask for a stop, after ending what runs if told."""
        if end_runs:
            await self._pool.end_all(within_s=END_S)
        self.stopped.set()

    async def _watch_agents(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            with suppress(JournalFailed):
                self._sessions.close_gone()
                self._rules_now("")  # Who changed them is told of it, also while no call comes.

    def _notice(self, event: Event) -> None:
        if isinstance(event, Resumed):
            self._waiters.wake_all()
        if isinstance(event, Decided | Spawned | Finished):
            self._waiters.wake(event.call_id)
        if isinstance(event, Finished):
            self._judge.note_ending(self._ledger.board.calls[event.call_id])
            self._sessions.tidy(self._ledger.board.calls[event.call_id].call.session_id)
