"""A screen of its own whose keys, footer, palette and help come from one table of commands."""

from collections.abc import Callable
from inspect import isawaitable
from typing import ClassVar

from whisper_tui.tui.commands import Command
from whisper_tui.tui.messages import CommandWanted
from whisper_tui.tui.screens.keyed import KeyedScreen


class CommandScreen(KeyedScreen):
    """Subclasses name their table, bind its keys, and say what each command does."""

    TABLE: ClassVar[tuple[Command, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.does: dict[str, Callable[[], object]] = {}
        """What each command of the table does, by its id."""

    def means_something(self, command_id: str) -> bool:
        """Whether a command means anything now."""
        return command_id in self.does

    async def action_command(self, command_id: str) -> None:
        """Do what a key, a button or the palette asks for."""
        if not self.means_something(command_id):
            return
        result = self.does[command_id]()
        if isawaitable(result):
            await result

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Commands that mean nothing now are not in the footer, and their keys do nothing."""
        if action != "command" or not self.is_mounted:
            return True
        return self.means_something(str(parameters[0]))

    async def on_command_wanted(self, message: CommandWanted) -> None:
        """A button was pressed."""
        await self.action_command(message.command_id)
