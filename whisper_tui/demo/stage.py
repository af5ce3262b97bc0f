"""A supervisor in memory, without processes: it answers the port by playing events."""

import asyncio
from collections.abc import AsyncIterator

from whisper_tui.demo.cast import Cast, Written
from whisper_tui.model.call import CallRequest, ClientInfo, Session, SessionHello
from whisper_tui.model.command import CommandSpec, Shell
from whisper_tui.model.decision import Approve, Coverage, Decider, Decision, Deny, Grant, Scope
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
    SessionClosed,
    SessionDescribed,
    SessionResumed,
    SessionSaid,
    SignalSent,
)
from whisper_tui.model.port import HistoryQuery, Pruned, Supervision, SupervisorStatus
from whisper_tui.model.run import OutputChunk, OutputSpan, SignalTarget, Stream
from whisper_tui.model.state import CallRecord, Claim, Ended, Held, Queued, Running, Starting, Waiting

BATCH = 1000
"""Events handed out at once."""
DEADLY = frozenset({1, 2, 3, 9, 15})
"""Signals that a command on the stage dies of."""


class Stage(Cast, Supervision):
    """Implements `Supervision`. An approved command is started at once and runs until somebody finishes it."""

    async def open_session(self, hello: SessionHello) -> Session:
        """Begin, or resume, an agent's session."""
        self._check()
        if hello.resume is not None and hello.resume in self.board.sessions:
            self.happen(SessionResumed(at=self.clock(), session_id=hello.resume, pid=hello.pid))
            return self.board.sessions[hello.resume]
        client = hello.client
        return self.open(hello.name, hello.root, client.name if client else "", client.version if client else "")

    async def session(self, session_id: str) -> Session:
        """Any session of the stage."""
        self._check()
        if session_id not in self.board.sessions:
            raise InvalidRequest(f"There is no session {session_id}")
        return self.board.sessions[session_id]

    async def describe_session(self, session_id: str, client: ClientInfo) -> None:
        """Say which program the agent is, once it has told."""
        self._check()
        self.happen(SessionDescribed(at=self.clock(), session_id=session_id, client=client))

    async def say(self, session_id: str, text: str, by: Decider) -> None:
        """Add to the conversation of a session."""
        self._check()
        self.happen(SessionSaid(at=self.clock(), session_id=session_id, text=text, by=by))

    async def close_session(self, session_id: str, why: str) -> None:
        """End a session."""
        self._check()
        self.happen(SessionClosed(at=self.clock(), session_id=session_id, why=why))

    async def submit(self, request: CallRequest) -> str:
        """Hand in a call; it is always asked."""
        self._check()
        return self.ask(request)

    async def decided(self, call_id: str) -> CallRecord:
        """Wait until nobody needs to be asked any more."""
        return await self._reached(call_id, (Held, Queued, Starting, Running, Ended))

    async def claim(self, call_id: str, ticket: str, claim: Claim, names: tuple[str, ...] | None = None) -> CallRecord:
        """Whoever shows a ticket on the stage has the command started."""
        self._check()
        self.happen(Claimed(at=self.clock(), call_id=call_id, claim=claim))
        self.start(call_id)
        return self.known(call_id)

    async def hand_over(self, call_id: str, ticket: str) -> CallRecord:
        """An agent runs a command itself."""
        self._check()
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
        self._check()
        state = self.known(call_id).state
        if isinstance(state, Waiting | Held | Queued):
            self.happen(Finished(at=self.clock(), call_id=call_id, ending=Withdrawn(why=why)))
        elif isinstance(state, Running):
            self.happen(AgentGaveUp(at=self.clock(), call_id=call_id, why=why))
            if stop_running:
                self.finish(call_id, Signalled(number=15, by_us=True))

    async def leave(self, call_id: str, why: str) -> None:
        """The agent stops waiting for the answer."""
        self._check()
        self.happen(AgentGaveUp(at=self.clock(), call_id=call_id, why=why))

    async def watch(self, after: int | None = None) -> AsyncIterator[tuple[Event, ...]]:
        """Events in batches, endless."""
        self._check()
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
                self._check()
        finally:
            self._watchers.discard(arrived)

    async def decide(self, call_id: str, decision: Decision, by: Decider, seen: str) -> None:
        """Decide about a waiting call; an approved one starts at once."""
        self._check()
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
        self._check()
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
        self._check()
        if not self.known(call_id).spec.accepts_input:
            raise NotRunning(f"Call {call_id} takes no input")
        self.write(call_id, data)

    async def resize(self, call_id: str, rows: int, columns: int) -> None:
        """Nothing on the stage cares for the size of its terminal."""
        self._check()

    async def read_output(self, call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """At most `limit` bytes of a stream from `offset`; a negative offset counts from the end."""
        self._check()
        data = self.written.get(call_id, Written()).stream(stream)
        start = max(0, len(data) + offset) if offset < 0 else min(offset, len(data))
        piece = bytes(data[start : start + limit])
        return OutputChunk(data=piece, start=start, size=len(data), ended=not self.known(call_id).is_open)

    async def output_file(self, call_id: str, stream: Stream) -> str | None:
        """The stage keeps output in memory."""
        self._check()
        return None

    async def read_timeline(self, call_id: str, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """When what was written was written."""
        self._check()
        return tuple(self.spans.get(call_id, ())[after : after + limit])

    async def record(self, call_id: str) -> CallRecord:
        """A call on the board."""
        self._check()
        return self.known(call_id)

    async def history(self, query: HistoryQuery) -> tuple[CallRecord, ...]:
        """Calls that match, newest first."""
        self._check()
        newest_first = (self.board.calls[call_id] for call_id in reversed(self.board.calls))
        found = (record for record in newest_first if _matches(record, query))
        return tuple(record for _, record in zip(range(query.limit), found, strict=False))

    async def grants(self, session_id: str | None = None) -> tuple[Grant, ...]:
        """The remembered approvals that hold."""
        self._check()
        grants = self.board.grants.values()
        return tuple(g for g in grants if g.revoked_at is None and session_id in {None, g.session_id})

    async def would_cover(self, call_id: str, scope: Scope, edited: CommandSpec | None = None) -> Coverage:
        """On the stage a scope covers the calls of the same command, or that begin with the same words."""
        self._check()
        record = self.known(call_id)
        words = getattr(scope, "words", None)
        if words is not None and len(words) < 2:
            raise Refused(f"this cannot be remembered like that: {words[0]!r} is too short", hint="Add a word")
        begins = " ".join(words) if words else None
        same = [
            other.id
            for other in (self.board.calls[id_] for id_ in reversed(self.board.calls))
            if (
                " ".join(_words_of(other)).startswith(begins)
                if begins
                else other.call.spec.identity() == (edited or record.call.spec).identity()
            )
        ]
        return Coverage(looked_at=len(self.board.calls), calls=tuple(same))

    async def revoke(self, grant_id: str, by: Decider) -> None:
        """Forget a remembered approval."""
        self._check()
        if grant_id not in self.board.grants:
            raise InvalidRequest(f"There is no remembered approval {grant_id}")
        session_id = self.board.grants[grant_id].session_id
        self.happen(GrantRevoked(at=self.clock(), session_id=session_id, grant_id=grant_id, by=by))

    async def pause(self, by: Decider) -> None:
        """Note that everything stands still."""
        self._check()
        if self.board.paused is None:
            self.happen(Paused(at=self.clock(), by=by))

    async def resume(self, by: Decider) -> None:
        """Note that everything goes on."""
        self._check()
        if self.board.paused is not None:
            self.happen(Resumed(at=self.clock(), by=by))

    async def prune(self, *, dry_run: bool = False) -> Pruned:
        """A stage keeps nothing on a disk."""
        return Pruned(runs=0, bytes=0, kept_runs=len(self.board.calls), kept_bytes=0)

    async def status(self) -> SupervisorStatus:
        """How many calls there are of each kind."""
        self._check()
        board = self.board
        return SupervisorStatus(
            version="stage",
            pid=1,
            started_at=self.clock(),
            workers=1,
            waiting=len(board.waiting),
            queued=len(board.queued),
            running=len(board.running),
            home="stage",
            paused_since=board.paused.at if board.paused else None,
            paused_by=board.paused.by if board.paused else None,
        )

    async def shutdown(self, *, end_runs: bool = False) -> None:
        """A stage has nothing to stop."""

    def _check(self) -> None:
        if self.broken is not None:
            raise self.broken

    async def _reached(self, call_id: str, states: tuple[type, ...]) -> CallRecord:
        arrived = self._watcher()
        try:
            while not isinstance(self.known(call_id).state, states):
                arrived.clear()
                await arrived.wait()
                self._check()
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
        )
        self.happen(Granted(at=self.clock(), grant=grant))


def _matches(record: CallRecord, query: HistoryQuery) -> bool:
    if query.session_id is not None and record.call.session_id != query.session_id:
        return False
    if query.before is not None and int(record.id) >= int(query.before):
        return False
    if query.after is not None and int(record.id) <= int(query.after):
        return False
    if query.open_only and not record.is_open:
        return False
    words = f"{record.call.tool} {record.call.description} {' '.join(record.spec.command.words())}"
    return query.text.casefold() in words.casefold()


def _words_of(record: CallRecord) -> tuple[str, ...]:
    """The words of a command, without the shell around them."""
    command = record.call.spec.command
    return (command.text,) if isinstance(command, Shell) else command.words()
