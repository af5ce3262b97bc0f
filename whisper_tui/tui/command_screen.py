"""Screens whose keys, footer, palette and help come from tables of commands."""

import time
from collections.abc import Callable
from inspect import isawaitable
from typing import ClassVar

from textual.binding import ActiveBinding
from textual.screen import Screen

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
            # test guards its existence (decision 32).
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
