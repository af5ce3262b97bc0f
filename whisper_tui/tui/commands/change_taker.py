"""Undoing what an ended call changed, or redoing it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.call import FileEdits
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.preview import PreviewPage, UndoDirection
from whisper_tui.model.state import CallRecord
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext

if TYPE_CHECKING:
    from whisper_tui.tui.dialogs.take_back_dialog import UndoChoice


class ChangeTaker:
    """Undoes what an ended call changed, or redoes it: an edit at the second key, a command after a dialog."""

    def __init__(self, cockpit: CockpitContext, done: Callable[[], object] = lambda: None) -> None:
        """`done` draws a call again that the cockpit does not draw by itself."""
        self._cockpit = cockpit
        self._done = done
        self._warned: str | None = None
        """The edit about which the person was asked: the next key undoes it."""

    async def take_back(self, record: CallRecord) -> None:
        """Ask about the changes of a call, and undo them."""
        from whisper_tui.tui.dialogs.take_back_dialog import MOST_LISTED

        try:
            if isinstance(record.spec.command, FileEdits):
                await self._revert_edit(record)
            else:
                page = await self._cockpit.supervision.preview_page(record.id, 0, MOST_LISTED)
                self._ask(record, page)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")

    async def _revert_edit(self, record: CallRecord) -> None:
        if record.resolved is not None and record.resolved.edits and self._warned != record.id:
            self._warned = record.id
            hears = " Its agent is told." if self._hears(record) else ""
            self._cockpit.tell(f"Press again to undo edit {record.id}: its files become as they were before it.{hears}")
            return
        self._warned = None
        await self._cockpit.supervision.revert_edit(record.id, self._cockpit.me)
        told = "Its agent is told with its next call." if self._hears(record) else "Its agent is gone."
        self._cockpit.tell(f"Edit {record.id} was undone. {told}")
        self._done()

    def _ask(self, record: CallRecord, page: PreviewPage) -> None:
        """Show what would be undone, or redone if all of it was undone."""
        from whisper_tui.tui.dialogs.take_back_dialog import TakeBackScreen

        again = bool(page.changes) and all(change.taken_back for change in page.changes)
        direction: UndoDirection = "redo" if again else "undo"

        def chosen(choice: "UndoChoice | None") -> None:
            if choice is not None:
                self._cockpit.screen.run_worker(self._move(record, choice, direction), name="take-back")

        screen = TakeBackScreen(self._cockpit, record, page, direction, hears=self._hears(record))
        self._cockpit.screen.app.push_screen(screen, chosen)

    def _hears(self, record: CallRecord) -> bool:
        """True if the agent of a call can be told something: its session is open."""
        session = self._cockpit.board.sessions.get(record.call.session_id)
        return session is not None and session.closed_at is None

    async def _move(self, record: CallRecord, choice: "UndoChoice", direction: UndoDirection) -> None:
        paths = choice.paths
        try:
            await self._cockpit.supervision.undo(record.id, paths, direction, self._cockpit.me, tell=choice.tell)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
            return
        done = "undone" if direction == "undo" else "redone"
        what = f"The chosen changes of call {record.id}" if paths else f"All changes of call {record.id}"
        told = "Its agent is told." if choice.tell else "Its agent is not told."
        self._cockpit.tell(f"{what} are {done}. {told}")
        self._done()
