"""Changes that are kept of previews and runs: they are shown to people, undone and made again (decision 16).

An undo starts nothing: files are moved, in a thread. A supervisor that is killed meanwhile finishes it when it starts
again, unlike a run, which is never repeated.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from whisper_tui.changes.real_paths import Conflict
from whisper_tui.changes.transition import DependentChanges, TransitionFailed
from whisper_tui.model.call import FileVersions
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import Refused
from whisper_tui.model.event import UndoEnded, UndoStarted
from whisper_tui.model.preview import PreviewPage, UndoDirection
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.runs.attempt import attempt_directory
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.supervisor.runs.preview_changes import MOST_CHOSEN, PreviewStore
from whisper_tui.system import run_files
from whisper_tui.system.host_files import home_of_user, named_path

MOST_NAMED = 3
"""Paths that a sentence about a conflict names."""
REMEMBERED_S = 30.0
"""Seconds for which changes that were shown stay in memory."""
PENDING = "undoing"
"""The directory beside the attempts that names the calls whose changes are just being undone.

Undos of several calls have notes of their own in it.
"""
_HINTS: dict[UndoDirection, str] = {
    "undo": "whisper-tui undo {} --redo makes them again",
    "redo": "whisper-tui undo {} undoes them",
}
NO_CHANGES = "no changes of call {} are kept"

_log = logging.getLogger(__name__)


def named_paths(paths: Sequence[str]) -> str:
    """Return the first of these paths for a sentence, and how many there are besides."""
    more = len(paths) - MOST_NAMED
    return ", ".join(paths[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def what_stays(conflict: Conflict) -> str:
    """Return a clause about the changes that stay although the others do not. Empty: there are none."""
    what = "what it did to {} stays, because somebody has changed that since"
    return what.format(named_paths(conflict.left)) if conflict.left else ""


class BackgroundTasks:
    """Tasks that nobody awaits, with their errors logged."""

    def __init__(self) -> None:
        self._tasks = set[asyncio.Task[None]]()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    async def close(self) -> None:
        """Cancel them all."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the changes of a call could not be handled", exc_info=error)


class _LastShown:
    """The changes that somebody looks at: their next page and the next file are not read from the disk again."""

    def __init__(self) -> None:
        self._store: PreviewStore | None = None
        self._version: tuple[object, ...] = ()
        self._forgotten: asyncio.TimerHandle | None = None

    def same(self, store: PreviewStore) -> PreviewStore:
        """Return the changes of this store that were read before, if they are the same; else the store."""
        version = store.version()
        if self._store is None or self._store.directory != store.directory or self._version != version:
            self._store, self._version = store, version
        if self._forgotten is not None:
            self._forgotten.cancel()
        self._forgotten = asyncio.get_running_loop().call_later(REMEMBERED_S, self._forget)
        return self._store

    def _forget(self) -> None:
        self._store, self._forgotten = None, None


class KeptChanges:
    """The changes of previews and of undoable runs: shown, undone and made again."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Callable[[], float],
        runs: Path,
        own: tuple[str, ...],
    ) -> None:
        """`own`: the directories of whisper_tui."""
        self._store = store
        self._clock = clock
        self.runs = runs
        """The directory of the attempts."""
        self._own = own
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._shown = _LastShown()
        self._tasks = BackgroundTasks()

    def open(self) -> None:
        """Finish the undos during which the last supervisor was killed."""
        with suppress(FileNotFoundError):
            for marked in sorted((self.runs / PENDING).iterdir()):
                if marked.name.isdecimal():
                    self._tasks.start(self._finish_undo(marked.name))

    async def close(self) -> None:
        """Stop. What is being undone is finished by the next supervisor."""
        await self._tasks.close()

    def directory(self, key: RunKey) -> str:
        """Return the directory with the view and the changes of an attempt."""
        return f"{attempt_directory(str(self.runs), key)}/{run_files.PREVIEW}"

    def store_in(self, directory: str) -> PreviewStore:
        """Return the changes in a directory."""
        return PreviewStore(directory, home_of_user(), self._own)

    def workspace(self, record: CallRecord) -> str:
        """Return the real path of the workspace of a call."""
        session = self._store.board.sessions.get(record.call.session_id)
        return os.path.realpath(session.root if session is not None and session.root else record.call.spec.cwd)

    async def page(self, call_id: str, after: int = 0, limit: int = 1000) -> PreviewPage:
        """Return changes of a preview, or of a run whose changes were kept, from a number on."""
        record = self._store.call(call_id)
        return await asyncio.to_thread(
            self._shown.same(self.store_of(record)).page, self.workspace(record), after, limit
        )

    async def versions(self, call_id: str, number: int) -> FileVersions:
        """Return the content of one changed file before and after it."""
        record = self._store.call(call_id)
        return await asyncio.to_thread(self._shown.same(self.store_of(record)).versions, self.workspace(record), number)

    def store_of(self, record: CallRecord) -> PreviewStore:
        """Return the changes of the preview of a call, or of its run. Raises `Refused`."""
        preview = record.preview
        previewed = None if preview is None or preview.dropped else preview.attempt
        attempt = record.attempt if record.undoable and record.attempt is not None else previewed
        found = None if attempt is None else self.store_in(self.directory(RunKey(record.id, attempt)))
        if isinstance(record.state, Ended) and not record.undoable:
            why = record.not_kept_because or "nothing of what it changed was kept"
            if record.discarded:
                why = "its changes did not become real"
            raise Refused(f"call {record.id} cannot be undone: {why}", hint=f"whisper-tui show {record.id}")
        if isinstance(record.state, Ended) and (found is None or not found.exists):
            message = f"call {record.id} cannot be undone any more: what was kept of its changes was removed"
            raise Refused(message, hint="The limits of [undo] and [retention] in the configuration say for how long")
        if found is None or not found.exists:
            hint = "A preview shows them while the call waits; they are removed with old output"
            raise Refused(NO_CHANGES.format(record.id), hint=hint)
        return found

    async def undo(
        self, call_id: str, paths: Sequence[str], direction: UndoDirection, by: Decider, *, all_but: bool = False
    ) -> None:
        """Undo the changes of an ended call, or make them again. Raises `Refused`; then nothing was done.

        `paths`: only these, from the directory of the call on; `all_but`: all others. None: all.
        """
        record = self._store.call(call_id)
        if not isinstance(record.state, Ended):
            raise Refused(f"call {call_id} cannot be undone: it has not ended", hint=f"whisper-tui show {call_id}")
        store = self.store_of(record)
        paths = [named_path(path, record.spec.cwd) for path in paths]
        if all_but:
            paths = await asyncio.to_thread(store.all_but, paths)
        async with self.turn(call_id), self.turn(self.workspace(record)):
            if why := await asyncio.to_thread(store.why_not_moved, direction):
                word = "undone" if direction == "undo" else "redone"
                raise Refused(f"call {call_id} was not {word}: {why}", hint=_HINTS[direction].format(call_id))
            self._begin(call_id, direction, paths, by)
            await self._move(record, store, direction, paths)

    async def undo_unchanged(self, call_id: str, paths: Sequence[str], by: Decider) -> list[str]:
        """Undo what nobody has changed since. Returns the paths of the other changes. Raises `Refused`.

        `paths`: only these, absolute. None: all.
        """
        record = self._store.call(call_id)
        for last in (False, False, True):
            async with self.turn(call_id), self.turn(self.workspace(record)):
                # Anew each time: somebody may have changed a file since the last look.
                store = self.store_of(record)
                separated = await asyncio.to_thread(store.separated, paths)
                changes = store.plan.changes
                left = list(dict.fromkeys(path for number in separated.left for path in changes[number].paths))
                if not separated.chosen:
                    return left
                chosen = tuple(dict.fromkeys(changes[number].path for number in separated.chosen))
                if len(separated.chosen) + len(store.plan.undone) == len(changes):
                    chosen = ()
                if len(chosen) > MOST_CHOSEN:
                    why = f"more than {MOST_CHOSEN:,} of its changes would be undone without the others"
                    raise Refused(f"call {call_id} was not undone: {why}", hint="Name the paths that are to be undone")
                self._begin(call_id, "undo", chosen, by)
                try:
                    await self._move(record, store, "undo", chosen)
                except Refused as refused:
                    if last or not isinstance(refused.__cause__, Conflict):
                        raise
                else:
                    return left
        return []

    def _begin(self, call_id: str, direction: UndoDirection, paths: Sequence[str], by: Decider) -> None:
        self._mark(call_id)
        event = UndoStarted(at=self._clock(), call_id=call_id, direction=direction, paths=tuple(paths), by=by)
        self._store.record(event, durable=True)

    async def _move(
        self, record: CallRecord, store: PreviewStore, direction: UndoDirection, paths: Sequence[str]
    ) -> None:
        problem, cause = "", None
        hint = f"Nothing was changed. whisper-tui undo {record.id} --but PATH… undoes the others"
        try:
            await asyncio.to_thread(store.move, direction, paths)
        except Conflict as conflict:
            cause = conflict
            problem = what_stays(conflict) or f"{named_paths(conflict.paths)} changed since"
            if conflict.left:
                hint = f"Everything else is {'undone' if direction == 'undo' else 'as it was before'}"
        except DependentChanges as error:
            problem = str(error).rstrip(".")
            hint = "Nothing was changed"
        except (OSError, ValueError, TransitionFailed) as error:
            problem = str(error).rstrip(".")
            command = f"whisper-tui undo {record.id}{'' if direction == 'undo' else ' --redo'}"
            hint = f"Mend that, for example make room on the disk, then try {command} again"
        event = UndoEnded(at=self._clock(), call_id=record.id, problem=problem)
        self._store.retry_until_journaled(lambda: self._store.record(event))
        self._unmark(record.id)
        if problem:
            raise Refused(
                f"call {record.id} was not {'undone' if direction == 'undo' else 'redone'}: {problem}",
                hint=hint,
            ) from cause

    async def _finish_undo(self, call_id: str) -> None:
        """Finish an undo during which the supervisor was killed."""
        with suppress(Refused):
            record = self._store.call(call_id)
            begun = record.undo
            if begun is None or begun.done or begun.problem:
                self._unmark(call_id)
                return
            async with self.turn(call_id), self.turn(self.workspace(record)):
                await self._move(record, self.store_of(record), begun.direction, begun.paths)

    def _mark(self, call_id: str) -> None:
        # The journal knows which undo was begun, but a call of long ago is not on the board that a restart rebuilds.
        directory = self.runs / PENDING
        directory.mkdir(mode=0o700, exist_ok=True)
        (directory / call_id).touch(mode=0o600)

    def _unmark(self, call_id: str) -> None:
        (self.runs / PENDING / call_id).unlink(missing_ok=True)

    def turn(self, of: str) -> asyncio.Lock:
        """Return the turn of a call, or of a workspace: two must not both find a file as it was and then change it."""
        turn = self._turns.get(of)
        if turn is None:
            # Nothing is kept of a call once nobody waits for its turn.
            turn = self._turns[of] = asyncio.Lock()
        return turn
