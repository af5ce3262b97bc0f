"""The command that sets how much runs unasked."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.model.errors import WhisperError
from whisper_tui.present.words import error_text, session_label
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command

if TYPE_CHECKING:
    from whisper_tui.tui.dialogs.unasked_dialog import LevelChoice

LEVEL: tuple[Command, ...] = (
    Command(
        "unasked",
        "left_parenthesis",
        "Unasked…",
        "Choose how much runs without asking: in the session of the call or in all, for an hour or from now on.",
        "Decide",
        "nothing",
    ),
)


class LevelCommands:
    """Carries out the command."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of the command, by its id."""
        return {"unasked": self._ask}

    async def _ask(self) -> None:
        from whisper_tui.tui.dialogs.unasked_dialog import UnaskedScreen

        cockpit, record = self._cockpit, self._cockpit.shown
        try:
            levels = (await cockpit.supervision.status()).unasked
        except WhisperError as error:
            cockpit.tell(error_text(error), severity="warning")
            return
        session = cockpit.board.sessions.get(record.call.session_id) if record is not None else None
        named = None
        if session is not None and session.closed_at is None:
            named = session.id, session_label(session, session.id)

        def chosen(choice: "LevelChoice | None") -> None:
            if choice is not None:
                cockpit.screen.run_worker(self._set(choice), name="unasked")

        cockpit.screen.app.push_screen(UnaskedScreen(levels, named), chosen)

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
