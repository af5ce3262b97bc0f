"""The filters of the history as buttons, which show what is chosen and choose the next when they are pressed."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button

from whisper_tui.tui.commands.history import HISTORY
from whisper_tui.tui.history.filters import Filters
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.messages import CommandWanted

IDS = ("history-verdict", "history-ending", "history-decider", "history-period", "history-session")


class Chips(Horizontal):
    """One button a filter."""

    def compose(self) -> ComposeResult:
        """All of them; the keyboard has keys, so they take no focus."""
        for command in (command for command in HISTORY if command.id in IDS):
            button = Button("", id=f"chip-{command.id}", compact=True)
            button.can_focus = False
            button.tooltip = command.help
            yield button

    def show(self, filters: Filters, session: str) -> None:
        """Show what is chosen. `session`: the name of the one that is looked for, if any."""
        chosen = {
            "history-verdict": filters.verdict,
            "history-ending": filters.ending,
            "history-decider": filters.decider,
            "history-period": filters.period,
            "history-session": session if filters.session_id is not None else "any",
        }
        for command in in_force(self.app).commands(HISTORY):
            if command.id not in chosen:
                continue
            value = chosen[command.id]
            some = value not in {"any", "anyone"}
            button = self.query_one(f"#chip-{command.id}", Button)
            words = f"{command.label.lower()}: {value}" if some else command.label
            button.label = Content.assemble((f"{command.key_name} ", "bold"), words)
            button.set_class(some, "-chosen")
            button.refresh(layout=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.post_message(CommandWanted((event.button.id or "").removeprefix("chip-")))
