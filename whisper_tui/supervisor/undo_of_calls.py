"""The undo of several calls: newest first, without what others have changed since.

Each call is undone as if alone, with an event of its own. A note on the disk names the calls until all of them were
tried: after a kill the next supervisor goes on.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from whisper_tui.effects.changes import printable
from whisper_tui.model.call import FileEdits
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.event import EditReverted, UndoEnded, UndoStarted
from whisper_tui.model.preview import CallsUndone, LeftOut, UndoDirection, UndoOrder
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.value import Value
from whisper_tui.supervisor.agent_messages import calls_undone_message
from whisper_tui.supervisor.edit_history import EditHistory, files_that_stay
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.runs.kept_changes import PENDING, BackgroundTasks, KeptChanges
from whisper_tui.supervisor.undo_forecast import CHANGED_SINCE, MOST_FILES, UndoForecast
from whisper_tui.system import run_files


class _Noted(Value):
    """An undo that has begun, for the next supervisor."""

    order: UndoOrder
    by: Decider
    at: float
    """Seconds since the epoch."""


class UndoOfCalls:
    """Undoes what several calls have changed, or redoes it."""

    def __init__(
        self,
        store: Store,
        kept: KeptChanges,
        edits: EditHistory,
        tell: Callable[[str, str, Decider], None],
        clock: Callable[[], float],
    ) -> None:
        """`tell`: tells an agent something, by its session."""
        self._store = store
        self._kept = kept
        self._edits = edits
        self._tell = tell
        self._clock = clock
        self._tasks = BackgroundTasks()

    def open(self) -> None:
        """Go on with what a killed supervisor has begun."""
        with suppress(FileNotFoundError):
            for marked in sorted((self._kept.runs / PENDING).glob("*.json")):
                try:
                    noted = _Noted.model_validate_json(marked.read_bytes())
                except ValueError:
                    # Killed while it was written: nothing of it was begun.
                    marked.unlink(missing_ok=True)
                    continue
                self._tasks.start(self._go_on(marked, noted))

    async def close(self) -> None:
        """Stop. The next supervisor goes on."""
        await self._tasks.close()

    async def undo(self, order: UndoOrder, by: Decider) -> CallsUndone:
        """Undo these calls, the newest first, or redo them, the oldest first."""
        if order.paths and order.direction == "redo":
            raise Refused("single files of several calls are not redone", hint="Redo the calls, or one of them")
        records = self._records(order)
        if order.dry_run:
            forecast = UndoForecast(self._kept, self._edits, order.direction, order.paths)
            return await asyncio.to_thread(forecast.of, records, with_versions=order.with_versions)
        noted = _Noted(order=order, by=by, at=self._clock())
        directory = self._kept.runs / PENDING
        directory.mkdir(mode=0o700, exist_ok=True)
        note = directory / f"{uuid4().hex}.json"
        run_files.write_whole(str(note), noted.model_dump_json().encode(), durable=True)
        return await self._carry_out(note, noted, records)

    async def _go_on(self, note: Path, noted: _Noted) -> None:
        with suppress(WhisperError):
            await self._carry_out(note, noted, self._records(noted.order))

    def _records(self, order: UndoOrder) -> list[CallRecord]:
        """Return the calls, in the order in which they are undone, or redone."""
        records = map(self._store.call, dict.fromkeys(order.call_ids))
        return sorted(records, key=_ended_at, reverse=order.direction == "undo")

    async def _carry_out(self, note: Path, noted: _Noted, records: Sequence[CallRecord]) -> CallsUndone:
        """Try each call. One that cannot be undone does not keep the others."""
        order, by = noted.order, noted.by
        done, left_out = list[CallRecord](), list[LeftOut]()
        for record in records:
            left: Sequence[str] = ()
            try:
                left = await self._one(record, order.paths, order.direction, by)
            except Refused as refused:
                files = record.resolved.edits if record.resolved is not None else ()
                named = tuple(printable(file.real) for file in files)
                left_out.append(LeftOut(call_id=record.id, paths=named, why=refused.message))
            if left:
                named = tuple(printable(path) for path in left[:MOST_FILES])
                left_out.append(LeftOut(call_id=record.id, paths=named, why=CHANGED_SINCE))
            if _was_moved(self._store.call(record.id), order.direction, noted.at):
                done.append(record)
        if order.tell:
            for session_id in dict.fromkeys(record.call.session_id for record in done):
                own = [record for record in done if record.call.session_id == session_id]
                ids = {record.id for record in records if record.call.session_id == session_id}
                stays = [path for each in left_out if each.call_id in ids for path in each.paths]
                self._tell(session_id, calls_undone_message(own, order.direction, list(dict.fromkeys(stays))), by)
        note.unlink()
        return CallsUndone(calls=tuple(record.id for record in done), left_out=tuple(left_out))

    async def _one(
        self, record: CallRecord, paths: Sequence[str], direction: UndoDirection, by: Decider
    ) -> Sequence[str]:
        """Undo one call, or redo it. Returns the paths that stay as they are. Raises `Refused`."""
        if isinstance(record.spec.command, FileEdits):
            if paths and (outside := files_that_stay(record, paths)) is not None:
                return outside
            if (record.reverted_by is None) == (direction == "undo"):
                self.move_edit(record, direction, by)
            return ()
        if direction == "undo":
            return await self._kept.undo_unchanged(record.id, paths, by)
        if self._kept.store_of(record).is_redoable:
            await self._kept.undo(record.id, (), "redo", by)
        return ()

    def move_edit(self, record: CallRecord, direction: UndoDirection, by: Decider) -> None:
        """Undo an edit, or redo it. Raises `Refused`; then nothing was done."""
        if direction == "undo":
            self._edits.revert(record)
            self._store.record(EditReverted(at=self._clock(), call_id=record.id, by=by), durable=True)
            return
        self._edits.redo(record)
        self._store.record(UndoStarted(at=self._clock(), call_id=record.id, direction="redo", by=by))
        self._store.record(UndoEnded(at=self._clock(), call_id=record.id), durable=True)
        self._edits.redone(record)


def _ended_at(record: CallRecord) -> tuple[float, int]:
    return record.state.at if isinstance(record.state, Ended) else float("inf"), int(record.id)


def _was_moved(record: CallRecord, direction: UndoDirection, since: float) -> bool:
    """True if a call was undone, or redone, at that time or later."""
    undo = record.undo
    if direction == "undo" and isinstance(record.spec.command, FileEdits):
        return record.reverted_by is not None
    return undo is not None and undo.done and undo.direction == direction and undo.at >= since
