"""Commands about edits of files: how those of a session are judged, and going through a difference."""

from collections.abc import Callable

from whisper_tui.model.edits import EditMode
from whisper_tui.model.errors import WhisperError
from whisper_tui.present.words import error_text, session_label_of
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.paragraphs_view import ParagraphsView

COMMANDS: tuple[Command, ...] = (
    Command(
        "ask-edits",
        "left_parenthesis",
        "Ask edits",
        "Ask about every edit of the call's session; again, judge them by the rules.",
        "Decide",
        "call",
    ),
    Command(
        "allow-edits",
        "right_parenthesis",
        "Allow edits",
        "Allow the session's edits of ordinary files in its workspace; again, judge them by the rules.",
        "Decide",
        "call",
    ),
)

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

_TOLD: dict[EditMode, str] = {
    "ask": "Every edit of {} is asked about.",
    "allow": "Edits of ordinary files in the workspace of {} are allowed.",
    "rules": "The edits of {} are judged by the rules again.",
}


def go_to_place(cockpit: CockpitContext, view: ParagraphsView, direction: int, *, files: bool) -> None:
    """Scroll to the next or the previous hunk, or file, of a difference; a toast says if there is none."""
    if view.place is None:
        cockpit.tell("No difference of files is on the screen.")
    elif not view.go_to_place(direction, files=files):
        which = "last" if direction > 0 else "first"
        cockpit.tell(f"This is the {which} {'file' if files else 'hunk'}.")


class EditCommands:
    """Carries out the commands about edits."""

    def __init__(self, cockpit: CockpitContext, is_guarded: Callable[[], bool]) -> None:
        """`is_guarded`: true while a key must decide nothing, because the selection has just moved by itself."""
        self._cockpit = cockpit
        self._is_guarded = is_guarded

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {
            "ask-edits": lambda: self._switch("ask"),
            "allow-edits": lambda: self._switch("allow"),
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

    async def _switch(self, mode: EditMode) -> None:
        record = self._cockpit.shown
        session = self._cockpit.board.sessions.get(record.call.session_id) if record is not None else None
        if record is None or session is None or self._is_guarded():
            return
        wanted: EditMode = "rules" if session.edits == mode else mode
        try:
            await self._cockpit.supervision.set_edit_mode(session.id, wanted, self._cockpit.me)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")
            return
        self._cockpit.tell(_TOLD[wanted].format(session_label_of(record, self._cockpit.board)))
