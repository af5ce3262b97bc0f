"""A bar of buttons, as many as fit, each of which carries out a command."""

from collections.abc import Iterable

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Button

from whisper_tui.tui.cockpit_context import CommandRequested
from whisper_tui.tui.command_definition import Command, in_force

AROUND_LABEL = 2
"""Columns of a button besides its label."""
MORE = 3
"""Columns of the last button."""
EVERYTHING = "All commands that are available now."
"""The tooltip of the palette."""


class ButtonBar(Horizontal):
    """As many buttons as fit, from the left. They take no focus, because the keyboard has keys for them."""

    def __init__(self, ids: Iterable[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._ids = tuple(ids)
        self._fitted = 0
        """The columns to which the buttons were fitted."""

    def compose(self) -> ComposeResult:
        """Yield all buttons, and the one of the palette."""
        with Horizontal(classes="bar-buttons"):
            for command in map(in_force(self.app).by_id, self._ids):
                button = Button(
                    label(command),
                    id=f"do-{command.id}",
                    classes=f"-{command.group.lower()} {self.begins_with(command)}",
                    compact=True,
                )
                # A click must not take the focus from the list, or the next key would go to the button.
                button.can_focus = False
                button.tooltip = command.help
                yield button
        more = Button(Content("⋯"), classes="bar-more", compact=True)
        more.can_focus = False
        more.tooltip = EVERYTHING
        yield more

    def begins_with(self, command: Command) -> str:
        """Return the class that the button of a command has at first. Empty: none."""
        return ""

    @property
    def buttons(self) -> list[Button]:
        """The buttons of commands, from the left."""
        return list(self.query(".bar-buttons Button").results(Button))

    def on_resize(self) -> None:
        """Show as many buttons as fit now."""
        self.fit()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the bar. Where it is drawn at another width than its buttons were fitted to, they are fitted again.

        While panes around it get their widths, not every new one comes with an event.
        """
        if self.content_size.width != self._fitted:
            self.call_later(self.fit)
        return super().render_lines(crop)

    def fit(self) -> None:
        """Hide the buttons that would be cut off."""
        self._fitted = self.content_size.width
        room = self._fitted - MORE
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
            self.post_message(CommandRequested((event.button.id or "").removeprefix("do-")))


def label(command: Command) -> Content:
    """Return the label of a button: the key in bold, and the name of the command."""
    key = f"{command.key_name} " if command.key else ""
    return Content.assemble((key, "bold"), command.label)
