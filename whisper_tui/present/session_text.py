"""Sessions as text for people: the number of each in a colour of its own, and the name of its agent."""

from whisper_tui.model.board import Board
from whisper_tui.model.call import Session
from whisper_tui.model.state import CallRecord
from whisper_tui.model.text import one_line_beginning
from whisper_tui.present.spans import Line, Role, Span, said

LONGEST_NAME = 100
"""The longest name within a line in characters."""
COLOURS: tuple[Role, ...] = ("name", "number", "string", "keyword")
"""The colours of sessions, by their numbers; further ones begin again."""


def session_number(session_id: str) -> str:
    """Return what tells a session from all others of its machine: `s3`, as the command line takes it."""
    return session_id.rpartition(":")[2]


def session_mark(session_id: str) -> Span:
    """Return the number of a session in its colour."""
    number = session_number(session_id)
    digits = number.removeprefix("s")
    # The colour is never the only sign: themes may be grey, and there are more sessions than colours.
    role = COLOURS[(int(digits) - 1) % len(COLOURS)] if digits.isdecimal() else "muted"
    return Span(one_line_beginning(number, LONGEST_NAME), role)


def session_column(session_id: str) -> Line:
    """Return the number of a session as the beginning of a row, as wide as that of most others."""
    mark = session_mark(session_id)
    return (mark._replace(text=f"{mark.text:<3}"), Span(" "))


def session_label(session: Session | None, session_id: str) -> str:
    """Return the name of a session, safe to show within a line."""
    return one_line_beginning(session.name if session is not None else session_id, LONGEST_NAME)


def session_label_of(record: CallRecord, board: Board) -> str:
    """Return the name of a call's session, safe to show within a line."""
    return session_label(board.sessions.get(record.call.session_id), record.call.session_id)


def session_words(session: Session | None, session_id: str) -> str:
    """Return a session where text has no colours: its number, and its name if that is known."""
    number = one_line_beginning(session_number(session_id), LONGEST_NAME)
    return f"{number} {session_label(session, session_id)}" if session is not None else number


def session_words_of(record: CallRecord, board: Board) -> str:
    """Return the session of a call where text has no colours."""
    return session_words(board.sessions.get(record.call.session_id), record.call.session_id)


def session_line(session: Session | None, session_id: str, role: Role = "strong") -> Line:
    """Return a session: its number in its colour, and its name if that is known."""
    mark = session_mark(session_id)
    return (mark, Span(" "), *said(session.name, role)) if session is not None else (mark,)
