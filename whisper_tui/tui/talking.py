"""Reading what an agent says, and saying something to it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.tui.screens.talk import TalkScreen

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen


class Talking:
    """The command that opens the conversation of a session."""

    def __init__(self, screen: "CockpitScreen") -> None:
        self._screen = screen

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {"talk": self.talk}

    def talk(self) -> None:
        """Open the conversation of the selected call's session, else the newest one there is."""
        session_id = self._session_id()
        if session_id is None:
            self._screen.tell("No agent says anything here. One that was started with whisper-tui agent would.")
            return
        self._screen.app.push_screen(TalkScreen(self._screen, session_id))

    def _session_id(self) -> str | None:
        board, record = self._screen.board, self._screen.shown
        talks = [id_ for id_, session in board.sessions.items() if session.hears or id_ in board.said]
        if record is not None and record.call.session_id in talks:
            return record.call.session_id
        return talks[-1] if talks else None
