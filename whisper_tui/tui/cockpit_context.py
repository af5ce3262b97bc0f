"""The part of the cockpit that command groups and dialogs depend on."""

from collections.abc import Callable
from typing import Any, Protocol

from textual.notifications import SeverityLevel
from textual.screen import Screen

from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.decision import Decider
from whisper_tui.model.state import CallRecord


class CockpitContext(Protocol):
    """The cockpit, as command groups and dialogs see it: the supervisor, the board, the call on the screen."""

    clock: Callable[[], float]
    """Returns the time, in seconds since the epoch."""
    me: Decider
    """The person who decides in this cockpit."""

    @property
    def supervision(self) -> Supervision:
        """The API of the supervisor. A reconnection replaces it, so it is looked up for each use and never kept."""
        ...

    @property
    def board(self) -> Board:
        """All calls as the cockpit knows them now. A reconnection replaces it as well."""
        ...

    @property
    def shown(self) -> CallRecord | None:
        """The call as it is on the screen: decisions are about this version and no newer one."""
        ...

    @property
    def screen(self) -> Screen[Any]:
        """The Textual screen, for its widgets, workers and timers."""
        ...

    def tell(self, text: str, *, severity: SeverityLevel = "information") -> None:
        """Show a toast."""
        ...

    def select_after(self, call_id: str) -> None:
        """Select the next waiting call, after this one was decided."""
        ...

    def refresh_call(self) -> None:
        """Draw the selected call as the board knows it now."""
        ...
