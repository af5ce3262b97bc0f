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

BUTTONS = (
    *("approve", "approve-session", "edit", "deny", "deny-session", "approve-scope", "deny-class"),
    *("mark", "mark-alike", "type", "terminal", "pause", "signal", "kill"),
)
"""From the left, as many as there is room for; the last button offers everything."""
SOME_STATES_ONLY = frozenset({"deny-class"})
"""Commands that mean something for nearly every call, and are worth a button only where one waits."""


class ActionBar(Horizontal):
    """One button per command that means anything now; the keyboard has keys, so they take no focus."""

    def compose(self) -> ComposeResult:
        """All buttons; those without a meaning are not displayed."""
        with Horizontal(id="do-these"):
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
        more = Button(Content("⋯"), id="do-more", compact=True)
        more.can_focus = False
        more.tooltip = "Everything that can be done now."
        yield more

    def on_mount(self) -> None:
        """Nothing is selected yet."""
        self.show(None)

    def show(self, record: CallRecord | None) -> None:
        """Display the buttons that mean something for a call."""
        waits = record is not None and record.state.kind == "waiting"
        shown = False
        for button in self.query("#do-these Button"):
            id_ = (button.id or "").removeprefix("do-")
            means = available(BY_ID[id_], record) and (waits or id_ not in SOME_STATES_ONLY)
            button.set_class(not means, "-meaningless")
            shown = shown or means
        self.display = shown

    @on(Button.Pressed, "#do-more")
    def _more(self, event: Button.Pressed) -> None:
        event.stop()
        self.app.action_command_palette()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id != "do-more":
            self.post_message(CommandWanted((event.button.id or "").removeprefix("do-")))


def _label(command: Command) -> Content:
    key = f"{command.key_name} " if command.key else ""
    return Content.assemble((key, "bold"), command.label)
