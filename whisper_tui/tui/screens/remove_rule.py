"""Asks before a rule is taken out of the file."""

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whisper_tui.model.text import visible
from whisper_tui.tui.rule_book import ShownRule
from whisper_tui.tui.screens.dialog import Dialog


class RemoveRuleScreen(Dialog[bool]):
    """One rule; every rule of its name goes with it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "remove", "Remove it")]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Remove it", "remove"),)

    def __init__(self, rule: ShownRule, path: Path) -> None:
        super().__init__()
        self._rule = rule
        self._path = path

    def compose(self) -> ComposeResult:
        """Which rule, and where it stands."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Remove a rule")
            words = f"{self._rule.effect}: {visible(self._rule.subject)}"
            yield Static(Content(words), classes="dialog-text")
            note = f"All rules called {visible(self._rule.name)!r} are taken out of {self._path}. It holds at once."
            yield Static(Content(note), classes="dialog-note")
            yield from self.buttons()

    def action_remove(self) -> None:
        """Do it."""
        self.dismiss(True)
