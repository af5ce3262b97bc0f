"""The dialog that offers rules for a project's own commands: a list to tick."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whisper_tui.model.shown_rules import ShownRule, StarterSet
from whisper_tui.model.text import one_line_beginning
from whisper_tui.tui.dialogs.choice_list import ChoiceListScreen
from whisper_tui.tui.dialogs.dialog import StyleFiles

LONGEST = 30
"""Columns of a command in the list."""


class StarterScreen(ChoiceListScreen[tuple[ShownRule, ...]]):
    """Asks which of the rules are saved."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/signals.tcss"]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Space", "Tick", "choose"),
        ("a", "Tick all", "choose_all"),
        ("Enter", "Save ticked", "save"),
    )

    def __init__(self, offered: StarterSet) -> None:
        super().__init__(range(len(offered.rules)))
        self._offered = offered

    def compose(self) -> ComposeResult:
        """Build the list."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Rules for this project's own commands")
            where = one_line_beginning(self._offered.root, 200)
            yield Static(Content(f"In {where} these may run without asking:"), classes="dialog-text")
            yield self.rows()
            yield Static(
                Content("They are your rules, in this workspace alone. L lists them; space there disables one."),
                classes="dialog-note",
            )
            yield from self.buttons()

    def words(self, at: int) -> Content:
        """Return the command of a rule, what it comes from, and its sandbox."""
        rule = self._offered.rules[at]
        # The names are the project's own text (decision 21).
        command, because = one_line_beginning(rule.subject, LONGEST), one_line_beginning(rule.because, LONGEST)
        return Content.assemble((f"{command:<{LONGEST}}", "bold"), (f" {because}\n      {rule.sandbox}", "$muted"))

    def action_save(self) -> None:
        """Return the ticked rules."""
        self.dismiss(tuple(rule for at, rule in enumerate(self._offered.rules) if at in self.chosen))
