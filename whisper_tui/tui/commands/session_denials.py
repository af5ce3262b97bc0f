"""Denials for a session ("never"): given and lifted here, kept and applied by the supervisor (decision 11)."""

from collections.abc import Callable, Iterable

from whisper_tui.model.decision import Words, beginnings
from whisper_tui.model.ending import Denied
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.secrets import masked_words
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.present.quantities import count
from whisper_tui.present.words import error_text, session_label_of
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.commands.approve_deny import DecisionCommands
from whisper_tui.tui.dialogs.deny_dialog import SessionDenialChoice, SessionDenialScreen

COMMANDS: tuple[Command, ...] = (
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

        def chosen(choice: SessionDenialChoice | None) -> None:
            if choice is not None:
                send = self._deny(session.id, choice) if choice.words else self._lift(session.id)
                self._cockpit.screen.run_worker(send, name="deny")
            self._decisions.refresh()

        name = session_label_of(record, self._cockpit.board)
        held = tuple(denial.words for denial in self._cockpit.board.denials_of(session.id))
        self._cockpit.screen.app.push_screen(SessionDenialScreen(name, suggested_words(record), held), chosen)

    async def _deny(self, session_id: str, choice: SessionDenialChoice) -> None:
        cockpit = self._cockpit
        self._decisions.reasons.give(choice.reason)
        try:
            await cockpit.supervision.deny_for_session(session_id, choice.words, choice.reason, cockpit.me)
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="error")

    async def _lift(self, session_id: str) -> None:
        cockpit = self._cockpit
        try:
            for denial in cockpit.board.denials_of(session_id):
                await cockpit.supervision.lift_denial(denial.id, cockpit.me)
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="error")
        else:
            cockpit.tell("Session denials removed: every call of this session is asked again.")

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
