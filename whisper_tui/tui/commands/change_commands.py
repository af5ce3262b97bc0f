"""Commands about changes of files: previews of a call, what is undone, and going through a difference."""

from collections.abc import Callable

from whisper_tui.model.errors import WhisperError
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.commands.approve_deny import DecisionCommands
from whisper_tui.tui.commands.change_taker import ChangeTaker
from whisper_tui.tui.paragraphs_view import ParagraphsView

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
