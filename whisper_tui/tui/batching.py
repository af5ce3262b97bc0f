"""Deciding about several calls at once: marks, a table of exactly what will run, one confirmation."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from whisper_tui.model.decision import Approve, Decision, Deny
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.tui.likeness import likeness
from whisper_tui.tui.screens.batch import BatchChoice, BatchScreen
from whisper_tui.tui.screens.deny import DenyScreen
from whisper_tui.tui.screens.failures import FailuresScreen
from whisper_tui.tui.words import count, told

if TYPE_CHECKING:
    from whisper_tui.tui.deciding import Deciding
    from whisper_tui.tui.screens.cockpit import CockpitScreen


class Batching:
    """Keeps the marks, and carries out what is decided about all that is marked."""

    def __init__(self, screen: "CockpitScreen", deciding: "Deciding") -> None:
        self._screen = screen
        self._deciding = deciding
        self.marked: dict[str, None] = {}
        """Ids of the calls that are marked, in the order of marking; each waits for a decision."""

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {"mark": self.mark, "mark-alike": self.mark_alike, "review": self.review}

    def changed(self, ids: Iterable[str]) -> None:
        """Something happened to these calls: what waits no more is not marked."""
        gone = [id_ for id_ in ids if id_ in self.marked and not self._waits(id_)]
        self._unmark(gone)

    def mark(self) -> None:
        """Mark the selected call, or unmark it."""
        record = self._screen.shown
        if record is None or self._deciding.under_the_finger():
            return
        if record.id in self.marked:
            del self.marked[record.id]
        else:
            self.marked[record.id] = None
        self._deciding.refresh()

    def mark_alike(self) -> None:
        """Mark all that waits in the session and begins alike; unmark it if it is marked already."""
        record = self._screen.shown
        if record is None or self._deciding.under_the_finger():
            return
        like = likeness(record)
        board = self._screen.board
        of_session = (board.calls[id_] for id_ in board.waiting_in(record.call.session_id))
        alike = [other.id for other in of_session if likeness(other) == like]
        if all(id_ in self.marked for id_ in alike):
            self._unmark(alike)
            return
        self.marked.update(dict.fromkeys(alike))
        self._screen.tell(f"{count(len(alike), 'call')} of the session like this: {like}")
        self._deciding.refresh()

    def review(self) -> None:
        """Show what is marked, and decide about all of it."""
        records = tuple(self._screen.board.calls[id_] for id_ in self.marked if self._waits(id_))
        if not records:
            self._screen.tell("Nothing is marked.")
            return
        for record in records:
            self._deciding.undoing.take_back(record.id)

        def chosen(choice: BatchChoice | None) -> None:
            match choice:
                case "approve":
                    self._decide(records, Approve())
                case "deny":
                    self._deny(records)
                case "unmark":
                    self._unmark([record.id for record in records])

        sessions = {record.id: self._screen.session_name(record) for record in records}
        self._screen.app.push_screen(BatchScreen(records, sessions), chosen)

    def _deny(self, records: tuple[CallRecord, ...]) -> None:
        def given(decision: Deny | None) -> None:
            if decision is not None:
                self._deciding.reasons.give(decision.reason)
                self._decide(records, decision)

        what = count(len(records), "marked call")
        recent = self._deciding.reasons.recent
        self._screen.app.push_screen(DenyScreen(what, "", 0, stop_session=False, recent=recent), given)

    def _decide(self, records: tuple[CallRecord, ...], decision: Decision) -> None:
        self._screen.run_worker(self._send(records, decision), name="decide")

    async def _send(self, records: tuple[CallRecord, ...], decision: Decision) -> None:
        """Send each decision on its own, each about the call as it stood in the table."""
        failures: list[tuple[str, str]] = []
        supervision, me = self._screen.supervision, self._screen.me
        for record in records:
            try:
                await supervision.decide(record.id, decision, me, record.seen_digest())
            except WhisperError as error:
                failures.append((record.id, told(error)))
        done = "approved" if isinstance(decision, Approve) else "denied"
        self._screen.tell(f"{count(len(records) - len(failures), 'call')} {done}.")
        self._unmark([record.id for record in records])
        for record in records:
            self._screen.leave(record.id)
        if failures:
            self._screen.app.push_screen(FailuresScreen(f"Not {done}", tuple(failures)))

    def _unmark(self, ids: Iterable[str]) -> None:
        before = len(self.marked)
        for id_ in ids:
            self.marked.pop(id_, None)
        if len(self.marked) != before:
            self._deciding.refresh()

    def _waits(self, call_id: str) -> bool:
        record = self._screen.board.calls.get(call_id)
        return record is not None and isinstance(record.state, Waiting)
