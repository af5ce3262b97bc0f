"""Shows the rules that a project brings along, and asks whether they are trusted as they are."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from whisper_tui.model.text import visible
from whisper_tui.tui.rule_book import ProjectRules
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles


class TrustScreen(Dialog[bool]):
    """The whole file is there to be read: trust is in its content, letter by letter."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "failures.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "trust", "Trust this", priority=True)]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Ctrl+S", "Trust this", "trust"),)

    def __init__(self, project: ProjectRules) -> None:
        super().__init__()
        self._project = project

    def compose(self) -> ComposeResult:
        """What it says, and what trusting it means."""
        with Vertical(classes="dialog") as dialog:
            whose = "Trust the rules of a project" if self._project.root else "Trust what your rules allow"
            dialog.border_title = Content(whose)
            with VerticalScroll():
                yield Static(Content(visible(self._project.text, keep_lines=True)), classes="dialog-text")
            where = " there" if self._project.root else ""
            note = (
                f"This is {visible(self._project.path)}. What it allows will run{where} without being asked,"
                " until the file changes."
            )
            yield Static(Content(note), classes="dialog-note")
            yield from self.buttons()

    def action_trust(self) -> None:
        """Do it."""
        self.dismiss(True)
