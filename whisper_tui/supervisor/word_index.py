"""An index over parts of words, in a file of its own beside the journal: made from it while nobody waits, for searches.

It holds which calls have which three letters in a row. Nothing is lost with it: what it does not cover, or does not
fit, is read in the journal, and it is made again.
"""

import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

EVERY = 10_000
"""Calls that are searched without it before they are added."""

SLICE = 5_000
"""Calls that are added at once: a tenth of a second."""

PAUSE_S = 0.02
"""Seconds between two slices, for whoever else wants the disk."""

LONGEST_S = 10.0
"""How long the end waits for the slice that is under way."""

MOST_PARTS = 16
"""Parts of a text that are looked up; the calls that have them all are then compared with the text."""

_PART = 3
_FILE = "words.sqlite"
_TABLES = """
CREATE VIRTUAL TABLE IF NOT EXISTS parts
    USING fts5(words, content='', columnsize=0, detail=none, tokenize='trigram case_sensitive 1');
CREATE TABLE IF NOT EXISTS covered (one INTEGER PRIMARY KEY CHECK (one = 1), calls INTEGER, seq INTEGER, link BLOB);
"""
_ADD = "INSERT INTO parts (rowid, words) SELECT id, replace(words, char(0), ' ') FROM calls WHERE id > ? AND id <= ?"
_NOTE = "INSERT OR REPLACE INTO covered SELECT 1, ?, seq, link FROM events ORDER BY seq DESC LIMIT 1"
_COVERED = """
SELECT covered.calls FROM search.covered JOIN main.events ON events.seq = covered.seq AND events.link = covered.link
"""


class WordIndex:
    """Adds calls in a thread, over a connection of its own. Nothing depends on its success."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._next = EVERY
        self._thread: threading.Thread | None = None
        self._ends = threading.Event()

    def reached(self, calls: int) -> None:
        """The journal has so many calls now."""
        if calls < self._next or (self._thread is not None and self._thread.is_alive()):
            return
        self._next = calls + EVERY
        self._thread = threading.Thread(target=self._extend, name="index of words", daemon=True)
        with suppress(RuntimeError):  # No more threads: searches take as long as without it.
            self._thread.start()

    def close(self) -> None:
        """Wait for the slice that is under way."""
        self._ends.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(LONGEST_S)

    def _extend(self) -> None:
        file = file_of(self._journal)
        try:
            extend(self._journal, self._ends)
        except sqlite3.OperationalError:
            return  # The disk is full, the file is locked, or this SQLite knows no such index.
        except (sqlite3.Error, OSError):
            for name in (file, *(file.with_name(f"{file.name}-{more}") for more in ("wal", "shm"))):
                with suppress(OSError):
                    name.unlink(missing_ok=True)


def file_of(journal: Path) -> Path:
    """Where the index of a journal is."""
    return journal.with_name(_FILE)


def extend(journal: Path, ends: threading.Event) -> None:
    """Cover all calls that there are, in slices, until told to end. Raises `sqlite3.Error` and `OSError`."""
    file = file_of(journal)
    file.touch(mode=0o600)
    with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)) as db:
        (last,) = db.execute("SELECT max(id) FROM calls").fetchone()
        with closing(sqlite3.connect(file, isolation_level=None)) as own:
            own.execute("PRAGMA journal_mode = WAL")
            own.execute("PRAGMA synchronous = NORMAL")
            own.executescript(_TABLES)
        db.execute("ATTACH ? AS search", (str(file),))
        first = covered(db)
        if not first:
            db.executescript("DELETE FROM search.covered; INSERT INTO search.parts (parts) VALUES ('delete-all');")
        while first < (last or 0) and not ends.wait(PAUSE_S):
            upto = min(first + SLICE, last)
            db.execute("BEGIN")
            db.execute(_ADD.replace("INTO parts", "INTO search.parts"), (first, upto))
            db.execute(_NOTE.replace("INTO covered", "INTO search.covered"), (upto,))
            db.execute("COMMIT")
            first = upto


def attach(db: sqlite3.Connection, journal: Path) -> int:
    """Have a connection to the journal search the index as well. Returns up to which call it knows them all.

    Raises `sqlite3.Error` where it cannot be used.
    """
    file = file_of(journal)
    if not file.exists():
        return 0
    db.execute("ATTACH ? AS search", (f"{file.absolute().as_uri()}?mode=ro",))
    return covered(db)


def covered(db: sqlite3.Connection) -> int:
    """Up to which call the attached index knows them all; none of a journal that it was not made from."""
    return next((int(calls) for (calls,) in db.execute(_COVERED)), 0)


def parts_of(text: str) -> str | None:
    """What to ask the index for. None: it knows nothing of such a text."""
    parts = list(dict.fromkeys(text[at : at + _PART] for at in range(len(text) - _PART + 1)))
    if not parts or "\0" in text:
        return None
    step = max(1, len(parts) // MOST_PARTS)
    return " AND ".join('"' + part.replace('"', '""') + '"' for part in parts[::step])
