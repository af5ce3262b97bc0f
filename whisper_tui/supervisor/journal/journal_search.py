"""Full-text search for calls in the journal, in a thread, with a trigram index in a file of its own (decision 26)."""

import asyncio
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.call import Argv, ToolCall
from whisper_tui.supervisor.journal.sqlite_file import not_read, open_read_only

LONGEST = 20_000
"""Characters of one call that are searched."""


def search_text(call: ToolCall) -> str:
    """Return the searched text of a call: tool, command, directory and description, case-folded, a line each."""
    command = call.spec.command
    words = " ".join(command.words()) if isinstance(command, Argv) else command.text
    text = "\n".join((call.tool, words, call.spec.cwd, call.description))[:LONGEST]
    return text.casefold().encode("utf-8", "replace").decode()


EVERY = 10_000
"""Limit of calls that are missing from the index; a search reads those from the journal."""

SLICE = 5_000
"""Calls that are added in one transaction, which takes about a tenth of a second."""

PAUSE_S = 0.02
"""Seconds between two transactions, so that the journal's own writes are not delayed."""

LONGEST_S = 10.0
"""Seconds that `close` waits for the present transaction."""

MOST_PARTS = 16
"""Limit of trigrams that a query looks up; the calls with all of them are then compared with the whole text."""

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
    """Extends the trigram index in a thread, over a connection of its own."""

    # The index is only a cache: searches read the calls that it misses from the journal, so every failure here is
    # ignored, and a damaged index is deleted and made again.

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._next = EVERY
        self._thread: threading.Thread | None = None
        self._ends = threading.Event()

    def reached(self, calls: int) -> None:
        """Extend the index if the journal has enough new calls. `calls`: their present number."""
        if calls < self._next or (self._thread is not None and self._thread.is_alive()):
            return
        self._next = calls + EVERY
        self._thread = threading.Thread(target=self._extend, name="index of words", daemon=True)
        # Without another thread, searches are as slow as without an index.
        with suppress(RuntimeError):
            # A daemon thread: a slow disk must not keep the process from ending.
            self._thread.start()

    def close(self) -> None:
        """Wait for the present transaction."""
        self._ends.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(LONGEST_S)

    def _extend(self) -> None:
        file = file_of(self._journal)
        try:
            extend(self._journal, self._ends)
        except sqlite3.OperationalError:
            # The disk is full, the file is locked, or this SQLite has no trigram tokenizer: nothing is damaged.
            return
        except (sqlite3.Error, OSError):
            for name in (file, *(file.with_name(f"{file.name}-{more}") for more in ("wal", "shm"))):
                with suppress(OSError):
                    name.unlink(missing_ok=True)


def file_of(journal: Path) -> Path:
    """Return the path of the index of a journal."""
    return journal.with_name(_FILE)


def extend(journal: Path, ends: threading.Event) -> None:
    """Add all missing calls to the index until `ends` is set. Raises `sqlite3.Error` and `OSError`."""
    file = file_of(journal)
    file.touch(mode=0o600)
    with closing(open_read_only(journal)) as db:
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
            # Small transactions, so that a search in between sees what is done.
            upto = min(first + SLICE, last)
            db.execute("BEGIN")
            db.execute(_ADD.replace("INTO parts", "INTO search.parts"), (first, upto))
            db.execute(_NOTE.replace("INTO covered", "INTO search.covered"), (upto,))
            db.execute("COMMIT")
            first = upto


def attach(db: sqlite3.Connection, journal: Path) -> int:
    """Attach the index to a connection to the journal, and return the last call that it covers.

    Raises `sqlite3.Error` if the index cannot be used.
    """
    file = file_of(journal)
    if not file.exists():
        return 0
    db.execute("ATTACH ? AS search", (f"{file.absolute().as_uri()}?mode=ro",))
    return covered(db)


def covered(db: sqlite3.Connection) -> int:
    """Return the last call that the attached index covers. 0: it belongs to another journal."""
    # `_COVERED` compares the hash chain, so an index of a journal that was replaced counts as empty.
    return next((int(calls) for (calls,) in db.execute(_COVERED)), 0)


def parts_of(text: str) -> str | None:
    """Return the full-text query for a text. None: the index cannot find it."""
    parts = list(dict.fromkeys(text[at : at + _PART] for at in range(len(text) - _PART + 1)))
    if not parts or "\0" in text:
        return None
    # Spread over the text: neighbouring trigrams occur in the same calls.
    step = max(1, len(parts) // MOST_PARTS)
    return " AND ".join('"' + part.replace('"', '""') + '"' for part in parts[::step])


_EVERYWHERE = "calls"
# CROSS JOIN makes SQLite begin with the full-text index (decision 26).
_INDEXED = "search.parts CROSS JOIN calls ON calls.id = parts.rowid"


def statement(query: HistoryQuery, parts: str | None = None) -> tuple[str, tuple[object, ...]]:
    """Return the SQL for the ids of the calls that match, newest first. `parts` is a full-text query."""
    number = "calls.id" if parts is None else "parts.rowid"
    conditions, values = ["1"], list[object]()
    for condition, value in (
        ("parts MATCH ?", parts),
        (f"{number} < ?", query.before and int(query.before)),
        (f"{number} > ?", query.after and int(query.after)),
        # The text may be the id of a session or a name, which several sessions may share.
        ("session_id IN (SELECT ? UNION ALL SELECT id FROM sessions WHERE name = ?)", query.session),
        ("session_id = ?", query.session_id),
        ("instr(calls.words, ?)", query.text.casefold() or None),
    ):
        if value is not None:
            conditions.append(condition)
            values += [value] * condition.count("?")
    if query.open_only:
        conditions.append("open = 1")
    source = _EVERYWHERE if parts is None else _INDEXED
    sql = f"SELECT calls.id FROM {source} WHERE {' AND '.join(conditions)} ORDER BY {number} DESC LIMIT ?"  # noqa: S608
    return sql, (*values, query.limit)


async def find_beside(path: Path, query: HistoryQuery) -> list[str]:
    """Ids of the calls that match, read in a thread on a connection of its own. Raises `Unavailable`."""
    return await asyncio.to_thread(_find, path, query)


def _find(path: Path, query: HistoryQuery) -> list[str]:
    try:
        with closing(open_read_only(path)) as db:
            parts = parts_of(query.text.casefold())
            # A text below three characters has no trigram.
            if parts is not None:
                # The index may be damaged or half removed; the journal itself has every call.
                with suppress(sqlite3.Error):
                    return _by_index(db, attach(db, path), query, parts)
            return _ids(db, query)
    except sqlite3.Error as error:
        raise not_read(path, error) from error


def _by_index(db: sqlite3.Connection, covered: int, query: HistoryQuery, parts: str) -> list[str]:
    """Return the matches among the newest calls, which the index does not cover yet, and then the indexed ones."""
    newest = query.model_copy(update={"after": str(max(covered, int(query.after or 0)))})
    found = _ids(db, newest)
    left = query.limit - len(found)
    if not left or not covered:
        return found
    before = min(covered + 1, int(query.before or covered + 1))
    older = query.model_copy(update={"limit": left, "before": str(before)})
    return found + _ids(db, older, parts)


def _ids(db: sqlite3.Connection, query: HistoryQuery, parts: str | None = None) -> list[str]:
    return [str(row[0]) for row in db.execute(*statement(query, parts))]
