"""What is over and what is remembered: the history, rules and approvals, and files of either."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from whisper_tui.tui.screens.export import ask_for_export
from whisper_tui.tui.screens.history import HistoryScreen
from whisper_tui.tui.screens.rules import RulesScreen

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen


class LookingBack:
    """The commands that open screens of their own."""

    def __init__(self, screen: "CockpitScreen") -> None:
        self._screen = screen

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
        return {"history": self.history, "rules": self.rules, "export": self.export}

    def history(self) -> None:
        """Every call ever."""
        self._screen.app.push_screen(HistoryScreen(self._screen))

    def rules(self) -> None:
        """What decides without a human."""
        self._screen.app.push_screen(RulesScreen(self._screen))

    def export(self) -> None:
        """Write the selected call, its session or everything to a file."""
        if self._screen.shown is not None:
            ask_for_export(self._screen, self._screen.shown)
