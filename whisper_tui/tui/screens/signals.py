"""Asks which signal is sent, and to which processes."""

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from whisper_tui.model.run import SignalTarget
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles
from whisper_tui.tui.signal_words import signal_choices

TARGETS: dict[SignalTarget, str] = {
    "leader": "the command itself",
    "group": "the command and its process group",
    "tree": "everything that it started, the background included",
}


@dataclass(frozen=True)
class SignalWanted:
    """A signal and who gets it."""

    number: int
    target: SignalTarget


class SignalScreen(Dialog[SignalWanted]):
    """Every signal with plain words; Tab changes who gets it."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "signals.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "target", "Who gets it", priority=True)]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Send", "send"), ("Tab", "Who gets it", "target"))

    def __init__(self, call_id: str, *, leader_alive: bool) -> None:
        super().__init__()
        self._call_id = call_id
        self._targets: list[SignalTarget] = ["leader", "group", "tree"] if leader_alive else ["tree"]
        self._choices = signal_choices()

    def compose(self) -> ComposeResult:
        """The list, and who gets what is chosen."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Signal to call {self._call_id}")
            yield Static(id="target", classes="dialog-text")
            yield OptionList(
                *(
                    Option(Content.assemble((f"{choice.name:<11}", "bold"), f"{choice.number:>3}  ", choice.words))
                    for choice in self._choices
                )
            )
            yield from self.buttons()

    def on_mount(self) -> None:
        """Choose at once."""
        self.query_one(OptionList).focus()
        self._show_target()

    def _show_target(self) -> None:
        words = Content.assemble("It goes to ", (TARGETS[self._targets[0]], "bold"), ".")
        self.query_one("#target", Static).update(words)

    def action_target(self) -> None:
        """Somebody else gets it."""
        self._targets.append(self._targets.pop(0))
        self._show_target()

    def action_send(self) -> None:
        """Send the highlighted signal."""
        if (at := self.query_one(OptionList).highlighted) is not None:
            self.dismiss(SignalWanted(self._choices[at].number, self._targets[0]))

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        self.action_send()
