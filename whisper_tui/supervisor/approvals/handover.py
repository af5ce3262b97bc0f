"""Approved calls that their agents start: commands with a ticket, and tools that the caller runs itself."""

import hmac
from collections.abc import Callable

from whisper_tui.model.call import CallRequest, CarriedOut, CommandSpec
from whisper_tui.model.ending import Denied, Exited, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import InvalidRequest, NotAllowed, NotRunning, Refused
from whisper_tui.model.event import (
    AgentGaveUp,
    Claimed,
    Finished,
    Judged,
    Settled,
    Started,
)
from whisper_tui.model.state import CallRecord, Claim, Ended, Held, Queued, ShellReport, Starting, Unjudged, Waiting
from whisper_tui.supervisor.approvals.judge import Judge
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.sessions import Environments

GONE = "the session of its agent ended before the command was started"


class Tickets:
    """The calls with tickets. A ticket starts one run, even if it is shown more than once."""

    def __init__(
        self,
        store: Store,
        judge: Judge,
        environments: Environments,
        requeue_for_approval: Callable[[CallRecord, Judged], None],
        *,
        clock: Callable[[], float],
        keep_edit: Callable[[CallRecord], None],
    ) -> None:
        """`keep_edit` keeps the contents of the files of an edit that is about to be made."""
        self._store = store
        self._judge = judge
        self._keep_edit = keep_edit
        self._environments = environments
        self._requeue_for_approval = requeue_for_approval
        self._clock = clock

    def open(self) -> None:
        """Withdraw approved calls of closed sessions, and mark the calls whose hooks waited as left.

        A hook that did wait comes back with its key, and is known by that.
        """
        board, why = self._store.board, "the supervisor was restarted while its hook waited"
        for call_id in tuple(board.ticketed):
            record = board.calls[call_id]
            if isinstance(record.state, Waiting | Held) and record.agent_gave_up is None:
                self._store.record(AgentGaveUp(at=self._clock(), call_id=call_id, why=why))
        for session in tuple(self._store.board.sessions.values()):
            if session.closed_at is not None:
                self._let_go(session.id)

    def claim(self, call_id: str, ticket: str, claim: Claim, shell: ShellReport | None) -> CallRecord:
        """Start an approved call for the one who shows its ticket first. Raises `NotAllowed`, `Refused`."""
        record = self._checked(call_id, ticket)
        # The answer may have been lost with the connection; asking again must not fail.
        if record.claim is not None and record.claim.by == claim.by:
            return record
        self._check_held(record)
        if shell is not None:
            # Before the last look at the command, which then finds the programs of this environment (decision 32).
            self._environments.learn(record.call.session_id, shell)
        self._store.record(Claimed(at=self._clock(), call_id=call_id, claim=claim), durable=True)
        return self._store.call(call_id)

    def hand_over(self, call_id: str, ticket: str) -> CallRecord:
        """Leave an approved call to its agent, unless it means something else by now.

        The call comes back as it then is: handed over, or waiting or denied after the second look.
        """
        record = self._checked(call_id, ticket)
        self._check_held(record)
        if not record.call.by_agent:
            raise Refused(f"call {call_id} is to be run by the supervisor", hint="Claim it")
        # Minutes may lie between the approval and the ticket (decision 11).
        again = self._judge.judge_again(record)
        if again is not None:
            self._requeue_for_approval(record, again)
        else:
            self._keep_edit(record)
            self._store.record(Finished(at=self._clock(), call_id=call_id, ending=HandedOver()), durable=True)
        return self._store.call(call_id)

    def _checked(self, call_id: str, ticket: str) -> CallRecord:
        record = self._store.call(call_id)
        # Constant time: an agent on this machine could measure how many characters are right.
        if record.call.ticket is None or not hmac.compare_digest(record.call.ticket.encode(), ticket.encode()):
            raise NotAllowed(f"this is not a ticket of call {call_id}", hint="Run the command again to get another")
        return record

    def _check_held(self, record: CallRecord) -> None:
        """Raise `Refused`, in words for the agent, unless a call is approved and waits for its ticket."""
        match record.state:
            case Held():
                return
            case Unjudged() | Waiting():
                raise Refused(f"call {record.id} is not approved yet", hint="Run the same command again to wait for it")
            case Ended(ending=Denied(reason=reason)):
                raise Refused(f"call {record.id} was denied: {reason or 'no reason was given'}")
            case Ended(ending=Withdrawn(why=why)):
                raise Refused(f"call {record.id} was withdrawn: {why}", hint="Run the command again")
            case _:
                raise Refused(f"the ticket of call {record.id} was used before", hint="Run the command again")

    def on_session_closed(self, session_id: str) -> None:
        """Withdraw the approved calls of a session whose agent is gone."""
        self._store.retry_until_journaled(lambda: self._let_go(session_id))

    def on_decided(self, call_id: str) -> None:
        """Withdraw a call that was approved after its agent went away."""
        record = self._store.board.calls[call_id]
        session = self._store.board.sessions.get(record.call.session_id)
        if isinstance(record.state, Held) and session is not None and session.closed_at is not None:
            self.on_session_closed(session.id)

    def _let_go(self, session_id: str) -> None:
        board = self._store.board
        for call_id in tuple(board.held):
            if board.calls[call_id].call.session_id == session_id:
                self._withdraw(call_id)

    def _withdraw(self, call_id: str) -> None:
        self._store.record(Finished(at=self._clock(), call_id=call_id, ending=Withdrawn(why=GONE)))


class CallerTools:
    """The calls of tools that the caller runs itself, so that no command is started here."""

    def __init__(
        self,
        store: Store,
        judge: Judge,
        requeue_for_approval: Callable[[CallRecord, Judged], None],
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._judge = judge
        self._requeue_for_approval = requeue_for_approval
        self._clock = clock

    def open(self) -> None:
        """Record tools that were running as lost, and withdraw those of closed sessions."""
        for call_id in tuple(self._store.board.running):
            record = self._store.board.calls[call_id]
            if record.function is not None:
                self._lose(record, "the supervisor was restarted while its caller carried it out")
        for session in tuple(self._store.board.sessions.values()):
            if session.closed_at is not None:
                self._abandon(session.id)

    def begin(self, call_id: str) -> CallRecord | None:
        """Return the call if its tool may run now or it has ended. None: not yet. Raises `Refused` if it was begun."""
        record = self._store.call(call_id)
        if record.function is None:
            raise InvalidRequest(f"call {call_id} is a command, which the supervisor runs itself")
        if isinstance(record.state, Starting):
            raise Refused(f"call {call_id} is being carried out already", hint="Wait for its outcome")
        if isinstance(record.state, Ended):
            return record
        if not isinstance(record.state, Queued):
            return None
        again = self._judge.judge_again(record)
        if again is not None:
            self._requeue_for_approval(record, again)
            return None if again.verdict.kind != "refuse" else self._store.call(call_id)
        # Flushed before the caller is told: whatever it does then is in the journal (decision 6).
        self._store.record(self.beginning(call_id, record.spec), durable=True)
        return self._store.call(call_id)

    def check_own(self, request: CallRequest) -> None:
        """Raise `InvalidRequest` for a call that its caller could not carry out."""
        if request.ticket is not None or not isinstance(request.spec.command, CarriedOut):
            raise InvalidRequest(f"this call of {request.tool} is not one that its caller begins", hint="Submit it")

    def beginning(self, call_id: str, spec: CommandSpec) -> Started:
        """Return the fact that a tool runs from now on."""
        return Started(at=self._clock(), call_id=call_id, attempt=1, spec=spec)

    def end(self, call_id: str, problem: str | None) -> None:
        """Record the end of a tool. Raises `NotRunning` for a call that was not begun or has ended."""
        record = self._store.call(call_id)
        if record.function is None or not isinstance(record.state, Starting):
            raise NotRunning(f"call {call_id} is not being carried out: it is {record.state.kind}")
        now = self._clock()
        ending = Exited(code=0 if problem is None else 1, problem=problem or "")
        self._store.record(Finished(at=now, call_id=call_id, ending=ending), Settled(at=now, call_id=call_id))

    def on_session_closed(self, session_id: str) -> None:
        """Withdraw the calls of a closed session, or record them as lost: nobody else can run its tools."""
        self._store.retry_until_journaled(lambda: self._abandon(session_id))

    def _abandon(self, session_id: str) -> None:
        board = self._store.board
        for call_id in tuple(board.open_in.get(session_id, ())):
            record = board.calls[call_id]
            if record.function is None or not isinstance(record.state, Waiting | Queued | Starting):
                continue
            if isinstance(record.state, Starting):
                self._lose(record, "the session of its caller ended while the call was carried out")
            else:
                ending = Withdrawn(why="the session of its caller ended before the call was carried out")
                self._store.record(Finished(at=self._clock(), call_id=call_id, ending=ending))

    def _lose(self, record: CallRecord, why: str) -> None:
        now = self._clock()
        self._store.record(
            Finished(at=now, call_id=record.id, ending=Lost(why=why)), Settled(at=now, call_id=record.id)
        )
