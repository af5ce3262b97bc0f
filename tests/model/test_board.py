"""The board: what each fact changes, and what it never changes."""

import pytest

from tests.model.build import (
    ALLOW,
    ASK,
    DENY,
    HUMAN,
    a_board,
    a_call,
    a_grant,
    a_session,
    a_shell,
    a_spec,
    decided,
    finished,
    judged,
    left_behind,
    numbered,
    one_of_each,
    opened,
    settled,
    spawned,
    started,
    submitted,
    whole_life,
)
from tests.rows import each_row
from whisper_tui.model.board import ENDED_KEPT, Board
from whisper_tui.model.call import ClientInfo
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Denied, Exited, FailedToStart, Lost, Withdrawn
from whisper_tui.model.errors import BrokenHistory
from whisper_tui.model.event import (
    AgentGaveUp,
    BackgroundSeen,
    Event,
    Granted,
    GrantRevoked,
    GrantUsed,
    SessionClosed,
    SessionDescribed,
    SessionResumed,
    SignalSent,
    Submitted,
)
from whisper_tui.model.state import Ended, Queued, Running, Starting, Unjudged, Waiting

SHELVES = ("waiting", "queued", "running", "unsettled")


def where(board: Board, call_id: str = "1") -> list[str]:
    """The shelves that hold a call: one at most, whatever happened."""
    return [shelf for shelf in SHELVES if call_id in getattr(board, shelf)]


@each_row(
    ("events", "state", "shelves"),
    [
        (whole_life()[:1], Unjudged, []),
        (whole_life()[:2], Waiting, ["waiting"]),
        (whole_life()[:3], Queued, ["queued"]),
        (whole_life()[:4], Starting, ["running"]),
        (whole_life()[:5], Running, ["running"]),
        (whole_life()[:6], Ended, ["unsettled"]),
        (whole_life(), Ended, []),
    ],
)
def test_each_fact_of_an_approved_call_moves_it_to_the_next_place(
    events: tuple[Event, ...], state: type, shelves: list[str]
) -> None:
    board = a_board(*events)
    assert isinstance(board.record("1").state, state)
    assert where(board) == shelves


def test_a_call_is_settled_once_and_kept_in_the_order_of_ending() -> None:
    board = a_board(*whole_life("1")[:6], *whole_life("2"), settled("1"))
    assert list(board.settled) == ["2", "1"]
    board.apply(settled("1"))
    assert list(board.settled) == ["2", "1"]


def test_an_ended_call_keeps_its_facts() -> None:
    record = a_board(*whole_life()).record("1")
    assert isinstance(record.state, Ended)
    assert record.state.ending == Exited(code=0)
    assert record.state.attempt == record.attempt == 1
    assert record.process is not None and record.process.leader.pid == 4242
    assert (record.state.output.out, record.state.output.err) == (3, 4)
    assert not record.is_open


def test_an_allowed_call_does_not_wait_for_a_human() -> None:
    board = a_board(submitted(), judged(verdict=ALLOW))
    assert isinstance(board.record("1").state, Unjudged)
    assert where(board) == []
    board.apply(decided())
    assert where(board) == ["queued"]


def test_a_denied_call_stays_where_it_is_until_it_has_its_ending() -> None:
    board = a_board(submitted(), judged(), decided(decision=DENY))
    assert where(board) == ["waiting"]
    board.apply(finished(ending=Denied(by=HUMAN, reason=DENY.reason)))
    assert where(board) == []
    assert list(board.settled) == ["1"]
    assert board.record("1").process is None


@each_row("ending", [Withdrawn(why="the agent took it back"), Denied(by=HUMAN, reason=""), Lost(why="nobody knows")])
def test_a_call_that_ends_before_any_attempt_is_settled_at_once(ending: Withdrawn | Denied | Lost) -> None:
    board = a_board(submitted(), judged(), finished(ending=ending))
    record = board.record("1")
    assert isinstance(record.state, Ended) and record.state.settled and record.attempt is None
    assert list(board.settled) == ["1"]


def test_a_failed_start_waits_for_the_last_word_of_its_attempt() -> None:
    failed = FailedToStart(problem="program_not_found", subject="gti", message="Command not found: gti")
    board = a_board(*whole_life()[:4], finished(ending=failed))
    assert where(board) == ["unsettled"]
    board.apply(settled())
    assert where(board) == []


def test_a_queued_call_that_is_asked_again_says_why_and_what_the_human_had_made_of_it() -> None:
    edited = a_shell("make clean")
    board = a_board(submitted(), judged(), decided(decision=Approve(edited=edited)))
    assert board.record("1").edited and board.record("1").spec == edited
    changed = ASK.model_copy(update={"reason": "the program is another one now"})
    board.apply(judged(verdict=changed, at=9.0))
    record = board.record("1")
    assert record.state == Waiting(since=9.0, returned_because=changed.reason, edited_before=edited)
    assert (record.decision, record.decided_by, record.decided_at) == (None, None, None)
    assert record.spec == record.call.spec
    assert where(board) == ["waiting"]


def test_a_waiting_call_that_is_judged_again_keeps_its_place_and_its_age() -> None:
    board = a_board(submitted("1"), judged("1"), submitted("2"), judged("2"), judged("1", at=9.0))
    assert list(board.waiting) == ["1", "2"]
    assert board.record("1").state == Waiting(since=2.5)


def test_a_later_attempt_replaces_the_earlier_one() -> None:
    board = a_board(*whole_life()[:4], started(attempt=2), spawned(attempt=2))
    assert board.record("1").attempt == 2
    assert where(board) == ["running"]


def test_background_processes_are_replaced_by_each_report_and_gone_when_settled() -> None:
    board = a_board(*whole_life()[:6])
    board.apply(BackgroundSeen(at=6.5, call_id="1", processes=(left_behind(5000), left_behind(5001, alive=False))))
    assert [process.identity.pid for process in board.record("1").living_background] == [5000]
    assert where(board) == ["unsettled"]
    board.apply(settled())
    assert [process.alive for process in board.record("1").background] == [False, False]


def test_signals_and_an_agent_that_gave_up_change_nothing_but_themselves() -> None:
    board = a_board(*whole_life()[:5])
    before = board.record("1")
    for number in (2, 15):
        board.apply(SignalSent(at=5.5, call_id="1", number=number, target="group", by=HUMAN))
    board.apply(AgentGaveUp(at=5.6, call_id="1", why="its turn was stopped"))
    after = board.record("1")
    assert after.signals == (2, 15)
    assert after.agent_gave_up == "its turn was stopped"
    assert after.state == before.state


def test_the_waiting_calls_keep_the_order_of_arrival() -> None:
    board = a_board(*(event for call_id in ("3", "1", "2") for event in (submitted(call_id), judged(call_id))))
    assert list(board.waiting) == ["3", "1", "2"]
    board.apply(decided("1"))
    assert list(board.waiting) == ["3", "2"]


def test_a_session_is_described_closed_and_resumed() -> None:
    board = a_board(SessionDescribed(at=1.5, session_id="s1", client=ClientInfo(name="an agent")))
    board.apply(SessionClosed(at=2.0, session_id="s1", why="it left"))
    closed = board.sessions["s1"]
    assert (closed.closed_at, closed.closed_because) == (2.0, "it left")
    board.apply(SessionResumed(at=3.0, session_id="s1", pid=88))
    assert board.sessions["s1"] == a_session(client=ClientInfo(name="an agent"), pid=88)


def test_a_remembered_approval_counts_its_uses_and_keeps_when_it_was_revoked() -> None:
    board = a_board(Granted(at=3.0, grant=a_grant()))
    for call_id in ("2", "3"):
        board.apply(GrantUsed(at=4.0, session_id="s1", grant_id="g1", call_id=call_id))
    board.apply(GrantRevoked(at=5.0, session_id="s1", grant_id="g1", by=HUMAN))
    assert board.grants["g1"] == a_grant().model_copy(update={"uses": 2, "revoked_at": 5.0})


@each_row(
    "event",
    [
        judged("99"),
        decided("99"),
        started("99"),
        spawned("99"),
        BackgroundSeen(at=1.0, call_id="99", processes=()),
        SignalSent(at=1.0, call_id="99", number=9, target="tree", by=HUMAN),
        AgentGaveUp(at=1.0, call_id="99", why=""),
        finished("99"),
        settled("99"),
        SessionDescribed(at=1.0, session_id="s99", client=ClientInfo(name="x")),
        SessionResumed(at=1.0, session_id="s99", pid=None),
        SessionClosed(at=1.0, session_id="s99", why=""),
        GrantUsed(at=1.0, session_id="s1", grant_id="g99", call_id="1"),
        GrantRevoked(at=1.0, session_id="s1", grant_id="g99", by=HUMAN),
    ],
    ids=lambda event: event.kind,
)
def test_a_fact_about_something_unknown_is_a_broken_history(event: Event) -> None:
    board = a_board(submitted())
    with pytest.raises(BrokenHistory, match="99"):
        board.apply(event)


def test_a_call_cannot_be_settled_before_it_ended() -> None:
    with pytest.raises(BrokenHistory, match="settled before it ended"):
        a_board(*whole_life()[:5], settled())


def test_a_board_forgets_the_oldest_settled_calls_and_never_an_open_one() -> None:
    board = a_board(submitted("open"), judged("open"))
    for number in range(ENDED_KEPT + 3):
        board.apply(submitted(str(number)))
        board.apply(finished(str(number), ending=Withdrawn(why="taken back")))
    assert len(board.settled) == ENDED_KEPT
    assert board.settled[0] == "3"
    assert set(board.calls) == {"open", *board.settled}
    with pytest.raises(BrokenHistory):
        board.record("2")


def test_the_number_of_the_last_event_is_kept() -> None:
    board = Board()
    board.apply_all(numbered(one_of_each()))
    assert board.seq == len(one_of_each())


def test_folding_at_once_and_one_by_one_gives_the_same_board() -> None:
    at_once, one_by_one = Board(), Board()
    at_once.apply_all(numbered(one_of_each()))
    for event in numbered(one_of_each()):
        one_by_one.apply(event)
    assert vars(at_once) == vars(one_by_one)


def test_the_digest_of_what_is_seen_follows_the_verdict_and_the_command() -> None:
    digests = {
        a_board(*events).record("1").seen_digest()
        for events in (
            (submitted(),),
            (submitted(), judged()),
            (submitted(), judged(verdict=ALLOW)),
            (submitted(spec=a_shell("git status")), judged()),
            (submitted(spec=a_spec(cwd="/srv/other")), judged()),
            (submitted(spec=a_spec(environment={"GIT_DIR": "/tmp/x"})), judged()),
            (submitted(spec=a_spec(timeout_s=5.0)), judged()),
        )
    }
    assert len(digests) == 7


def test_the_digest_does_not_change_with_what_the_approver_does_not_see() -> None:
    board = a_board(submitted(), judged())
    before = board.record("1").seen_digest()
    board.apply(AgentGaveUp(at=3.0, call_id="1", why="it was cancelled"))
    board.apply(opened("s2"))
    assert board.record("1").seen_digest() == before


def test_the_open_calls_of_a_session_are_known_until_nothing_of_them_is_alive() -> None:
    board = a_board(*whole_life("1")[:6], submitted("2"), judged("2"), submitted("3"))
    assert list(board.open_in["s1"]) == ["1", "2", "3"]
    assert list(board.unjudged) == ["3"]
    assert board.waiting_in("s1") == ("2",)
    assert board.waiting_in("s2") == ()
    board.apply_all((settled("1"), finished("2", Withdrawn(why="")), finished("3", Withdrawn(why=""))))
    assert board.open_in == {}
    assert board.unjudged == {}


def test_calls_with_a_ticket_or_a_deduplication_key_are_known_as_long_as_the_board_knows_them() -> None:
    board = Board()
    for number in range(ENDED_KEPT + 2):
        call = a_call(str(number)).model_copy(
            update={"ticket": "t", "dedup_key": "same"} if number < 3 else {"dedup_key": None}
        )
        board.apply(Submitted(at=2.0, call=call))
        board.apply(finished(str(number), ending=Withdrawn(why="taken back")))
    assert list(board.ticketed) == list(board.deduplicated) == ["2"]
