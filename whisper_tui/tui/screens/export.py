"""Asks what is exported, in which form and into which file, and writes it."""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from whisper_tui.export.document import ENDINGS, Format, Wanted, document, save
from whisper_tui.model.call import Session
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles
from whisper_tui.tui.words import called, size, told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen


class ExportWanted(NamedTuple):
    """What is written, and where."""

    wanted: Wanted
    form: Format
    path: Path


class _Choice(NamedTuple):
    words: str
    name: str
    wanted: Wanted
    form: Format


class ExportScreen(Dialog[ExportWanted]):
    """A list of what can be written, and a file that can be named otherwise."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "export.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "write", "Write it", priority=True)]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Enter", "Write it", "write"),
        ("Tab", "Name the file", "name"),
    )

    def __init__(self, record: CallRecord, session: Session | None, folder: Path) -> None:
        super().__init__()
        self._call_id = record.id
        self._folder = folder
        self._choices = _choices(record, session)

    def compose(self) -> ComposeResult:
        """The list, and the file."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Export")
            yield OptionList(*(Option(Content(choice.words)) for choice in self._choices))
            yield Static(Content("It is written to this file, which you alone can read:"), classes="dialog-note")
            yield Input(id="export-file", compact=True)
            yield from self.buttons()

    def on_mount(self) -> None:
        """Choose at once."""
        self.query_one(Input).cursor_blink = False
        choices = self.query_one(OptionList)
        choices.highlighted = 0
        choices.focus()

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        choice = self._choices[event.option_index]
        self.query_one(Input).value = str(self._folder / f"{choice.name}{ENDINGS[choice.form]}")

    @on(OptionList.OptionSelected)
    @on(Input.Submitted)
    def _chosen(self) -> None:
        self.action_write()

    def action_name(self) -> None:
        """Name the file."""
        self.query_one(Input).focus()

    def action_write(self) -> None:
        """Write what is highlighted."""
        at = self.query_one(OptionList).highlighted
        path = self.query_one(Input).value.strip()
        if at is None or not path:
            self.app.bell()
            return
        choice = self._choices[at]
        self.dismiss(ExportWanted(choice.wanted, choice.form, Path(path).expanduser().absolute()))


def _choices(record: CallRecord, session: Session | None) -> tuple[_Choice, ...]:
    call, name = Wanted(calls=(record.id,)), f"call-{record.id}"
    found = [
        _Choice(f"Call {record.id} as JSON", name, call, "jsonl"),
        _Choice(f"Call {record.id} as a report in Markdown", name, call, "markdown"),
    ]
    if record.process is not None:
        found.append(_Choice("Its output as a recording, asciicast 2", name, call, "asciicast"))
        found.append(_Choice("Its output as a recording, asciicast 3", name, call, "asciicast3"))
    if session is not None:
        whole, shown = Wanted(sessions=(session,)), called(session, session.id)
        found.append(_Choice(f"All calls of the session {shown} as JSON lines", session.id, whole, "jsonl"))
        found.append(_Choice(f"A report of the session {shown} in Markdown", session.id, whole, "markdown"))
    found.append(_Choice("Every call ever as JSON lines", "calls", Wanted(), "jsonl"))
    return tuple(found)


def ask_for_export(cockpit: "CockpitScreen", record: CallRecord) -> None:
    """Let the human choose, then write it beside everything else."""
    session = cockpit.board.sessions.get(record.call.session_id)

    def chosen(export: ExportWanted | None) -> None:
        if export is not None:
            cockpit.run_worker(_write(cockpit, export), name="export")

    cockpit.app.push_screen(ExportScreen(record, session, Path.cwd()), chosen)


async def _write(cockpit: "CockpitScreen", export: ExportWanted) -> None:
    known = dict(cockpit.board.sessions)
    try:
        written = await save(document(cockpit.supervision, export.wanted, export.form, known), export.path)
    except WhisperError as error:
        cockpit.tell(told(error), severity="error")
    else:
        cockpit.tell(f"{size(written)} were written to {export.path}.")
