"""Which open calls are the same to their agent, so that a second one can join the first."""

from whisper_tui.model.call import CallRequest
from whisper_tui.model.event import Event, Finished, Submitted
from whisper_tui.model.state import Ended
from whisper_tui.supervisor.ledger import Ledger


class Twins:
    """An index of the open calls that can be joined, kept by the facts themselves."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._open: dict[tuple[str, str], dict[str, None]] = {}
        """By session and twin: ids of the calls without an ending, oldest first."""
        for record in ledger.board.calls.values():
            if record.call.twin is not None and not isinstance(record.state, Ended):
                self._add(record.call.session_id, record.call.twin, record.id)
        ledger.listen(self._notice)

    def open_twin(self, request: CallRequest) -> str | None:
        """The oldest call of the same session and twin that has no ending yet."""
        if request.twin is None:
            return None
        return next(iter(self._open.get((request.session_id, request.twin), ())), None)

    def _add(self, session_id: str, twin: str, call_id: str) -> None:
        self._open.setdefault((session_id, twin), {})[call_id] = None

    def _notice(self, event: Event) -> None:
        if isinstance(event, Submitted) and event.call.twin is not None:
            self._add(event.call.session_id, event.call.twin, event.call.id)
        elif isinstance(event, Finished):
            call = self._ledger.board.calls[event.call_id].call
            if call.twin is not None and (ids := self._open.get((call.session_id, call.twin))) is not None:
                ids.pop(event.call_id, None)
                if not ids:
                    del self._open[call.session_id, call.twin]
