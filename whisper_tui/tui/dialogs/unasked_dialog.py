"""The dialog about how much runs unasked: in the session of a call, or in all of them."""

from dataclasses import dataclass
from typing import ClassVar, get_args

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static
from textual.widgets.option_list import Option

from whisper_tui.model.api import SupervisorStatus
from whisper_tui.model.call import Unasked, UnaskedLevel
from whisper_tui.present.unasked_text import MEANING, level_words
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles
from whisper_tui.tui.row_list import RowList

HOUR_S = 3600.0


@dataclass(frozen=True)
class LevelChoice:
    """A level, and where and how long it holds."""

    level: Unasked | None
    """None: as the rules say."""
    session_id: str | None
    """None: in all sessions."""
    seconds: float | None
    """None: it has no end of its own."""


class UnaskedScreen(Dialog[LevelChoice]):
    """Asks how much may run unasked, where and for how long."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/signals.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "where", "Where", priority=True)]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Set", "set"), ("Tab", "Where", "where"))

    def __init__(self, status: SupervisorStatus, session: tuple[str, str] | None) -> None:
        """`status` has the levels in force; `session`: the id and the name of the one of the call."""
        super().__init__()
        self._status = status
        self._places: list[tuple[str, str | None, float | None]] = [
            ("in all sessions, for one hour", None, HOUR_S),
            ("in all sessions, from now on (in your rules file)", None, None),
        ]
        if session is not None:
            id_, name = session
            self._places[:0] = [(f"in {name}", id_, None), (f"in {name}, for one hour", id_, HOUR_S)]
        self._choices: tuple[Unasked | None, ...] = (*get_args(Unasked), None)

    def compose(self) -> ComposeResult:
        """Build the list of levels and the place where they hold."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("What runs unasked")
            yield Static(id="target", classes="dialog-text")
            yield RowList(*(Option(self._words(choice)) for choice in self._choices))
            yield Static(
                Content("A rule that asks or denies, of yours, a project or a client, counts at every level."),
                classes="dialog-note",
            )
            yield from self.buttons()

    @staticmethod
    def _words(choice: Unasked | None) -> Content:
        if choice is None:
            return Content.assemble((f"{'rules':<11}", "bold"), "what your files say holds again")
        return Content.assemble((f"{choice:<11}", "bold"), MEANING[choice])

    def on_mount(self) -> None:
        """Focus the list at the level in force."""
        options = self.query_one(RowList)
        options.focus()
        options.highlighted = self._choices.index(self._in_force().level)
        self._show_place()

    def _in_force(self) -> UnaskedLevel:
        return self._status.level_in(self._places[0][1] or "") or UnaskedLevel(level="reading")

    def _show_place(self) -> None:
        words, now = self._places[0][0], level_words(self._in_force())
        self.query_one("#target", Static).update(Content.assemble("It holds ", (words, "bold"), f". Now: {now}."))

    def action_where(self) -> None:
        """Choose the next place."""
        self._places.append(self._places.pop(0))
        self._show_place()

    def action_set(self) -> None:
        """Choose the highlighted level."""
        if (at := self.query_one(RowList).highlighted) is not None:
            _, session_id, seconds = self._places[0]
            level = self._choices[at]
            self.dismiss(LevelChoice(level, session_id, seconds if level is not None else None))

    @on(RowList.OptionSelected)
    def _selected(self) -> None:
        self.action_set()
