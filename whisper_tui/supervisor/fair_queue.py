"""Whose call is next: sessions take turns, each session's calls keep their order."""

from collections import OrderedDict, deque


class FairQueue:
    """Call ids by session. A session that was served goes to the back of the line."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, deque[str]] = OrderedDict()
        self._members: set[str] = set()

    def __len__(self) -> int:
        return len(self._members)

    def add(self, session_id: str, call_id: str) -> None:
        """Put a call at the end of its session's line, once."""
        if call_id not in self._members:
            self._members.add(call_id)
            self._sessions.setdefault(session_id, deque()).append(call_id)

    def take(self) -> str | None:
        """The call whose turn it is, taken out of the queue."""
        if not self._sessions:
            return None
        session_id, calls = next(iter(self._sessions.items()))
        call_id = calls.popleft()
        self._members.discard(call_id)
        if calls:
            self._sessions.move_to_end(session_id)
        else:
            del self._sessions[session_id]
        return call_id
