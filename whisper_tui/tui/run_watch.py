"""Watches all runs for those that stand still, and tells when one begins to wait for somebody to type."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.output.run_output import STREAMS
from whisper_tui.tui.processes.standstill import GOES_ON, MOST_RUNS, SILENT_S, Standstill, look_at_runs

if TYPE_CHECKING:
    from whisper_tui.tui.screens.cockpit import CockpitScreen

EVERY_S = 2.0


class RunWatch:
    """What was found at the last look, by the ids of the calls."""

    def __init__(self, screen: "CockpitScreen", changed: Callable[[list[CallRecord]], object]) -> None:
        """`changed` is told of the calls that began to need input, after every look that found anything new."""
        self._screen = screen
        self._changed = changed
        self._found: dict[str, Standstill] = {}
        self._next = 0
        self._busy = False

    def begin(self) -> None:
        """Look every two seconds."""
        self._screen.set_interval(EVERY_S, self.look)

    def of(self, call_id: str) -> Standstill:
        """Why a run gets no further, as far as is known."""
        return self._found.get(call_id, GOES_ON)

    @property
    def need_input(self) -> list[str]:
        """The calls that wait for somebody to type."""
        running = self._screen.board.running
        return [id_ for id_, found in self._found.items() if found.silent_since is not None and id_ in running]

    def is_still(self, record: CallRecord) -> bool:
        """Whether a run is held still: by a signal, or with everything else."""
        return self._screen.board.paused is not None or record.paused or self.of(record.id).stopped

    def standing_still(self, record: CallRecord) -> tuple[bool, float | None]:
        """Whether a run is held still, and since when it has needed input."""
        return self.is_still(record), self.of(record.id).silent_since

    def look(self) -> None:
        """Look now; a look that comes while one is still going on is left out."""
        if not self._busy and (self._screen.board.running or self._found):
            self._busy = True
            self._screen.run_worker(self._look(), name="standstill")

    async def _look(self) -> None:
        try:
            records = self._some()
            seen = await asyncio.to_thread(look_at_runs, records)
            before = {**self._found}
            known = {id_: found for id_, found in before.items() if id_ in self._screen.board.running}
            for record in records:
                known[record.id] = await self._with_silence(record, seen.get(record.id, GOES_ON))
        finally:
            self._busy = False
        self._found = {id_: found for id_, found in known.items() if found is not GOES_ON}
        if self._found != before:
            calls = self._screen.board.calls
            new = [id_ for id_ in self.need_input if before.get(id_, GOES_ON).silent_since is None]
            self._changed([calls[id_] for id_ in new if id_ in calls])

    def _some(self) -> list[CallRecord]:
        """The runs whose turn it is."""
        board = self._screen.board
        ids = list(board.running)
        start = self._next if self._next < len(ids) else 0
        turn = (ids[start:] + ids[:start])[:MOST_RUNS]
        self._next = start + len(turn) if len(ids) > MOST_RUNS else 0
        return [board.calls[id_] for id_ in turn]

    async def _with_silence(self, record: CallRecord, found: Standstill) -> Standstill:
        """Whether it needs input: it has been silent, and reads, or has stopped in the middle of a line."""
        if found.waits is None or record.process is None:
            return found
        try:
            chunks = [await self._screen.supervision.read_output(record.id, stream, -1, 1) for stream in STREAMS]
        except WhisperError:
            return found
        last = max(chunk.written_at or record.process.started_at for chunk in chunks)
        asks = any(chunk.data and chunk.data != b"\n" for chunk in chunks)
        if time.time() - last < SILENT_S or (found.waits == "perhaps" and not asks):
            return found
        return replace(found, silent_since=last)
