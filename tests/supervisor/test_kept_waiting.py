"""A supervisor lists waiting calls from what was kept beside the journal, and believes only the journal."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.model.build import DENY, a_call, a_shell, decided, judged, opened
from whisper_tui.model.event import Decided, Event, PreviewStarted, Submitted
from whisper_tui.model.packed_calls import KEPT_WHOLE, packed_record
from whisper_tui.model.state import CallRecord, Queued, Waiting
from whisper_tui.supervisor.journal.journal import Journal, PackedWaiting
from whisper_tui.supervisor.journal.store import KEPT_AT_ONCE, Store

MORE = 50
"""So many calls are waiting beyond those that a board keeps as objects: their packed records are kept."""


def arrived(number: int) -> tuple[Event, Event]:
    """A call that waits; each third one with a ticket."""
    call_id = str(number)
    change = {"key": None, "dedup_key": f"d{number}", "ticket": None if number % 3 else f"ticket-{number}"}
    call = a_call(call_id, a_shell(f"make part{number}")).model_copy(update=change)
    return Submitted(at=2.0, call=call), judged(call_id)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with waiting calls, which a supervisor has had on its board."""
    path = tmp_path / "journal.sqlite"
    journal = Journal(path)
    journal.append((opened(), *(event for number in range(1, KEPT_WHOLE + MORE + 1) for event in arrived(number))))
    Store(journal).close()
    return path


def board_state(store: Store) -> tuple[object, ...]:
    """The lists of a board, in their order, and all of its records."""
    board = store.board
    order = [list(part) for part in (board.waiting, board.open_in["s1"], board.ticketed, board.deduplicated)]
    return board.seq, order, [board.calls[call_id] for call_id in board.calls]


def change_row(path: Path, call_id: str, record: CallRecord) -> None:
    """Exchange a kept record as somebody would who knows how its digest is made."""
    packed = packed_record(record)
    with closing(sqlite3.connect(path)) as db, db:
        ((marks, end),) = db.execute(
            "SELECT marks, link FROM waiting w JOIN events e ON e.seq = w.seq WHERE w.id = ?", (int(call_id),)
        )
        row = (packed, PackedWaiting(db)._digest(end, marks, packed), int(call_id))
        db.execute("UPDATE waiting SET packed = ?, digest = ? WHERE id = ?", row)


def test_the_board_is_the_same_with_kept_records_as_from_the_events_alone(path: Path):
    with_kept = Store(Journal(path))
    assert len(with_kept.board.calls.unproven) == MORE
    found = board_state(with_kept)
    with_kept.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM waiting")
    from_events = Store(Journal(path))
    assert not from_events.board.calls.unproven
    assert found == board_state(from_events)
    from_events.close()


def test_a_record_that_was_exchanged_is_never_decided_about(path: Path):
    store = Store(Journal(path))
    true = store.call("1")
    store.close()
    change_row(path, "1", true.model_copy(update={"call": a_call("1", a_shell("true"))}))
    store = Store(Journal(path))
    assert "1" in store.board.calls.unproven
    assert store.board.calls["1"] == true
    store.close()


def test_a_damaged_record_is_read_from_the_events(path: Path):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE waiting SET packed = x'00' WHERE id = 1")
        db.execute("UPDATE waiting SET marks = 'd' WHERE id = 3")
    store = Store(Journal(path))
    assert {"1", "3"}.isdisjoint(store.board.calls.unproven)
    assert "2" in store.board.calls.unproven
    assert list(store.board.waiting)[:3] == ["1", "2", "3"]
    assert "3" in store.board.ticketed
    store.close()


def test_a_record_with_newer_events_is_read_from_them(path: Path):
    journal = Journal(path)
    journal.append((decided("2"),))
    journal.close()
    store = Store(Journal(path))
    assert isinstance(store.board.calls["2"].state, Queued)
    assert "2" not in store.board.waiting
    store.close()


async def test_a_decision_about_a_kept_record_is_applied_once_and_forgets_it(path: Path):
    store = Store(Journal(path))
    store.record(Decided(at=3.0, call_id="2", decision=DENY, by=decided().by))
    assert store.board.calls["2"].decision == DENY
    store.record(decided("4"))
    assert isinstance(store.board.calls["4"].state, Queued)
    assert "4" in store.board.queued
    assert "4" not in store.board.waiting
    store.close()
    again = Store(Journal(path))
    assert {"2", "4"}.isdisjoint(again.board.calls.unproven)
    assert again.call("2").decision == DENY
    again.close()


async def test_records_are_kept_while_the_supervisor_works(path: Path):
    store = Store(Journal(path))
    first = KEPT_WHOLE + MORE + 1
    for number in range(first, first + KEPT_AT_ONCE):
        store.record(*arrived(number))
    # Nothing is closed: this is what a killed supervisor leaves.
    other = Store(Journal(path))
    assert len(other.board.calls.unproven) >= KEPT_AT_ONCE
    assert list(other.board.waiting) == list(store.board.waiting)
    other.close()
    store.close()


async def test_a_call_with_a_preview_is_not_kept(path: Path):
    store = Store(Journal(path))
    store.record(PreviewStarted(at=3.0, call_id="1", attempt=1, by=decided().by))
    for number in range(1, KEPT_WHOLE + MORE + 1):
        assert isinstance(store.board.calls[str(number)].state, Waiting)
    store._kept.keep_all()
    store.close()
    again = Store(Journal(path))
    assert "1" not in again.board.calls.unproven
    assert list(again.board.previewed) == ["1"]
    again.close()
