"""Approved calls that wait for their agents: started once, by whoever shows the ticket; let go with their session."""

import hmac
from collections.abc import Callable

from whisper_tui.model.ending import Denied, HandedOver, Withdrawn
from whisper_tui.model.errors import NotAllowed, Refused
from whisper_tui.model.event import AgentGaveUp, Claimed, Decided, Event, Finished, Judged, SessionClosed
from whisper_tui.model.state import CallRecord, Claim, Ended, Held, Unjudged, Waiting
from whisper_tui.supervisor.environments import Environments
from whisper_tui.supervisor.judge import Judge
from whisper_tui.supervisor.ledger import Ledger

GONE = "its agent, who would have started it, went away"


class Claims:
    """Keeps the calls that have tickets. A ticket starts one run, whoever shows it and however often."""

    def __init__(
        self,
        ledger: Ledger,
        judge: Judge,
        environments: Environments,
        turn_back: Callable[[CallRecord, Judged], None],
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._judge = judge
        self._environments = environments
        self._turn_back = turn_back
        self._clock = clock

    def open(self) -> None:
        """Let go of what nobody can start any more, and expect nobody to have waited over the supervisor's absence.

        A hook that did wait comes back with its key, and is known by that.
        """
        board, why = self._ledger.board, "the supervisor was restarted while its hook waited"
        for call_id in tuple(board.ticketed):
            record = board.calls[call_id]
            if isinstance(record.state, Waiting | Held) and record.agent_gave_up is None:
                self._ledger.record(AgentGaveUp(at=self._clock(), call_id=call_id, why=why))
        for session in tuple(self._ledger.board.sessions.values()):
            if session.closed_at is not None:
                self._let_go(session.id)
        self._ledger.listen(self._notice)

    def claim(self, call_id: str, ticket: str, claim: Claim, names: tuple[str, ...] | None) -> CallRecord:
        """Start an approved call for the one who shows its ticket first. Raises `NotAllowed`, `Refused`."""
        record = self._checked(call_id, ticket)
        if record.claim is not None and record.claim.by == claim.by:
            return record
        self._check_held(record)
        if names is not None:
            withheld = sorted(self._environments.of(record.call.session_id).keys() - set(names))
            claim = claim.model_copy(update={"without": tuple(withheld)})
        self._ledger.record(Claimed(at=self._clock(), call_id=call_id, claim=claim), durable=True)
        return self._ledger.call(call_id)

    def hand_over(self, call_id: str, ticket: str) -> CallRecord:
        """Leave an approved call to its agent, unless it means something else by now.

        The call comes back as it then is: handed over, or waiting or denied after the second look.
        """
        record = self._checked(call_id, ticket)
        self._check_held(record)
        if not record.call.by_agent:
            raise Refused(f"call {call_id} is to be run by the supervisor", hint="Claim it")
        again = self._judge.judge_again(record)
        if again is not None:
            self._turn_back(record, again)
        else:
            self._ledger.record(Finished(at=self._clock(), call_id=call_id, ending=HandedOver()), durable=True)
        return self._ledger.call(call_id)

    def _checked(self, call_id: str, ticket: str) -> CallRecord:
        record = self._ledger.call(call_id)
        if record.call.ticket is None or not hmac.compare_digest(record.call.ticket.encode(), ticket.encode()):
            raise NotAllowed(f"this is no ticket of call {call_id}", hint="Run the command again to get another")
        return record

    def _check_held(self, record: CallRecord) -> None:
        """Raises `Refused`, in words for the agent."""
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

    def _notice(self, event: Event) -> None:
        if isinstance(event, SessionClosed):
            self._ledger.see_to(lambda: self._let_go(event.session_id))
        elif isinstance(event, Decided):
            record = self._ledger.board.calls[event.call_id]
            session = self._ledger.board.sessions.get(record.call.session_id)
            if isinstance(record.state, Held) and session is not None and session.closed_at is not None:
                self._ledger.see_to(lambda: self._let_go(session.id))

    def _let_go(self, session_id: str) -> None:
        board = self._ledger.board
        for call_id in tuple(board.held):
            if board.calls[call_id].call.session_id == session_id:
                self._withdraw(call_id)

    def _withdraw(self, call_id: str) -> None:
        self._ledger.record(Finished(at=self._clock(), call_id=call_id, ending=Withdrawn(why=GONE)))
