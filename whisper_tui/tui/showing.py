"""The commands for what a run has written: showing it otherwise, finding words in it, taking it elsewhere."""

import shlex
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.worker import Worker

from whisper_tui.model.command import Command
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.model.summary import command_of
from whisper_tui.model.text import visible
from whisper_tui.tui.output.needle import ERRORS, Needle
from whisper_tui.tui.output.run_output import RunOutput
from whisper_tui.tui.output.saving import Source, merged_pieces, pieces, readable, save
from whisper_tui.tui.paging import page
from whisper_tui.tui.screens.save import SaveScreen, SaveWanted
from whisper_tui.tui.widgets.output_area import OutputArea
from whisper_tui.tui.widgets.search_bar import SearchBar
from whisper_tui.tui.words import count, size, told

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

MOST_COPIED = 64 * 1024
"""Characters that are copied at once: terminals refuse more than about that."""
MOST_PAGED = 64 * 1024 * 1024
"""Bytes of output that are prepared for a pager; larger output is saved and read from there."""


class Showing:
    """The commands of the group *Output*."""

    def __init__(self, screen: "CockpitScreen") -> None:
        self._screen = screen

    def commands(self) -> dict[str, Callable[[], object]]:
        """What each command does, by its id."""
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
        return self._screen.query_one(OutputArea)

    def search(self) -> None:
        """Ask what is to be found."""
        self._area.query_one(SearchBar).open()

    def find(self, words: str) -> None:
        """Search for these words from where the output stands; for none, end the search."""
        self._area.find(Needle.of(words) if words.strip() else None)
        if words.strip():
            self.go(1)

    def errors(self) -> None:
        """Go to the first line that looks like an error."""
        self._area.find(ERRORS)
        self._go(self._area.go_to_first_match)

    def go(self, direction: int) -> None:
        """Go to the next match or the one before, however long it takes to find; the last key counts."""
        if not self._area.searching:
            self.search()
            return
        self._go(lambda: self._area.go_to_match(direction))

    def _go(self, move: Callable[[], Awaitable[bool]]) -> None:
        async def going() -> None:
            if not await move():
                self._screen.tell("There is nothing like that in the output.")

        _: Worker[None] = self._screen.run_worker(going, name="find", group="find", exclusive=True)

    def copy(self) -> None:
        """Copy what is on the screen of the pane."""
        text = self._area.visible_text()
        if not text:
            self._screen.tell("There is no output to copy.")
            return
        self._screen.app.copy_to_clipboard(text[:MOST_COPIED])
        cut = f", the first {MOST_COPIED:,} characters of it" if len(text) > MOST_COPIED else ""
        self._screen.tell(f"What is on the screen is copied: {count(text.count(chr(10)), 'row')} of output{cut}.")

    def copy_command(self) -> None:
        """Copy the command as it runs, or would run."""
        if (record := self._screen.shown) is not None:
            self._screen.app.copy_to_clipboard(_plain(record.spec.command))
            self._screen.tell("The command is copied.")

    def save(self) -> None:
        """Ask where, and save there."""
        record = self._screen.shown
        if record is None:
            return

        def chosen(wanted: SaveWanted | None) -> None:
            if wanted is not None:
                self._screen.run_worker(self._save(record, wanted), name="save")

        self._screen.app.push_screen(SaveScreen(record.id, self._sources(record)), chosen)

    def _sources(self, record: CallRecord) -> tuple[Source, ...]:
        """What there is to be saved, what the person looks at first."""
        if record.spec.tty:
            return ("out",)
        shown = self._area.current.streams
        first: Source = "both" if len(shown) == 2 else shown[0] if shown else "out"
        every: tuple[Source, ...] = ("out", "err", "both")
        return (first, *(source for source in every if source != first))

    async def _save(self, record: CallRecord, wanted: SaveWanted) -> None:
        try:
            saved = await save(wanted.path, _pieces(self._run, wanted.source))
        except WhisperError as error:
            self._screen.tell(told(error), severity="error")
            return
        missing = f"; {size(saved.missing)} in between were not kept" if saved.missing else ""
        self._screen.tell(f"{size(saved.written)} of call {record.id} are in {wanted.path}{missing}.")

    @property
    def _run(self) -> RunOutput:
        """Raises `Refused` if nothing has run."""
        if (run := self._area.run) is None:
            raise Refused("There is no output")
        return run

    async def read_in_pager(self) -> None:
        """Prepare a copy without anything that a terminal obeys, and open it."""
        record = self._screen.shown
        if record is None:
            return
        source = self._sources(record)[0]
        try:
            if (amount := self._area.size_of(source)) > MOST_PAGED:
                problem = f"{size(amount)} are too much for a pager"
                raise Refused(problem, hint="Save the output with S, and read it there")
            with tempfile.TemporaryDirectory(prefix="whisper-tui-") as folder:
                path = Path(folder) / f"call-{record.id}.log"
                await save(path, readable(_pieces(self._run, source)))
                page(self._screen.app, path)
        except WhisperError as error:
            self._screen.tell(told(error), severity="warning")


def _plain(command: Command) -> str:
    """A command to be pasted; what cannot be seen is shown, so that nothing is pasted unseen."""
    words = command_of(command)
    return visible(words if isinstance(words, str) else shlex.join(words), keep_lines=True)


def _pieces(run: RunOutput, source: Source) -> AsyncIterator[tuple[bytes, int]]:
    return merged_pieces(run.reads, run.times()) if source == "both" else pieces(run.reads[source])
