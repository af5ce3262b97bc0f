"""Closed sessions leave a board some time after their calls have left it."""

import pytest

from tests.model.build import a_board, a_grant, finished, opened, submitted, whole_life
from whisper_tui.model import board as boards
from whisper_tui.model import board as idle_sessions
from whisper_tui.model.board import Board
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Withdrawn
from whisper_tui.model.event import Granted, SessionClosed, SessionResumed, SessionSaid

HUMAN = Decider(surface="cockpit", who="me")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_sessions, "IDLE_KEPT", 2)
    monkeypatch.setattr(boards, "ENDED_KEPT", 1)


def closed(session_id: str) -> SessionClosed:
    return SessionClosed(at=9.0, session_id=session_id, why="done")


def pass_by(board: Board, *session_ids: str) -> None:
    """Sessions that come, do nothing and go."""
    for session_id in session_ids:
        board.apply_all((opened(session_id), closed(session_id)))


def test_the_longest_closed_sessions_are_dropped_with_their_messages_and_approvals() -> None:
    board = a_board(opened("s1"), opened("open"))
    board.apply(SessionSaid(at=2.0, session_id="s1", text="hello", by=HUMAN))
    board.apply(Granted(at=2.0, grant=a_grant("g1", session_id="s1")))
    board.apply(Granted(at=2.0, grant=a_grant("g2", session_id="open")))
    board.apply(closed("s1"))
    pass_by(board, "s2")
    assert set(board.sessions) == {"s1", "open", "s2"}
    pass_by(board, "s3")
    assert set(board.sessions) == {"open", "s2", "s3"}
    assert (board.said, set(board.grants)) == ({}, {"g2"})


def test_a_closed_session_stays_as_long_as_anything_of_it_is_open_or_in_the_background() -> None:
    board = a_board(opened("s1"), *whole_life("1")[:-1], closed("s1"))
    assert board.unsettled
    pass_by(board, "s2", "s3", "s4")
    assert set(board.sessions) == {"s1", "s3", "s4"}


def test_a_closed_session_stays_as_long_as_a_call_of_it_is_shown_and_then_its_turn_comes() -> None:
    board = a_board(opened("s1"), *whole_life("1"), closed("s1"))
    pass_by(board, "s2", "s3", "s4")
    assert "1" in board.calls and "s1" in board.sessions
    board.apply_all(
        (
            opened("s5"),
            submitted("2").model_copy(update={"call": submitted("2").call.model_copy(update={"session_id": "s5"})}),
        )
    )
    board.apply(finished("2", Withdrawn(why="no")))
    assert "1" not in board.calls and set(board.sessions) == {"s1", "s4", "s5"}
    pass_by(board, "s6", "s7")
    assert set(board.sessions) == {"s5", "s6", "s7"}


def test_a_session_that_comes_back_is_not_forgotten() -> None:
    board = a_board(opened("s1"), closed("s1"))
    board.apply(SessionResumed(at=10.0, session_id="s1", pid=7))
    pass_by(board, "s2", "s3", "s4")
    assert set(board.sessions) == {"s1", "s3", "s4"}
    assert board.sessions["s1"].closed_at is None
