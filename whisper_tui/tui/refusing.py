"""Never again in this session: denies by itself, and visibly, what begins as a person said."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from whisper_tui.model.decision import Deny
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, WhisperError
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.tui.refusals import Refusal, Refusals, suggested_words
from whisper_tui.tui.screens.never import NeverChoice, NeverScreen
from whisper_tui.tui.words import count, told

if TYPE_CHECKING:
    from whisper_tui.tui.deciding import Deciding
    from whisper_tui.tui.screens.cockpit import CockpitScreen


class Refusing:
    """Holds what is refused, and looks at every call that comes."""

    def __init__(self, screen: "CockpitScreen", deciding: "Deciding") -> None:
        self._screen = screen
        self._deciding = deciding
        self._refusals = Refusals()

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {"deny-class": self.never}

    def words(self) -> str:
        """That something is refused. Empty: nothing is."""
        number = len(self._refusals)
        return f"{count(number, 'beginning')} denied without asking you" if number else ""

    def never(self) -> None:
        """Ask what shall never run in the session of the selected call."""
        record = self._screen.shown
        session = self._screen.board.sessions.get(record.call.session_id) if record is not None else None
        if record is None or session is None or self._deciding.under_the_finger():
            return
        self._deciding.undoing.take_back(record.id)

        def chosen(choice: NeverChoice | None) -> None:
            if choice is None:
                return
            if not choice.words:
                self._refusals.lift(session.id)
                self._screen.tell("Everything of this session is asked again.")
            else:
                self._deciding.reasons.give(choice.reason)
                self._refusals.add(Refusal(session.id, session.opened_at, choice.words, choice.reason))
                self.changed(tuple(self._screen.board.waiting))
            self._deciding.refresh()

        name = self._screen.session_name(record)
        held = self._refusals.of_session(session.id)
        self._screen.app.push_screen(NeverScreen(name, suggested_words(record), held), chosen)

    def changed(self, ids: Iterable[str]) -> None:
        """Deny those of these calls that wait and are refused."""
        if not len(self._refusals):
            return
        board = self._screen.board
        for id_ in ids:
            record = board.calls.get(id_)
            if record is None or not isinstance(record.state, Waiting):
                continue
            refusal = self._refusals.about(record, board.sessions.get(record.call.session_id))
            if refusal is not None:
                self._deciding.undoing.take_back(id_)
                self._screen.run_worker(self._deny(record, refusal), name="refuse")

    async def _deny(self, record: CallRecord, refusal: Refusal) -> None:
        screen = self._screen
        try:
            await screen.supervision.decide(record.id, Deny(reason=refusal.reason), screen.me, record.seen_digest())
        except (AlreadyDecided, ChangedSinceSeen):
            return
        except WhisperError as error:
            screen.tell(told(error), severity="error")
            return
        screen.tell(f"Call {record.id} is denied: never {' '.join(refusal.words)!r} in this session, you said.")
        screen.leave(record.id)
