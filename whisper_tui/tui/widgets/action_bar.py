"""Buttons for what can be done with the selected call, and for the screens that lie over the cockpit."""

from whisper_tui.model.state import CallRecord
from whisper_tui.tui.commands import BY_ID, available
from whisper_tui.tui.widgets.button_bar import ButtonBar

BUTTONS = (
    *("approve", "approve-session", "edit", "deny", "deny-session", "approve-scope", "deny-class"),
    *("mark", "mark-alike", "type", "terminal", "pause", "signal", "kill", "retry"),
    *("talk", "background", "history", "rules", "export", "copy-command"),
)
SOME_STATES_ONLY = frozenset({"deny-class"})
"""Commands that mean something for nearly every call, and are worth a button only where one waits."""


class ActionBar(ButtonBar):
    """One button per command that means anything now."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__((BY_ID[id_] for id_ in BUTTONS), id=id)

    def on_mount(self) -> None:
        """Nothing is selected yet."""
        self.show(None)

    def show(self, record: CallRecord | None) -> None:
        """Display the buttons that mean something for a call."""
        waits = record is not None and record.state.kind == "waiting"
        for button in self.buttons:
            id_ = (button.id or "").removeprefix("do-")
            means = available(BY_ID[id_], record) and (waits or id_ not in SOME_STATES_ONLY)
            button.set_class(not means, "-meaningless")
        self.fit()
