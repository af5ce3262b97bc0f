"""Writes a journal as long as a busy year makes it, row by row: through the supervisor it would take an hour."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from whisper_tui.model.call import Argv, CommandSpec, Session, ToolCall
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.ending import Exited
from whisper_tui.model.event import CallEvent, Decided, Finished, Judged, SessionOpened, Settled, Started, Submitted
from whisper_tui.model.run import OutputSizes, Usage
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.supervisor.journal.journal import Journal, as_stored
from whisper_tui.supervisor.journal.journal_search import search_text
from whisper_tui.supervisor.journal.sqlite_file import written

RARE = "needle"
"""A word that one call in `RARE_EVERY` mentions."""
RARE_EVERY = 20_000
COMMON = "target"
"""A word that every call mentions."""
_SEQ, _CALL = 777_777_777, 888_888_888
"""What stands for the two numbers in a pattern."""
_SESSION = "s1"
_ROOT = "/srv/project"
_BATCH = 20_000
_PER_CALL = 6


class _Pattern(NamedTuple):
    """A row of which only the numbers change."""

    bodies: Sequence[str]
    words: str


def write(path: Path, calls: int) -> None:
    """A journal of so many calls that were asked, approved, run and are over."""
    journal = Journal(path)
    session = Session(id=_SESSION, name="benchmark", root=_ROOT, opened_at=1.0)
    journal.append([SessionOpened(at=1.0, session=session)])
    first = journal.last_seq + 1
    journal.close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    (end,) = db.execute("SELECT link FROM events WHERE seq = ?", (first - 1,)).fetchone()
    usual, rare = _pattern(COMMON), _pattern(f"{COMMON} {RARE}")
    for begin in range(1, calls + 1, _BATCH):
        numbers = range(begin, min(begin + _BATCH, calls + 1))
        rows = [(number, rare if number % RARE_EVERY == 0 else usual) for number in numbers]
        events = list(_events(rows, first + (begin - 1) * _PER_CALL, end))
        end = events[-1][-1]
        db.execute("BEGIN")
        db.executemany("INSERT INTO events (seq, call_id, body, salt, about, link) VALUES (?, ?, ?, ?, ?, ?)", events)
        db.executemany(
            "INSERT INTO calls (id, session_id, open, words) VALUES (?, ?, 0, ?)",
            ((number, _SESSION, pattern.words.replace(str(_CALL), str(number))) for number, pattern in rows),
        )
        db.execute("COMMIT")
    db.close()


def _events(
    rows: Sequence[tuple[int, _Pattern]], seq: int, end: bytes
) -> Iterator[tuple[int, int, str, bytes | None, str, bytes]]:
    for number, pattern in rows:
        for place, body in enumerate(pattern.bodies):
            text = body.replace(str(_CALL), str(number)).replace(str(_SEQ), str(seq))
            linked = written(seq, text, f"{number} {_SESSION}" if place == 0 else str(number))
            end = linked.link(end)
            yield seq, number, text, linked.salt, linked.about, end
            seq += 1


def _pattern(word: str) -> _Pattern:
    call_id = str(_CALL)
    words = ("-j4", f"{word}-{call_id}")
    spec = CommandSpec(command=Argv(program="make", args=words), cwd=_ROOT)
    call = ToolCall(
        id=call_id,
        session_id=_SESSION,
        tool="execute_command",
        arguments={"command": "make", "args": list(words)},
        spec=spec,
        description="Build one of the targets",
        submitted_at=2.0,
    )
    resolved = Resolved(program="/usr/bin/make", cwd=_ROOT)
    facts: tuple[CallEvent, ...] = (
        Submitted(seq=_SEQ, at=2.0, call=call),
        Judged(seq=_SEQ, at=2.0, call_id=call_id, verdict=Verdict(kind="ask", reason="no rule"), resolved=resolved),
        Decided(seq=_SEQ, at=3.0, call_id=call_id, decision=Approve(), by=Decider(surface="cockpit", who="benchmark")),
        Started(seq=_SEQ, at=3.0, call_id=call_id, attempt=1, spec=spec),
        Finished(
            seq=_SEQ,
            at=4.0,
            call_id=call_id,
            ending=Exited(code=0),
            output=OutputSizes(out=1000),
            usage=Usage(wall_s=1),
        ),
        Settled(seq=_SEQ, at=4.0, call_id=call_id),
    )
    return _Pattern([as_stored(fact) for fact in facts], search_text(call))
