"""Which calls are the same to their agent, so that a second one can join the first."""

from collections.abc import Callable

from whisper_tui.model.call import CallRequest, ToolCall
from whisper_tui.model.ending import Withdrawn
from whisper_tui.model.event import AgentGaveUp, AgentReturned, Claimed, Event, Finished, Started, Submitted
from whisper_tui.model.state import CallRecord, Ended, Held, Unjudged, Waiting
from whisper_tui.supervisor.ledger import Ledger

REJOIN_S = 900.0
"""Seconds after its end in which a call whose agent did not wait for the answer can still be rejoined."""

Index = dict[tuple[str, str], dict[str, None]]
"""By session and twin: ids of calls, oldest first."""


class Twins:
    """An index of the calls that can be joined, kept by the facts themselves."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._clock = clock
        self._open: Index = {}
        """The calls without an ending."""
        self._left: Index = {}
        """The calls whose agent does not wait for the answer, ended ones included."""
        self._unstarted: dict[tuple[str, str], str] = {}
        """By session and question: the call that asks it and has not started."""
        for record in map(ledger.call, ledger.board.twinned):
            if not isinstance(record.state, Ended):
                _add(self._open, record.call)
            if isinstance(record.state, Unjudged | Waiting | Held):
                self._ask(record.call)
            if record.agent_gave_up is not None and not _is_withdrawn(record):
                _add(self._left, record.call)
        ledger.listen(self._notice)

    def of(self, request: CallRequest) -> str | None:
        """The call that a request joins. None: it is one of its own."""
        if request.question is not None:
            same = self._unstarted.get((request.session_id, request.question))
            if same is not None:
                return same
        if request.twin is None:
            return None
        place = request.session_id, request.twin
        if request.join_twin and (known := next(iter(self._open.get(place, ())), None)) is not None:
            return known
        return next(filter(self._lasts, tuple(self._left.get(place, ()))), None) if request.rejoin else None

    def _lasts(self, call_id: str) -> bool:
        """Whether a call that was left can still be rejoined; one that cannot is forgotten."""
        record = self._ledger.call(call_id)
        if isinstance(record.state, Ended) and self._clock() > record.state.at + REJOIN_S:
            _drop(self._left, record.call)
            return False
        return True

    def _notice(self, event: Event) -> None:
        match event:
            case Submitted(call=call):
                _add(self._open, call)
                self._ask(call)
            case Claimed() | Started():
                self._answer(self._ledger.call(event.call_id).call)
            case AgentGaveUp():
                _add(self._left, self._ledger.call(event.call_id).call)
            case AgentReturned():
                _drop(self._left, self._ledger.call(event.call_id).call)
            case Finished():
                call = self._ledger.call(event.call_id).call
                _drop(self._open, call)
                self._answer(call)
                if isinstance(event.ending, Withdrawn):
                    _drop(self._left, call)

    def _ask(self, call: ToolCall) -> None:
        if call.question is not None:
            self._unstarted[call.session_id, call.question] = call.id

    def _answer(self, call: ToolCall) -> None:
        """A call that started, or never will, answers its question no more: asked again, it is another call."""
        place = call.session_id, call.question or ""
        if self._unstarted.get(place) == call.id:
            del self._unstarted[place]


def _add(index: Index, call: ToolCall) -> None:
    if call.twin is not None:
        index.setdefault((call.session_id, call.twin), {})[call.id] = None


def _drop(index: Index, call: ToolCall) -> None:
    place = call.session_id, call.twin or ""
    if (ids := index.get(place)) is not None:
        ids.pop(call.id, None)
        if not ids:
            del index[place]


def _is_withdrawn(record: CallRecord) -> bool:
    return isinstance(record.state, Ended) and isinstance(record.state.ending, Withdrawn)
