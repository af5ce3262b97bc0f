"""The journal: every fact in SQLite, checked and written before its effect; what is on disk is what happened."""

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.board import ENDED_KEPT
from whisper_tui.model.call import CALL_ID, CommandSpec, FileEdits, ToolCall
from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.event import (
    AttemptRefused,
    Event,
    Finished,
    Paused,
    RulesChanged,
    SessionOpened,
    Settled,
    Submitted,
)
from whisper_tui.model.packed_calls import own_packing
from whisper_tui.model.value import Value
from whisper_tui.supervisor.journal.counters import (
    DENIAL,
    GRANT,
    LEVEL,
    PAUSED,
    REVIEW,
    SESSION,
    Counters,
    call_of,
    session_of,
    subject_of,
)
from whisper_tui.supervisor.journal.damage import BY_JOURNAL, COLUMNS, SOURCE, Damage, nothing_unasked
from whisper_tui.supervisor.journal.journal_search import WordIndex, find_beside, search_text, statement
from whisper_tui.supervisor.journal.sqlite_file import (
    START,
    Checkpoints,
    Head,
    LinkedText,
    not_read,
    not_written,
    open_file,
    written,
)
from whisper_tui.system import run_files

LARGEST_BATCH = 2 * 1024 * 1024
"""Characters of the events that are read at once: as objects they may take twenty times that."""

_CHUNK = 400
"""Ids in one query, below the smallest limit of SQLite's variables (999)."""


class PackedWaiting:
    """Packed records of waiting calls, beside the events that they follow from.

    A row counts only while the event that it was made after is the last of its call and has the same link, so that the
    events remain the truth (decision 26). Nothing depends on a row being there.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def read(self) -> dict[str, tuple[str, str, bytes]]:
        """Return session, marks and packed record by call."""
        query = (
            "SELECT w.id, c.session_id, w.marks, w.packed, w.digest, e.link FROM waiting w"
            " JOIN calls c ON c.id = w.id AND c.open = 1 JOIN events e ON e.seq = w.seq"
            " WHERE w.seq = (SELECT max(seq) FROM events WHERE call_id = w.id)"
        )
        found = dict[str, tuple[str, str, bytes]]()
        with suppress(sqlite3.Error):
            for id_, session_id, marks, packed, digest, end in self._db.execute(query):
                if digest == self._digest(end, marks, packed):
                    found[str(id_)] = session_id, marks, packed
        return found

    def write(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        """Keep id, marks and packed record of calls whose events are all applied."""
        newest = "SELECT seq, link FROM events WHERE call_id = ? ORDER BY seq DESC LIMIT 1"
        with suppress(sqlite3.Error), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            for call_id, marks, packed in rows:
                for seq, end in self._db.execute(newest, (int(call_id),)).fetchall():
                    row = (int(call_id), seq, self._digest(end, marks, packed), marks, packed)
                    self._db.execute("INSERT OR REPLACE INTO waiting VALUES (?, ?, ?, ?, ?)", row)

    def forget_ended(self) -> None:
        """Remove the rows of calls that are over."""
        with suppress(sqlite3.Error):
            self._db.execute("DELETE FROM waiting WHERE id NOT IN (SELECT id FROM calls WHERE open = 1)")

    @staticmethod
    def _digest(end: bytes, marks: str, packed: bytes) -> bytes:
        # The way of packing is part of it, so that another version reads the events.
        return hashlib.sha256(f"{own_packing()} {marks}\n".encode() + end + packed).digest()


class Journal:
    """An append-only list of events, and the few columns needed to find them again."""

    def __init__(self, path: Path) -> None:
        # SQLite keeps its log beside the file itself, which may lie on another disk, behind a symbolic link.
        path = self._path = Path(os.path.realpath(path))
        self._db = open_file(path)
        self.checkpoints = Checkpoints(path)
        self._index = WordIndex(path)
        self.packed = PackedWaiting(self._db)
        self._durable = False
        self._log = -1
        """The file with the newest events, SQLite's write-ahead log, once it was flushed."""
        self._is_doubtful = False
        """True after a failed flush: then no end is a clean one."""
        self.sizes: tuple[int, ...] = ()
        """Characters of each fact that was written last."""
        with _reading(path):
            self._counters = Counters(self._db)
            self.damage = Damage(path, self._rows, self._counters.noted())
            self._counters.check(self.damage)
        self._read_numbers()
        self.is_first = not self.last_seq
        """True if no supervisor has written to this journal before, and none to another one in its place."""
        self._is_as_left = self._take_end()

    @property
    def ended_cleanly(self) -> bool:
        """True if the last supervisor stopped by itself, nothing was added since, and what was read is as written."""
        return self._is_as_left and not self.damage.new and not self._counters.were_damaged

    @property
    def problem(self) -> str | None:
        """A sentence about damage that no earlier supervisor has met, and what to do. None: there is none."""
        if not self._counters.were_damaged:
            return self.damage.sentence()
        said = self.damage.sentence()
        return (
            f"what the journal {self._path} notes beside its events (pauses, trust in rules, numbers) was damaged, and "
            "was made again from the events. Approvals that have not been used have to be given again, and rules that "
            f"allow have to be trusted again (whisper-tui rules trust){'' if said is None else f'. Besides, {said}'}"
        )

    def note_damage(self) -> None:
        """Note the events that cannot be read: what follows from that is written, and the next start asks nobody."""
        with suppress(sqlite3.Error):
            self._counters.note_unreadable(self.damage.found)

    def _take_end(self) -> bool:
        """Compare the note of a clean end with the journal, and remove it until this supervisor ends cleanly itself."""
        note, end = self._path.with_suffix(".end"), Head(self.last_seq, self._link).text()
        try:
            noted = note.read_text(errors="replace")
            # The note must be gone before the first write: a crash from now on is no clean end.
            note.unlink()
        except OSError:
            noted = ""
        if noted:
            self.is_first = False
        return noted == end or not self.last_seq

    def _read_numbers(self) -> None:
        self.last_seq = self._number("SELECT max(seq) FROM events")
        self._link = next((row[0] for row in self._rows("SELECT link FROM events WHERE seq = ?", self.last_seq)), START)
        self.last_call = self._number("SELECT max(id) FROM calls")
        self.last_session = self._counters.value(SESSION)
        self.last_grant = self._counters.value(GRANT)
        self.last_denial = self._counters.value(DENIAL)
        self._index.reached(self.last_call)

    def append(self, events: Sequence[Event], *, durable: bool = False) -> tuple[Event, ...]:
        """Write facts, all or none, and return them numbered. `durable`: they survive a power cut from here on.

        Raises `JournalFailed`, or `InvalidRequest` for text that no file can hold; nothing may be done about the
        facts then.
        """
        numbered = tuple(
            event.model_copy(update={"seq": self.last_seq + offset}) for offset, event in enumerate(events, start=1)
        )
        bodies = [as_stored(event) for event in numbered]
        texts = [written(each.seq, body, subject_of(each)) for each, body in zip(numbered, bodies, strict=True)]
        end = self._link
        try:
            # Flushing costs milliseconds, writing a tenth of one: only a human's decision and a start are flushed
            # (decision 1).
            self._set_durable(durable)
            with self._db:
                # A deferred transaction could fail in its middle because another program writes.
                self._db.execute("BEGIN IMMEDIATE")
                for event, body, text in zip(numbered, bodies, texts, strict=True):
                    end = text.link(end)
                    self._insert(event, body, text, end)
                self._counters.note(numbered)
        except sqlite3.Error as error:
            raise not_written(self._path, error) from error
        # Only after the commit: a failed append must leave the chain where it was.
        self._link = end
        self.last_seq += len(numbered)
        self.checkpoints.written()
        self._index.reached(self.last_call)
        self.sizes = tuple(map(len, bodies))
        return numbered

    def flush(self) -> None:
        """Wait until all that was written survives a power cut: what SQLite does in a durable write, for many at once.

        Raises `OSError`. Then nobody knows what is on the disk.
        """
        if self._log < 0:
            # It has this name as long as the journal is open. SQLite locks the journal, and not this file: so closing
            # it releases nothing.
            self._log = os.open(f"{self._path}-wal", os.O_RDWR | os.O_CLOEXEC)
        try:
            getattr(os, "fdatasync", os.fsync)(self._log)
        except OSError:
            self._is_doubtful = True
            raise

    def call_with_key(self, session_id: str, key: str) -> str | None:
        """The call that was submitted with this key in this session."""
        query = "SELECT id FROM calls WHERE session_id = ? AND key = ?"
        return next((str(row[0]) for row in self._rows(query, session_id, key)), None)

    def events_after(self, seq: int, limit: int) -> tuple[tuple[Event, ...], int]:
        """At most `limit` events that follow the one with that number, fewer where they are large, and the last number.

        Without any event, what follows that last number cannot be read.
        """
        query = f"SELECT {COLUMNS}, length(e.body) FROM {SOURCE} WHERE e.seq > ? ORDER BY e.seq LIMIT ?"  # noqa: S608
        rows, size = list[tuple[Any, ...]](), 0
        for *row, length in self._rows(query, seq, limit):
            rows.append(tuple(row))
            size += length or 0
            # A watcher that is far behind must not make the supervisor hold all of it in memory (decision 15).
            if size > LARGEST_BATCH:
                break
        return tuple(self.damage.read(rows)), rows[-1][0] if rows else self.last_seq

    def events_of_call(self, call_id: str) -> tuple[Event, ...]:
        """Events of one call; empty if there is no such call."""
        if not CALL_ID.match(call_id):
            return ()
        found = self._events("call_id", (int(call_id),))
        # A damaged index may lead to the events of another call.
        return tuple(each for each in found if call_of(each) == int(call_id))

    def events_of_calls(self, call_ids: Iterable[str]) -> Iterator[tuple[Event, ...]]:
        """Events of these calls, in batches."""
        ids = sorted(map(int, call_ids))
        for start in range(0, len(ids), _CHUNK):
            yield from self._batches("call_id", ids[start : start + _CHUNK])

    def events_of_sessions(self, session_ids: Iterable[str]) -> Iterator[tuple[Event, ...]]:
        """Events of these sessions, of their standing approvals and of their denials, in batches."""
        ids = sorted(session_ids)
        for start in range(0, len(ids), _CHUNK):
            yield tuple(self._events("session_id", ids[start : start + _CHUNK]))

    def pause(self) -> tuple[Event, ...]:
        """The event of the pause in force; empty if there is none."""
        with _reading(self._path):
            since = self._counters.value(PAUSED)
        if not since or self.damage.is_readable(since):
            return tuple(self._select("e.seq = ?", since))
        # A pause that cannot be read is one: nothing starts until a human ends it.
        return (Paused(seq=since, at=self.damage.time_before(since), by=BY_JOURNAL),)

    def unasked(self) -> tuple[Event, ...]:
        """The event that says how much runs unasked in all sessions; empty if there is none."""
        with _reading(self._path):
            seq = self._counters.value(LEVEL)
        if not seq or self.damage.is_readable(seq):
            return tuple(self._select("e.seq = ?", seq))
        return (nothing_unasked(seq, self.damage.time_before(seq)),)

    def review(self) -> tuple[Event, ...]:
        """The event of the newest review; empty if there is none, or if it cannot be read."""
        with _reading(self._path):
            seq = self._counters.value(REVIEW)
        return tuple(self._select("e.seq = ?", seq)) if seq and self.damage.is_readable(seq) else ()

    def refused(self, newest: int) -> tuple[Event, ...]:
        """The newest refused attempts to decide, oldest first."""
        return tuple(self._select("e.seq IN (SELECT seq FROM refused ORDER BY seq DESC LIMIT ?)", newest))

    def rules(self) -> tuple[Event, ...]:
        """The newest fact about each file of rules."""
        found = list[Event]()
        with _reading(self._path):
            files = self._counters.rules()
        for path, seq in files:
            if self.damage.is_readable(seq):
                found += self._select("e.seq = ?", seq)
            else:
                # Nothing is trusted that a human may not have agreed to (decision 10).
                at = self.damage.time_before(seq)
                found.append(RulesChanged(seq=seq, at=at, path=path, entries=(), trusted=(), by=BY_JOURNAL))
        return tuple(found)

    def phones(self) -> tuple[Event, ...]:
        """The newest fact about each phone, as far as it can be read."""
        with _reading(self._path):
            numbers = self._counters.phones()
        readable = filter(self.damage.is_readable, numbers)
        return tuple(event for each in readable for event in self._select("e.seq = ?", each))

    def call_ids_for_board(self) -> tuple[list[str], set[str]]:
        """Ids of the calls that a board shows (all open ones and the newest ended ones), and of their sessions."""
        query = (
            "SELECT id, session_id FROM calls WHERE open = 1 UNION "
            "SELECT id, session_id FROM (SELECT id, session_id FROM calls ORDER BY id DESC LIMIT ?)"
        )
        rows = list(self._rows(query, ENDED_KEPT))
        return [str(row[0]) for row in rows], {row[1] for row in rows}

    def session_ids(self, newest: int) -> set[str]:
        """Ids of the newest sessions."""
        first = max(1, self.last_session - newest + 1)
        return {f"s{number}" for number in range(first, self.last_session + 1)}

    def find(self, query: HistoryQuery) -> list[str]:
        """Ids of the calls that match, newest first. With words or a name it may take long: see `find_beside`."""
        sql, values = statement(query)
        return [str(row[0]) for row in self._rows(sql, *values)]

    async def find_beside(self, query: HistoryQuery) -> list[str]:
        """The same in a thread, so that the event loop goes on."""
        return await find_beside(self._path, query)

    def close(self) -> None:
        """Finish checkpoints, note the clean end, and close the file."""
        self.checkpoints.close()
        self._index.close()
        if self._log >= 0:
            os.close(self._log)
            self._log = -1
        self._db.close()
        if self._is_doubtful:
            return
        with suppress(OSError):  # Without the note, approved calls are asked about again.
            run_files.write_whole(str(self._path.with_suffix(".end")), Head(self.last_seq, self._link).text().encode())

    def _insert(self, event: Event, body: str, text: LinkedText, end: bytes) -> None:
        if isinstance(event, Submitted):
            call = event.call
            columns = (int(call.id), call.session_id, call.key, search_text(call))
            self._db.execute("INSERT INTO calls (id, session_id, key, words) VALUES (?, ?, ?, ?)", columns)
        elif isinstance(event, Settled) or (isinstance(event, Finished) and self._never_started(event)):
            self._db.execute("UPDATE calls SET open = 0 WHERE id = ?", (int(event.call_id),))
        elif isinstance(event, SessionOpened):
            names = (event.session.id, event.session.name)
            self._db.execute("INSERT OR REPLACE INTO sessions (id, name) VALUES (?, ?)", names)
        elif isinstance(event, AttemptRefused):
            self._db.execute("INSERT INTO refused (seq) VALUES (?)", (event.seq,))
        row = (event.seq, call_of(event), session_of(event), body, end, text.salt, text.about)
        insert = "INSERT INTO events (seq, call_id, session_id, body, link, salt, about) VALUES (?, ?, ?, ?, ?, ?, ?)"
        self._db.execute(insert, row)

    def _never_started(self, event: Finished) -> bool:
        return event.ending.kind in {"denied", "withdrawn"}

    def _events(self, column: str, ids: Sequence[object]) -> Iterator[Event]:
        yield from self._select(f"e.{column} IN ({','.join('?' * len(ids))})", *ids)

    def _select(self, where: str, *values: object) -> list[Event]:
        query = f"SELECT {COLUMNS} FROM {SOURCE} WHERE {where} ORDER BY e.seq"  # noqa: S608
        return self.damage.read(list(self._rows(query, *values)))

    def _batches(self, column: str, ids: Sequence[object]) -> Iterator[tuple[Event, ...]]:
        """The same in batches, of which one at a time is in memory."""
        marks = ",".join("?" * len(ids))
        query = f"SELECT seq, ifnull(length(body), 0) FROM events WHERE {column} IN ({marks}) ORDER BY seq"  # noqa: S608
        for numbers in _in_batches(list(self._rows(query, *ids))):
            yield tuple(self._events("seq", numbers))

    def _number(self, query: str) -> int:
        return next((int(row[0] or 0) for row in self._rows(query)), 0)

    def _rows(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Rows of a query. Raises `Unavailable`."""
        try:
            yield from self._db.execute(query, values)
        except sqlite3.Error as error:
            raise not_read(self._path, error) from error

    def _set_durable(self, durable: bool) -> None:
        if durable is not self._durable:
            self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise `Unavailable` for errors of SQLite."""
    try:
        yield
    except sqlite3.Error as error:
        raise not_read(path, error) from error


def _in_batches(rows: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Numbers of events, as many at once as are not too long together and can be named in one query."""
    numbers, size = list[int](), 0
    for seq, length in rows:
        if numbers and (size + length > LARGEST_BATCH or len(numbers) == _CHUNK):
            yield numbers
            numbers, size = [], 0
        numbers.append(seq)
        size += length
    if numbers:
        yield numbers


def as_stored(value: Value) -> str:
    """A value as the journal holds it. Raises `InvalidRequest` for text that no file can hold."""
    try:
        return value.model_dump_json()
    except ValueError as error:
        if "surrogates" not in str(error):
            raise InvalidRequest("the request cannot be kept: it has too many levels of lists and objects") from error
        raise InvalidRequest(
            "the request holds text that is not valid Unicode", hint="Send UTF-8 without lone surrogates"
        ) from error


LARGEST = 2 * 1024 * 1024
"""Characters of one call, decision or session as JSON: no human reads more, and no system starts a longer command."""

LARGEST_OF_EDITS = 12 * 1024 * 1024
"""The same of a call or a decision about edits of files: room for the old and the new text of the largest file."""

DEEPER = 20
"""Levels around a value in an event, or in an answer on the wire; a reader of JSON goes down 200 in all."""


def check_storable(value: Value) -> str:
    """The value as the journal will hold it. Raises `InvalidRequest`."""
    text, (largest, hint) = as_stored(value), _largest(value)
    if len(text) > largest:
        raise InvalidRequest(
            f"the request is {len(text):,} characters long, and one call or decision may have {largest:,}", hint=hint
        )
    try:
        # The value will stand deeper in an event, and the reader of JSON limits the depth.
        from_json("[" * DEEPER + text + "]" * DEEPER)
        same = type(value).model_validate_json(text) == value
    except (ValueError, ValidationError):
        same = False
    if not same:
        raise InvalidRequest(
            "the request holds something that JSON cannot give back as it is",
            hint="Send no numbers that are not finite, and fewer levels of lists and objects",
        )
    return text


def _largest(value: Value) -> tuple[int, str]:
    """Return how many characters a value may have, and what to do with a longer one."""
    match value:
        case ToolCall(spec=CommandSpec(command=FileEdits())) | Approve(edited=CommandSpec(command=FileEdits())):
            return LARGEST_OF_EDITS, "Make the edit in smaller parts"
        case _:
            return LARGEST, "Write what is long to a file, and name that"
