"""Events of a journal that cannot be read any more: how they are recognized, and what stands in their places.

A flipped bit costs the event in which it is. Everything that reads events gets a history that can be applied: without
the calls whose first event is gone, and with an ending for each call that has ended. No stand-in allows anything.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from whisper_tui.model.call import Argv, Session, Shell, UnaskedLevel
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.ending import Lost
from whisper_tui.model.event import (
    EVENT,
    CallEvent,
    Claimed,
    Decided,
    Event,
    Finished,
    Granted,
    GrantRevoked,
    GrantUsed,
    Judged,
    PreviewStarted,
    SessionOpened,
    Settled,
    Spawned,
    Started,
    Submitted,
    UnaskedSet,
)
from whisper_tui.supervisor.journal.sqlite_file import START, LinkedText

COLUMNS = "e.seq, e.call_id, e.session_id, CAST(e.body AS BLOB), e.salt, e.about, e.link, p.link"
SOURCE = "events e LEFT JOIN events p ON p.seq = e.seq - 1"
"""Select these columns from this source to read events."""

LOST = "the part of the journal that said so cannot be read any more"
"""Reason of an ending that is not known for that."""
NO_ROOT = "/nonexistent"
"""Workspace of a session whose opening cannot be read: nothing lies in it."""
MOST_NAMED = 10
"""Numbers of events that one message names."""

BY_JOURNAL = Decider(surface="rule", who="the journal is damaged")
"""Author of what stands in for an event."""

_log = logging.getLogger(__name__)


class UnreadableEvent(NamedTuple):
    """An event that cannot be read. The columns beside its text say what it was about."""

    seq: int
    call_id: str
    """Empty: it was about no call."""
    session_id: str


Read = Event | UnreadableEvent
Row = tuple[Any, ...]
StandIns = dict[int, list[Event]]
"""Events by the number of the one in whose place they stand."""


class Damage:
    """Reads the events of a journal, and knows which of them cannot be read."""

    def __init__(self, path: Path, rows: Callable[..., Iterable[Row]], noted: Iterable[int] = ()) -> None:
        """`rows` returns the rows of a query; `noted`: numbers of events that an earlier supervisor has met."""
        self._path = path
        self._rows = rows
        self.found: dict[int, UnreadableEvent] = {}
        """Unreadable events that were met, by their numbers."""
        self._headless = set[str]()
        """Calls without a readable first event."""
        self._noted = frozenset(noted)

    @property
    def new(self) -> list[int]:
        """Numbers of the unreadable events that no earlier supervisor has met."""
        return sorted(self.found.keys() - self._noted)

    def sentence(self) -> str | None:
        """A sentence about the events that are newly lost, and what to do. None: there are none."""
        if not self.new:
            return None
        these, left = ", ".join(map(str, self.new[:MOST_NAMED])), len(self.new) - MOST_NAMED
        doubtful = sorted({self._name(self.found[seq].session_id) for seq in self.new if self.found[seq].session_id})
        more = f" and {left:,} more" if left > 0 else ""
        events = f"event {these}" if len(self.new) == 1 else f"the events {these}{more}"
        return (
            f"{events} of the journal {self._path} cannot be read: the file is damaged. Everything else is as it was, "
            f"but approvals that have not been used have to be given again. {_in_doubt(doubtful)}"
            "whisper-tui history verify names all damage"
        )

    def doubt_about(self, session_id: str) -> str | None:
        """A clause that says why a denial of a session may be missing. None: none is."""
        lost = [each.seq for each in self.found.values() if each.session_id == session_id]
        if not lost:
            return None
        return f"event {min(lost)} of the journal, about this session, cannot be read: it may have denied this"

    def why_unknown(self, call_id: str) -> str | None:
        """Return why a call of the journal is not known. None: it never was there."""
        if call_id not in self._headless:
            return None
        first = min(each.seq for each in self.found.values() if each.call_id == call_id)
        return f"call {call_id} cannot be read: event {first} of the journal {self._path} is damaged"

    def read(self, rows: Iterable[Row]) -> list[Event]:
        """Return the events of these rows, with stand-ins for those that cannot be read."""
        events = list[Event]()
        for row in rows:
            event = self._event(row)
            if isinstance(event, UnreadableEvent):
                events += self._stand_ins(event)
            elif not self._belongs_to_lost(event):
                events.append(event)
        return events

    def beside_calls(self) -> Iterator[Read]:
        """Yield all events that are about no call, without stand-ins, oldest first."""
        query = f"SELECT {COLUMNS} FROM {SOURCE} WHERE e.call_id IS NULL ORDER BY e.seq"  # noqa: S608
        # One by one: these are all that agents and humans have said in any session.
        yield from map(self._event, self._rows(query))

    def is_readable(self, seq: int) -> bool:
        """True if there is such an event, and it can be read."""
        return seq > 0 and any(not isinstance(each, UnreadableEvent) for each in self._found("e.seq = ?", seq))

    def time_before(self, seq: int) -> float:
        """Return the time of the last readable event before a number. 0: there is none."""
        near = reversed(self._found("e.seq BETWEEN ? AND ?", seq - 100, seq - 1))
        return next((each.at for each in near if not isinstance(each, UnreadableEvent)), 0.0)

    def _event(self, row: Row) -> Read:
        seq, call_id, session_id, body, salt, about, own, before = row
        try:
            if not self._is_as_written(LinkedText.read(seq, body, salt, about), own, _bytes(before)):
                raise ValueError
            return EVENT.validate_json(body)
        except ValueError:  # of pydantic, too: not JSON, or no event
            lost = UnreadableEvent(seq, str(call_id or ""), str(session_id or ""))
            if seq not in self.found:
                self.found[seq] = lost
                if seq not in self._noted:
                    _log.error("event %d of the journal %s cannot be read: the file is damaged", seq, self._path)
            return lost

    def _is_as_written(self, text: LinkedText, own: object, before: bytes) -> bool:
        if text.link(START if text.seq == 1 else before) == own:
            return True
        # The flipped bit may be in the link of this event or of the one before it. Its neighbours tell.
        query = "SELECT seq, CAST(body AS BLOB), salt, about, link FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq"
        rows = self._rows(query, text.seq - 2, text.seq + 1)
        near = {row[0]: (LinkedText.read(*row[:4]), _bytes(row[4])) for row in rows}
        return is_proven(near, text.seq)

    def _found(self, where: str, *values: object) -> list[Read]:
        query = f"SELECT {COLUMNS} FROM {SOURCE} WHERE {where} ORDER BY e.seq"  # noqa: S608
        return [self._event(row) for row in list(self._rows(query, *values))]

    def _belongs_to_lost(self, event: Event) -> bool:
        """True for an event about a call or a standing approval whose first event cannot be read."""
        if not self.found:
            return False
        if isinstance(event, GrantUsed | GrantRevoked):
            if not any(each.session_id == event.session_id for each in self.found.values()):
                return False
            others = self._found("e.session_id = ?", event.session_id)
            return not any(isinstance(each, Granted) and each.grant.id == event.grant_id for each in others)
        return isinstance(event, CallEvent) and not isinstance(event, Submitted) and event.call_id in self._headless

    def _stand_ins(self, lost: UnreadableEvent) -> list[Event]:
        if lost.call_id:
            found = self._found("e.call_id = ?", lost.call_id)
            is_over = any(not row[0] for row in self._rows("SELECT open FROM calls WHERE id = ?", lost.call_id))
            stand_ins = in_a_call(lost.call_id, found, is_over=is_over)
            if stand_ins is None:
                self._headless.add(lost.call_id)
                return []
            return stand_ins.get(lost.seq, [])
        if lost.session_id:
            found = self._found("e.session_id = ?", lost.session_id)
            return in_a_session(lost, found, self._name(lost.session_id), self.time_before(lost.seq))
        return []

    def _name(self, session_id: str) -> str:
        named = self._rows("SELECT name FROM sessions WHERE id = ?", session_id)
        return next((str(row[0]) for row in named), session_id)


def _in_doubt(names: Sequence[str]) -> str:
    """Return a sentence about the sessions of lost events, with a blank after it. Empty: there are none."""
    if not names:
        return ""
    left = len(names) - MOST_NAMED
    more = f" and {left:,} more" if left > 0 else ""
    return (
        f"What you had denied for these sessions may be missing, so whatever rules allow them is asked about: "
        f"{', '.join(map(repr, names[:MOST_NAMED]))}{more}. Deny again what must stay denied. "
    )


def _bytes(value: object) -> bytes:
    """Return a value of the file, which may have become one of another type."""
    return value if isinstance(value, bytes) else b""


def is_proven(near: dict[int, tuple[LinkedText, bytes]], seq: int) -> bool:
    """True if the text of an event is the one that was written though its link does not fit.

    `near`: text and link of it and its neighbours. Each link covers one event and the link before it, so with a link
    that has changed itself, the links on both sides of it still agree about the texts.
    """
    if seq not in near:
        return False
    text, own = near[seq]
    ends = [START] if seq == 1 else [near[seq - 1][1]] if seq - 1 in near else []
    if seq - 1 in near:
        before = START if seq == 2 else near[seq - 2][1] if seq - 2 in near else None
        if before is not None:
            ends.append(near[seq - 1][0].link(before))
    for end in filter(None, ends):
        made = text.link(end)
        if made == own or (seq + 1 in near and near[seq + 1][0].link(made) == near[seq + 1][1]):
            return True
    return False


def in_a_call(call_id: str, found: Sequence[Read], *, is_over: bool) -> StandIns | None:
    """Return what stands in for the unreadable events of a call. None: without its first event nothing is known of it.

    `is_over`: the journal has noted that nothing can happen to it any more.
    """
    lost = [each for each in found if isinstance(each, UnreadableEvent)]
    events = [each for each in found if not isinstance(each, UnreadableEvent)]
    if not lost or isinstance(found[0], UnreadableEvent) or not isinstance(found[0], Submitted):
        return None
    made: StandIns = {}
    place, at = lost[-1].seq, events[-1].at
    settled = next((each for each in events if isinstance(each, Settled)), None)
    if not any(isinstance(each, Finished) for each in events):
        if settled is not None:
            place = max((each.seq for each in lost if each.seq < settled.seq), default=lost[0].seq)
        if is_over or settled is not None:
            made[place] = [Finished(seq=place, at=at, call_id=call_id, ending=Lost(why=LOST))]
        elif (started := _possible_start(call_id, events, place)) is not None:
            made[place] = [started]
    has_run = any(isinstance(each, Started | Spawned) for each in events)
    if is_over and settled is None and has_run:
        made.setdefault(lost[-1].seq, []).append(Settled(seq=lost[-1].seq, at=at, call_id=call_id))
    return made


def _possible_start(call_id: str, events: Sequence[Event], place: int) -> Started | None:
    """Return the start that an unreadable event of an approved call may have been. None: it was none.

    The next supervisor looks at the files of the run before it believes that; a second start would run it twice.
    """
    first, approval, claimed = events[0], None, False
    for event in events:
        match event:
            case Decided(decision=decision):
                approval = decision if isinstance(decision, Approve) else None
            case Judged() if event.verdict.kind == "ask":
                approval = None
            case Started() | Spawned():
                return None
            case Claimed():
                claimed = True
    if not isinstance(first, Submitted) or approval is None or approval.preview is not None:
        return None
    spec = approval.edited or first.call.spec
    if not isinstance(spec.command, Argv | Shell) or (first.call.ticket is not None and not claimed):
        return None
    attempt = 1 + max((each.attempt for each in events if isinstance(each, PreviewStarted)), default=0)
    return Started(seq=place, at=events[-1].at, call_id=call_id, attempt=attempt, spec=spec)


def nothing_unasked(seq: int, at: float, session_id: str | None = None) -> UnaskedSet:
    """Return what stands in for an event that may have taken back that anything runs unasked."""
    return UnaskedSet(seq=seq, at=at, session_id=session_id, level=UnaskedLevel(level="nothing"), by=BY_JOURNAL)


def in_a_session(lost: UnreadableEvent, found: Sequence[Read], name: str, at: float) -> list[Event]:
    """Return what stands in for an unreadable event about a session, its standing approvals or its denials."""
    if not found or found[0] != lost:
        return [nothing_unasked(lost.seq, at, lost.session_id)]
    if any(isinstance(each, SessionOpened) for each in found):
        return []
    session = Session(id=lost.session_id, name=name, root=NO_ROOT, opened_at=at)
    return [SessionOpened(seq=lost.seq, at=at, session=session)]
