"""Commands about changes of files: previews of a call, what is undone, and going through a difference."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.call import FileEdits
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.preview import PreviewPage, UndoDirection
from whisper_tui.model.state import CallRecord
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.commands.approve_deny import DecisionCommands
from whisper_tui.tui.paragraphs_view import ParagraphsView

if TYPE_CHECKING:
    from whisper_tui.tui.dialogs.take_back_dialog import UndoChoice

PLACES: tuple[Command, ...] = (
    Command(
        "next-hunk",
        "right_curly_bracket",
        "Next hunk",
        "Go to the next hunk of an edit or a preview.",
        "Move",
        "edit",
        only=("call",),
    ),
    Command(
        "previous-hunk",
        "left_curly_bracket",
        "Previous hunk",
        "Go to the previous hunk of an edit or a preview.",
        "Move",
        "edit",
        only=("call",),
    ),
    Command(
        "next-file",
        "greater_than_sign",
        "Next file",
        "Go to the next file of an edit or a preview.",
        "Move",
        "edit",
        only=("call",),
    ),
    Command(
        "previous-file",
        "less_than_sign",
        "Previous file",
        "Go to the previous file of an edit or a preview.",
        "Move",
        "edit",
        only=("call",),
    ),
)


def go_to_place(cockpit: CockpitContext, view: ParagraphsView, direction: int, *, files: bool) -> None:
    """Scroll to the next or the previous hunk, or file, of a difference; a toast says if there is none."""
    if view.place is None:
        cockpit.tell("No difference of files is on the screen.")
    elif not view.go_to_place(direction, files=files):
        which = "last" if direction > 0 else "first"
        cockpit.tell(f"This is the {which} {'file' if files else 'hunk'}.")


class HunkCommands:
    """Goes through the difference on the card."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {
            "next-hunk": lambda: self._go(1, files=False),
            "previous-hunk": lambda: self._go(-1, files=False),
            "next-file": lambda: self._go(1, files=True),
            "previous-file": lambda: self._go(-1, files=True),
        }

    def _go(self, direction: int, *, files: bool) -> None:
        """Scroll the difference on the card. Nothing is decided by it, so no guard is asked."""
        go_to_place(
            self._cockpit, self._cockpit.screen.query_one("#call-detail", ParagraphsView), direction, files=files
        )


PREVIEWS: tuple[Command, ...] = (
    Command(
        "preview",
        "s",
        "Preview",
        "Run the command in a copy-on-write view of the files, and show what it changes; again, end that.",
        "Decide",
        "previewable",
    ),
    Command(
        "revert-edit",
        "J",
        "Undo changes",
        "Restore the files that an edit or a command changed, if they are as it left them; again, redo a command.",
        "Decide",
        "kept",
    ),
)


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


class PreviewCommands:
    """Carries out the commands about the changes of calls."""

    def __init__(self, cockpit: CockpitContext, decisions: DecisionCommands) -> None:
        """`decisions` knows which call the keys are meant for."""
        self._cockpit = cockpit
        self._decisions = decisions
        self._taker = ChangeTaker(cockpit)

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {
            "preview": self._preview,
            "revert-edit": self._take_back,
        }

    async def _preview(self) -> None:
        """Start a preview of the call, or end the one that runs."""
        cockpit, record = self._cockpit, self._cockpit.shown
        # Nothing is decided by it, but it would be about a call that the person did not choose.
        if record is None or self._decisions.is_guarded():
            return
        preview = record.preview
        try:
            if preview is not None and preview.report is None and not preview.dropped:
                await cockpit.supervision.drop_preview(record.id, cockpit.me)
                cockpit.tell(f"The preview of call {record.id} was ended.")
            else:
                await cockpit.supervision.preview(record.id, cockpit.me)
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="warning")

    async def _take_back(self) -> None:
        record = self._cockpit.shown
        if record is not None and not self._decisions.is_guarded():
            await self._taker.take_back(record)
