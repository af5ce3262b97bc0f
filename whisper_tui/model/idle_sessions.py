"""Closed sessions of which a board shows no call any more: it remembers so many of them."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

IDLE_KEPT = 2000
"""How many of them; more than the newest calls and sessions, of which a board is made at first, can have."""


@dataclass
class IdleSessions:
    """Told what comes and goes, it says whom to forget."""

    _calls: Counter[str] = field(default_factory=Counter)
    """How many calls of each session the board shows."""
    _closed: set[str] = field(default_factory=set)
    _idle: dict[str, None] = field(default_factory=dict)
    """Those that were idle for the longest first."""

    def opened(self, session_id: str) -> None:
        """A session is there, perhaps again."""
        self._closed.discard(session_id)
        self._idle.pop(session_id, None)

    def closed(self, session_id: str) -> None:
        """A session is over."""
        self._closed.add(session_id)
        self._look_at(session_id)

    def call_came(self, session_id: str) -> None:
        """The board shows one more call of a session."""
        self._calls[session_id] += 1
        self._idle.pop(session_id, None)

    def call_went(self, session_id: str) -> None:
        """It shows one less."""
        self._calls[session_id] -= 1
        if not self._calls[session_id]:
            del self._calls[session_id]
            self._look_at(session_id)

    def take_surplus(self) -> list[str]:
        """The sessions to forget."""
        surplus = list(islice(self._idle, max(0, len(self._idle) - IDLE_KEPT)))
        for session_id in surplus:
            self.opened(session_id)
        return surplus

    def _look_at(self, session_id: str) -> None:
        if session_id in self._closed and session_id not in self._calls:
            self._idle[session_id] = None
