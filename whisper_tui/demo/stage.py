"""A supervisor in memory, without processes: it answers the port by playing events."""

import asyncio
from collections.abc import AsyncIterator

from whisper_tui.demo.stage_looking import StageLooking
from whisper_tui.demo.stage_sessions import StageSessions
from whisper_tui.model.call import CallRequest
from whisper_tui.model.decision import Approve, Decider, Decision, Deny, Grant
from whisper_tui.model.ending import Denied, HandedOver, Signalled, Withdrawn
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, InvalidRequest, NotRunning, Refused
from whisper_tui.model.event import (
    AgentGaveUp,
    Claimed,
    Decided,
    Event,
    Finished,
    Granted,
    GrantRevoked,
    Paused,
    Resumed,
    RulesChanged,
    SignalSent,
)
from whisper_tui.model.port import Pruned, Supervision
from whisper_tui.model.run import SignalTarget, TerminalSize
from whisper_tui.model.state import CallRecord, Claim, Ended, Held, Queued, Running, Starting, Waiting

BATCH = 1000
"""Events handed out at once."""
DEADLY = frozenset({1, 2, 3, 9, 15})
"""Signals that a command on the stage dies of."""


class Stage(StageSessions, StageLooking, Supervision):
    """Implements `Supervision`. An approved command is started at once and runs until somebody finishes it."""

    async def submit(self, request: CallRequest) -> str:
        """Hand in a call; it is always asked."""
        self.check()
        return self.ask(request)

    async def decided(self, call_id: str) -> CallRecord:
        """Wait until nobody needs to be asked any more."""
        return await self._reached(call_id, (Held, Queued, Starting, Running, Ended))

    async def claim(self, call_id: str, ticket: str, claim: Claim, names: tuple[str, ...] | None = None) -> CallRecord:
        """Whoever shows a ticket on the stage has the command started."""
        self.check()
        self.happen(Claimed(at=self.clock(), call_id=call_id, claim=claim))
        self.start(call_id)
        return self.known(call_id)

    async def hand_over(self, call_id: str, ticket: str) -> CallRecord:
        """An agent runs a command itself."""
        self.check()
        self.happen(Finished(at=self.clock(), call_id=call_id, ending=HandedOver()))
        return self.known(call_id)

    async def started(self, call_id: str) -> CallRecord:
        """Wait until the call runs or has its ending."""
        return await self._reached(call_id, (Running, Ended))

    async def begin_function(self, call_id: str) -> CallRecord:
        """Nobody carries out anything on the stage."""
        raise InvalidRequest(f"Call {call_id} is only played")

    async def end_function(self, call_id: str, problem: str | None = None) -> None:
        """Nobody carries out anything on the stage."""
        raise InvalidRequest(f"Call {call_id} is only played")

    async def outcome(self, call_id: str) -> CallRecord:
        """Wait until the call has its ending."""
        return await self._reached(call_id, (Ended,))

    async def withdraw(self, call_id: str, why: str, *, stop_running: bool = False) -> None:
        """The agent no longer wants it."""
        self.check()
        state = self.known(call_id).state
        if isinstance(state, Waiting | Held | Queued):
            self.happen(Finished(at=self.clock(), call_id=call_id, ending=Withdrawn(why=why)))
        elif isinstance(state, Running):
            self.happen(AgentGaveUp(at=self.clock(), call_id=call_id, why=why))
            if stop_running:
                self.finish(call_id, Signalled(number=15, by_us=True))

    async def leave(self, call_id: str, why: str) -> None:
        """The agent stops waiting for the answer."""
        self.check()
        self.happen(AgentGaveUp(at=self.clock(), call_id=call_id, why=why))

    async def watch(self, after: int | None = None) -> AsyncIterator[tuple[Event, ...]]:
        """Events in batches, endless."""
        self.check()
        position = after or 0
        arrived = self._watcher()
        try:
            while True:
                arrived.clear()
                while position < len(self.events):
                    batch = tuple(self.events[position : position + BATCH])
                    position += len(batch)
                    yield batch
                await arrived.wait()
                self.check()
        finally:
            self._watchers.discard(arrived)

    async def decide(self, call_id: str, decision: Decision, by: Decider, seen: str) -> None:
        """Decide about a waiting call; an approved one starts at once."""
        self.check()
        record = self.known(call_id)
        if not isinstance(record.state, Waiting):
            raise AlreadyDecided(f"Call {call_id} is decided already")
        if record.seen_digest() != seen:
            raise ChangedSinceSeen(f"Call {call_id} has changed since it was shown", hint="Look at it again")
        self.happen(Decided(at=self.clock(), call_id=call_id, decision=decision, by=by))
        if isinstance(decision, Deny):
            self._deny(record, decision, by)
        else:
            self._remember(record, decision, by)
            if record.call.ticket is None:
                self.start(call_id)

    async def signal(self, call_id: str, number: int, target: SignalTarget, by: Decider) -> None:
        """Send a signal; the usual ones end whatever gets them."""
        self.check()
        record = self.known(call_id)
        if not isinstance(record.state, Running | Ended) or not record.is_open:
            raise NotRunning(f"Nothing of call {call_id} is alive")
        self.happen(SignalSent(at=self.clock(), call_id=call_id, number=number, target=target, by=by))
        if number not in DEADLY:
            return
        if isinstance(record.state, Running):
            self.finish(call_id, Signalled(number=number, by_us=True))
        if target == "tree" or isinstance(record.state, Ended):
            self.settle(call_id)

    async def write_stdin(self, call_id: str, data: bytes, *, eof: bool = False) -> None:
        """What is typed is shown, as a terminal would."""
        self.check()
        if not self.known(call_id).spec.accepts_input:
            raise NotRunning(f"Call {call_id} takes no input")
        self.write(call_id, data)

    async def resize(self, call_id: str, rows: int, columns: int) -> None:
        """Nothing on the stage cares for the size of its terminal, and yet it is kept."""
        self.check()
        start = len(self.written[call_id].out) if call_id in self.written else 0
        size = TerminalSize(at=self.clock(), start=start, rows=rows, columns=columns)
        before = self.terminals.get(call_id, [TerminalSize()])
        self.terminals[call_id] = [*(before if start else ()), size]

    async def revoke(self, grant_id: str, by: Decider) -> None:
        """Forget a remembered approval."""
        self.check()
        if grant_id not in self.board.grants:
            raise InvalidRequest(f"There is no remembered approval {grant_id}")
        session_id = self.board.grants[grant_id].session_id
        self.happen(GrantRevoked(at=self.clock(), session_id=session_id, grant_id=grant_id, by=by))

    async def rule_files(self) -> tuple[RulesChanged, ...]:
        """On the stage there are none."""
        return ()

    async def trust_rules(
        self, path: str, by: Decider, digest: str | None = None, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()
    ) -> None:
        """On the stage there are no files of rules."""
        raise Refused(f"there is no file of rules {path} here", hint="Use a supervisor")

    async def pause(self, by: Decider) -> None:
        """Note that everything stands still."""
        self.check()
        if self.board.paused is None:
            self.happen(Paused(at=self.clock(), by=by))

    async def resume(self, by: Decider) -> None:
        """Note that everything goes on."""
        self.check()
        if self.board.paused is not None:
            self.happen(Resumed(at=self.clock(), by=by))

    async def prune(self, *, dry_run: bool = False) -> Pruned:
        """A stage keeps nothing on a disk."""
        return Pruned(runs=0, bytes=0, kept_runs=len(self.board.calls), kept_bytes=0)

    async def shutdown(self, *, end_runs: bool = False) -> None:
        """A stage has nothing to stop."""

    async def _reached(self, call_id: str, states: tuple[type, ...]) -> CallRecord:
        arrived = self._watcher()
        try:
            while not isinstance(self.known(call_id).state, states):
                arrived.clear()
                await arrived.wait()
                self.check()
        finally:
            self._watchers.discard(arrived)
        return self.known(call_id)

    def _watcher(self) -> asyncio.Event:
        arrived = asyncio.Event()
        self._watchers.add(arrived)
        return arrived

    def _deny(self, record: CallRecord, decision: Deny, by: Decider) -> None:
        denied = Denied(by=by, reason=decision.reason)
        self.happen(Finished(at=self.clock(), call_id=record.id, ending=denied))
        if not decision.stop_session:
            return
        for call_id in self.board.waiting_in(record.call.session_id):
            self.happen(
                Decided(at=self.clock(), call_id=call_id, decision=decision, by=by),
                Finished(at=self.clock(), call_id=call_id, ending=denied),
            )

    def _remember(self, record: CallRecord, decision: Approve, by: Decider) -> None:
        if decision.remember is None:
            return
        grant = Grant(
            id=f"g{len(self.board.grants) + 1}",
            session_id=record.call.session_id,
            spec=decision.edited or record.call.spec,
            from_call=record.id,
            granted_at=self.clock(),
            by=by,
            scope=decision.remember,
            sandbox=decision.sandbox,
        )
        self.happen(Granted(at=self.clock(), grant=grant))
