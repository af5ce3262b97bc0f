"""How much may wait and run at once: one agent cannot fill the memory, nor the list, for all others."""

from collections import Counter

from whisper_tui.model.call import ToolCall
from whisper_tui.model.errors import Refused
from whisper_tui.model.event import Event, Finished
from whisper_tui.model.weight import weight
from whisper_tui.supervisor.ledger import Ledger

MOST_CALLS = 200_000
"""Calls that have no ending yet, of all sessions."""
MOST_OF_A_SESSION = 100_000
LARGEST = 256 * 1024 * 1024
"""Bytes of memory, about, that such calls take together."""
LARGEST_OF_A_SESSION = 128 * 1024 * 1024
MOST_SESSIONS = 10_000
"""Sessions that are open at once."""

_HINT = "Wait for answers, or have calls decided or withdrawn"


class Capacity:
    """Knows what has been taken in since this supervisor started; earlier calls count by their number."""

    def __init__(self, ledger: Ledger) -> None:
        self._board = ledger.board
        self._taken: dict[str, tuple[str, int]] = {}
        """Session and weight of each call."""
        self._of_session: Counter[str] = Counter()
        self._of_all = 0
        """Their sum, which is asked for at each call."""
        ledger.listen(self._notice)

    @property
    def taken(self) -> int:
        """The bytes of memory, about, that all of them take."""
        return self._of_all

    def check(self, call: ToolCall) -> int:
        """The bytes of memory that a call takes, about. Raises `Refused` where there is no room for them."""
        board, session_id = self._board, call.session_id
        calls = len(board.waiting) + len(board.held) + len(board.queued) + len(board.running)
        if calls >= MOST_CALLS:
            raise Refused(f"{calls:,} calls wait or run, and no more are taken", hint=_HINT)
        calls = len(board.open_in.get(session_id, ()))
        if calls >= MOST_OF_A_SESSION:
            raise Refused(f"{calls:,} calls of session {session_id} wait or run, and no more are taken", hint=_HINT)
        size = weight(call)
        if self._of_session[session_id] + size > LARGEST_OF_A_SESSION:
            raise Refused(
                f"the calls of session {session_id} that wait or run would take more than "
                f"{LARGEST_OF_A_SESSION:,} bytes of memory",
                hint=_HINT,
            )
        if self.taken + size > LARGEST:
            raise Refused(f"the calls that wait or run would take more than {LARGEST:,} bytes of memory", hint=_HINT)
        return size

    def take(self, call: ToolCall, size: int) -> None:
        """Count a call that was taken in."""
        if call.id in self._board.open_in.get(call.session_id, ()):
            self._taken[call.id] = call.session_id, size
            self._of_session[call.session_id] += size
            self._of_all += size

    def _notice(self, event: Event) -> None:
        if isinstance(event, Finished) and (taken := self._taken.pop(event.call_id, None)) is not None:
            session_id, size = taken
            self._of_session[session_id] -= size
            self._of_all -= size
            if not self._of_session[session_id]:
                del self._of_session[session_id]
