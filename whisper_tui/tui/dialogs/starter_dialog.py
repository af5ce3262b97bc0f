"""The dialog that offers rules for a project's own commands: a list to tick."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from whisper_tui.model.shown_rules import ShownRule, StarterSet
from whisper_tui.model.text import one_line_beginning
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles

LONGEST = 30
"""Columns of a command in the list."""


class StarterScreen(Dialog[tuple[ShownRule, ...]]):
    """Asks which of the rules are saved."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/signals.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", "Tick", priority=True),
        Binding("ctrl+a", "tick_all", "Tick all", priority=True),
    ]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Space", "Tick", "tick"),
        ("Ctrl+A", "Tick all", "tick_all"),
        ("Enter", "Save ticked", "save"),
    )

    def __init__(self, offered: StarterSet) -> None:
        super().__init__()
        self._offered = offered
        self._ticked: set[int] = set()

    def compose(self) -> ComposeResult:
        """Build the list."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Rules for this project's own commands")
            where = one_line_beginning(self._offered.root, 200)
            yield Static(Content(f"In {where} these may run without asking:"), classes="dialog-text")
            yield OptionList(*(Option(self._words(at)) for at in range(len(self._offered.rules))))
            yield Static(
                Content("They are your rules, in this workspace alone. L lists them; space there disables one."),
                classes="dialog-note",
            )
            yield from self.buttons()

    def on_mount(self) -> None:
        """Focus the list."""
        self.query_one(OptionList).focus()
        self.query_one(OptionList).highlighted = 0

    def _words(self, at: int) -> Content:
        rule = self._offered.rules[at]
        # The names are the project's own text (decision 21).
        command, because = one_line_beginning(rule.subject, LONGEST), one_line_beginning(rule.because, LONGEST)
        box = ("[x] ", "bold $success") if at in self._ticked else ("[ ] ", "$muted")
        return Content.assemble(box, (f"{command:<{LONGEST}}", "bold"), (f" {because}\n      {rule.sandbox}", "$muted"))

    def _draw(self) -> None:
        listed = self.query_one(OptionList)
        for at in range(len(self._offered.rules)):
            listed.replace_option_prompt_at_index(at, self._words(at))

    def action_tick(self) -> None:
        """Tick the highlighted rule, or take the tick away."""
        listed = self.query_one(OptionList)
        if listed.highlighted is not None:
            self._ticked ^= {listed.highlighted}
            self._draw()

    def action_tick_all(self) -> None:
        """Tick all rules, or none if all are ticked."""
        every = set(range(len(self._offered.rules)))
        self._ticked = set() if self._ticked == every else every
        self._draw()

    def action_save(self) -> None:
        """Return the ticked rules."""
        self.dismiss(tuple(self._offered.rules[at] for at in sorted(self._ticked)))

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        self.action_save()
