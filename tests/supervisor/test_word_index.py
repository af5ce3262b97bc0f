"""The index of words finds what reading all calls finds, and is never needed."""

import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.peers.long_journal import write
from whisper_tui.model.api import HistoryQuery
from whisper_tui.supervisor.journal import journal_search
from whisper_tui.supervisor.journal import journal_search as word_index
from whisper_tui.supervisor.journal.journal import Journal
from whisper_tui.supervisor.journal.journal_search import extend, file_of

CALLS = 300
QUERIES = (
    HistoryQuery(text="target-29"),
    HistoryQuery(text="TARGET-29", limit=5),
    HistoryQuery(text="target", before="250", after="240"),
    HistoryQuery(text="target", before="150", limit=20),
    HistoryQuery(text="target", after="295"),
    HistoryQuery(text="-j4 target-7", session_id="s1"),
    HistoryQuery(text="target-7", session="benchmark"),
    HistoryQuery(text="target-7", session="nobody"),
    HistoryQuery(text="target-7", open_only=True),
    HistoryQuery(text='a "quoted* word'),
    HistoryQuery(text="\n/srv/project\n"),
    HistoryQuery(text="7"),
    HistoryQuery(text="absent"),
    HistoryQuery(text="target\0"),
)


def found(path: Path) -> list[list[str]]:
    return [journal_search._find(path, query) for query in QUERIES]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "journal.sqlite"
    write(file, CALLS)
    return file


def indexed(path: Path) -> int:
    """Up to which call the index knows them."""
    extend(path, threading.Event())
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        return word_index.attach(db, path)


def test_search_results_are_the_same_with_and_without_the_index(path: Path, monkeypatch) -> None:
    expected = found(path)
    assert [len(ids) for ids in expected[:5]] == [11, 5, 9, 20, 5]
    assert indexed(path) == CALLS
    assert found(path) == expected
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        copy = "SELECT id + 1000, session_id, 0, words FROM calls WHERE id > 280"
        db.execute(f"INSERT INTO calls (id, session_id, open, words) {copy}")
    newer = found(path)
    assert newer[0][:2] == ["1299", "1298"] and newer[0][-11:] == expected[0]
    file_of(path).unlink()
    assert found(path) == newer


def test_a_search_uses_the_index_for_the_calls_that_it_covers(path: Path, monkeypatch) -> None:
    indexed(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE calls SET words = 'nothing of it'")
    asked = list[str | None]()
    original = journal_search.statement

    def noted(query: HistoryQuery, parts: str | None = None):
        asked.append(parts)
        return original(query, parts)

    monkeypatch.setattr(journal_search, "statement", noted)
    assert journal_search._find(path, HistoryQuery(text="target-29")) == []
    assert asked[-1] is not None and '"tar"' in asked[-1]


@pytest.mark.parametrize("spoilt", [b"", b"no database at all" * 1000])
def test_a_damaged_index_is_not_searched_and_is_rebuilt(path: Path, spoilt: bytes) -> None:
    expected = found(path)
    indexed(path)
    file_of(path).write_bytes(spoilt)
    assert found(path) == expected
    index = word_index.WordIndex(path)
    for _ in range(2):
        index._extend()
    assert found(path) == expected
    assert indexed(path) == CALLS


def test_an_index_of_another_journal_is_rebuilt(path: Path) -> None:
    indexed(path)
    path.unlink()
    write(path, CALLS // 2)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE calls SET words = 'other words'")
        db.execute("UPDATE events SET link = randomblob(32)")
    assert len(journal_search._find(path, HistoryQuery(text="other words"))) == 50
    assert indexed(path) == CALLS // 2
    assert len(journal_search._find(path, HistoryQuery(text="other words"))) == 50
    assert journal_search._find(path, HistoryQuery(text="target")) == []


def test_a_journal_makes_it_by_itself_beside_the_work_and_for_this_user_alone(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(word_index, "EVERY", 100)
    journal = Journal(path)
    assert journal._index._thread is not None
    journal._index._thread.join(60)
    journal.close()
    assert stat.S_IMODE(file_of(path).stat().st_mode) == 0o600
    assert indexed(path) == CALLS


def test_a_short_journal_has_none(path: Path) -> None:
    Journal(path).close()
    assert not file_of(path).exists()
