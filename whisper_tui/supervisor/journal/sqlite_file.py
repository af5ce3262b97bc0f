"""The SQLite file of the journal: its hash chain (decision 2), opening, migration and checkpoints, and its errors."""

import hashlib
import os
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from whisper_tui.model.errors import BadStateDirectory, InvalidRequest, JournalFailed, Unavailable

START = bytes(32)
"""Predecessor of the first link."""


class Head(NamedTuple):
    """The end of a chain. A copy of it, kept elsewhere, proves later that nothing before it was changed or removed."""

    seq: int
    link: bytes

    def text(self) -> str:
        """The head as text, to be kept elsewhere."""
        return f"{self.seq}:{self.link.hex()}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Parse the text of a head. Raises `InvalidRequest`."""
        number, _, digits = text.partition(":")
        try:
            head = cls(int(number), bytes.fromhex(digits))
        except ValueError:
            head = cls(0, b"")
        if head.seq < 1 or len(head.link) != len(START):
            raise InvalidRequest(
                f"{text!r} is not the end of a journal", hint="Use what whisper-tui history verify has printed"
            )
        return head


class ChainCheck(NamedTuple):
    """Result of a check."""

    head: Head | None
    """The end of the chain. None: there are no events."""
    events: int
    """Number of events that are as they were written."""
    problem: str | None
    """A clause about events that were changed, taken out or cannot be read. None: the chain is intact."""


SALT_BYTES = 16
_CHAIN = b"whisper-chain-2"


class LinkedText(NamedTuple):
    """The text of an event as the file holds it, with what its link covers besides."""

    seq: int
    body: bytes
    salt: bytes | None
    """Makes a guess at a text that was left out impossible to confirm. None: of formats before 8, which had none."""
    about: str
    """The call, session or phone that it is about, as the column has it."""

    @classmethod
    def read(cls, seq: int, body: object, salt: object, about: object) -> "LinkedText":
        """Take columns of the file, any of which may have become a value of another type."""
        return cls(
            seq,
            body if isinstance(body, bytes) else b"",
            # A text could be moved into a longer salt: the digest over both would be the same, and the text gone.
            salt if isinstance(salt, bytes) and len(salt) == SALT_BYTES else None,
            about if isinstance(about, str) else "",
        )

    def link(self, previous: bytes) -> bytes:
        """Return its link, with the link before it."""
        if self.salt is None:
            signed = self.seq < 0
            return hashlib.sha256(previous + self.seq.to_bytes(8, "big", signed=signed) + self.body).digest()
        return link_over(previous, self.seq, self.about, commitment(self.salt, self.body))


def commitment(salt: bytes, body: bytes) -> bytes:
    """Return the digest that stands for a text in its link: it proves the text, and tells nothing without its salt."""
    return hashlib.sha256(salt + body).digest()


def link_over(previous: bytes, seq: int, about: str, committed: bytes) -> bytes:
    """Return the link of an event of which only the commitment is known (decision 41)."""
    number = seq.to_bytes(8, "big", signed=seq < 0)
    return hashlib.sha256(_CHAIN + previous + number + committed + about.encode("utf-8", "surrogatepass")).digest()


def written(seq: int, body: str, about: str) -> LinkedText:
    """Return the text of a new event, with a salt of its own."""
    return LinkedText(seq, body.encode("utf-8", "surrogatepass"), os.urandom(SALT_BYTES), about)


Row = tuple[int, int | None, bytes | None, object, object, bytes | None]
"""Number, call, text, salt, subject and link of an event."""

MOST_PROBLEMS = 10
"""Problems that a check names."""


def check(rows: Iterable[Row], noted: Head | None = None) -> ChainCheck:
    """Check the chain over all events, oldest first. One that was changed hides none of those after it."""
    ends, expected, events = [START], 1, 0
    head: Head | None = None
    problems = list[str]()
    try:
        for seq, call_id, body, salt, about, stored in rows:
            if seq != expected:
                problems.append(f"{_missing(expected, seq - 1)} taken out of the journal")
            text = LinkedText.read(seq, body, salt, about)
            made = [text.link(end) for end in ends]
            if stored in made:
                events, ends = events + 1, [stored]
            else:
                if seq == expected:
                    problems.append(f"event {seq} was changed{_of_call(call_id)}: {_about(body)}")
                # The next one says which of them is right: the changed part may be the link alone.
                ends = [stored, *made] if isinstance(stored, bytes) else made
            expected, head = seq + 1, Head(seq, ends[0])
            # A journal that was rewritten as a whole has an intact chain; only a head noted elsewhere exposes it.
            if noted is not None and noted.seq == seq and noted.link not in ends:
                problems.append(f"the journal up to event {seq} is another one than was noted")
    except Unavailable as error:
        problems.append(f"the events from {expected} on cannot be read ({error.message})")
    else:
        if noted is not None and (head is None or head.seq < noted.seq):
            ends_at = head.seq if head else 0
            problems.append(f"the journal was noted up to event {noted.seq} and ends at {ends_at}")
    return ChainCheck(head, events, _listed(problems))


def _listed(problems: list[str]) -> str | None:
    left = len(problems) - MOST_PROBLEMS
    return "; ".join([*problems[:MOST_PROBLEMS], *([f"and {left:,} more"] if left > 0 else [])]) or None


def _missing(first: int, last: int) -> str:
    return f"event {first} was" if first >= last else f"the events {first} to {last} were"


def _of_call(call_id: object) -> str:
    return f", of call {call_id}" if isinstance(call_id, int) else ""


def _about(body: bytes | None) -> str:
    text = (body or b"").decode(errors="replace")
    return text if len(text) <= 200 else text[:200] + "…"


EVERY = 200
"""Writes between two checkpoints: with about five pages each, as often as SQLite would by itself."""

LATEST_PAGES = 20_000
"""Pages of the log at which SQLite makes a checkpoint itself, if those in the thread have failed."""

LONGEST_S = 10.0
"""Seconds that `close` waits for a running checkpoint."""


class Checkpoints:
    """Makes WAL checkpoints, one at a time, in a thread with its own connection. Nothing depends on their success."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writes = 0
        self._thread: threading.Thread | None = None

    def written(self) -> None:
        """Count a write, and start a checkpoint if one is due."""
        self._writes += 1
        if self._writes >= EVERY and (self._thread is None or not self._thread.is_alive()):
            self._writes = 0
            self._thread = threading.Thread(target=self._make, name="checkpoint of the journal", daemon=True)
            with suppress(RuntimeError):  # No more threads: SQLite does it by itself in the end.
                self._thread.start()

    def close(self) -> None:
        """Wait for the running checkpoint."""
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(LONGEST_S)

    def _make(self) -> None:
        with suppress(sqlite3.Error), closing(sqlite3.connect(self._path, timeout=0.0)) as db:
            # PASSIVE waits for nobody and is no obstacle to writers.
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


FORMAT = 9
"""Version of the tables and of the events in them.

Events forbid unknown fields, so each change of their shape raises it (`tests/journals/shape.py`): an older program then
says so before it stops anything, instead of failing at the first event that it does not know.
"""

OPENING_S = 5.0
"""Seconds to wait at the start for another process that has locked the file."""
REPORT_S = 10.0
"""The same for a report that is read without a supervisor."""
BUSY_S = 0.25
"""The same for each write: short, because the event loop waits meanwhile; the caller tries again."""

_TABLES = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY,
    call_id INTEGER,
    session_id TEXT,
    body TEXT NOT NULL,
    link BLOB,
    salt BLOB,
    about TEXT
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
CREATE TABLE IF NOT EXISTS waiting (
    id INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    digest BLOB NOT NULL,
    marks TEXT NOT NULL,
    packed BLOB NOT NULL
);
"""

_TABLE_NAMES = re.findall(r"TABLE IF NOT EXISTS (\w+)", _TABLES)

_ADVICE = {
    sqlite3.SQLITE_FULL: "Make room on the disk",
    sqlite3.SQLITE_BUSY: "Wait for the program that has locked it, such as a backup or an sqlite3 shell, or end it",
    sqlite3.SQLITE_LOCKED: "Wait for the program that has locked it, such as a backup or an sqlite3 shell, or end it",
    sqlite3.SQLITE_READONLY: "Make the file and its file system writable",
    sqlite3.SQLITE_IOERR: "Look for errors of the disk in the log of the system, and make room on it",
    sqlite3.SQLITE_CANTOPEN: "Check its permissions, the free disk space and the limit of open files",
}
"""Hints by SQLite's primary result code."""
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
"""Codes for a file that is not as it was written. All statements are right, so an error in one is one of the file."""
_PRIMARY = 0xFF
NEWEST_PLAUSIBLE = 9999
"""The newest format that a program may ever have. Another number is a damaged one."""


def open_file(path: Path) -> sqlite3.Connection:
    """Open a journal; create or migrate it if needed. Raises `BadStateDirectory`."""
    try:
        path.touch(mode=0o600, exist_ok=True)
        db = sqlite3.connect(path, isolation_level=None, timeout=OPENING_S)
        # A damaged text must cost its row alone.
        db.text_factory = _text
        # WAL: searches read in other threads and processes while facts are written.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA temp_store = MEMORY")
        # SQLite's own checkpoints run inside a commit, on the event loop.
        db.execute(f"PRAGMA wal_autocheckpoint = {LATEST_PAGES}")
        _check_format(db, path)
        _check_tables(db, path)
        columns = {row[1] for row in db.execute("PRAGMA table_info(events)")}
        if columns and "link" not in columns:
            _add_links(db)
        for name, kind in (("salt", "BLOB"), ("about", "TEXT")):
            if columns and name not in columns:
                db.execute(f"ALTER TABLE events ADD COLUMN {name} {kind}")
        db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {FORMAT}; COMMIT;")
        _add_names(db)
        # Opening may wait long; a write blocks the event loop, so it soon fails and is repeated.
        db.execute(f"PRAGMA busy_timeout = {1000 * BUSY_S:.0f}")
    except (sqlite3.Error, OSError) as error:
        raise _not_opened(path, error) from error
    return db


def open_read_only(path: Path, *, timeout_s: float = OPENING_S) -> sqlite3.Connection:
    """Open a journal to read it. Raises `sqlite3.Error`."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=timeout_s, isolation_level=None)


def read_rows(path: Path, query: str, *values: object) -> Iterator[Any]:
    """Yield the rows of a query, from a journal that nothing is written to. Raises `Unavailable`."""
    _check_there(path)
    try:
        with closing(open_read_only(path, timeout_s=REPORT_S)) as db:
            db.text_factory = _text
            yield from db.execute(query, values)
    except sqlite3.Error as error:
        raise not_read(path, error) from error


def _check_there(path: Path) -> None:
    if not path.exists():
        raise Unavailable(f"there is no journal {path}", hint="Choose another --home")


def check_file(path: Path, noted: Head | None = None) -> ChainCheck:
    """Check the hash chain of the journal in a file, and its pages.

    Raises `Unavailable` if there is none, and `BadStateDirectory` for one of a later format.
    """
    _check_there(path)
    versions = list[int]()
    with suppress(Unavailable):  # A file that cannot be read is a finding, and not the end of the check.
        versions += [row[0] for row in read_rows(path, "PRAGMA user_version")]
    # A later format may link its events in another way, which would look as if all of them had been changed.
    if versions and FORMAT < versions[0] <= NEWEST_PLAUSIBLE:
        raise _newer(path, versions[0])
    # Read-only: a check must not change what it checks, nor migrate an old format.
    found = check(_events(path), noted)
    # The events alone are in the chain. Pages that lead to them, or hold what is found by them, may be damaged as well.
    try:
        pages = [str(row[0]) for row in read_rows(path, f"PRAGMA integrity_check({MOST_PROBLEMS})")]
    except Unavailable as error:
        pages = [error.message]
    if pages == ["ok"]:
        return found
    problems = [] if found.problem is None else [found.problem]
    words = " ".join("; ".join(pages).split())
    return found._replace(problem="; ".join([*problems, f"pages of the file are damaged (SQLite says: {words})"]))


def _events(path: Path) -> Iterator[Row]:
    salted = any(row[1] == "salt" for row in read_rows(path, "PRAGMA table_info(events)"))
    besides = "salt, about" if salted else "NULL, NULL"
    yield from read_rows(path, f"SELECT seq, call_id, CAST(body AS BLOB), {besides}, link FROM events ORDER BY seq")  # noqa: S608


def check_format(path: Path) -> None:
    """Raise `BadStateDirectory` for a journal in a format that this program cannot use. Changes nothing."""
    # `restart` asks this before it stops the running supervisor, which a new version could not replace (decision 4).
    if not path.exists():
        return
    try:
        with closing(open_read_only(path)) as db:
            _check_format(db, path)
    except sqlite3.Error as error:
        raise _not_opened(path, error) from error


def not_written(path: Path, error: sqlite3.Error) -> JournalFailed:
    """Return the error of a failed write."""
    # The supervisor numbers the rows itself, so only another writer can have taken a number.
    if _primary(error) == sqlite3.SQLITE_CONSTRAINT:
        return JournalFailed(
            f"the journal {path} was changed by another program, which must not write there ({error})",
            hint="Nothing was done. See what whisper-tui history verify says, then whisper-tui restart: running "
            "commands continue, and approved calls that have not started are asked about again",
        )
    if is_damage(path, error):
        about = damaged(path, str(error))
        return JournalFailed(about.message, hint=f"Nothing was done. {about.hint}")
    message = f"the journal {path} cannot be written: {error}"
    return JournalFailed(message, hint=f"Nothing was done. {_advice(error)}, then try again")


def not_read(path: Path, error: sqlite3.Error) -> Unavailable:
    """Return the error of a failed read."""
    if is_damage(path, error):
        return damaged(path, str(error))
    return Unavailable(f"the journal {path} cannot be read: {error}", hint=f"{_advice(error)}, then try again")


def damaged(path: Path, why: str) -> BadStateDirectory:
    """Return the error of a file that is not as it was written."""
    return BadStateDirectory(
        f"the journal {path} is damaged: {why}",
        hint="whisper-tui history verify names what can still be read. Put a backup in its place, or move it away: "
        "then whisper-tui restart makes a new one, and running commands continue",
    )


def is_damage(path: Path, error: Exception) -> bool:
    """True if an error comes from a file that is not as it was written."""
    return isinstance(error, sqlite3.Error) and (_primary(error) in _DAMAGED or _has_other_header(path))


def _has_other_header(path: Path) -> bool:
    """True if the first bytes of a file are not those of a database, which SQLite reports as a file without rights."""
    try:
        with path.open("rb") as file:
            header = file.read(24)
    except OSError:
        return False
    if not header:
        return False
    return not header.startswith(b"SQLite format 3\0") or header[18:20] not in {b"\1\1", b"\2\2"}


def _check_format(db: sqlite3.Connection, path: Path) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if not 0 <= version <= NEWEST_PLAUSIBLE:
        raise damaged(path, f"it names the format {version}, which no version of whisper_tui has")
    if version > FORMAT:
        raise _newer(path, version)


def _newer(path: Path, version: int) -> BadStateDirectory:
    return BadStateDirectory(
        f"the journal {path} has format {version}, of a newer whisper_tui; this one reads {FORMAT}",
        hint="Install the newer version again, or give this one another directory with --home",
    )


def _check_tables(db: sqlite3.Connection, path: Path) -> None:
    """Raise `BadStateDirectory` if a table is missing, which would be made anew, and empty."""
    if db.execute("PRAGMA user_version").fetchone()[0] == FORMAT:
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if missing := sorted(set(_TABLE_NAMES) - there):
            raise damaged(path, f"the table {missing[0]} is missing")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _not_opened(path: Path, error: Exception) -> BadStateDirectory:
    if is_damage(path, error):
        return damaged(path, str(error))
    message = f"the journal {path} cannot be opened: {error}"
    return BadStateDirectory(message, hint=f"{_advice(error)}, or give another directory with --home")


def _advice(error: Exception) -> str:
    return _ADVICE.get(_primary(error), "Check its permissions and the free disk space")


def _primary(error: Exception) -> int:
    return (getattr(error, "sqlite_errorcode", None) or 0) & _PRIMARY


def _add_names(db: sqlite3.Connection) -> None:
    """Add missing names of sessions, from the event that opened each session."""
    # Earlier programs did not fill this table, and may have opened sessions since it was made.
    (noted,) = db.execute("SELECT count(*) FROM sessions").fetchone()
    (opened,) = db.execute("SELECT ifnull(max(value), 0) FROM counters WHERE name = 'session'").fetchone()
    if noted < opened:
        db.execute(
            "INSERT OR IGNORE INTO sessions SELECT session_id, json_extract(body, '$.session.name') FROM events"
            " WHERE seq IN (SELECT min(seq) FROM events WHERE session_id IS NOT NULL GROUP BY session_id)"
            " AND json_extract(body, '$.session.name') IS NOT NULL"
        )


def _add_links(db: sqlite3.Connection) -> None:
    """Add the hash chain, which the first format did not have, over the existing events."""
    end = START
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("ALTER TABLE events ADD COLUMN link BLOB")
        for seq, body in db.execute("SELECT seq, body FROM events ORDER BY seq").fetchall():
            end = LinkedText(seq, body.encode("utf-8", "surrogatepass"), None, "").link(end)
            db.execute("UPDATE events SET link = ? WHERE seq = ?", (end, seq))
