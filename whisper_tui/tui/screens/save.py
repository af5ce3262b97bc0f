"""Asks where output is saved, and which."""

from pathlib import Path
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from whisper_tui.model.text import visible
from whisper_tui.tui.output.saving import Source
from whisper_tui.tui.screens.dialog import Dialog

NAMES: dict[Source, str] = {"out": "stdout", "err": "stderr", "both": "stdout and stderr, in the order of time"}


class SaveWanted(NamedTuple):
    """Where, and what."""

    path: Path
    source: Source


class SaveScreen(Dialog[SaveWanted]):
    """A file name; Tab changes what is saved."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "source", "What", priority=True)]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Save", "save"), ("Tab", "What", "source"))

    def __init__(self, call_id: str, sources: tuple[Source, ...]) -> None:
        """`sources`: what can be saved, the first one first."""
        super().__init__()
        self._call_id = call_id
        self._sources = list(sources)

    def compose(self) -> ComposeResult:
        """What is saved, and where."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Save the output of call {self._call_id}")
            yield Static(id="source", classes="dialog-text")
            where = f"A new file that you alone can read, in {Path.cwd()} or where you say:"
            yield Static(Content(visible(where)), classes="dialog-note")
            yield Input(id="path", compact=True)
            yield from self.buttons()

    def on_mount(self) -> None:
        """Name the file at once."""
        field = self.query_one(Input)
        field.cursor_blink = False
        field.value = self._proposed()
        field.focus()
        self._show_source()

    def _proposed(self) -> str:
        return f"call-{self._call_id}-{'output' if self._sources[0] == 'both' else NAMES[self._sources[0]]}.log"

    def _show_source(self) -> None:
        self.query_one("#source", Static).update(Content.assemble("All of ", (NAMES[self._sources[0]], "bold"), "."))

    def action_source(self) -> None:
        """Save something else; a name that was only proposed changes with it."""
        field = self.query_one(Input)
        proposed = self._proposed()
        self._sources.append(self._sources.pop(0))
        if field.value == proposed:
            field.value = self._proposed()
        self._show_source()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_save()

    def action_save(self) -> None:
        """Save it there."""
        if text := self.query_one(Input).value.strip():
            self.dismiss(SaveWanted(Path(text).expanduser().absolute(), self._sources[0]))
