"""The last calls of each session, kept in step as calls come."""

from collections import deque

from whisper_tui.model.board import Board
from whisper_tui.model.state import CallRecord, Unjudged

KEPT = 6
"""Calls of a session that are remembered: five, and the one that is looked at."""


class RecentCalls:
    """Costs the same however many calls there are."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._of: dict[str, deque[str]] = {}
        for record in board.calls.values():
            if not isinstance(record.state, Unjudged):
                self.came(record)

    def came(self, record: CallRecord) -> None:
        """A call is listed for the first time."""
        self._of.setdefault(record.call.session_id, deque(maxlen=KEPT)).append(record.id)

    def beside(self, record: CallRecord) -> tuple[CallRecord, ...]:
        """Other calls of the session, the newest first, as far as the board still knows them."""
        calls = self._board.calls
        ids = reversed(self._of.get(record.call.session_id, ()))
        found = [calls[id_] for id_ in ids if id_ != record.id and id_ in calls]
        return tuple(found[: KEPT - 1])
