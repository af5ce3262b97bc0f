"""Output and calls saved to a file: the dialogs that ask for it, and one stream or both written, of any size."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static
from textual.widgets.option_list import Option

from whisper_tui.export import ENDINGS, ExportFormat
from whisper_tui.export.document import ExportSelection, document, save
from whisper_tui.model.call import Session
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import size
from whisper_tui.present.session_text import session_words
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.dialogs.dialog import Dialog, StyleFiles
from whisper_tui.tui.output.ansi import plain_with_colours
from whisper_tui.tui.output.merged_view import Cursor, MergedView
from whisper_tui.tui.output.stream_reader import ReadOutput, TimeIndex
from whisper_tui.tui.row_list import RowList

Source = Stream | Literal["both"]
PIECE = 1024 * 1024
"""Bytes of one read or write."""


class Saved(NamedTuple):
    """The result of a save."""

    written: int
    missing: int
    """Bytes that were dropped while the command ran."""


async def pieces(read: ReadOutput) -> AsyncIterator[tuple[bytes, int]]:
    """Yield a stream up to its present end: bytes, and the number of bytes dropped before them."""
    at = 0
    size = (await read(0, 0)).size
    while at < size:
        chunk = await read(at, min(PIECE, size - at))
        if not chunk.data:
            return
        yield chunk.data, chunk.start - at
        at = chunk.next_offset


async def merged_pieces(reads: Mapping[Stream, ReadOutput], index: TimeIndex) -> AsyncIterator[tuple[bytes, int]]:
    """Yield both streams in whole rows, ordered by the time of their first byte."""
    view = MergedView(reads, index)
    while not view.index_is_read:
        await view.poll()
    cursor: Cursor = {"out": 0, "err": 0}
    rows: list[bytes] = []
    held = missing = 0
    while True:
        before = dict(cursor)
        shown = await view.next_row(cursor)
        if shown is None:
            break
        missing += shown.row.start - before[shown.stream]
        whole = shown.row.end - shown.row.start == len(shown.data)
        rows.append(shown.data if whole else await _whole(reads[shown.stream], shown.row.start, shown.row.end))
        held += len(rows[-1])
        if held > PIECE:
            yield b"".join(rows), missing
            rows, held, missing = [], 0, 0
            await asyncio.sleep(0)
    if rows:
        yield b"".join(rows), missing


async def _whole(read: ReadOutput, start: int, end: int) -> bytes:
    data = b""
    while start + len(data) < end:
        chunk = await read(start + len(data), end - start - len(data))
        if not chunk.data:
            break
        data += chunk.data
    return data


async def save_output(path: Path, source: AsyncIterator[tuple[bytes, int]]) -> Saved:
    """Write a new file that only its owner can read. Raises `Refused` if it exists or cannot be written."""
    try:
        # O_EXCL refuses links and existing files; 0600 because output may hold secrets.
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Refused(f"{path} already exists", hint="Save under another name") from None
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}", hint="Save somewhere else") from error
    written = missing = 0
    with os.fdopen(fd, "wb") as file:
        try:
            async for data, dropped in source:
                await asyncio.to_thread(file.write, data)
                written, missing = written + len(data), missing + dropped
            await asyncio.to_thread(file.flush)
        except OSError as error:
            problem = f"{path} is incomplete: {error.strerror}"
            raise Refused(problem, hint="The part that was written is kept") from error
    return Saved(written, missing)


async def readable(source: AsyncIterator[tuple[bytes, int]]) -> AsyncIterator[tuple[bytes, int]]:
    """Yield output with colours as the only escape sequences, for a pager."""
    async for data, dropped in source:
        yield await asyncio.to_thread(plain_with_colours, data), dropped


NAMES: dict[Source, str] = {"out": "stdout", "err": "stderr", "both": "stdout and stderr in order of time"}


class SaveRequest(NamedTuple):
    """The file and the stream to save."""

    path: Path
    source: Source


class SaveScreen(Dialog[SaveRequest]):
    """Asks for a file name and the stream to save."""

    # A screen binds Tab to the next widget, hence the priority; this one has a single field.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "source", "What", priority=True)]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Save", "save"), ("Tab", "What", "source"))

    def __init__(self, call_id: str, sources: tuple[Source, ...]) -> None:
        """`sources`: the streams that can be saved; the first one is chosen."""
        super().__init__()
        self._call_id = call_id
        self._sources = list(sources)

    def compose(self) -> ComposeResult:
        """Build the stream and the file name."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Save the output of call {self._call_id}")
            yield Static(id="source", classes="dialog-text")
            where = f"A new file that only you can read, in {Path.cwd()} or at an absolute path:"
            yield Static(Content(visible(where)), classes="dialog-note")
            yield Input(id="path", compact=True)
            yield from self.buttons()

    def on_mount(self) -> None:
        """Propose a file name and focus the field."""
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
        """Choose the next stream."""
        field = self.query_one(Input)
        proposed = self._proposed()
        self._sources.append(self._sources.pop(0))
        # The proposed name says which stream is saved; a typed one is the person's.
        if field.value == proposed:
            field.value = self._proposed()
        self._show_source()

    def action_save(self) -> None:
        """Save the output under the typed name."""
        if text := self.query_one(Input).value.strip():
            self.dismiss(SaveRequest(Path(text).expanduser().absolute(), self._sources[0]))


class ExportRequest(NamedTuple):
    """The selection, format and file of an export."""

    wanted: ExportSelection
    form: ExportFormat
    path: Path


class _Choice(NamedTuple):
    words: str
    name: str
    wanted: ExportSelection
    form: ExportFormat


class ExportScreen(Dialog[ExportRequest]):
    """Asks for the export to write, and its file."""

    CSS_PATH: ClassVar[StyleFiles] = ["../styles/dialog.tcss", "../styles/export.tcss"]
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
        """Build the list of exports and the file name."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Export")
            yield RowList(*(Option(Content(choice.words)) for choice in self._choices))
            yield Static(Content("File, which only you can read:"), classes="dialog-note")
            yield Input(id="export-file", compact=True)
            yield from self.buttons()

    def on_mount(self) -> None:
        """Focus the list."""
        self.query_one(Input).cursor_blink = False
        choices = self.query_one(RowList)
        choices.highlighted = 0
        choices.focus()

    @on(RowList.OptionHighlighted)
    def _highlighted(self, event: RowList.OptionHighlighted) -> None:
        choice = self._choices[event.option_index]
        self.query_one(Input).value = str(self._folder / f"{choice.name}{ENDINGS[choice.form]}")

    @on(RowList.OptionSelected)
    def _clicked(self) -> None:
        self.action_write()

    def action_name(self) -> None:
        """Focus the file name."""
        self.query_one(Input).focus()

    def action_write(self) -> None:
        """Write the highlighted export."""
        at = self.query_one(RowList).highlighted
        path = self.query_one(Input).value.strip()
        if at is None or not path:
            self.app.bell()
            return
        choice = self._choices[at]
        self.dismiss(ExportRequest(choice.wanted, choice.form, Path(path).expanduser().absolute()))


def _choices(record: CallRecord, session: Session | None) -> tuple[_Choice, ...]:
    call, name = ExportSelection(calls=(record.id,)), f"call-{record.id}"
    found = [
        _Choice(f"Call {record.id} as JSON", name, call, "jsonl"),
        _Choice(f"Call {record.id} as a report in Markdown", name, call, "markdown"),
    ]
    if record.process is not None:
        # Both versions: players that were released before version 3 only play version 2.
        found.append(_Choice("Output as a recording, asciicast 2", name, call, "asciicast"))
        found.append(_Choice("Output as a recording, asciicast 3", name, call, "asciicast3"))
    if session is not None:
        whole, shown = ExportSelection(sessions=(session,)), session_words(session, session.id)
        found.append(_Choice(f"All calls of the session {shown} as JSON lines", session.id, whole, "jsonl"))
        found.append(_Choice(f"A report of the session {shown} in Markdown", session.id, whole, "markdown"))
    found.append(_Choice("All calls of the history as JSON lines", "calls", ExportSelection(), "jsonl"))
    return tuple(found)


def ask_for_export(cockpit: CockpitContext, record: CallRecord) -> None:
    """Ask for an export, then write it in a worker."""
    session = cockpit.board.sessions.get(record.call.session_id)

    def chosen(export: ExportRequest | None) -> None:
        if export is not None:
            cockpit.screen.run_worker(_write(cockpit, export), name="export")

    cockpit.screen.app.push_screen(ExportScreen(record, session, Path.cwd()), chosen)


async def _write(cockpit: CockpitContext, export: ExportRequest) -> None:
    # A copy: the board follows events while the export is written.
    known = dict(cockpit.board.sessions)
    try:
        written = await save(document(cockpit.supervision, export.wanted, export.form, known), export.path)
    except WhisperError as error:
        cockpit.tell(error_text(error), severity="error")
    else:
        cockpit.tell(f"Wrote {size(written)} to {export.path}.")
