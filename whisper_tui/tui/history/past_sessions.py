"""The sessions of calls that are older than what a board was made of."""

from whisper_tui.model.board import Board
from whisper_tui.model.port import Supervision


async def know_session(session_id: str, board: Board, supervision: Supervision) -> None:
    """Put a session on the board if it is not there, so that whoever shows a call of it can say who asked."""
    if session_id not in board.sessions:
        session = await supervision.session(session_id)
        board.sessions.setdefault(session_id, session)
