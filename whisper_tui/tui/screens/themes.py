"""Asks which theme is wanted; the one that is looked at is shown."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from whisper_tui.model.text import visible
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles
from whisper_tui.tui.themes import CockpitTheme


class ThemeScreen(Dialog[str]):
    """Up and down show themes, Enter keeps one, Esc the one that there was."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "themes.tcss"]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Keep it", "keep"),)

    def __init__(self, themes: Mapping[str, CockpitTheme], now: str, look: Callable[[str], object]) -> None:
        """`look` draws the cockpit in the colours of a theme."""
        super().__init__()
        self._themes = themes
        self._names = list(themes)
        self._now = now
        self._look = look

    def compose(self) -> ComposeResult:
        """The list."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Themes")
            yield OptionList(*(Option(_row(name, self._themes[name])) for name in self._names))
            yield from self.buttons()

    def on_mount(self) -> None:
        """Begin at the one that there is."""
        names = self.query_one(OptionList)
        names.highlighted = self._names.index(self._now)
        names.focus()

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._look(self._names[event.option_index])

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        self.action_keep()

    def action_keep(self) -> None:
        """Keep the one that is shown."""
        if (at := self.query_one(OptionList).highlighted) is not None:
            self.dismiss(self._names[at])


def _row(name: str, theme: CockpitTheme) -> Content:
    kind = "dark" if theme.theme.dark else "light"
    return Content.assemble((f"{visible(name):<24}", "bold"), kind)
