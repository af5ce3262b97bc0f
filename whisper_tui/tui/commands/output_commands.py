"""Commands for output: its view, search in it, and copies of it."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App, SuspendNotSupported
from textual.worker import Worker

from whisper_tui.model.call import Command as ShellCommand
from whisper_tui.model.call_rows import command_of
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import count, size
from whisper_tui.present.words import error_text
from whisper_tui.tui.cockpit_context import CockpitContext
from whisper_tui.tui.command_definition import Command
from whisper_tui.tui.output.output_area import OutputArea
from whisper_tui.tui.output.output_bars import SearchBar
from whisper_tui.tui.output.output_search import ERRORS, Needle
from whisper_tui.tui.output.stream_reader import RunOutput

if TYPE_CHECKING:
    from whisper_tui.tui.dialogs.file_dialogs import SaveRequest, Source

COMMANDS: tuple[Command, ...] = (
    Command(
        "search", "ctrl+f", "Find", "Search all of the output; matches are counted in the background.", "Output", "ran"
    ),
    Command(
        "next-match",
        "right_square_bracket",
        "Next match",
        "Go to the next match; after the last, to the first.",
        "Output",
        "ran",
    ),
    Command("previous-match", "left_square_bracket", "Previous match", "Go to the previous match.", "Output", "ran"),
    Command(
        "errors",
        "exclamation_mark",
        "Errors",
        "Go to the first line that looks like an error; ] goes on to the next.",
        "Output",
        "ran",
    ),
    Command("wrap", "w", "Wrap", "Wrap long lines, or cut them off.", "Output", "ran"),
    Command("timestamps", "W", "Times", "Show or hide the time of each line.", "Output", "ran"),
    Command("interleave", "Z", "Merge", "Merge both streams by time, or show each on its own.", "Output", "ran"),
    Command("arrange", "vertical_line", "Arrange", "Put the streams side by side, or stack them.", "Output", "ran"),
    Command("bytes", "number_sign", "Bytes", "Show the output as bytes, or as text again.", "Output", "ran"),
    Command("copy", "c", "Copy", "Copy the rows of output that are on the screen, in full.", "Output", "ran"),
    Command("copy-command", "y", "Copy command", "Copy the command.", "Output", "call", only=("call",)),
    Command("save", "S", "Save", "Save the complete output to a file.", "Output", "ran"),
    Command("pager", "v", "Pager", "Open the output in your pager.", "Output", "ran"),
)

DEFAULT_PAGER = "less"
LESS = "R"
"""The options in `$LESS` that make it show colours, unless the user has set others."""


def page(app: App[None], path: Path) -> None:
    """Open a file in the user's pager. Raises `Refused` if there is no terminal or no pager."""
    named = os.environ.get("PAGER") or DEFAULT_PAGER
    try:
        words = shlex.split(named)
        environment = {"LESS": LESS} | dict(os.environ)
        with app.suspend():
            subprocess.run([*words, str(path)], check=False, env=environment)
    except SuspendNotSupported:
        raise Refused("there is no terminal here for a pager", hint="Save the output with S instead") from None
    except (OSError, ValueError) as error:
        raise Refused(f"the pager {named!r} cannot be started: {error}", hint="Set PAGER to another one") from error


MOST_COPIED = 64 * 1024  # Terminals refuse larger clipboards in OSC 52.
"""Characters that are copied at once."""
MOST_PAGED = 64 * 1024 * 1024
"""Bytes of output that are prepared for a pager; larger output is saved and read from there."""


class OutputCommands:
    """Carries out the commands of the group *Output*."""

    def __init__(self, cockpit: CockpitContext) -> None:
        self._cockpit = cockpit

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the function of each command, by its id."""
        return {
            "search": self.search,
            "next-match": lambda: self.go(1),
            "previous-match": lambda: self.go(-1),
            "errors": self.errors,
            "wrap": self._on_area(OutputArea.toggle_wrap),
            "timestamps": self._on_area(OutputArea.toggle_stamps),
            "interleave": self._on_area(OutputArea.toggle_merged),
            "arrange": self._on_area(OutputArea.toggle_side),
            "bytes": self._on_area(OutputArea.toggle_bytes),
            "copy": self.copy,
            "copy-command": self.copy_command,
            "save": self.save,
            "pager": self.read_in_pager,
        }

    def _on_area(self, do: Callable[[OutputArea], object]) -> Callable[[], object]:
        return lambda: do(self._area)

    @property
    def _area(self) -> OutputArea:
        return self._cockpit.screen.query_one(OutputArea)

    def search(self) -> None:
        """Open the search field."""
        self._area.query_one(SearchBar).open()

    def find(self, words: str) -> None:
        """Search for words from the current position; an empty text ends the search."""
        self._area.find(Needle.of(words) if words.strip() else None)
        if words.strip():
            self.go(1)

    def errors(self) -> None:
        """Go to the first line that looks like an error."""
        self._area.find(ERRORS)
        self._go(self._area.go_to_first_match)

    def go(self, direction: int) -> None:
        """Go to the next or the previous match."""
        if not self._area.searching:
            self.search()
            return
        self._go(lambda: self._area.go_to_match(direction))

    def _go(self, move: Callable[[], Awaitable[bool]]) -> None:
        async def going() -> None:
            if not await move():
                self._cockpit.tell("No match in the output.")

        # exclusive: a further key cancels a search that is still reading a long output.
        _: Worker[None] = self._cockpit.screen.run_worker(going, name="find", group="find", exclusive=True)

    def copy(self) -> None:
        """Copy the rows that are on the screen."""
        text = self._area.visible_text()
        if not text:
            self._cockpit.tell("There is no output to copy.")
            return
        self._cockpit.screen.app.copy_to_clipboard(text[:MOST_COPIED])
        cut = f", the first {MOST_COPIED:,} characters of it" if len(text) > MOST_COPIED else ""
        self._cockpit.tell(f"Copied {count(text.count(chr(10)), 'row')} of output{cut}.")

    def copy_command(self) -> None:
        """Copy the command that runs, edits included."""
        if (record := self._cockpit.shown) is not None:
            self._cockpit.screen.app.copy_to_clipboard(_plain(record.spec.command))
            self._cockpit.tell("Copied the command.")

    def save(self) -> None:
        """Ask for a file, and save the output to it."""
        from whisper_tui.tui.dialogs.file_dialogs import SaveScreen

        record = self._cockpit.shown
        if record is None:
            return

        def chosen(wanted: "SaveRequest | None") -> None:
            if wanted is not None:
                self._cockpit.screen.run_worker(self._save(record, wanted), name="save")

        self._cockpit.screen.app.push_screen(SaveScreen(record.id, self._sources(record)), chosen)

    def _sources(self, record: CallRecord) -> "tuple[Source, ...]":
        """Return the streams that can be saved, first the one on the screen."""
        # A terminal has merged both streams before they are recorded.
        if record.spec.tty:
            return ("out",)
        shown = self._area.current.streams
        first: Source = "both" if len(shown) == 2 else shown[0] if shown else "out"
        every: tuple[Source, ...] = ("out", "err", "both")
        return (first, *(source for source in every if source != first))

    async def _save(self, record: CallRecord, wanted: "SaveRequest") -> None:
        from whisper_tui.tui.dialogs.file_dialogs import save_output

        try:
            saved = await save_output(wanted.path, _pieces(self._run, wanted.source))
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="error")
            return
        missing = f"; {size(saved.missing)} in between were not kept" if saved.missing else ""
        self._cockpit.tell(f"Wrote {size(saved.written)} of call {record.id} to {wanted.path}{missing}.")

    @property
    def _run(self) -> RunOutput:
        """The output of the call on the screen. Raises `Refused` if it has not run."""
        if (run := self._area.run) is None:
            raise Refused("There is no output")
        return run

    async def read_in_pager(self) -> None:
        """Open a copy of the output, without control sequences, in the pager."""
        from whisper_tui.tui.dialogs.file_dialogs import readable, save_output

        record = self._cockpit.shown
        if record is None:
            return
        source = self._sources(record)[0]
        try:
            if (amount := self._area.size_of(source)) > MOST_PAGED:
                problem = f"{size(amount)} are too much for a pager"
                raise Refused(problem, hint="Save the output with S, and read it there")
            # Output can hold secrets: the directory is private, and gone when the pager ends.
            with tempfile.TemporaryDirectory(prefix="whisper-tui-") as folder:
                path = Path(folder) / f"call-{record.id}.log"
                await save_output(path, readable(_pieces(self._run, source)))
                page(self._cockpit.screen.app, path)
        except WhisperError as error:
            self._cockpit.tell(error_text(error), severity="warning")


def _plain(command: ShellCommand) -> str:
    """Return a command as text for the clipboard, with invisible characters made visible."""
    words = command_of(command)
    # The clipboard is often pasted into a shell, where an invisible character would take effect (decision 21).
    return visible(words if isinstance(words, str) else shlex.join(words), keep_lines=True)


def _pieces(run: RunOutput, source: "Source") -> AsyncIterator[tuple[bytes, int]]:
    from whisper_tui.tui.dialogs.file_dialogs import merged_pieces, pieces

    return merged_pieces(run.reads, run.times()) if source == "both" else pieces(run.reads[source])
