"""The remembered approvals by what they cover, so that the thousandth of a session costs as little as its first."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from whisper_tui.model.board import Board
from whisper_tui.model.command import CommandSpec
from whisper_tui.model.decision import Grant
from whisper_tui.policy.memory import is_exact, is_over

FIRST_LOOK = 64
"""Sessions and approvals at which it is looked for the first time what of them is over; then at twice what is left."""


@dataclass
class _OfSession:
    """Ids of the approvals of one session."""

    exact: dict[str, dict[str, None]] = field(default_factory=dict)
    """Of one command, by that."""
    wide: dict[str, None] = field(default_factory=dict)
    """Of whatever begins alike."""

    def add(self, grant: Grant) -> None:
        ids = self.exact.setdefault(grant.spec.identity(), {}) if is_exact(grant) else self.wide
        ids[grant.id] = None


class Remembered:
    """Made from the board, session by session as they ask; what is over, or of a session that is, leaves again."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._sessions: dict[str, _OfSession] = {}
        self._size = 0
        """Sessions and approvals together, with those that came since it was looked which are over."""
        self._look_at = FIRST_LOOK

    def add(self, grant: Grant, now: float) -> None:
        """Take an approval into account from now on."""
        if grant.session_id in self._sessions:
            self._put(grant)
            self._look(now)

    def about(self, session_id: str, spec: CommandSpec, now: float) -> Iterator[Grant]:
        """Those of a session that may cover a command."""
        if session_id not in self._sessions:
            self._take_up(session_id)
        known = self._sessions[session_id]
        for grant_id in (*known.exact.get(spec.identity(), ()), *known.wide):
            if grant_id in self._board.grants:
                yield self._board.grants[grant_id]
        self._look(now)

    def __len__(self) -> int:
        """How much is kept here."""
        return self._size

    def _take_up(self, session_id: str) -> None:
        self._sessions[session_id] = _OfSession()
        self._size += 1
        for grant in self._board.grants.values():
            if grant.session_id == session_id:
                self._put(grant)

    def _put(self, grant: Grant) -> None:
        self._sessions[grant.session_id].add(grant)
        self._size += 1

    def _look(self, now: float) -> None:
        """Let go of what can allow nothing any more, once there may be as much of that as of the rest."""
        if self._size < self._look_at:
            return
        still = [session_id for session_id in self._sessions if self._is_open(session_id)]
        self._sessions = {session_id: _OfSession() for session_id in still}
        self._size = len(still)
        for grant in self._board.grants.values():
            if grant.session_id in self._sessions and not is_over(grant, now):
                self._put(grant)
        self._look_at = max(FIRST_LOOK, 2 * self._size)

    def _is_open(self, session_id: str) -> bool:
        session = self._board.sessions.get(session_id)
        return session is not None and session.closed_at is None
