"""Everything that commands have left running, of all sessions: how old, how large, where it listens."""

import asyncio
import time
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from whisper_tui.model.board import Board
from whisper_tui.model.masking import masked
from whisper_tui.model.run import BackgroundProcess, ProcessIdentity
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.processes.sample import Behind, look_behind
from whisper_tui.tui.screens.dialog import Dialog, StyleFiles
from whisper_tui.tui.words import age, called, count, in_passing, size

EVERY_S = 2.0


class BehindWanted(NamedTuple):
    """The call that left something behind, and whether to end what it left."""

    call_id: str
    kill: bool = False


class BehindRow(NamedTuple):
    """One process that was left behind."""

    record: CallRecord
    process: BackgroundProcess
    started_at: float
    """Seconds since the epoch."""
    known: Behind | None
    """What it is now. None: not looked yet, or not to be seen from here."""


class BackgroundScreen(Dialog[BehindWanted]):
    """A list that is kept current; older than today is a section of its own."""

    CSS_PATH: ClassVar[StyleFiles] = ["dialog.tcss", "background.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("k", "kill", "End it")]
    CHOICES: ClassVar[tuple[tuple[str, str, str], ...]] = (("Enter", "Show its call", "go"), ("k", "End it", "kill"))
    LEAVE = "Close"

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        super().__init__()
        self._board = board
        self._clock = clock
        self._known: dict[ProcessIdentity, Behind] = {}
        self._rows: list[BehindRow] = []
        self._busy = False

    def compose(self) -> ComposeResult:
        """The list, and what the keys would do."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content("Left in the background")
            yield Static(id="behind-head", classes="dialog-note")
            yield OptionList(id="behind")
            yield Static(
                Content("What is ended is everything that the same call has left behind."), classes="dialog-note"
            )
            yield from self.buttons()

    def on_mount(self) -> None:
        """Look at once, and every other second."""
        self._list()
        self.query_one(OptionList).focus()
        self.set_interval(EVERY_S, self._look)
        self.call_after_refresh(self._look)

    def _look(self) -> None:
        """Look again, unless a look is still going on."""
        if not self._busy:
            self._busy = True
            self.run_worker(self._look_now(), name="look")

    async def _look_now(self) -> None:
        identities = [row.process.identity for row in behind_rows(self._board, {})]
        try:
            self._known = await asyncio.to_thread(look_behind, identities)
        finally:
            self._busy = False
        if self.is_mounted:
            self._list()

    def _list(self) -> None:
        options = self.query_one(OptionList)
        marked = self._marked()
        self._rows = behind_rows(self._board, self._known)
        now = self._clock()
        today = _midnight(now)
        options.clear_options()
        old = [row for row in self._rows if row.started_at < today]
        new = [row for row in self._rows if row.started_at >= today]
        self._rows = [*old, *new]
        for title, rows in (("Left over from earlier days", old), ("Since today", new)):
            if rows and old:
                options.add_option(Option(Content.assemble((title, "bold")), disabled=True))
            for row in rows:
                options.add_option(Option(self._words(row, now), id=_name(row)))
        names = [option.id for option in options.options]
        if self._rows:
            options.highlighted = names.index(marked if marked and marked in names else _name(self._rows[0]))
        calls = {row.record.id for row in self._rows}
        words = f"{count(len(self._rows), 'process', 'processes')} of {count(len(calls), 'call')}"
        self.query_one("#behind-head", Static).update(Content(words if self._rows else "Nothing was left behind."))

    def _words(self, row: BehindRow, now: float) -> Content:
        session = self._board.sessions.get(row.record.call.session_id)
        name = called(session, row.record.call.session_id)
        known = row.known
        used = f"  {size(known.memory)}" if known is not None else ""
        ports = f"  listens on {', '.join(known.ports)}" if known is not None and known.ports else ""
        return Content.assemble(
            (f"{age(now - row.started_at):>4}  ", ""),
            (masked(in_passing(row.process.command)), "bold"),
            f"\n      pid {row.process.identity.pid}{used}{ports}  call {row.record.id} of {name}",
        )

    def _marked(self) -> str | None:
        options = self.query_one(OptionList)
        return options.highlighted_option.id if options.highlighted_option is not None else None

    def _chosen(self) -> BehindRow | None:
        marked = self._marked()
        return next((row for row in self._rows if _name(row) == marked), None)

    def action_go(self) -> None:
        """Show the call that left it."""
        if (row := self._chosen()) is not None:
            self.dismiss(BehindWanted(row.record.id))

    def action_kill(self) -> None:
        """Ask whether to end what that call has left."""
        if (row := self._chosen()) is not None:
            self.dismiss(BehindWanted(row.record.id, kill=True))

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        self.action_go()


def behind_rows(board: Board, known: dict[ProcessIdentity, Behind]) -> list[BehindRow]:
    """Every process that was left behind and is alive, as far as is told, the oldest first."""
    rows = []
    for call_id in (*board.unsettled, *board.running):
        record = board.calls[call_id]
        for process in record.living_background:
            now = known.get(process.identity)
            run = record.process
            began = now.started_at if now is not None else run.started_at if run is not None else 0.0
            rows.append(BehindRow(record, process, began, now))
    return sorted(rows, key=lambda row: row.started_at)


def _name(row: BehindRow) -> str:
    return f"{row.record.id}-{row.process.identity.pid}"


def _midnight(now: float) -> float:
    """When the day began, where the person is."""
    day = time.localtime(now)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))
