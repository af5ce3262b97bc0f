"""A row of buttons, one a command, for people who use the mouse; the last one offers everything."""

from collections.abc import Iterable

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button

from whisper_tui.tui.commands import Command
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.messages import CommandWanted

AROUND_LABEL = 2
"""Columns of a button beside its label."""
MORE = 3
"""Columns of the last button."""
EVERYTHING = "Everything that can be done now."
"""What the palette is for."""


class ButtonBar(Horizontal):
    """As many buttons as there is room for, from the left; the keyboard has keys, so they take no focus."""

    def __init__(self, commands: Iterable[Command], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._commands = tuple(commands)

    def compose(self) -> ComposeResult:
        """All buttons, and the one for what has none."""
        with Horizontal(classes="bar-buttons"):
            for command in self._commands:
                button = Button(
                    label(in_force(self.app).command(command)),
                    id=f"do-{command.id}",
                    classes=f"-{command.group.lower()}",
                    compact=True,
                )
                button.can_focus = False
                button.tooltip = command.help
                yield button
        more = Button(Content("⋯"), classes="bar-more", compact=True)
        more.can_focus = False
        more.tooltip = EVERYTHING
        yield more

    @property
    def buttons(self) -> list[Button]:
        """One a command, from the left."""
        return list(self.query(".bar-buttons Button").results(Button))

    def on_resize(self) -> None:
        """More or fewer fit."""
        self.fit()

    def fit(self) -> None:
        """Leave out the buttons that would be cut off."""
        room = self.content_size.width - MORE
        for button in self.buttons:
            if not button.has_class("-meaningless"):
                room -= Content.from_text(button.label).cell_length + AROUND_LABEL
                button.set_class(room < 0, "-no-room")
                room -= 1

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.has_class("bar-more"):
            self.app.action_command_palette()
        else:
            self.post_message(CommandWanted((event.button.id or "").removeprefix("do-")))


def label(command: Command) -> Content:
    """The words on a button: its key, and what it does."""
    key = f"{command.key_name} " if command.key else ""
    return Content.assemble((key, "bold"), command.label)
