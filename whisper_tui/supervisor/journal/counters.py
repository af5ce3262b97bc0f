"""The table `counters`: numbers given out, and where the newest pause, level, trust in rule files and phones stand.

Everything in it follows from the events, and is there only to be found without reading all of them. A row that was lost
would mean that nothing is paused, or that a file of rules was never seen, so the rows count only with a digest over all
of them. Without it they are made again from the events.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from whisper_tui.model.errors import Unavailable
from whisper_tui.model.event import (
    EVENT,
    CallEvent,
    DenialAdded,
    DenialEvent,
    DenialLifted,
    EditModeSet,
    Event,
    Granted,
    GrantEvent,
    GrantRevoked,
    GrantUsed,
    Paused,
    PhoneChanged,
    Resumed,
    Reviewed,
    RulesChanged,
    SessionClosed,
    SessionDescribed,
    SessionEvent,
    SessionOpened,
    SessionResumed,
    SessionSaid,
    Submitted,
    UnaskedSet,
)
from whisper_tui.supervisor.journal.damage import Damage, Read, UnreadableEvent
from whisper_tui.supervisor.journal.sqlite_file import ChainCheck, Head, check_file, read_rows

SESSION, GRANT, DENIAL, PAUSED, LEVEL, REVIEW = "session", "grant", "denial", "paused", "unasked", "reviewed"
"""The highest numbers given out, the event of the pause in force (0: none is), that of what runs unasked in all
sessions, and that of the newest review."""
_RULES, _PHONES, _NOTED, _DIGEST, _PLACED = "rules ", "phone ", "unreadable ", "digest", "placed"
_LARGEST = 1 << 62
"""SQLite's integers have 63 bits."""


class Counters:
    """Reads and writes the rows. Raises `sqlite3.Error`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.were_damaged = False
        """True if the rows that were found are not those that follow from the events."""
        self._proven = self._rows().get(_DIGEST) == _digest(self._rows())

    def noted(self) -> set[int]:
        """Return the numbers of the unreadable events that an earlier supervisor has met."""
        rows = self._rows() if self._proven else {}
        return {int(name.removeprefix(_NOTED)) for name in rows if name.removeprefix(_NOTED).isdecimal()}

    def check(self, damage: Damage) -> None:
        """Make the rows again from the events unless their digest proves them, and the column of sessions as well."""
        if not self._proven:
            right, found = counted(damage.beside_calls()), self._rows()
            # Earlier programs wrote no digest, so its absence alone is no damage.
            self.were_damaged = {
                name: value for name, value in found.items() if name not in {_DIGEST, _PLACED}
            } != right
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.execute("DELETE FROM counters")
                self.write(right)
        noted, found_now = self._rows().get(_PLACED), self._placed()
        if noted == found_now:
            return
        # Earlier programs noted nothing.
        if noted is not None or self.were_damaged:
            self._put_back(damage)
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self.write({_PLACED: self._placed()})

    def _placed(self) -> int:
        """Return the sum over the sessions at which events are found: a denial that is not found would allow."""
        query = "SELECT session_id, seq FROM events INDEXED BY events_by_session WHERE session_id IS NOT NULL"
        return sum(_place(seq, session_id) for session_id, seq in self._db.execute(query)) % _LARGEST

    def _put_back(self, damage: Damage) -> None:
        """Give events that can be read the sessions again that they are about."""
        rows = self._db.execute(_MISPLACED).fetchall()
        for seq, kind, session_id in rows:
            if session_id is None or not damage.is_readable(seq):
                continue
            self.were_damaged = True
            _log.error("event %d (%s) stood at another session than %s, and was put back", seq, kind, session_id)
            with self._db:
                self._db.execute("UPDATE events SET session_id = ? WHERE seq = ?", (session_id, seq))

    def value(self, name: str) -> int:
        """Return a number. 0: there is none."""
        return next((row[0] for row in self._db.execute("SELECT value FROM counters WHERE name = ?", (name,))), 0)

    def rules(self) -> list[tuple[str, int]]:
        """Return the number of the newest event about each file of rules, by its path, oldest first."""
        rows = self._db.execute("SELECT name, value FROM counters WHERE name LIKE 'rules %' ORDER BY value")
        return [(name.removeprefix(_RULES), value) for name, value in rows.fetchall()]

    def phones(self) -> list[int]:
        """Return the number of the newest event about each phone, oldest first."""
        rows = self._db.execute("SELECT value FROM counters WHERE name LIKE 'phone %' ORDER BY value")
        return [value for (value,) in rows.fetchall()]

    def note(self, events: Sequence[Event]) -> None:
        """Note what follows from events, in the transaction that writes them."""
        changed = counted(events)
        placed = sum(_place(event.seq, session) for event in events if (session := session_of(event)) is not None)
        if placed:
            changed[_PLACED] = (self.value(_PLACED) + placed) % _LARGEST
        if changed:
            self.write(changed)

    def note_unreadable(self, numbers: Iterable[int]) -> None:
        """Note events that cannot be read and that this supervisor has met."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self.write({f"{_NOTED}{seq}": 1 for seq in numbers})

    def write(self, changed: dict[str, int]) -> None:
        """Write rows, and the digest over all, in a transaction."""
        put = "INSERT OR REPLACE INTO counters (name, value) VALUES (?, ?)"
        self._db.executemany(put, changed.items())
        self._db.execute(put, (_DIGEST, _digest(self._rows())))

    def _rows(self) -> dict[str, object]:
        return {str(name): value for name, value in self._db.execute("SELECT name, value FROM counters")}


def session_of(event: Event) -> str | None:
    """The session of an event about a session, a grant or a denial; a call's events are found by their call."""
    match event:
        case SessionOpened(session=session):
            return session.id
        case Granted(grant=grant):
            return grant.session_id
        case DenialAdded(denial=denial):
            return denial.session_id
        case GrantUsed() | GrantRevoked() | DenialLifted():
            return event.session_id
        case SessionDescribed() | SessionResumed() | SessionSaid() | SessionClosed() | UnaskedSet() | EditModeSet():
            return event.session_id
        case _:
            return None


def call_of(event: Event) -> int | None:
    """Return the number of the call that an event is about. None: it is about none."""
    if isinstance(event, Submitted):
        return int(event.call.id)
    return int(event.call_id) if isinstance(event, CallEvent) else None


def subject_of(event: Event) -> str:
    """Return the call, session or phone of an event, as its link covers it: nobody can leave out a part of one unseen.

    What was said in a session is not named, so that it can be left out where decisions are shown (decision 41).
    """
    match event:
        case Submitted(call=call):
            return f"{call.id} {call.session_id}"
        case PhoneChanged():
            return f"phone {event.device_id}"
        case SessionSaid():
            return ""
        case _:
            call_id = call_of(event)
            return str(call_id) if call_id is not None else session_of(event) or ""


def _place(seq: object, session_id: object) -> int:
    return int.from_bytes(hashlib.sha256(f"{seq} {session_id}".encode("utf-8", "replace")).digest()[:7])


def counted(events: Iterable[Read]) -> dict[str, int]:
    """Return the rows that follow from events, oldest first."""
    found = dict[str, int]()
    for event in events:
        match event:
            case SessionOpened(session=session):
                found[SESSION] = _number(session.id)
            case Granted(grant=grant):
                found[GRANT] = _number(grant.id)
            case DenialAdded(denial=denial):
                found[DENIAL] = _number(denial.id)
            case Paused():
                found[PAUSED] = event.seq
            case Resumed():
                found[PAUSED] = 0
            case UnaskedSet(session_id=None):
                found[LEVEL] = event.seq
            case Reviewed():
                found[REVIEW] = event.seq
            case RulesChanged():
                found[_RULES + event.path] = event.seq
            case PhoneChanged():
                found[_PHONES + event.device_id] = event.seq
            case UnreadableEvent(call_id="", session_id=""):
                # It may have been about any of these. Whoever follows the number finds that it cannot be read.
                each = [name for name in found if name.startswith((_RULES, _PHONES))]
                found.update(dict.fromkeys((PAUSED, LEVEL, *each), event.seq))
            case _:
                pass
    return found


def check_journal(path: Path, noted: Head | None = None) -> ChainCheck:
    """Check a journal: the chain of its events, its pages, and these rows. Raises `Unavailable` if there is none."""
    found = check_file(path, noted)
    try:
        problems = [found.problem, _why_different(path), _why_not_found(path)]
    except Unavailable as error:
        problems = [found.problem, error.message]
    return found._replace(problem="; ".join(filter(None, problems)) or None)


def _why_different(path: Path) -> str | None:
    """Return a clause about rows of a journal that do not follow from its events. None: all do."""
    rows: dict[str, object] = {str(name): value for name, value in read_rows(path, "SELECT name, value FROM counters")}
    digest = rows.pop(_DIGEST, None)
    lost = list[int]()
    right = counted(_readable(path, lost))
    noted = {name: value for name, value in rows.items() if name != _PLACED and not name.startswith(_NOTED)}
    if lost:
        # Rows about an event that cannot be read any more may be right; older ones than the events say are not.
        noted = {name: value for name, value in noted.items() if not _is_newer(value, right.get(name, 0))}
        right = {name: value for name, value in right.items() if name in noted or name not in rows}
    wrong = sorted(name for name in right.keys() | noted.keys() if right.get(name) != noted.get(name))
    if not wrong and (digest is None or digest == _digest(rows)):
        return None
    names = ", ".join(repr(name) for name in wrong[:_MOST_NAMED]) or "their digest"
    return (
        f"the notes beside the events (table counters: pauses, trust in rules, numbers) are not as they were written: "
        f"{names}. The next start makes them again from the events, and asks again what was approved or trusted"
    )


_MOST_NAMED = 5
_log = logging.getLogger(__name__)
_CALLS, _SESSIONS = (
    ", ".join(repr(each.model_fields["kind"].default) for each in get_args(kinds))
    for kinds in (CallEvent, SessionEvent | GrantEvent | DenialEvent)
)
_MISPLACED = f"""
SELECT seq, json_extract(body, '$.kind'), CASE WHEN json_extract(body, '$.kind') IN ({_SESSIONS}) THEN
    coalesce(json_extract(body, '$.session_id'), json_extract(body, '$.session.id'),
        json_extract(body, '$.grant.session_id'), json_extract(body, '$.denial.session_id')) END
FROM events WHERE json_valid(body) AND CASE
    WHEN json_extract(body, '$.kind') IN ({_CALLS}) THEN
        call_id IS NOT CAST(coalesce(json_extract(body, '$.call_id'), json_extract(body, '$.call.id')) AS INTEGER)
    WHEN json_extract(body, '$.kind') IN ({_SESSIONS}) THEN
        session_id IS NOT coalesce(json_extract(body, '$.session_id'), json_extract(body, '$.session.id'),
            json_extract(body, '$.grant.session_id'), json_extract(body, '$.denial.session_id'))
    END ORDER BY seq
"""  # noqa: S608


def _why_not_found(path: Path) -> str | None:
    """Return a clause about events that are not found with their call or session. None: all are."""
    # The columns by which events are found are not in the chain.
    found = [f"event {seq} ({kind})" for seq, kind, _ in read_rows(path, _MISPLACED)]
    if not found:
        return None
    more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
    return f"{', '.join(found[:_MOST_NAMED])}{more} stands at another call or session than the one that it is about"


def _readable(path: Path, lost: list[int]) -> Iterator[Event]:
    query = "SELECT seq, CAST(body AS BLOB) FROM events WHERE call_id IS NULL ORDER BY seq"
    for seq, body in read_rows(path, query):
        try:
            yield EVENT.validate_json(body or b"")
        except ValueError:
            lost.append(seq)


def _is_newer(value: object, other: int) -> bool:
    return isinstance(value, int) and value > other


def _number(named: str) -> int:
    """Return the number in an id, which is a letter and a number."""
    return int(named[1:])


def _digest(rows: dict[str, object]) -> int:
    text = "\n".join(f"{name} {value!r}" for name, value in sorted(rows.items()) if name != _DIGEST)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:7], "big")
