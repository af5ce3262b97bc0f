"""The chain of the journal: whatever is changed in it afterwards shows."""

import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.model.build import judged, opened, whole_life
from tests.rows import each_row
from whisper_tui.model.errors import BadStateDirectory, InvalidRequest, Unavailable
from whisper_tui.supervisor.journal.journal import Journal
from whisper_tui.supervisor.journal.sqlite_file import FORMAT, START, Head, check_file

FACTS = (opened(), *whole_life(), *(judged() for _ in range(20)))
MORE = (judged(),)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.append(FACTS[:5], durable=True)
    journal.append(FACTS[5:])
    journal.close()
    return tmp_path / "journal.sqlite"


def tamper(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()


def test_a_journal_that_nobody_touched_is_whole(path: Path) -> None:
    verdict = check_file(path)
    assert verdict.problem is None
    assert verdict.head is not None and verdict.events == verdict.head.seq == len(FACTS)


def test_the_chain_continues_after_another_process(path: Path) -> None:
    before = check_file(path).head
    again = Journal(path)
    again.append(MORE)
    again.close()
    verdict = check_file(path, before)
    assert verdict.problem is None
    assert verdict.events == len(FACTS) + 1


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE events SET body = replace(body, 'ada', 'eve') WHERE body LIKE '%ada%'", "was changed"),
        ("UPDATE events SET body = body || ' ' WHERE seq = 1", "event 1 was changed"),
        ("DELETE FROM events WHERE seq = 4", "event 4 was taken out"),
        ("DELETE FROM events WHERE seq < 4", "the events 1 to 3 were taken out"),
        ("UPDATE events SET link = zeroblob(32) WHERE seq = 7", "event 7 was changed"),
        ("UPDATE events SET link = NULL WHERE seq = 7", "event 7 was changed"),
        ("UPDATE events SET salt = zeroblob(16) WHERE seq = 7", "event 7 was changed"),
        ("UPDATE events SET salt = NULL WHERE seq = 7", "event 7 was changed"),
        ("UPDATE events SET salt = 'text' WHERE seq = 7", "event 7 was changed"),
        (
            "UPDATE events SET salt = CAST(salt || CAST(body AS BLOB) AS BLOB), body = '' WHERE seq = 7",
            "event 7 was changed",
        ),
        ("UPDATE events SET body = salt || CAST(body AS BLOB), salt = x'' WHERE seq = 7", "event 7 was changed"),
        ("UPDATE events SET about = about || '0' WHERE seq = 7", "event 7 was changed"),
        ("UPDATE events SET about = NULL WHERE seq = 7", "event 7 was changed"),
        ("INSERT INTO events (seq, body) SELECT max(seq) + 1, '{}' FROM events", "was changed"),
    ],
)
def test_a_change_is_found_and_named(path: Path, statement: str, problem: str) -> None:
    tamper(path, statement)
    assert problem in (check_file(path).problem or "")


def test_two_events_that_changed_places_are_found(path: Path) -> None:
    tamper(
        path,
        "UPDATE events SET seq = -1 WHERE seq = 2",
        "UPDATE events SET seq = 2 WHERE seq = 3",
        "UPDATE events SET seq = 3 WHERE seq = -1",
    )
    assert "event 2 was changed" in (check_file(path).problem or "")


def test_a_journal_of_a_later_format_is_not_taken_for_a_changed_one(path: Path) -> None:
    tamper(path, f"PRAGMA user_version = {FORMAT + 1}", "UPDATE events SET link = zeroblob(32)")
    with pytest.raises(BadStateDirectory, match="of a newer whisper_tui"):
        check_file(path)
    # No version has such a number: it was damaged.
    tamper(path, "PRAGMA user_version = 1000000")
    assert "event 1 was changed" in (check_file(path).problem or "")


def cut_off(path: Path) -> None:
    tamper(path, "DELETE FROM events WHERE seq > 20")


def written_anew(path: Path) -> None:
    path.unlink()
    journal = Journal(path)
    journal.append((*FACTS[1:], FACTS[0], *MORE))
    journal.close()


@pytest.mark.parametrize(("change", "problem"), [(cut_off, "ends at 20"), (written_anew, "another one")])
def test_a_noted_end_finds_what_the_chain_alone_cannot(
    path: Path, change: Callable[[Path], None], problem: str
) -> None:
    head = check_file(path).head
    assert head is not None
    noted = Head.parse(head.text())
    change(path)
    assert check_file(path).problem is None
    assert problem in (check_file(path, noted).problem or "")


@each_row("text", ["", "5", "x:00", "5:00", "0:" + "00" * 32, "-1:" + "00" * 32])
def test_an_invalid_end_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        Head.parse(text)


def test_a_journal_without_a_chain_gets_one_when_it_is_opened(path: Path) -> None:
    columns = ("link", "salt", "about")
    tamper(path, *(f"ALTER TABLE events DROP COLUMN {each}" for each in columns), "PRAGMA user_version = 1")
    journal = Journal(path)
    journal.append(MORE)
    journal.close()
    verdict = check_file(path)
    assert (verdict.problem, verdict.events) == (None, len(FACTS) + 1)


def test_a_journal_of_the_format_before_salts_keeps_its_links_and_its_noted_end(path: Path) -> None:
    end = START
    with sqlite3.connect(path) as db:
        for seq, body in db.execute("SELECT seq, body FROM events ORDER BY seq").fetchall():
            end = hashlib.sha256(end + seq.to_bytes(8, "big") + body.encode()).digest()
            db.execute("UPDATE events SET link = ? WHERE seq = ?", (end, seq))
    db.close()
    tamper(path, *(f"ALTER TABLE events DROP COLUMN {each}" for each in ("salt", "about")), "PRAGMA user_version = 7")
    noted = check_file(path).head
    assert noted == Head(len(FACTS), end)
    journal = Journal(path)
    journal.append(MORE)
    journal.close()
    verdict = check_file(path, noted)
    assert (verdict.problem, verdict.events) == (None, len(FACTS) + 1)


def test_what_an_event_is_about_is_in_its_link(path: Path) -> None:
    with sqlite3.connect(path) as db:
        found = dict(db.execute("SELECT json_extract(body, '$.kind'), about FROM events ORDER BY seq DESC"))
    db.close()
    assert found["session_opened"] == "s1"
    assert found["submitted"] == "1 s1"
    assert found["decided"] == "1"


def test_a_missing_or_unreadable_journal_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no journal"):
        check_file(tmp_path / "journal.sqlite")
    (tmp_path / "journal.sqlite").write_bytes(b"no database" * 1000)
    assert "is damaged: file is not a database" in (check_file(tmp_path / "journal.sqlite").problem or "")


def test_each_of_several_changes_is_named_and_what_is_as_it_was_is_counted(path: Path) -> None:
    tamper(path, "UPDATE events SET body = body || ' ' WHERE seq IN (3, 9)")
    tamper(path, "UPDATE events SET link = zeroblob(32) WHERE seq = 15", "DELETE FROM events WHERE seq = 20")
    verdict = check_file(path)
    for problem in ("event 3 was changed", "event 9 was changed", "event 15 was changed", "event 20 was taken out"):
        assert problem in (verdict.problem or "")
    assert (verdict.problem or "").count("event") == 4
    assert verdict.events == len(FACTS) - 5


def test_damage_of_the_pages_around_the_events_is_named(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = db.execute("PRAGMA page_size").fetchone()
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events_by_call'").fetchone()
    db.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    assert "pages of the file are damaged" in (check_file(path).problem or "")


def test_a_journal_behind_a_link_is_written_and_flushed_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "other disk").mkdir()
    Journal(tmp_path / "other disk" / "journal.sqlite").close()
    (tmp_path / "journal.sqlite").symlink_to(tmp_path / "other disk" / "journal.sqlite")
    journal = Journal(tmp_path / "journal.sqlite")
    journal.append(MORE)
    journal.flush()
    journal.close()
    assert check_file(tmp_path / "journal.sqlite").events == 1
