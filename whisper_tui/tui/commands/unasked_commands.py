"""The commands about what runs unasked: how much that is, and what it has changed."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import count
from whisper_tui.present.session_text import session_words
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command

if TYPE_CHECKING:
    from whisper_tui.tui.dialogs.review_dialog import ReviewAnswer
    from whisper_tui.tui.dialogs.unasked_dialog import LevelChoice

COMMANDS: tuple[Command, ...] = (
    Command(
        "unasked",
        "left_parenthesis",
        "Unasked…",
        "Choose how much runs without asking: in the session of the call or in all, for an hour or from now on.",
        "Decide",
        "nothing",
    ),
    Command(
        "review-unasked",
        "right_parenthesis",
        "Review unasked",
        "Look at what was changed unasked since the last review: mark it as seen, or undo calls.",
        "Decide",
        "nothing",
    ),
)


def _ended_at(record: CallRecord) -> float:
    return record.state.at if isinstance(record.state, Ended) else 0.0


class UnaskedCommands:
    """Carries out the commands."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"unasked": self._ask, "review-unasked": self._review}

    def _review(self) -> None:
        from whisper_tui.tui.dialogs.review_dialog import ReviewScreen

        cockpit = self._cockpit
        ids = sorted(cockpit.board.unreviewed, key=lambda each: _ended_at(cockpit.board.calls[each]), reverse=True)
        if not ids:
            cockpit.tell("Nothing was changed unasked since the last review.")
            return

        def answered(answer: "ReviewAnswer | None") -> None:
            if answer is not None:
                cockpit.screen.run_worker(self._finish(answer), name="review")

        records = tuple(cockpit.board.calls[call_id] for call_id in ids)
        cockpit.screen.app.push_screen(ReviewScreen(cockpit, records), answered)

    async def _finish(self, answer: "ReviewAnswer") -> None:
        cockpit, failed = self._cockpit, list[str]()
        try:
            if answer.seen_until is not None:
                await cockpit.supervision.mark_reviewed(answer.seen_until, cockpit.me)
                cockpit.tell("Marked as seen.")
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="warning")
        for call_id in answer.take_back:
            try:
                await cockpit.supervision.undo(call_id, (), "undo", cockpit.me)
            except WhisperError as error:
                failed.append(f"Call {visible(call_id)} was not undone: {error_text(error)}")
        if answer.take_back:
            done = count(len(answer.take_back) - len(failed), "call")
            cockpit.tell(" ".join((f"{done} undone.", *failed)), severity="warning" if failed else "information")

    async def _ask(self) -> None:
        from whisper_tui.tui.dialogs.unasked_dialog import UnaskedScreen

        cockpit, record = self._cockpit, self._cockpit.shown
        try:
            status = await cockpit.supervision.status()
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="warning")
            return
        session = cockpit.board.sessions.get(record.call.session_id) if record is not None else None
        named = None
        if session is not None and session.closed_at is None:
            named = session.id, session_words(session, session.id)

        def chosen(choice: "LevelChoice | None") -> None:
            if choice is not None:
                cockpit.screen.run_worker(self._set(choice), name="unasked")

        cockpit.screen.app.push_screen(UnaskedScreen(status, named), chosen)

    async def _set(self, choice: "LevelChoice") -> None:
        cockpit = self._cockpit
        until = time.time() + choice.seconds if choice.seconds is not None else None
        try:
            await cockpit.supervision.set_unasked(choice.level, cockpit.me, choice.session_id, until)
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="warning")
            return
        where = "in this session" if choice.session_id is not None else "in all sessions"
        what = f"{choice.level!r} holds" if choice.level is not None else "What your files say holds again"
        cockpit.tell(f"{what} {where}{' for one hour' if choice.seconds is not None else ''}.")
