"""Decisions about several calls at once: all that are marked, or all of a session that begin alike ("never").

A denial for a session is given and lifted here, and kept and applied by the supervisor (decision 11).
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from whisper_tui.model.decision import Approve, Decision, Deny, Words, beginnings
from whisper_tui.model.ending import Denied
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.packed_calls import call_line
from whisper_tui.model.secrets import masked_words
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.present.quantities import count
from whisper_tui.present.session_text import session_words_of
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit.call_roster import similarity_key
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.commands.approve_deny import DecisionCommands
from whisper_tui.tui.commands.aside_commands import AsideCommands
from whisper_tui.tui.commands.undo_approval import Outcome

if TYPE_CHECKING:
    from whisper_tui.tui.dialogs.decision_dialogs import BatchChoice, SessionDenialChoice

MARKS: tuple[Command, ...] = (
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
    Command(
        "review",
        "R",
        "Review marked",
        "Show all marked calls in full, and decide about them at once.",
        "Decide",
        also="batch several bulk together",
    ),
)


class MarkCommands:
    """Keeps the marks, and sends one decision for each marked call."""

    def __init__(self, cockpit: CockpitContext, decisions: DecisionCommands, aside: AsideCommands) -> None:
        self._cockpit = cockpit
        self._decisions = decisions
        self._aside = aside
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
        like = similarity_key(call_line(record))
        board = self._cockpit.board
        of_session = map(board.calls.line, board.waiting_in(record.call.session_id))
        alike = (other.id for other in of_session if other is not None and similarity_key(other) == like)
        # What is set aside is out of the way here as well.
        similar = [id_ for id_ in alike if (id_ in board.aside) == (record.aside is not None)]
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

        from whisper_tui.tui.dialogs.decision_dialogs import BatchScreen

        def chosen(choice: "BatchChoice | None") -> None:
            match choice:
                case "approve":
                    self._decide(records, Approve())
                case "deny":
                    self._deny(records)
                case "aside":
                    self._cockpit.screen.run_worker(self._move(records), name="aside")
                case "unmark":
                    self._unmark([record.id for record in records])

        sessions = {record.id: session_words_of(record, self._cockpit.board) for record in records}
        self._cockpit.screen.app.push_screen(BatchScreen(records, sessions), chosen)

    def _deny(self, records: tuple[CallRecord, ...]) -> None:
        from whisper_tui.tui.dialogs.decision_dialogs import DenyScreen

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
        for record in records:
            # One by one: a call that changed or was decided elsewhere fails alone, and is listed afterwards.
            try:
                await self._cockpit.send(record, decision)
            except WhisperError as error:
                failures.append((record.id, error_text(error)))
            else:
                if isinstance(decision, Approve):
                    self._decisions.undoing.approved(record.id, decision)
        done = "approved" if isinstance(decision, Approve) else "denied"
        self._cockpit.tell(f"{count(len(records) - len(failures), 'call')} {done}.")
        self._unmark([record.id for record in records])
        for record in records:
            self._cockpit.select_after(record.id)
        if failures:
            from whisper_tui.tui.dialogs.decision_dialogs import FailuresScreen

            self._cockpit.screen.app.push_screen(FailuresScreen(f"Not {done}", tuple(failures)))

    async def _move(self, records: tuple[CallRecord, ...]) -> None:
        await self._aside.move(records)
        self._unmark([record.id for record in records])

    def _unmark(self, ids: Iterable[str]) -> None:
        before = len(self.marked)
        for id_ in ids:
            self.marked.pop(id_, None)
        if len(self.marked) != before:
            self._decisions.refresh()

    def _waits(self, call_id: str) -> bool:
        record = self._cockpit.board.calls.get(call_id)
        return record is not None and isinstance(record.state, Waiting)


NEVER: tuple[Command, ...] = (
    Command(
        "deny-class",
        "N",
        "Never",
        "Deny every call of its session that begins with the same words, until you lift that.",
        "Decide",
        "call",
    ),
)


def suggested_words(record: CallRecord) -> Words:
    """Return the prefix that the policy suggests for a call, else its first two words."""
    if record.verdict is not None and record.verdict.prefixes:
        return record.verdict.prefixes[0]
    return next(beginnings(record.call.spec.command, record.verdict, record.resolved))[:2]


class SessionDenialCommands:
    """Sends session denials to the supervisor, and tells of the calls that it denies by them."""

    def __init__(self, cockpit: CockpitContext, decisions: DecisionCommands) -> None:
        self._cockpit = cockpit
        self._decisions = decisions
        self._opened_at = cockpit.clock()
        self._told: set[str] = set()
        """Denied calls on the board that a toast has told of."""
        self._words = ""

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"deny-class": self.deny_session_prefix}

    def words(self) -> str:
        """Return the words of the status bar about session denials; empty if there are none."""
        board = self._cockpit.board
        still = {session.id for session in board.sessions.values() if session.closed_at is None}
        number = sum(denial.session_id in still for denial in board.denials.values())
        return f"{count(number, 'prefix', 'prefixes')} denied automatically" if number else ""

    def deny_session_prefix(self) -> None:
        """Ask for the words to deny in the session of the selected call."""
        record = self._cockpit.shown
        session = self._cockpit.board.sessions.get(record.call.session_id) if record is not None else None
        if record is None or session is None or self._decisions.is_guarded():
            return
        self._decisions.undoing.cancel(record.id)

        from whisper_tui.tui.dialogs.decision_dialogs import SessionDenialScreen

        def chosen(choice: "SessionDenialChoice | None") -> None:
            if choice is not None:
                send = self._deny(session.id, choice) if choice.words else self._lift(session.id)
                self._cockpit.screen.run_worker(send, name="deny")
            self._decisions.refresh()

        name = session_words_of(record, self._cockpit.board)
        held = tuple(denial.words for denial in self._cockpit.board.denials_of(session.id))
        self._cockpit.screen.app.push_screen(SessionDenialScreen(name, suggested_words(record), held), chosen)

    async def _deny(self, session_id: str, choice: "SessionDenialChoice") -> None:
        cockpit = self._cockpit
        self._decisions.reasons.give(choice.reason)
        try:
            await cockpit.supervision.deny_for_session(session_id, choice.words, choice.reason, cockpit.me)
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="error")
        else:
            self._decisions.undoing.remember(lambda: self._undo(session_id, choice.words))

    async def _undo(self, session_id: str, words: Words) -> Outcome:
        """Lift a denial that was given here."""
        for denial in self._cockpit.board.denials_of(session_id):
            if denial.words == words:
                await self._cockpit.supervision.lift_denial(denial.id, self._cockpit.me)
                said = " ".join(masked_words(words))
                self._cockpit.tell(f"Calls that begin with {said!r} are no longer denied automatically.")
                return "undone"
        return "nothing"

    async def _lift(self, session_id: str) -> None:
        cockpit = self._cockpit
        try:
            for denial in cockpit.board.denials_of(session_id):
                await cockpit.supervision.lift_denial(denial.id, cockpit.me)
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="error")
        else:
            cockpit.tell("Session denials removed: its calls are no longer denied automatically.")

    def changed(self, ids: Iterable[str]) -> None:
        """Draw other denials than before, and tell of those of these calls that a denial has ended."""
        board = self._cockpit.board
        if (shown := self.words()) != self._words:
            self._words = shown
            self._decisions.refresh()
        records = (board.calls[id_] for id_ in ids if id_ in board.calls and id_ not in self._told)
        denied = {record.id: words for record in records if (words := _denied_words(record, self._opened_at))}
        if not denied:
            return
        self._told = {id_ for id_ in self._told if id_ in board.calls}.union(denied)
        for id_ in denied:
            self._decisions.undoing.cancel(id_)
        which = f"Call {next(iter(denied))} is" if len(denied) == 1 else f"{count(len(denied), 'call')} are"
        said = ", ".join(repr(" ".join(masked_words(words))) for words in dict.fromkeys(denied.values()))
        self._cockpit.tell(f"{which} denied: you denied {said} for this session.")


def _denied_words(record: CallRecord, since: float) -> Words:
    """Return the words by which a session denial ended a call at that time or later; empty if none did."""
    match record.state:
        case Ended(ending=Denied(for_session=words), at=at) if at >= since:
            return words
        case _:
            return ()
