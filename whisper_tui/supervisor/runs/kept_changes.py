"""Changes that were made in a view of the files: they become real on approval, and can be undone (decision 16).

Making them real starts nothing: files are moved, in a thread. A supervisor that is killed meanwhile finishes it when it
starts again, unlike a run, which is never repeated.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from whisper_tui.changes import pre_images, transition
from whisper_tui.changes.file_trees import PreviewTooLarge, remove_tree
from whisper_tui.changes.overlay_diff import read_changes
from whisper_tui.changes.pre_images import NotKept, Root
from whisper_tui.changes.real_paths import Conflict
from whisper_tui.changes.transition import TransitionFailed
from whisper_tui.model.call import FileVersions
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.errors import Refused
from whisper_tui.model.event import BackgroundSeen, Finished, Judged, Settled, Spawned, UndoEnded, UndoStarted
from whisper_tui.model.preview import ChangedFiles, KeepsChanges, PreviewPage, UndoDirection
from whisper_tui.model.state import CallRecord, Ended, Running, Starting
from whisper_tui.model.verdict import Resolved, UndoPlan, Verdict
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.runs.attempt import attempt_directory
from whisper_tui.supervisor.runs.executor import Executor, RunKey
from whisper_tui.supervisor.runs.preview_changes import PreviewStore
from whisper_tui.system import run_files
from whisper_tui.system.host_files import home_of_user, named_path

ReportedFact = Spawned | BackgroundSeen | Finished | Settled
"""A fact that a keeper has reported about a run."""
MOST_NAMED = 3
"""Paths that a sentence about a conflict names."""
REMEMBERED_S = 30.0
"""Seconds for which changes that were shown stay in memory."""
PENDING = "undoing"
"""The directory beside the attempts that names the calls whose changes are just being undone."""
KEEPING = "keeping"
"""The directory beside the attempts with the pre-images of calls that are just starting."""
UNKEPT = "unkept"
"""The file with the reason why nothing of a run is kept."""
_HINTS: dict[UndoDirection, str] = {
    "undo": "whisper-tui undo {} --redo makes them again",
    "redo": "whisper-tui undo {} undoes the others; then all of them can be redone",
}
NO_CHANGES = "no changes of call {} are kept"

_log = logging.getLogger(__name__)


def named_paths(paths: Sequence[str]) -> str:
    """Return the first of these paths for a sentence, and how many there are besides."""
    more = len(paths) - MOST_NAMED
    return ", ".join(paths[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


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
    """The changes of previews and of undoable runs: shown, made real, undone and made again."""

    def __init__(
        self,
        *,
        store: Store,
        executor: Executor,
        clock: Callable[[], float],
        requeue: Callable[[CallRecord, Judged], None],
        runs: Path,
        own: tuple[str, ...],
    ) -> None:
        """`runs`: the directory of the attempts; `own`: those of whisper_tui."""
        self._store = store
        self._executor = executor
        self._clock = clock
        self._requeue = requeue
        self._runs = runs
        self._own = own
        self._real: dict[RunKey, str] = {}
        """The attempts whose changes are real; the reason, if they were discarded instead."""
        self._changed: dict[RunKey, ChangedFiles] = {}
        """The changes of the attempts whose end is about to be recorded."""
        self._plain: dict[str, str] = {}
        """Calls of rules that could not run in a view, and now run without one, with the reason."""
        self._starting: dict[str, asyncio.Task[None]] = {}
        """The starts for which files are just being kept, by call."""
        self._turns: dict[str, asyncio.Lock] = {}
        self._shown = _LastShown()
        self._tasks = BackgroundTasks()

    def open(self) -> None:
        """Finish the undos during which the last supervisor was killed."""
        with suppress(FileNotFoundError):
            for marked in sorted((self._runs / PENDING).iterdir()):
                self._tasks.start(self._finish_undo(marked.name))

    async def close(self) -> None:
        """Stop. What is being made real is finished by the next supervisor."""
        await self._tasks.close()

    def directory(self, key: RunKey) -> str:
        """Return the directory with the view and the changes of an attempt."""
        return f"{attempt_directory(str(self._runs), key)}/{run_files.PREVIEW}"

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
            self._shown.same(self._store_of(record)).page, self.workspace(record), after, limit
        )

    async def versions(self, call_id: str, number: int) -> FileVersions:
        """Return the content of one changed file before and after it."""
        record = self._store.call(call_id)
        return await asyncio.to_thread(
            self._shown.same(self._store_of(record)).versions, self.workspace(record), number
        )

    def _store_of(self, record: CallRecord) -> PreviewStore:
        """Return the changes of the preview of a call, or of its run. Raises `Refused`."""
        preview = record.preview
        previewed = None if preview is None or preview.dropped else preview.attempt
        attempt = record.attempt if record.undoable and record.attempt is not None else previewed
        found = None if attempt is None else self.store_in(self.directory(RunKey(record.id, attempt)))
        if isinstance(record.state, Ended) and not record.undoable:
            why = record.not_kept_because or "nothing of what it changed was kept"
            raise Refused(f"call {record.id} cannot be undone: {why}", hint=f"whisper-tui show {record.id}")
        if isinstance(record.state, Ended) and (found is None or not found.exists):
            message = f"call {record.id} cannot be undone any more: what was kept of its changes was removed"
            raise Refused(message, hint="The limits of [undo] and [retention] in the configuration say for how long")
        if found is None or not found.exists:
            hint = "A preview shows them while the call waits; they are removed with old output"
            raise Refused(NO_CHANGES.format(record.id), hint=hint)
        return found

    def keeps(self, record: CallRecord) -> KeepsChanges:
        """Return how the changes of a run that is about to start are kept."""
        decision, plan = record.decision, record.verdict.undo if record.verdict is not None else None
        if not isinstance(decision, Approve) or record.applies or record.id in self._plain:
            return ""
        if decision.undoable:
            return "view"
        if decision.undoable is False or plan is None or plan.how == "none":
            return ""
        return "" if plan.how == "view" and decision.sandbox is not None else plan.how

    def start_kept(
        self,
        record: CallRecord,
        roots: Callable[[CallRecord], Iterator[Root]],
        start: Callable[[CallRecord], Awaitable[None]],
    ) -> asyncio.Task[None]:
        """Keep what a command is about to change, and start it. If that is not possible, it starts all the same."""
        # A task of its own: it may take seconds, and other starts wait behind this one.
        self._starting[record.id] = task = asyncio.create_task(self._start_kept(record, roots, start))
        task.add_done_callback(lambda _: self._starting.pop(record.id, None))
        return task

    async def wait_for_start(self, call_id: str) -> None:
        """Wait until a call has been started for which files are being kept."""
        if (starting := self._starting.get(call_id)) is not None:
            await asyncio.wait([starting])

    async def _start_kept(
        self,
        record: CallRecord,
        roots: Callable[[CallRecord], Iterator[Root]],
        start: Callable[[CallRecord], Awaitable[None]],
    ) -> None:
        key = RunKey(record.id, record.attempt or 1)
        place = str(self._runs / KEEPING / f"{key.call_id}.{key.attempt}")

        def keep() -> str:
            remove_tree(place)
            try:
                pre_images.keep(place, roots(record))
            except (NotKept, OSError) as error:
                _write_unkept(place, str(error))
                return str(error)
            return ""

        async with self._turn(record.id):
            why = await asyncio.to_thread(keep)
            if why and record.decided_by_human:
                await asyncio.to_thread(remove_tree, place)
                self._without_undo(record, why)
                return
            await start(record)
            # The directory of an attempt is made with its order.
            await asyncio.to_thread(_move_in, place, self.directory(key))

    def _seal(self, key: RunKey) -> None:
        """Find what a command has changed whose pre-images were kept."""
        directory = self.directory(key)
        _move_in(str(self._runs / KEEPING / f"{key.call_id}.{key.attempt}"), directory)
        if Path(directory, UNKEPT).exists():
            return
        ended = run_files.status(f"{attempt_directory(str(self._runs), key)}/{run_files.EXIT}")
        try:
            pre_images.seal(directory, ended.st_mtime_ns if ended is not None else int(self._clock() * 1e9))
        except NotKept as why:
            _write_unkept(directory, str(why))

    def unkept(self, key: RunKey) -> str:
        """Return why the changes of a run cannot be undone although they should have been kept."""
        if key.call_id in self._plain:
            return self._plain[key.call_id]
        # Most runs keep nothing, and no file has to be looked for.
        record = self._store.board.calls.get(key.call_id)
        if record is not None and not record.undoable:
            return ""
        with suppress(OSError):
            return Path(self.directory(key), UNKEPT).read_text(encoding="utf-8")
        return ""

    def explained(self, fact: ReportedFact) -> ReportedFact:
        """Return the end of a run with the reason why its changes did not become real, or cannot be undone."""
        record = self._store.board.calls.get(fact.call_id)
        if not isinstance(fact, Finished) or record is None or record.attempt is None:
            return fact
        key = RunKey(record.id, record.attempt)
        found = {"discarded": self.discarded(key), "unkept": self.unkept(key), "changed": self._changed.pop(key, None)}
        return fact.model_copy(update=found) if any(found.values()) else fact

    def runs_plainly(self, call_id: str) -> bool:
        """True if a call that was to run in a view of the files has to run without one."""
        return call_id in self._plain

    def not_started(self, record: CallRecord, why: str) -> bool:
        """Note that a command could not be started in a view. True: that is not its end.

        A human who was promised an undo is asked again. What a rule lets run, runs without a view.
        """
        if record.keeps != "view" and not record.asked_undoable:
            # There is nothing to be made real before it is over.
            self._real.setdefault(RunKey(record.id, record.attempt or 1), "")
            return False
        if record.decided_by_human:
            self._without_undo(record, why)
            return True
        self._plain[record.id] = why
        return False

    def become_real(self, record: CallRecord, key: RunKey) -> bool:
        """True if the changes of a run are to become real before its end is recorded."""
        waits = isinstance(record.state, Starting | Running) and record.attempt == key.attempt
        return waits and record.undoable and key not in self._real

    def discarded(self, key: RunKey) -> str:
        """Return why the changes of a run did not become real. Empty: they did, or it made them itself."""
        return self._real.get(key, "")

    async def apply(self, record: CallRecord) -> None:
        """Make the changes of an attempt real. Its end is then reported again, and recorded as that of the run."""
        key = RunKey(record.id, record.attempt or 1)
        try:
            # Two commands that have changed the same file must not both find it as it was.
            async with self._turn(record.id), self._turn(self.workspace(record)):
                if record.keeps == "copies":
                    await asyncio.to_thread(self._seal, key)
                else:
                    await asyncio.to_thread(self._apply, self.directory(key))
            self._real[key] = ""
            if (changed := await asyncio.to_thread(self._summary, record, key)) is not None:
                self._changed[key] = changed
        except Conflict as conflict:
            if record.applies:
                self._ask_again(record, f"nothing was applied: {named_paths(conflict.paths)} changed since the preview")
                return
            why = f"{named_paths(conflict.paths)} changed while it ran"
            # What a command has read of its input is gone, and what it has reached by the network has happened.
            can_run_again = record.keeps == "view" and not record.takes_input and not record.asked_undoable
            if can_run_again:
                await asyncio.to_thread(remove_tree, self.directory(key))
            if can_run_again and record.decided_by_human:
                self._ask_again(record, f"it has changed nothing yet: {why}")
                return
            self._real[key] = why
            if can_run_again:
                self._plain[record.id] = why
        except (OSError, ValueError, PreviewTooLarge, TransitionFailed) as error:
            _log.warning("the changes of call %s could not be made real: %s", record.id, error)
            self._real[key] = f"they could not be written: {error}"
        await self._executor.attach(key)

    def _summary(self, record: CallRecord, key: RunKey) -> ChangedFiles | None:
        """Return what an attempt has changed. None: nothing is kept of it."""
        store = self.store_in(self.directory(key))
        report = record.preview.report if record.applies and record.preview is not None else None
        try:
            known = report.counts if report is not None else None
            return store.summary(self.workspace(record), known) if store.exists else None
        except (OSError, ValueError) as error:
            _log.warning("the changes of call %s cannot be counted: %s", record.id, error)
            return None

    def _apply(self, directory: str) -> None:
        if Path(directory).exists():
            read_changes(directory)
            transition.apply(directory)

    def _without_undo(self, record: CallRecord, why: str) -> None:
        """Put a call back into the queue whose changes cannot be kept, although its human was promised that."""
        reason, plan = f"it did not run: its changes cannot be kept: {why}", UndoPlan(how="none", why=why)
        self._ask_again(record, reason, undo=plan)

    def _ask_again(self, record: CallRecord, reason: str, **changes: object) -> None:
        """Put a call back into the queue. `changes`: of its verdict."""
        before = record.verdict or Verdict(kind="ask", reason=reason)
        judged = Judged(
            at=self._clock(),
            call_id=record.id,
            verdict=before.model_copy(update={"kind": "ask", "reason": reason, **changes}),
            resolved=record.resolved or Resolved(cwd=record.spec.cwd),
        )
        self._store.retry_until_journaled(lambda: self._requeue(record, judged))

    async def undo(
        self, call_id: str, paths: Sequence[str], direction: UndoDirection, by: Decider, *, all_but: bool = False
    ) -> None:
        """Undo the changes of an ended call, or make them again. Raises `Refused`; then nothing was done.

        `paths`: only these, from the directory of the call on; `all_but`: all others. None: all.
        """
        record = self._store.call(call_id)
        if not isinstance(record.state, Ended):
            raise Refused(f"call {call_id} cannot be undone: it has not ended", hint=f"whisper-tui show {call_id}")
        store = self._store_of(record)
        paths = [named_path(path, record.spec.cwd) for path in paths]
        if all_but:
            paths = await asyncio.to_thread(store.all_but, paths)
        async with self._turn(call_id), self._turn(self.workspace(record)):
            if why := await asyncio.to_thread(store.why_not_moved, direction):
                word = "undone" if direction == "undo" else "redone"
                raise Refused(f"call {call_id} was not {word}: {why}", hint=_HINTS[direction].format(call_id))
            self._mark(call_id)
            event = UndoStarted(at=self._clock(), call_id=call_id, direction=direction, paths=tuple(paths), by=by)
            self._store.record(event, durable=True)
            await self._move(record, store, direction, paths)

    async def _move(
        self, record: CallRecord, store: PreviewStore, direction: UndoDirection, paths: Sequence[str]
    ) -> None:
        problem = ""
        hint = f"Nothing was changed. whisper-tui undo {record.id} --but PATH… undoes the others"
        try:
            await asyncio.to_thread(store.move, direction, paths)
        except Conflict as conflict:
            problem = f"{named_paths(conflict.paths)} changed since"
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
            )

    async def _finish_undo(self, call_id: str) -> None:
        """Finish an undo during which the supervisor was killed."""
        with suppress(Refused):
            record = self._store.call(call_id)
            begun = record.undo
            if begun is None or begun.done or begun.problem:
                self._unmark(call_id)
                return
            async with self._turn(call_id), self._turn(self.workspace(record)):
                await self._move(record, self._store_of(record), begun.direction, begun.paths)

    def _mark(self, call_id: str) -> None:
        # The journal knows which undo was begun, but a call of long ago is not on the board that a restart rebuilds.
        directory = self._runs / PENDING
        directory.mkdir(mode=0o700, exist_ok=True)
        (directory / call_id).touch(mode=0o600)

    def _unmark(self, call_id: str) -> None:
        (self._runs / PENDING / call_id).unlink(missing_ok=True)

    def _turn(self, of: str) -> asyncio.Lock:
        """Return the turn of a call, or of a workspace."""
        return self._turns.setdefault(of, asyncio.Lock())


def _write_unkept(directory: str, why: str) -> None:
    """Leave the reason why nothing is kept of a run in the place of its changes."""
    Path(directory).mkdir(0o700, parents=True, exist_ok=True)
    run_files.write_whole(f"{directory}/{UNKEPT}", why.encode(errors="backslashreplace"))


def _move_in(place: str, directory: str) -> None:
    """Move pre-images to the files of their run, unless they are there."""
    with suppress(FileNotFoundError):
        Path(place).rename(directory)
