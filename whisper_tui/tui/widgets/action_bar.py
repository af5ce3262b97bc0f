"""Buttons for what can be done with the selected call, and for the screens that lie over the cockpit."""

from dataclasses import replace

from whisper_tui.model.state import CallRecord
from whisper_tui.tui.commands import BY_ID, available
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.widgets.button_bar import ButtonBar, label

BUTTONS = (
    *("approve", "approve-session", "edit", "deny", "deny-session", "approve-scope", "deny-class"),
    *("mark", "mark-alike", "rerun-unconfined", "type", "terminal", "pause", "signal", "kill", "retry"),
    *("talk", "background", "history", "rules", "export", "copy-command"),
)
SOME_STATES_ONLY = frozenset({"deny-class"})
"""Commands that mean something for nearly every call, and are worth a button only where one waits."""


class ActionBar(ButtonBar):
    """One button per command that means anything now."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__((BY_ID[id_] for id_ in BUTTONS), id=id)
        self._still = False

    def on_mount(self) -> None:
        """Nothing is selected yet."""
        self.show(None)

    def show(self, record: CallRecord | None, *, still: bool = False) -> None:
        """Display the buttons that mean something for a call; `still`: what runs is paused."""
        waits = record is not None and record.state.kind == "waiting"
        for button in self.buttons:
            id_ = (button.id or "").removeprefix("do-")
            means = available(BY_ID[id_], record) and (waits or id_ not in SOME_STATES_ONLY)
            button.set_class(not means, "-meaningless")
            if id_ == "pause" and still is not self._still:
                self._still = still
                pause = in_force(self.app).command(BY_ID[id_])
                button.label = label(replace(pause, label="Continue") if still else pause)
                button.refresh(layout=True)
        self.fit()
