"""The commands about what runs unasked: how much that is, and what it has changed."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import count
from whisper_tui.present.session_text import session_words
from whisper_tui.present.unasked_text import level_words
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.commands.undo_approval import Outcome, UndoCommands

if TYPE_CHECKING:
    from whisper_tui.model.api import SupervisorStatus
    from whisper_tui.model.call import UnaskedLevel
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

    def __init__(self, cockpit: CockpitContext, undoing: UndoCommands) -> None:
        self._cockpit = cockpit
        self._undoing = undoing

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"unasked": self._ask, "review-unasked": self._review}

    def _review(self) -> None:
        cockpit = self._cockpit
        ids = sorted(cockpit.board.unreviewed, key=lambda each: _ended_at(cockpit.board.calls[each]), reverse=True)
        if not ids:
            cockpit.tell("Nothing was changed unasked since the last review.")
            return
        self._show(tuple(ids))

    def _show(self, ids: tuple[str, ...]) -> bool:
        """Show calls that have changed something unasked. False: none of them is there any more."""
        from whisper_tui.tui.dialogs.review_dialog import ReviewScreen

        cockpit = self._cockpit
        records = tuple(cockpit.board.calls[call_id] for call_id in ids if call_id in cockpit.board.calls)

        def answered(answer: "ReviewAnswer | None") -> None:
            if answer is not None:
                cockpit.screen.run_worker(self._finish(answer, ids), name="review")

        if records:
            cockpit.screen.app.push_screen(ReviewScreen(cockpit, records), answered)
        return bool(records)

    async def _show_again(self, ids: tuple[str, ...]) -> Outcome:
        # A mark decides nothing, so there is nothing to take back but the look at the calls.
        return "undone" if self._show(ids) else "nothing"

    async def _finish(self, answer: "ReviewAnswer", ids: tuple[str, ...]) -> None:
        cockpit, undone, failed = self._cockpit, list[str](), list[str]()
        try:
            if answer.seen_until is not None:
                await cockpit.supervision.mark_reviewed(answer.seen_until, cockpit.me)
                self._undoing.remember(lambda: self._show_again(ids))
                cockpit.tell("Marked as seen.")
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="warning")
        for call_id in answer.take_back:
            try:
                await cockpit.supervision.undo(call_id, (), "undo", cockpit.me)
            except WhisperError as error:
                failed.append(f"Call {visible(call_id)} was not undone: {error_text(error)}")
            else:
                undone.append(call_id)
        if undone:
            self._undoing.remember(lambda: self._redo(undone))
        if answer.take_back:
            done = f"{count(len(undone), 'call')} undone."
            cockpit.tell(" ".join((done, *failed)), severity="warning" if failed else "information")

    async def _redo(self, undone: Sequence[str]) -> Outcome:
        """Make the changes of calls again, in the order in which they were made."""
        for call_id in reversed(undone):
            await self._cockpit.supervision.undo(call_id, (), "redo", self._cockpit.me)
        self._cockpit.tell(f"The changes of {count(len(undone), 'call')} are made again.")
        return "undone"

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
                cockpit.screen.run_worker(self._set(choice, status), name="unasked")

        cockpit.screen.app.push_screen(UnaskedScreen(status, named), chosen)

    async def _set(self, choice: "LevelChoice", status: "SupervisorStatus") -> None:
        cockpit, session_id, now = self._cockpit, choice.session_id, time.time()
        known = cockpit.board.sessions.get(session_id) if session_id is not None else None
        said = cockpit.board.unasked if session_id is None else known.unasked if known is not None else None
        before = said if said is not None and said.holds(now) else None
        until = now + choice.seconds if choice.seconds is not None else None
        try:
            await cockpit.supervision.set_unasked(choice.level, cockpit.me, session_id, until)
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="warning")
            return
        in_file = session_id is None and until is None and choice.level is not None
        if in_file and before is None:
            # Its file said what was in force: nothing else was said of all sessions.
            before = status.level_in("")
            if before is None:
                self._undoing.remember(self._cannot_set_again)
        if not in_file or before is not None:
            self._undoing.remember(lambda: self._set_again(before, session_id))
        what = f"{choice.level!r} holds" if choice.level is not None else "What your files say holds again"
        cockpit.tell(f"{what} {_reach(session_id)}{' for one hour' if choice.seconds is not None else ''}.")

    async def _set_again(self, before: "UnaskedLevel | None", session_id: str | None) -> Outcome:
        """Set the level from before, as long as the session is open and the time of that level is not over."""
        cockpit = self._cockpit
        session = cockpit.board.sessions.get(session_id) if session_id is not None else None
        if session_id is not None and (session is None or session.closed_at is not None):
            return "nothing"
        level = before if before is not None and before.holds(time.time()) else None
        if level is None:
            await cockpit.supervision.set_unasked(None, cockpit.me, session_id)
        else:
            await cockpit.supervision.set_unasked(level.level, cockpit.me, session_id, level.until)
        what = level_words(level) if level is not None else "what your files say"
        cockpit.tell(f"Again {_reach(session_id)}: {what}.")
        return "undone"

    async def _cannot_set_again(self) -> Outcome:
        """Say why a level is not set again: what the rules files of other machines said before is not reported."""
        self._cockpit.tell("The level stands in the rules files of several machines: set it again there.")
        return "undone"


def _reach(session_id: str | None) -> str:
    return "in this session" if session_id is not None else "in all sessions"
