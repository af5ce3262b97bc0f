"""The SQLite file of the journal: opened and brought up to date, and its troubles told in words."""

import sqlite3
from contextlib import closing
from pathlib import Path

from whisper_tui.model.errors import BadStateDirectory, JournalFailed, Unavailable
from whisper_tui.supervisor.chain import START, link
from whisper_tui.supervisor.checkpoints import LATEST_PAGES

FORMAT = 2
"""Version of the tables and of the events in them."""

OPENING_S = 5.0
"""Seconds to wait at the start for whoever else has the file locked."""
BUSY_S = 0.25
"""The same for each write. Meanwhile nobody else is served, so whoever wants it written tries again."""

_TABLES = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY,
    call_id INTEGER,
    session_id TEXT,
    body TEXT NOT NULL,
    link BLOB
);
CREATE INDEX IF NOT EXISTS events_by_call ON events (call_id, seq) WHERE call_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_by_session ON events (session_id, seq) WHERE session_id IS NOT NULL;
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    key TEXT,
    open INTEGER NOT NULL DEFAULT 1,
    words TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS refused (seq INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sessions_by_name ON sessions (name);
CREATE UNIQUE INDEX IF NOT EXISTS calls_by_key ON calls (session_id, key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS calls_open ON calls (id) WHERE open = 1;
CREATE INDEX IF NOT EXISTS calls_by_session ON calls (session_id, id);
"""

_ADVICE = {
    sqlite3.SQLITE_FULL: "Make room on the disk",
    sqlite3.SQLITE_BUSY: "Let the program that has it locked, such as a backup or an sqlite3 shell, come to its end",
    sqlite3.SQLITE_LOCKED: "Let the program that has it locked, such as a backup or an sqlite3 shell, come to its end",
    sqlite3.SQLITE_READONLY: "Make the file and its file system writable",
    sqlite3.SQLITE_IOERR: "Look for errors of the disk in the log of the system, and make room on it",
    sqlite3.SQLITE_CANTOPEN: "Check its permissions, the free disk space and the limit of open files",
    sqlite3.SQLITE_CORRUPT: "Move it away: a new one is begun. whisper-tui history verify tells what can still be read",
}
"""What to do, by SQLite's primary result code."""
_PRIMARY = 0xFF


def open_file(path: Path) -> sqlite3.Connection:
    """Open a journal, made or brought up to date if need be. Raises `BadStateDirectory`."""
    try:
        path.touch(mode=0o600, exist_ok=True)
        db = sqlite3.connect(path, isolation_level=None, timeout=OPENING_S)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute(f"PRAGMA wal_autocheckpoint = {LATEST_PAGES}")
        _check_format(db, path)
        columns = {row[1] for row in db.execute("PRAGMA table_info(events)")}
        if columns and "link" not in columns:
            _add_links(db)
        db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {FORMAT}; COMMIT;")
        _add_names(db)
        db.execute(f"PRAGMA busy_timeout = {1000 * BUSY_S:.0f}")
    except (sqlite3.Error, OSError) as error:
        raise _not_opened(path, error) from error
    return db


def check_format(path: Path) -> None:
    """Raises `BadStateDirectory` for a journal that this program cannot go on with; changes nothing."""
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=OPENING_S)) as db:
            _check_format(db, path)
    except sqlite3.Error as error:
        raise _not_opened(path, error) from error


def not_written(path: Path, error: sqlite3.Error) -> JournalFailed:
    """What whoever wanted something written is told. Its lines are numbered here, so only others can take a number."""
    if _primary(error) == sqlite3.SQLITE_CONSTRAINT:
        return JournalFailed(
            f"the journal {path} was changed by another program, which must not write there ({error})",
            hint="Nothing was done. See what whisper-tui history verify says, then whisper-tui restart: what runs goes "
            "on, and what was approved and has not started is asked about again",
        )
    message = f"the journal {path} cannot be written: {error}"
    return JournalFailed(message, hint=f"Nothing was done. {_advice(error)}, then try again")


def not_read(path: Path, error: sqlite3.Error) -> Unavailable:
    """What whoever wanted to read is told."""
    return Unavailable(f"the journal {path} cannot be read: {error}", hint=f"{_advice(error)}, then try again")


def _check_format(db: sqlite3.Connection, path: Path) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > FORMAT:
        raise BadStateDirectory(
            f"the journal {path} has format {version}, of a newer whisper_tui; this one reads {FORMAT}",
            hint="Install the newer version again, or give this one another directory with --home",
        )


def _not_opened(path: Path, error: Exception) -> BadStateDirectory:
    message = f"the journal {path} cannot be opened: {error}"
    return BadStateDirectory(message, hint=f"{_advice(error)}, or give another directory with --home")


def _advice(error: Exception) -> str:
    return _ADVICE.get(_primary(error), "Check its permissions and the free disk space")


def _primary(error: Exception) -> int:
    return (getattr(error, "sqlite_errorcode", None) or 0) & _PRIMARY


def _add_names(db: sqlite3.Connection) -> None:
    """Programs that did not keep the names of sessions may have opened some: the first fact about each tells it."""
    (noted,) = db.execute("SELECT count(*) FROM sessions").fetchone()
    (opened,) = db.execute("SELECT ifnull(max(value), 0) FROM counters WHERE name = 'session'").fetchone()
    if noted < opened:
        db.execute(
            "INSERT OR IGNORE INTO sessions SELECT session_id, json_extract(body, '$.session.name') FROM events"
            " WHERE seq IN (SELECT min(seq) FROM events WHERE session_id IS NOT NULL GROUP BY session_id)"
            " AND json_extract(body, '$.session.name') IS NOT NULL"
        )


def _add_links(db: sqlite3.Connection) -> None:
    """The first format had no chain: it begins with what is there."""
    end = START
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("ALTER TABLE events ADD COLUMN link BLOB")
        for seq, body in db.execute("SELECT seq, body FROM events ORDER BY seq").fetchall():
            end = link(end, seq, body)
            db.execute("UPDATE events SET link = ? WHERE seq = ?", (end, seq))
