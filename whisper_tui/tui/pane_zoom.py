"""The zoom of panes: one of them gets the room of the others."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from textual.screen import Screen
from textual.widget import Widget

LEVELS = 3
"""As usual, the whole right side, the whole screen."""
Pane = Literal["call", "output"]


class HidesOutput(Protocol):
    """A pane of output that another pane can hide."""

    away: bool
    """True while another pane has its room."""
    has_output: bool
    """True if the call has run."""
    display: bool


class PaneZoom:
    """Gives the room of a screen to one of its panes. The screen has a list, the selected call and its output."""

    def __init__(
        self,
        screen: Screen[Any],
        call: tuple[str, ...],
        output: str,
        around: tuple[str, ...],
        keep_call: Callable[[], bool] = lambda: False,
    ) -> None:
        """All are CSS selectors: `around` is what a whole screen hides, first of all the list.

        `keep_call` returns True while the call may not be hidden.
        """
        self._screen = screen
        self._call, self._output, self._around = call, output, around
        self._keep_call = keep_call
        self.level = 0
        self._chosen: Pane = "output"

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {"zoom": lambda: self.step(1), "zoom-out": lambda: self.step(-1)}

    def step(self, by: int) -> None:
        """Go to the next level, after the last one back to the usual arrangement; or to the one before."""
        if self.level == 0:
            self._chosen = "call" if any(widget.has_focus_within for widget in self._calls) else "output"
        self._go_to((self.level + by) % LEVELS)

    def fill(self, pane: Pane) -> None:
        """Give a pane the whole screen."""
        self._chosen = pane
        self._go_to(LEVELS - 1)

    def back(self) -> bool:
        """Return to the usual arrangement. Return False if nothing was zoomed."""
        if self.level == 0:
            return False
        self._go_to(0)
        return True

    def _go_to(self, level: int) -> None:
        before, self.level = self.level, level
        self.apply()
        # The list is hidden on a whole screen, so the arrow keys scroll the pane instead.
        panes = self._calls if self.pane == "call" else [self._screen.query_one(self._output)]
        if level == LEVELS - 1:
            focusable = (child for pane in panes for child in (pane, *pane.query("*")) if child.focusable)
            if not any(pane.has_focus_within for pane in panes):
                self._screen.set_focus(next(focusable, None))
        elif before == LEVELS - 1:
            self._screen.set_focus(self._screen.query_one(str(self._screen.AUTO_FOCUS)))

    @property
    def pane(self) -> Pane | None:
        """The pane that has the room of the others, if any."""
        if self.level == 0:
            return None
        has_output = self._output_pane.has_output
        return "output" if self._chosen == "output" and has_output and not self._keep_call() else "call"

    def apply(self) -> None:
        """Hide what the zoomed pane covers, for the call that is selected now."""
        pane, output = self.pane, self._output_pane
        for widget in self._calls:
            widget.display = pane != "output"
        output.away = pane == "call"
        output.display = output.has_output and not output.away
        for selector in self._around:
            self._screen.query_one(selector).set_class(self.level == LEVELS - 1, "-zoomed-away")

    @property
    def _calls(self) -> list[Widget]:
        return [self._screen.query_one(selector) for selector in self._call]

    @property
    def _output_pane(self) -> HidesOutput:
        found: Any = self._screen.query_one(self._output)
        return found  # type: ignore[no-any-return]
