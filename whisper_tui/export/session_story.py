"""A session and its calls: found in the journal page by page, told in order (what ran, by whom), and its statistics."""

import difflib
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from whisper_tui.model.api import HistoryQuery, Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.call import EditedFile, FileEdits, FileVersions, Function, Session
from whisper_tui.model.call_rows import command_of
from whisper_tui.model.decision import DENIAL_ID, Approve, Decider, Deny
from whisper_tui.model.ending import Denied, Exited, HandedOver, Signalled
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.masking import masked_record
from whisper_tui.model.preview import Undo
from whisper_tui.model.secrets import masked
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.present.command_text import call_line
from whisper_tui.present.ending_text import went_well
from whisper_tui.present.preview_text import changed_text, undo_text
from whisper_tui.present.security_text import alarm_sentence
from whisper_tui.present.tool_text import short_path
from whisper_tui.present.words import decided_by_text

PAGE = 200
"""Calls in one page."""


async def newest_first(supervision: Supervision, query: HistoryQuery) -> AsyncIterator[tuple[CallRecord, ...]]:
    """Yield pages of matching calls, newest first. The limit of the query is the length of a page."""
    while page := await supervision.history(query):
        yield page
        if len(page) < query.limit:
            return
        query = query.model_copy(update={"before": str(page[-1].number)})


async def oldest_first(supervision: Supervision, session_id: str | None = None) -> AsyncIterator[CallRecord]:
    """Yield all calls, or those of one session, oldest first. Calls that arrive meanwhile are omitted."""
    # The API only pages backwards from the newest call, so the starts of the pages are collected first.
    query = HistoryQuery(limit=PAGE, session_id=session_id)
    starts: list[str] = []
    async for page in newest_first(supervision, query):
        starts.append(str(page[0].number + 1))
    for before in reversed(starts):
        for record in reversed(await supervision.history(query.model_copy(update={"before": before}))):
            yield record


async def current_board(supervision: Supervision) -> Board:
    """Return a board that includes the newest call."""
    newest = await supervision.history(HistoryQuery(limit=1))
    board = Board()
    if not newest:
        return board
    async for events in supervision.watch(None):
        board.apply_all(events)
        if newest[0].id in board.calls:
            break
    return board


async def sessions_named(supervision: Supervision, name: str) -> tuple[Session, ...]:
    """Return the sessions with an id or name, oldest first. Raises `InvalidRequest` if there is none."""
    # The board drops old sessions, so they are found through the calls in the history.
    board = await current_board(supervision)
    found = {session.id: session for session in board.sessions.values() if name in {session.id, session.name}}
    async for page in newest_first(supervision, HistoryQuery(limit=PAGE, session=name)):
        for session_id in {record.call.session_id for record in page} - found.keys():
            found[session_id] = await supervision.session(session_id)
    if not found:
        raise InvalidRequest(f"there is no session {name!r} with calls", hint="whisper-tui history names sessions")
    return tuple(sorted(found.values(), key=lambda session: session.opened_at))


LONGEST_WORDS = 200
"""Characters of a command in one line of the story."""

MOST_DIFF_LINES = 400
"""Lines of the difference of one file."""

DIFF_INDENT = " " * 19
"""Begins each line of a difference, and no other line."""

DIGITS = 10
"""Digits of a digest that are shown."""

Row = dict[str, Any]


@dataclass
class SessionStory:
    """Tells the calls of one session, and which files somebody else has changed between its edits."""

    supervision: Supervision
    session: Session
    diffs: bool = False
    """True if each edit is followed by its difference."""
    _left: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """By real path: the last edit of a file, and the digest that it left."""

    async def rows(self) -> AsyncIterator[Row]:
        """Yield one object for each call, oldest first, as `story --json` prints it. Secrets are masked."""
        async for record in oldest_first(self.supervision, self.session.id):
            yield await self._row(record)

    async def lines(self) -> AsyncIterator[str]:
        """Yield the story as lines for people."""
        client = visible(self.session.client.name) if self.session.client is not None else "an agent"
        yield f"{visible(self.session.name)} ({self.session.id}): {client} in {visible(self.session.root)}\n"
        async for row in self.rows():
            for line in _told(row):
                yield line + "\n"

    async def _row(self, record: CallRecord) -> Row:
        shown = masked_record(record)
        row: Row = {
            "id": record.id,
            "at": record.call.submitted_at,
            "tool": record.call.tool,
            "asker": record.call.asker,
            "command": command_of(shown.spec.command),
            "title": title_of(record, self.session),
            "outcome": outcome(record),
            "decided_by": _by(record.decided_by),
            "by_human": is_human(record.decided_by),
            **_times(record),
            **_reached(record),
            "decided_in_words": _deciding_words(record.decided_by),
            "reverted_by": _by(record.reverted_by),
            "applied_preview": record.applies and not record.discarded,
            "discarded": record.discarded or None,
            **_changes(record),
            "undos": [undo_text(undo, _clock(undo.at)) for undo in (*record.earlier_undos, *_last(record))],
            "edited_by_human": record.edited,
            "alarm": alarm_sentence(record) or None,
            "agent_gave_up": None if record.agent_gave_up is None else visible(record.agent_gave_up),
            "files": [],
        }
        command = record.spec.command
        if isinstance(command, FileEdits) and record.resolved is not None:
            made = isinstance(record.state, Ended) and isinstance(record.state.ending, HandedOver)
            contents = await self._contents(record.id) if made and self.diffs else {}
            row["files"] = [self._file(record, file, contents, made=made) for file in record.resolved.edits]
        return row

    async def _contents(self, call_id: str) -> dict[str, FileVersions]:
        return {each.file.real: each for each in await self.supervision.file_versions(call_id)}

    def _file(self, record: CallRecord, file: EditedFile, contents: dict[str, FileVersions], *, made: bool) -> Row:
        found: Row = {
            "action": file.action,
            "path": file.real,
            "shown": short_path(file.real, self.session.root),
            "added": file.added,
            "removed": file.removed,
            "before": file.before,
            "after": file.after,
            "shown_before": short_path(file.moved_from, self.session.root),
            "made": made,
            "moved_from": file.moved_from,
            "changed_since": None,
            "diff": None,
        }
        if not made:
            return found
        before = self._left.get(file.real)
        if before is not None and before[1] != file.before:
            found["changed_since"] = before[0]
        # An edit that was undone has left what was there before it.
        self._left[file.real] = (record.id, file.before if record.reverted_by is not None else file.after)
        if file.real in contents:
            found["diff"] = list(difference(contents[file.real]))
        return found


def title_of(record: CallRecord, session: Session | None) -> str:
    """Return a call on one line, as lists name it: `edit src/app.py +3 −1`, `fetch example.org`. Secrets are masked."""
    return visible("".join(span.text for span in call_line(record, session)))


def outcome(record: CallRecord) -> str:
    """Return what became of a call, in a word or two."""
    state = record.state
    if not isinstance(state, Ended):
        return "set aside" if record.aside is not None else state.kind
    match state.ending:
        case Exited(problem=problem) if problem:
            return f"failed: {one_line_beginning(problem, LONGEST_WORDS)}"
        case Exited(code=code):
            return "ran" if code == 0 else f"failed with exit code {code}"
        case Signalled(number=number):
            return f"ended by signal {number}"
        case HandedOver() if isinstance(record.function, Function) and record.function.about == "subagent":
            return "started by the agent"
        case HandedOver():
            return "undone" if record.reverted_by is not None else "done by the agent"
        case Denied():
            return "denied"
        case _:
            return state.ending.kind.replace("_", " ")


def difference(versions: FileVersions) -> Iterator[str]:
    """Yield the lines of a unified difference, with secrets masked and control characters visible."""
    if versions.not_shown:
        yield f"(not shown: {versions.not_shown})"
        return
    old, new = (versions.old or "").splitlines(), (versions.new or "").splitlines()
    for number, line in enumerate(difflib.unified_diff(old, new, lineterm="", n=3)):
        if number < 2:
            continue  # The two lines with the names of the files, which the story has.
        if number > MOST_DIFF_LINES:
            yield "… more lines"
            return
        yield visible(masked(line))


def _by(decider: Decider | None) -> str | None:
    return None if decider is None else " ".join(filter(None, (decider.surface, visible(decider.who))))


def _deciding_words(decider: Decider | None) -> str | None:
    """The decider in words; a standing approval with its number, under which `approvals` lists it."""
    if decider is None:
        return None
    if decider.surface == "memory" and not decider.who.startswith(DENIAL_ID):
        return f"by standing approval {visible(decider.who)}"
    return decided_by_text(decider)


def _last(record: CallRecord) -> tuple[Undo, ...]:
    return () if record.undo is None else (record.undo,)


def _changes(record: CallRecord) -> Row:
    """The changes of a run, and if they were kept."""
    state = record.state
    changed = state.changed if isinstance(state, Ended) else None
    return {
        "changed": None if changed is None else changed.model_dump(mode="json"),
        "shown_changes": "" if changed is None else changed_text(changed, record.spec.cwd),
        "undoable": record.undoable and isinstance(state, Ended),
        "not_undoable_because": record.not_kept_because or None,
    }


def is_human(by: Decider | None) -> bool:
    """True if a human has decided, and not a rule, a standing approval or an agent's own permissions."""
    return by is not None and by.surface not in AUTOMATIC


def _times(record: CallRecord) -> Row:
    """When a call was decided, started and ended, in seconds since the epoch; None: it was not, or not yet."""
    process = record.process
    return {
        "decided_at": record.decided_at,
        "started_at": process.started_at if process is not None else None,
        "ended_at": record.state.at if isinstance(record.state, Ended) else None,
        "failed": isinstance(record.state, Ended) and not went_well(record.state.ending),
    }


def _reached(record: CallRecord) -> Row:
    """The hosts that a call fetches from, the tool of a server that it calls, and if a command uses the network."""
    function = record.spec.command if isinstance(record.spec.command, Function) else None
    targets = tuple(map(visible, function.targets)) if function is not None else ()
    risks = record.verdict.risks if record.verdict is not None else ()
    return {
        "hosts": list(targets) if function is not None and function.about == "web" else [],
        "server_tool": " · ".join(targets[:2]) if function is not None and function.about == "server" else None,
        "network": function is None and any(risk.id in {"network", "sends-data"} for risk in risks),
    }


def _clock(at: float) -> str:
    return f"at {time.strftime('%H:%M:%S', time.localtime(at))}"


def _told(row: Row) -> Iterator[str]:
    """Yield the lines about one call."""
    at = time.strftime("%H:%M:%S", time.localtime(row["at"]))
    by = f", {row['decided_in_words']}" if row["decided_in_words"] else ""
    asker = f" by the sub-agent {visible(row['asker'])}" if row["asker"] else ""
    human = ", changed by a human" if row["edited_by_human"] else ""
    back = f", undone by {row['reverted_by']}" if row["reverted_by"] else ""
    back += ", applied from its preview" if row["applied_preview"] else ""
    back += "".join(f", {undo}" for undo in row["undos"])
    gone = ", agent gone" if row["agent_gave_up"] else ""
    files = row["files"]
    words = one_line_beginning(row["title"], LONGEST_WORDS)
    yield f"{at}  {row['id']:>5}  {words}{asker}  [{row['outcome']}{by}{human}{back}{gone}]"
    if row["alarm"]:
        yield f"{'':17}! {row['alarm']}"
    if row["discarded"]:
        yield f"{'':17}changes did not become real: {visible(row['discarded'])}"
    if row["shown_changes"]:
        yield f"{'':17}{row['shown_changes']} (kept)"
    if row["not_undoable_because"]:
        yield f"{'':17}changes not kept: {visible(row['not_undoable_because'])}"
    moved_away = {file["moved_from"] for file in files}
    for file in files:
        # The line of the move names both places.
        if file["action"] == "deletes" and file["path"] in moved_away:
            continue
        if file["changed_since"] is not None:
            yield f"{'':17}! {visible(file['shown'])} was changed by something else after edit {file['changed_since']}"
        moved = f" from {visible(file['shown_before'])}" if file["moved_from"] else ""
        counts = f"+{file['added']:,} −{file['removed']:,}"
        if not file["made"]:
            yield f"{'':17}would {file['action'][:-1]} {visible(file['shown'])}{moved} {counts}"
            continue
        digests = f"{_short(file['before'])} → {_short(file['after'])}"
        yield f"{'':17}{file['action']} {visible(file['shown'])}{moved} {counts}  {digests}"
        for line in file["diff"] or ():
            yield f"{DIFF_INDENT}{line}"


def _short(digest: str | None) -> str:
    return "no file" if digest is None else digest[:DIGITS]


AUTOMATIC = frozenset({"rule", "memory", "agent"})
"""Surfaces that decide without a human."""


class Statistics:
    """Counts calls in any order, each of them once."""

    def __init__(self) -> None:
        self.calls = 0
        """Number of calls."""
        self.approved = 0
        """Number of calls that a human approved."""
        self.denied = 0
        """Number of calls that a human denied."""
        self.waiting = 0
        """Number of calls that still wait for a human."""
        self.edited = 0
        """Number of calls that a human edited before approving them."""
        self.allowed_by_rule = 0
        self.refused_by_rule = 0
        self.allowed_by_memory = 0
        """Number of calls that a standing approval allowed."""
        self._waits: list[float] = []

    def add(self, record: CallRecord) -> None:
        """Count one more call."""
        self.calls += 1
        self.waiting += isinstance(record.state, Waiting)
        by = record.decided_by
        if by is None or record.decision is None:
            return
        if not is_human(by):
            self._count_automatic(record)
            return
        if isinstance(record.decision, Deny):
            self.denied += 1
        else:
            self.approved += 1
            self.edited += record.edited
        if record.decided_at is not None:
            self._waits.append(max(0.0, record.decided_at - record.call.submitted_at))

    def _count_automatic(self, record: CallRecord) -> None:
        approved = isinstance(record.decision, Approve)
        if record.decided_by is not None and record.decided_by.surface == "memory":
            self.allowed_by_memory += approved
        elif approved:
            self.allowed_by_rule += 1
        else:
            self.refused_by_rule += 1

    @property
    def asked(self) -> int:
        """Number of calls that a human was asked about."""
        return self.approved + self.denied + self.waiting

    @property
    def median_wait_s(self) -> float | None:
        """Median seconds from a call's arrival to the human's decision. None: there was no decision."""
        return median(self._waits) if self._waits else None

    @property
    def saved_s(self) -> float | None:
        """Seconds saved by standing approvals: their number times the median wait. None: unknown."""
        return self.allowed_by_memory * self.median_wait_s if self.median_wait_s is not None else None
