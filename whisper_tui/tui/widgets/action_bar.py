"""Buttons for what can be done with the selected call, for people who use the mouse."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button

from whisper_tui.model.state import CallRecord
from whisper_tui.tui.commands import BY_ID, Command, available
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.messages import CommandWanted

BUTTONS = ("approve", "approve-session", "edit", "deny", "deny-session", "type", "signal", "kill")


class ActionBar(Horizontal):
    """One button per command that means anything now; the keyboard has keys, so they take no focus."""

    def compose(self) -> ComposeResult:
        """All buttons; those without a meaning are not displayed."""
        for command in (BY_ID[id_] for id_ in BUTTONS):
            button = Button(
                _label(in_force(self.app).command(command)),
                id=f"do-{command.id}",
                classes=f"-{command.group.lower()}",
                compact=True,
            )
            button.can_focus = False
            button.tooltip = command.help
            yield button

    def on_mount(self) -> None:
        """Nothing is selected yet."""
        self.show(None)

    def show(self, record: CallRecord | None) -> None:
        """Display the buttons that mean something for a call."""
        shown = False
        for button in self.query(Button):
            means = available(BY_ID[(button.id or "").removeprefix("do-")], record)
            button.set_class(not means, "-meaningless")
            shown = shown or means
        self.display = shown

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.post_message(CommandWanted((event.button.id or "").removeprefix("do-")))


def _label(command: Command) -> Content:
    return Content.assemble((f"{command.key_name} ", "bold"), command.label)
