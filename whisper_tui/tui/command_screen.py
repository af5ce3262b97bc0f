"""Screens whose keys, footer, palette and help come from tables of commands, and the zoom of their panes."""

import time
from collections.abc import Callable
from inspect import isawaitable
from typing import Any, ClassVar, Literal, Protocol

from textual.binding import ActiveBinding
from textual.screen import Screen
from textual.widget import Widget

from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.messages import CommandRequested

URGENT_S = 0.1
"""Seconds after a key for which changes are drawn without waiting for the next frame."""


class KeyedScreen(Screen[None]):
    """A screen that draws the effect of a key at once, and lists commands in the order of their table."""

    _hasty_until = 0.0

    def redraw_now(self) -> None:
        """Draw changes at once for a moment, because a key was pressed."""
        self._hasty_until = time.monotonic() + URGENT_S

    def on_idle(self) -> None:
        """Draw what the key has changed so far."""
        if time.monotonic() < self._hasty_until:
            # Textual would draw at its next frame, one or two frames after the key. This is its private method; a
            # test guards its existence (decision 26).
            self._on_timer_update()

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """The bindings that are active now, in the order of the table of commands."""
        found = super().active_bindings
        # Textual puts remapped bindings behind all others, so a changed key would move its command in the footer.
        order = in_force(self.app).order
        return dict(sorted(found.items(), key=lambda item: order.get(item[1].binding.id or "", len(order))))


class CommandScreen(KeyedScreen):
    """A screen over the cockpit with a table of commands of its own."""

    TABLE: ClassVar[tuple[Command, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.does: dict[str, Callable[[], object]] = {}
        """The function of each command of the table, by its id."""

    def means_something(self, command_id: str) -> bool:
        """True if a command is available now."""
        return command_id in self.does

    def why_not(self, command: Command) -> str:
        """Return the reason for which a command of the table is not available now; empty if it is."""
        return "" if self.means_something(command.id) else f"{command.label} is not possible now."

    async def action_command(self, command_id: str) -> None:
        """Carry out a command from a key, a button or the palette."""
        if not self.means_something(command_id):
            return
        result = self.does[command_id]()
        if isawaitable(result):
            await result

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """False for commands that are not available: the footer omits them, and their keys do nothing."""
        if action != "command" or not self.is_mounted:
            return True
        return self.means_something(str(parameters[0]))

    async def on_command_requested(self, message: CommandRequested) -> None:
        """Carry out the command of a button."""
        await self.action_command(message.command_id)


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
