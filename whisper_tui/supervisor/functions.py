"""Tools that their callers carry out themselves: let through once, and ended by word or by silence."""

from collections.abc import Callable

from whisper_tui.model.ending import Exited, Lost, Withdrawn
from whisper_tui.model.errors import InvalidRequest, NotRunning, Refused
from whisper_tui.model.event import Event, Finished, Judged, SessionClosed, Settled, Started
from whisper_tui.model.state import CallRecord, Ended, Queued, Starting, Waiting
from whisper_tui.supervisor.judge import Judge
from whisper_tui.supervisor.ledger import Ledger


class Functions:
    """Keeps the calls of which no command is started here."""

    def __init__(
        self,
        ledger: Ledger,
        judge: Judge,
        turn_back: Callable[[CallRecord, Judged], None],
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._judge = judge
        self._turn_back = turn_back
        self._clock = clock

    def open(self) -> None:
        """What an earlier supervisor let through may have been carried out: nobody can tell any more."""
        for call_id in tuple(self._ledger.board.running):
            record = self._ledger.board.calls[call_id]
            if record.function is not None:
                self._lose(record, "the supervisor was restarted while its caller carried it out")
        for session in tuple(self._ledger.board.sessions.values()):
            if session.closed_at is not None:
                self._abandon(session.id)
        self._ledger.listen(self._notice)

    def begin(self, call_id: str) -> CallRecord | None:
        """The call if it may be carried out now, or has ended; None: not yet. Raises `Refused` if it was begun."""
        record = self._ledger.call(call_id)
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
            self._turn_back(record, again)
            return None if again.verdict.kind != "refuse" else self._ledger.call(call_id)
        self._ledger.record(Started(at=self._clock(), call_id=call_id, attempt=1, spec=record.spec), durable=True)
        return self._ledger.call(call_id)

    def end(self, call_id: str, problem: str | None) -> None:
        """Record that it is done. Raises `NotRunning` for a call that was not begun, or has its ending."""
        record = self._ledger.call(call_id)
        if record.function is None or not isinstance(record.state, Starting):
            raise NotRunning(f"call {call_id} is not being carried out: it is {record.state.kind}")
        now = self._clock()
        ending = Exited(code=0 if problem is None else 1)
        self._ledger.record(Finished(at=now, call_id=call_id, ending=ending), Settled(at=now, call_id=call_id))

    def _notice(self, event: Event) -> None:
        if isinstance(event, SessionClosed):
            self._ledger.see_to(lambda: self._abandon(event.session_id))

    def _abandon(self, session_id: str) -> None:
        """With the session goes the only one who could carry them out."""
        board = self._ledger.board
        for call_id in tuple(board.open_in.get(session_id, ())):
            record = board.calls[call_id]
            if record.function is None or not isinstance(record.state, Waiting | Queued | Starting):
                continue
            if isinstance(record.state, Starting):
                self._lose(record, "its caller went away while it carried it out")
            else:
                ending = Withdrawn(why="its caller, who would have carried it out, went away")
                self._ledger.record(Finished(at=self._clock(), call_id=call_id, ending=ending))

    def _lose(self, record: CallRecord, why: str) -> None:
        now = self._clock()
        self._ledger.record(
            Finished(at=now, call_id=record.id, ending=Lost(why=why)), Settled(at=now, call_id=record.id)
        )
