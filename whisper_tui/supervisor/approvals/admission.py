"""Admission of calls: the same call joins an open one (deduplication), and no agent fills the memory (capacity).

And of decisions: what a human approves has to be what was shown, and must work where it runs.
"""

from collections import Counter
from collections.abc import Callable

from whisper_tui.model.call import CallRequest, CarriedOut, CommandSpec, Session, ToolCall, memory_weight
from whisper_tui.model.decision import Approve, RuleScope
from whisper_tui.model.ending import Withdrawn
from whisper_tui.model.errors import ChangedSinceSeen, Refused
from whisper_tui.model.event import AgentGaveUp, AgentReturned, Claimed, Event, Finished, Started, Submitted
from whisper_tui.model.state import CallRecord, Ended, Held, Unjudged, Waiting
from whisper_tui.model.verdict import Resolved
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.places.place_settings import Placement

MOST_CALLS = 200_000
"""Limit of open calls of all sessions."""
MOST_OF_A_SESSION = 100_000
LARGEST = 256 * 1024 * 1024
"""Limit of the memory of all open calls in bytes, approximately."""
LARGEST_OF_A_SESSION = 128 * 1024 * 1024
MOST_SESSIONS = 10_000
"""Limit of open sessions."""

_HINT = "Wait for answers, or have calls decided or withdrawn"


class Capacity:
    """Backpressure: limits the open calls. Calls of an earlier supervisor count by their number, not by memory."""

    def __init__(self, store: Store) -> None:
        self._board = store.board
        self._taken: dict[str, tuple[str, int]] = {}
        """Session and memory of each call."""
        self._of_session: Counter[str] = Counter()
        self._of_all = 0
        """The sum of their memory, kept because each call needs it."""
        store.listen(self._notice)

    @property
    def taken(self) -> int:
        """Approximate memory of all open calls in bytes."""
        return self._of_all

    def check(self, call: ToolCall) -> int:
        """Return the approximate memory of a call. Raises `Refused` if there is no room for it."""
        board, session_id = self._board, call.session_id
        shelves = (board.waiting, board.aside, board.held_back, board.held, board.queued, board.running)
        calls = sum(map(len, shelves))
        # Checked before judging, which is the expensive part of a flood of calls (decision 15).
        if calls >= MOST_CALLS:
            raise Refused(f"{calls:,} calls wait or run, and no more are taken", hint=_HINT)
        calls = len(board.open_in.get(session_id, ()))
        if calls >= MOST_OF_A_SESSION:
            raise Refused(f"{calls:,} calls of session {session_id} wait or run, and no more are taken", hint=_HINT)
        size = memory_weight(call)
        if self._of_session[session_id] + size > LARGEST_OF_A_SESSION:
            raise Refused(
                f"the calls of session {session_id} that wait or run would take more than "
                f"{LARGEST_OF_A_SESSION:,} bytes of memory",
                hint=_HINT,
            )
        if self.taken + size > LARGEST:
            raise Refused(f"the calls that wait or run would take more than {LARGEST:,} bytes of memory", hint=_HINT)
        return size

    def take(self, call: ToolCall, size: int) -> None:
        """Count a call that was admitted."""
        if call.id in self._board.open_in.get(call.session_id, ()):
            self._taken[call.id] = call.session_id, size
            self._of_session[call.session_id] += size
            self._of_all += size

    def _notice(self, event: Event) -> None:
        if isinstance(event, Finished) and (taken := self._taken.pop(event.call_id, None)) is not None:
            session_id, size = taken
            self._of_session[session_id] -= size
            self._of_all -= size
            if not self._of_session[session_id]:
                del self._of_session[session_id]


REJOIN_S = 900.0
"""Seconds after its end during which a call whose agent stopped waiting can still be rejoined."""

Index = dict[tuple[str, str], dict[str, None]]
"""By session and deduplication key: ids of calls, oldest first."""


class Deduplicator:
    """An index of the calls that can be joined, updated by events."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._open: Index = {}
        """The calls without an ending."""
        self._left: Index = {}
        """The calls whose agent does not wait for the answer, ended ones included."""
        self._unstarted: dict[tuple[str, str], str] = {}
        """By session and question: the call that asks it and has not started."""
        for record in map(store.call, store.board.deduplicated):
            if not isinstance(record.state, Ended):
                _add(self._open, record.call)
            if isinstance(record.state, Unjudged | Waiting | Held):
                self._ask(record.call)
            if record.agent_gave_up is not None and not _is_withdrawn(record):
                _add(self._left, record.call)
        store.listen(self._notice)

    def of(self, request: CallRequest) -> str | None:
        """Return the call that a request joins. None: the request is a new call."""
        if request.question is not None:
            same = self._unstarted.get((request.session_id, request.question))
            # Two hooks of one client may ask about the same tool call; the human is asked once (decision 17).
            if same is not None:
                return same
        if request.dedup_key is None:
            return None
        place = request.session_id, request.dedup_key
        if (
            request.past_hook
            and (known := next(filter(self._waits, tuple(self._open.get(place, ()))), None)) is not None
        ):
            # What was approved came back, because another hook has passed it on unchanged (decision 35).
            return known
        if request.join_open and (known := next(iter(self._open.get(place, ())), None)) is not None:
            return known
        return next(filter(self._lasts, tuple(self._left.get(place, ()))), None) if request.rejoin else None

    def _waits(self, call_id: str) -> bool:
        """True if a call has not started."""
        return isinstance(self._store.call(call_id).state, Unjudged | Waiting | Held)

    def _lasts(self, call_id: str) -> bool:
        """True if a call that was left can still be rejoined; one that cannot is forgotten."""
        record = self._store.call(call_id)
        # An agent whose request timed out asks again within minutes; later it means to run the command once more
        # (decision 18).
        if isinstance(record.state, Ended) and self._clock() > record.state.at + REJOIN_S:
            _drop(self._left, record.call)
            return False
        return True

    def _notice(self, event: Event) -> None:
        match event:
            case Submitted(call=call):
                _add(self._open, call)
                self._ask(call)
            case Claimed() | Started():
                self._answer(self._store.call(event.call_id).call)
            case AgentGaveUp():
                _add(self._left, self._store.call(event.call_id).call)
            case AgentReturned():
                _drop(self._left, self._store.call(event.call_id).call)
            case Finished():
                call = self._store.call(event.call_id).call
                _drop(self._open, call)
                self._answer(call)
                if isinstance(event.ending, Withdrawn):
                    _drop(self._left, call)

    def _ask(self, call: ToolCall) -> None:
        if call.question is not None:
            self._unstarted[call.session_id, call.question] = call.id

    def _answer(self, call: ToolCall) -> None:
        """Remove a call that started, or never will, from the calls that its question joins."""
        place = call.session_id, call.question or ""
        if self._unstarted.get(place) == call.id:
            # Asked again after its start, it is a new call.
            del self._unstarted[place]


def _add(index: Index, call: ToolCall) -> None:
    if call.dedup_key is not None:
        index.setdefault((call.session_id, call.dedup_key), {})[call.id] = None


def _drop(index: Index, call: ToolCall) -> None:
    place = call.session_id, call.dedup_key or ""
    if (ids := index.get(place)) is not None:
        ids.pop(call.id, None)
        if not ids:
            del index[place]


def _is_withdrawn(record: CallRecord) -> bool:
    return isinstance(record.state, Ended) and isinstance(record.state.ending, Withdrawn)


def check_preview(record: CallRecord, decision: Approve) -> Approve:
    """Return a decision, complete if it is to apply a preview. Raises `Refused`, `ChangedSinceSeen`."""
    preview = record.preview
    if decision.undoable:
        _check_undoable(record, decision)
    if decision.preview is None:
        return decision
    if preview is None or not preview.can_be_applied or preview.report is None:
        why = preview.report.problem if preview is not None and preview.report is not None else ""
        message = f"call {record.id} has no preview that could be applied" + (f": {why}" if why else "")
        raise Refused(message, hint=f"whisper-tui preview {record.id} makes one")
    if preview.report.digest != decision.preview:
        raise ChangedSinceSeen(f"the preview of call {record.id} is another one by now", hint="Look at it again")
    if decision.edited is not None and decision.edited != preview.edited:
        raise Refused("an edited command was not previewed", hint="Preview it, or approve it to run for real")
    # What was previewed is what is approved: the command as it ran, and nothing that would run later.
    return decision.model_copy(update={"edited": preview.edited, "undoable": False, "sandbox": None})


def _check_undoable(record: CallRecord, decision: Approve) -> None:
    """Raise `Refused` for a run that must not be in a view of the files."""
    if decision.sandbox is not None:
        raise Refused("a command runs in a sandbox, or reversibly, but not both", hint="Choose one of them")
    if record.verdict is not None and record.verdict.preview == "never":
        raise Refused("its rule forbids runs in a view of the files", hint="Approve it as it is, or change the rule")


def check_same_tool(asked: CommandSpec, edited: CommandSpec | None) -> None:
    """Raise `Refused` for an edit that changes the tool, or turns a tool's call into a command or back."""
    if edited is None:
        return
    tools = [
        (spec.command.kind, spec.command.tool) if isinstance(spec.command, CarriedOut) else None
        for spec in (asked, edited)
    ]
    if tools[0] != tools[1]:
        raise Refused("a tool's call cannot be edited into another kind of call", hint="Deny it and say what to do")


def check_same_files(seen: Resolved | None, now: Resolved | None) -> None:
    """Raise `ChangedSinceSeen` if a human's result would replace content that the human has not seen (decision 28)."""
    before = {file.real: file.before for file in (seen.edits if seen is not None else ())}
    for file in now.edits if now is not None else ():
        if before.get(file.real, file.before) != file.before:
            raise ChangedSinceSeen(
                f"{file.path} has changed since the edit was judged, so nothing was approved",
                hint="Approve the edit as it is: it is asked again, with the file as it is now",
            )


def check_place(call: ToolCall, decision: Approve, placement: Placement, session: Session | None) -> Approve:
    """Return an approval, edited only if it is. Raises `Refused` if it cannot hold where the command runs."""
    edited = decision.edited and placement.check_moved(call, decision.edited, session)
    decision = decision.model_copy(update={"edited": None if edited == call.spec else edited})
    spec = decision.edited or call.spec
    if not placement.known(spec.place):
        return decision
    # decision 33
    if decision.sandbox is not None:
        raise Refused(f"there is no sandbox at {spec.place}", hint="Approve it without one, or deny it")
    if decision.undoable:
        message = f"it runs at {spec.place}, and changes are kept on this machine only"
        raise Refused(message, hint="Approve it as it is, or deny it")
    scope = decision.remember
    if session is not None and session.relayed and isinstance(scope, RuleScope) and scope.where == "project":
        raise Refused(f"its workspace is at {session.place}, where no rules are kept", hint="Save it for everywhere")
    return decision
