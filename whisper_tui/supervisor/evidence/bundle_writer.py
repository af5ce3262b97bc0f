"""Evidence about calls, read from the journal in one view of it and written line by line (decision 41)."""

import base64
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from whisper_tui import __version__
from whisper_tui.model.call import CALL_ID
from whisper_tui.model.errors import BrokenHistory, InvalidRequest, Refused, Unavailable, UnknownCall
from whisper_tui.model.event import EVENT, Decided, Event, PhoneChanged, SessionSaid, Settled
from whisper_tui.model.masking import masked_events
from whisper_tui.model.phone_proof import PhoneProof
from whisper_tui.model.state import CallRecord
from whisper_tui.supervisor.evidence.bundle_lines import (
    LARGEST_OUTPUT,
    MOST_LEFT_OUT,
    BundleLine,
    Closing,
    LeftOutEvents,
    MaskedEvent,
    Opening,
    RecordedStream,
    ShownEvent,
    UnlinkedEvent,
    spelled,
)
from whisper_tui.supervisor.journal.counters import subject_of
from whisper_tui.supervisor.journal.sqlite_file import (
    REPORT_S,
    START,
    Head,
    LinkedText,
    commitment,
    not_read,
    open_read_only,
)
from whisper_tui.supervisor.journal.store import replay
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.supervisor.runs.output_files import RecordedOutput

_CHUNK = 400
_SEE_VERIFY = "whisper-tui history verify names all damage"


@dataclass
class _Chosen:
    """The events to show, and what they are about."""

    calls: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    """All of whose calls are chosen."""
    around: set[str] = field(default_factory=set)
    """The sessions of the chosen calls."""
    bodies: dict[int, str] = field(default_factory=dict)
    """The masked text of each event that is shown. Empty: it is shown as it is."""
    outputs: list[RunKey] = field(default_factory=list)


class Written(NamedTuple):
    """The extent of a file that was written."""

    calls: int
    shown: int
    """Events."""
    masked: int
    """Those of them that hold a secret."""
    unlinked: int
    """Those of them that are of an earlier format."""
    end: str
    """The end of the chain in the file."""
    unkept: int
    """Runs whose output is not in the file although it was to be."""


class EvidenceWriter:
    """Writes evidence from the journal of a state directory, which may be in use."""

    def __init__(self, state: Path, clock: Callable[[], float]) -> None:
        self._path = state / "journal.sqlite"
        self._runs = state / "runs"
        self._clock = clock
        self._digest = hashlib.sha256()

    def write(self, words: Sequence[str], noted: Head | None, file: BinaryIO, *, contents: bool) -> Written:
        """Write about the calls and sessions that these words name. `noted`: the end up to which the chain goes.

        Raises `UnknownCall`, `InvalidRequest`, `Refused` for a journal that is damaged, and `Unavailable`.
        """
        with self._journal() as db:
            last = noted or _end(db)
            chosen = self._choose(db, words, last.seq)
            salted = [seq for seq in chosen.bodies if _is_salted(db, seq)]
            first = min(salted, default=0)
            opening = Opening(
                program=__version__,
                written_at=int(self._clock()),
                calls=tuple(chosen.calls),
                sessions=tuple(chosen.sessions),
                first=first,
                before=_link_before(db, first).hex(),
                last=last.seq if first else 0,
                end=last.link.hex() if first else START.hex(),
            )
            self._put(file, opening)
            unlinked = sorted(set(chosen.bodies) - set(salted))
            for seq in unlinked:
                body = chosen.bodies[seq] or _body(db, seq)
                self._put(file, UnlinkedEvent(seq=seq, body=body))
            if first:
                self._put_all(file, _chain(db, chosen, opening))
            unkept = 0
            for key in chosen.outputs if contents else ():
                unkept += not self._put_output(file, key)
            file.write(spelled(Closing(sha256=self._digest.hexdigest())))
            masked = sum(map(bool, chosen.bodies.values()))
            end = last.text() if first else ""
            return Written(len(chosen.calls), len(chosen.bodies), masked, len(unlinked), end, unkept)

    @contextmanager
    def _journal(self) -> Iterator[sqlite3.Connection]:
        if not self._path.exists():
            raise Unavailable(f"there is no journal {self._path}", hint="Choose another --home")
        try:
            with closing(open_read_only(self._path, timeout_s=REPORT_S)) as db:
                if not any(row[1] == "salt" for row in db.execute("PRAGMA table_info(events)")):
                    raise Unavailable(
                        f"the journal {self._path} is of an earlier format", hint="whisper-tui restart converts it"
                    )
                # One view of it, whatever is written meanwhile.
                db.execute("BEGIN")
                yield db
        except sqlite3.Error as error:
            raise not_read(self._path, error) from error

    def _put(self, file: BinaryIO, line: BundleLine) -> None:
        data = spelled(line)
        self._digest.update(data)
        file.write(data)

    def _put_all(self, file: BinaryIO, lines: Iterable[BundleLine]) -> None:
        for line in lines:
            self._put(file, line)

    def _put_output(self, file: BinaryIO, key: RunKey) -> bool:
        """Write the recorded output of a run. Returns False if not all of it is kept, or is too long."""
        try:
            output = RecordedOutput(str(self._runs), key)
            names = output.names
            for name, data in output.contents(LARGEST_OUTPUT):
                names.remove(name)
                text = base64.b64encode(data).decode()
                self._put(file, RecordedStream(call=key.call_id, attempt=key.attempt, name=name, data=text))
        except OSError as error:
            raise Unavailable(f"the output of call {key.call_id} cannot be read: {error.strerror}") from error
        return output.exists and not names

    def _choose(self, db: sqlite3.Connection, words: Sequence[str], last: int) -> _Chosen:
        chosen = _Chosen()
        for word in words:
            _choose_named(db, chosen, word)
        chosen.calls = sorted(set(chosen.calls), key=int)
        chosen.sessions = sorted(set(chosen.sessions))
        devices = set[str]()
        for call_id in chosen.calls:
            events = _events(db, "call_id = ? AND seq <= ?", int(call_id), last)
            if not events:
                raise InvalidRequest(f"call {call_id} came after the noted end", hint="Leave out --head")
            devices |= {
                each.proof.device_id
                for each in events
                if isinstance(each, Decided) and isinstance(each.proof, PhoneProof)
            }
            self._show(chosen, events, _record(call_id, events))
            runs = [each.digest for each in events if isinstance(each, Settled) and each.digest is not None]
            # Output may hold what was hidden in the command.
            if not any(chosen.bodies[each.seq] for each in events):
                chosen.outputs += [RunKey(call_id, run.attempt) for run in runs]
        for session_id in sorted(chosen.around):
            events = _events(db, "session_id = ? AND seq <= ?", session_id, last)
            self._show(chosen, [each for each in events if not isinstance(each, SessionSaid)], None)
        if devices:
            rows = _events(db, "call_id IS NULL AND body LIKE ? AND seq <= ?", '%"kind":"phone_changed"%', last)
            mine = [each for each in rows if isinstance(each, PhoneChanged) and each.device_id in devices]
            self._show(chosen, mine, None)
        return chosen

    @staticmethod
    def _show(chosen: _Chosen, events: Sequence[Event], record: CallRecord | None) -> None:
        for event, masked in zip(events, masked_events(events, record), strict=True):
            same = masked == json.loads(event.model_dump_json())
            text = json.dumps(masked, ensure_ascii=False, separators=(",", ":"))
            chosen.bodies[event.seq] = "" if same else text


def _end(db: sqlite3.Connection) -> Head:
    for seq, link in db.execute("SELECT seq, link FROM events ORDER BY seq DESC LIMIT 1"):
        return Head(seq, bytes(link or b""))
    raise UnknownCall("the journal has no events yet")


def _choose_named(db: sqlite3.Connection, chosen: _Chosen, word: str) -> None:
    if CALL_ID.match(word):
        found = db.execute("SELECT session_id FROM calls WHERE id = ?", (int(word),)).fetchall()
        if not found:
            raise UnknownCall(f"there is no call {word}", hint="whisper-tui history shows the calls")
        chosen.calls.append(word)
        chosen.around.add(found[0][0])
        return
    sessions = [row[0] for row in db.execute("SELECT id FROM sessions WHERE id = ? OR name = ?", (word, word))]
    calls = [
        str(row[0])
        for session_id in sessions
        for row in db.execute("SELECT id FROM calls WHERE session_id = ? ORDER BY id", (session_id,))
    ]
    if not calls:
        raise InvalidRequest(f"there is no session {word!r} with calls", hint="whisper-tui history names sessions")
    chosen.calls += calls
    chosen.sessions += sessions
    chosen.around |= set(sessions)


def _events(db: sqlite3.Connection, where: str, *values: object) -> list[Event]:
    query = f"SELECT seq, CAST(body AS BLOB) FROM events WHERE {where} ORDER BY seq"  # noqa: S608
    found = list[Event]()
    for seq, body in db.execute(query, values):
        try:
            event = EVENT.validate_json(body or b"")
            if event.seq != seq:
                raise ValueError
        except ValueError:
            raise _damaged(seq) from None
        found.append(event)
    return found


def _record(call_id: str, events: Sequence[Event]) -> CallRecord:
    try:
        return replay(call_id, tuple(events))
    except (BrokenHistory, UnknownCall):
        raise Refused(f"the events of call {call_id} contradict each other", hint=_SEE_VERIFY) from None


def _damaged(seq: int) -> Refused:
    return Refused(f"event {seq} of the journal is damaged, so that nothing can be proven by it", hint=_SEE_VERIFY)


def _is_salted(db: sqlite3.Connection, seq: int) -> bool:
    return bool(db.execute("SELECT salt IS NOT NULL FROM events WHERE seq = ?", (seq,)).fetchone()[0])


def _link_before(db: sqlite3.Connection, seq: int) -> bytes:
    found = db.execute("SELECT link FROM events WHERE seq = ?", (seq - 1,)).fetchone()
    return bytes(found[0]) if found is not None else START


def _body(db: sqlite3.Connection, seq: int) -> str:
    body: bytes = db.execute("SELECT CAST(body AS BLOB) FROM events WHERE seq = ?", (seq,)).fetchone()[0]
    return _text(seq, body)


def _text(seq: int, body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise _damaged(seq) from None


def _chain(db: sqlite3.Connection, chosen: _Chosen, opening: Opening) -> Iterator[BundleLine]:
    """Yield all events from the first one that is shown, and check their links."""
    query = "SELECT seq, CAST(body AS BLOB), salt, about, link FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq"
    left_out = list[tuple[str, str]]()
    expected, end = opening.first, bytes.fromhex(opening.before)
    for *row, link in db.execute(query, (opening.first, opening.last)):
        text = LinkedText.read(*row)
        end = text.link(end)
        if text.seq != expected or text.salt is None or end != link:
            raise _damaged(expected)
        expected += 1
        committed = commitment(text.salt, text.body).hex()
        masked = chosen.bodies.get(text.seq)
        if masked is None:
            left_out.append((text.about, committed))
        if left_out and (masked is not None or len(left_out) == MOST_LEFT_OUT or text.seq == opening.last):
            start = text.seq - len(left_out) + (masked is None)
            yield LeftOutEvents(first=start, events=tuple(left_out))
            left_out.clear()
        if masked:
            yield MaskedEvent(seq=text.seq, about=text.about, commitment=committed, body=masked)
        elif masked is not None:
            if subject_of(EVENT.validate_json(text.body)) != text.about:
                raise _damaged(text.seq)
            yield ShownEvent(seq=text.seq, salt=text.salt.hex(), body=_text(text.seq, text.body))
    if expected != opening.last + 1 or end.hex() != opening.end:
        raise Refused(
            f"the journal up to event {opening.last} is another one than was noted, or it is damaged", hint=_SEE_VERIFY
        )


def write_file(
    writer: EvidenceWriter, path: Path, words: Sequence[str], noted: Head | None, *, contents: bool
) -> Written:
    """Write evidence to a file that only its owner can read; an existing file is replaced atomically.

    Raises `Refused` if that fails, and as `EvidenceWriter.write`.
    """
    if not path.name or (path.exists() and not path.is_file()):
        raise Refused(f"{path} is no file", hint="Name another one")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        file = os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        try:
            with file:
                written = writer.write(words, noted, file, contents=contents)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}", hint="Name another file") from error
    return written
