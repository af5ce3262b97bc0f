"""The owners of sessions: the agents that have opened them. Turns and limits are by owner (decision 15)."""

from collections import OrderedDict

from whisper_tui.model.board import Board
from whisper_tui.model.call import Session
from whisper_tui.supervisor.approvals.admission import MOST_SESSIONS
from whisper_tui.system.processes import is_process
from whisper_tui.system.session_opener import agent_of_process


class SessionOwners:
    """The owner of each session. Nothing is journaled: each connection of an agent shows its owner anew."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._known: OrderedDict[str, str] = OrderedDict()

    def note(self, session: Session, opener: str) -> None:
        """Remember which agent has opened or resumed a session. `opener` is empty if this process itself has."""
        # Nothing shows which processes of a place belong together, so all agents there count as one.
        self._known[session.id] = f"place {session.place}" if session.relayed else opener or f"session {session.id}"
        self._known.move_to_end(session.id)
        if len(self._known) > MOST_SESSIONS:
            self._known.popitem(last=False)

    def of(self, session_id: str) -> str:
        """Return the owner of a session. After a restart it is that of the agent's process, until that comes back."""
        session = self._board.sessions.get(session_id)
        if session_id not in self._known and session is not None:
            pid = session.pid if session.closed_at is None else None
            is_there = pid is not None and is_process(pid, session.started)
            self.note(session, agent_of_process(pid) if pid is not None and is_there else "")
        return self._known.get(session_id, f"session {session_id}")
