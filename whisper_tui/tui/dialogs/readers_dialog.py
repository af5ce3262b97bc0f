"""The built-in list of commands that only read as rows, each with a switch; typing filters them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static
from textual.widgets.option_list import Option

from whisper_tui.present.quantities import count
from whisper_tui.tui.dialogs.dialog import FieldOverList, StyleFiles
from whisper_tui.tui.row_list import RowList


@dataclass(frozen=True)
class ListedCommand:
    """A program of the list, or a subcommand of one."""

    words: str
    asked_by: str = ""
    """The user's rule that switches it off. Empty: none does."""


class ReadersScreen(FieldOverList[None]):
    """Shows the list; each switch acts at once, and the dialog stays open."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/help.tcss"]
    LEAVE = "Close"
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Switch off or on", "switch"),)

    def __init__(
        self, listed: Callable[[], Sequence[ListedCommand]], switch: Callable[[str], Awaitable[None]], *, runs: bool
    ) -> None:
        """`listed`: returns the list as it is now; `switch`: switches a command; `runs`: the list is in force."""
        super().__init__()
        self._listed = listed
        self._switch = switch
        self._runs = runs
        self._rows: list[ListedCommand] = []

    def compose(self) -> ComposeResult:
        """Build the field, the list and the buttons."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Commands that only read")
            yield Input(placeholder="Type to search programs and subcommands", id="help-search", compact=True)
            yield RowList(id="help-list")
            text = "Off means: a rule of yours asks about all calls of this command, also about those that rules allow."
            if not self._runs:
                text = "None of them runs unasked now: the level is nothing, or a rule file switches the list off."
            yield Static(Content(text), classes="dialog-note")
            yield from self.buttons()

    def on_mount(self) -> None:
        """Focus the field, so that typing searches."""
        self.query_one(RowList).can_focus = False
        self.query_one(Input).focus()
        self._show()

    @on(Input.Changed)
    def _typed(self) -> None:
        self._show()

    def _show(self, selected: str = "") -> None:
        wanted = self.query_one(Input).value.casefold().split()
        every = self._listed()
        self._rows = [each for each in every if all(word in each.words.casefold() for word in wanted)]
        off = sum(bool(each.asked_by) for each in every)
        listed = self.query_one(RowList)
        listed.clear_options()
        listed.add_options([Option(self._row(each)) for each in self._rows])
        found = (at for at, each in enumerate(self._rows) if each.words == selected)
        listed.highlighted = next(found, 0) if self._rows else None
        self.query_one(".dialog").border_subtitle = Content(f" {count(len(every), 'command')}, {off} off ")

    def _row(self, command: ListedCommand) -> Content:
        if command.asked_by:
            return Content.assemble(("○ ", "$muted"), command.words, ("  off", "$muted"))
        return Content.assemble(("✔ ", "bold $success" if self._runs else "$muted"), command.words)

    @on(RowList.OptionSelected)
    async def action_switch(self) -> None:
        """Switch the highlighted command off or on."""
        at = self.query_one(RowList).highlighted
        if at is None or at >= len(self._rows):
            return
        words = self._rows[at].words
        await self._switch(words)
        self._show(words)
