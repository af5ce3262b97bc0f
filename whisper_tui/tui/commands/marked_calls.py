"""Decisions about several calls at once: marks, a dialog that lists what will run, one confirmation."""

from collections.abc import Callable, Iterable

from whisper_tui.model.decision import Approve, Decision, Deny
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.present.quantities import count
from whisper_tui.present.words import error_text, session_label_of
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.commands.approve_deny import DecisionCommands
from whisper_tui.tui.dialogs.batch_dialog import BatchChoice, BatchScreen, FailuresScreen
from whisper_tui.tui.dialogs.deny_dialog import DenyScreen
from whisper_tui.tui.queue.sections import similarity_key

COMMANDS: tuple[Command, ...] = (
    Command(
        "mark",
        "space",
        "Mark",
        "Mark or unmark the call, to decide about several at once.",
        "Decide",
        "waiting",
        True,
    ),
    Command(
        "mark-alike",
        "r",
        "Mark similar",
        "Mark or unmark all waiting calls of its session that begin with the same words.",
        "Decide",
        "waiting",
    ),
    Command("review", "R", "Review marked", "Show all marked calls in full, and decide about them at once.", "Decide"),
)


class MarkCommands:
    """Keeps the marks, and sends one decision for each marked call."""

    def __init__(self, cockpit: CockpitContext, decisions: DecisionCommands) -> None:
        self._cockpit = cockpit
        self._decisions = decisions
        self.marked: dict[str, None] = {}
        """The ids of the marked calls in the order of marking. A dict, because it is an ordered set."""

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"mark": self.mark, "mark-alike": self.mark_alike, "review": self.review}

    def changed(self, ids: Iterable[str]) -> None:
        """Unmark those of these calls that no longer wait for a decision."""
        gone = [id_ for id_ in ids if id_ in self.marked and not self._waits(id_)]
        self._unmark(gone)

    def mark(self) -> None:
        """Mark the selected call, or unmark it."""
        record = self._cockpit.shown
        if record is None or self._decisions.is_guarded():
            return
        if record.id in self.marked:
            del self.marked[record.id]
        else:
            self.marked[record.id] = None
        self._decisions.refresh()

    def mark_alike(self) -> None:
        """Mark the waiting calls of the session that are similar to the selected one, or unmark them all."""
        record = self._cockpit.shown
        if record is None or self._decisions.is_guarded():
            return
        like = similarity_key(record)
        board = self._cockpit.board
        of_session = (board.calls[id_] for id_ in board.waiting_in(record.call.session_id))
        similar = [other.id for other in of_session if similarity_key(other) == like]
        if all(id_ in self.marked for id_ in similar):
            self._unmark(similar)
            return
        self.marked.update(dict.fromkeys(similar))
        self._cockpit.tell(f"Marked {count(len(similar), 'similar call')} of this session: {like}")
        self._decisions.refresh()

    def review(self) -> None:
        """Open the dialog that decides about all marked calls."""
        records = tuple(self._cockpit.board.calls[id_] for id_ in self.marked if self._waits(id_))
        if not records:
            self._cockpit.tell("No call is marked.")
            return
        # A dialog about a call replaces an approval that is still in its undo window.
        for record in records:
            self._decisions.undoing.cancel(record.id)

        def chosen(choice: BatchChoice | None) -> None:
            match choice:
                case "approve":
                    self._decide(records, Approve())
                case "deny":
                    self._deny(records)
                case "unmark":
                    self._unmark([record.id for record in records])

        sessions = {record.id: session_label_of(record, self._cockpit.board) for record in records}
        self._cockpit.screen.app.push_screen(BatchScreen(records, sessions), chosen)

    def _deny(self, records: tuple[CallRecord, ...]) -> None:
        def given(decision: Deny | None) -> None:
            if decision is not None:
                self._decisions.reasons.give(decision.reason)
                self._decide(records, decision)

        what = count(len(records), "marked call")
        recent = self._decisions.reasons.recent
        self._cockpit.screen.app.push_screen(DenyScreen(what, "", 0, stop_session=False, recent=recent), given)

    def _decide(self, records: tuple[CallRecord, ...], decision: Decision) -> None:
        self._cockpit.screen.run_worker(self._send(records, decision), name="decide")

    async def _send(self, records: tuple[CallRecord, ...], decision: Decision) -> None:
        """Send one decision for each call, about the version that was in the dialog."""
        failures: list[tuple[str, str]] = []
        supervision, me = self._cockpit.supervision, self._cockpit.me
        for record in records:
            # One by one: a call that changed or was decided elsewhere fails alone, and is listed afterwards.
            try:
                await supervision.decide(record.id, decision, me, record.seen_digest())
            except WhisperError as error:
                failures.append((record.id, error_text(error)))
        done = "approved" if isinstance(decision, Approve) else "denied"
        self._cockpit.tell(f"{count(len(records) - len(failures), 'call')} {done}.")
        self._unmark([record.id for record in records])
        for record in records:
            self._cockpit.select_after(record.id)
        if failures:
            self._cockpit.screen.app.push_screen(FailuresScreen(f"Not {done}", tuple(failures)))

    def _unmark(self, ids: Iterable[str]) -> None:
        before = len(self.marked)
        for id_ in ids:
            self.marked.pop(id_, None)
        if len(self.marked) != before:
            self._decisions.refresh()

    def _waits(self, call_id: str) -> bool:
        record = self._cockpit.board.calls.get(call_id)
        return record is not None and isinstance(record.state, Waiting)
