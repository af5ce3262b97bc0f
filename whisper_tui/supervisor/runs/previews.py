"""Previews: they run in a view of the files, their changes are made real on approval, and can be taken back (decision 34).

A preview is an attempt of its own under a keeper, with its own output. Making its changes real starts nothing: it is
done here, in a thread. A supervisor that is killed meanwhile finishes it when it starts again. A run that a human
approved as *undoable* is the same with the network on, and its changes become real when it ends.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from whisper_tui.model.call import CarriedOut, CommandSpec
from whisper_tui.model.decision import Decider
from whisper_tui.model.edits import FileVersions
from whisper_tui.model.ending import FailedToStart
from whisper_tui.model.errors import JournalFailed, NotRunning, Refused, Unavailable
from whisper_tui.model.event import (
    Judged,
    PreviewDropped,
    PreviewEnded,
    PreviewStarted,
    UndoEnded,
    UndoStarted,
)
from whisper_tui.model.preview import PreviewPage, PreviewReport, UndoDirection
from whisper_tui.model.state import CallRecord, Ended, Running, Starting, Waiting
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.supervisor.approvals.judge import Judge
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.preview import transition
from whisper_tui.supervisor.preview.overlay_diff import PreviewTooLarge, read_changes
from whisper_tui.supervisor.preview.transition import Conflict
from whisper_tui.supervisor.runs.attempt import attempt_directory
from whisper_tui.supervisor.runs.executor import Executor, HasEnded, HasSettled, NeverRan, Report, RunKey
from whisper_tui.supervisor.runs.preview_changes import PreviewStore, report_of
from whisper_tui.supervisor.runs.start_order import StartOrders

MOST_NAMED = 3
"""Paths that a sentence about a conflict names."""
PENDING = "undoing"
"""The directory beside the attempts that names the calls whose changes are just being taken back."""
NO_PREVIEW = "there is no preview of call {} whose changes are known"

_log = logging.getLogger(__name__)


def preview_directory(runs: str, key: RunKey) -> str:
    """Return the directory with the view and the changes of an attempt."""
    return f"{attempt_directory(runs, key)}/preview"


def not_started(spec: CommandSpec, why: str) -> PreviewReport:
    """Return the report of a preview that never began."""
    sentence = f"{why[:1].upper()}{why[1:].rstrip('.')}."
    ending = FailedToStart(problem="other", subject=spec.command.words()[0], message=sentence)
    return PreviewReport(ending=ending, problem=why.rstrip("."))


def named_paths(paths: Sequence[str]) -> str:
    """Return the first of these paths for a sentence, and how many there are besides."""
    more = len(paths) - MOST_NAMED
    return ", ".join(paths[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class Previews:
    """Starts previews, and makes the changes of runs real or takes them back, one call at a time."""

    def __init__(
        self,
        *,
        store: Store,
        executor: Executor,
        judge: Judge,
        orders: StartOrders,
        clock: Callable[[], float],
        requeue: Callable[[CallRecord, Judged], None],
        runs: Path,
    ) -> None:
        self._store = store
        self._executor = executor
        self._judge = judge
        self._orders = orders
        self._clock = clock
        self._requeue = requeue
        self._runs = str(runs)
        self._real: dict[RunKey, str] = {}
        """The attempts whose changes are real; the reason, if they were discarded instead."""
        self._reading = set[RunKey]()
        self._tasks = set[asyncio.Task[None]]()
        self._turns: dict[str, asyncio.Lock] = {}
        self._opened = asyncio.Event()
        """Set once keepers can be asked."""

    async def open(self) -> None:
        """Go on with the previews and the undos that an earlier supervisor began."""
        board = self._store.board
        for call_id in tuple(board.previewing):
            if (preview := board.calls[call_id].preview) is not None:
                await self._executor.attach(RunKey(call_id, preview.attempt))
        for call_id in self._interrupted():
            self._keep(self._finish_undo(call_id))
        self._opened.set()

    async def close(self) -> None:
        """Stop. What is being made real is finished by the next supervisor."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def start(self, call_id: str, by: Decider, edited: CommandSpec | None) -> int:
        """Start a preview of a waiting call. Returns its attempt. Raises `Refused`."""
        record = self._previewable(call_id)
        if edited == record.call.spec:
            edited = None
        spec, resolved = edited or record.call.spec, self._resolved(record, edited)
        if record.preview is not None:
            await self._discard(record)
        attempt = record.attempts + 1
        event = PreviewStarted(at=self._clock(), call_id=call_id, attempt=attempt, by=by, edited=edited)
        self._store.record(event, durable=True)
        try:
            await self._executor.start(self._orders.of_preview(record, spec, resolved, attempt))
        except Unavailable as error:
            self._ended(call_id, attempt, not_started(spec, error.sentence()))
        return attempt

    def _previewable(self, call_id: str) -> CallRecord:
        record = self._store.call(call_id)
        if not isinstance(record.state, Waiting):
            hint = f"whisper-tui show {call_id} prints what became of it"
            raise Refused(f"call {call_id} does not wait for a decision, so it cannot be previewed", hint=hint)
        if isinstance(record.call.spec.command, CarriedOut):
            raise Refused(f"call {call_id} is no command: its agent runs it itself", hint="Only commands can be previewed")
        if record.verdict is not None and record.verdict.preview == "never":
            rule = record.verdict.rule or "that asks about it"
            raise Refused(f"the rule {rule!r} says that call {call_id} is never previewed", hint="Change the rule")
        if call_id in self._store.board.previewing:
            raise Refused(f"a preview of call {call_id} is running", hint="Wait for its end, or drop it")
        return record

    def _resolved(self, record: CallRecord, edited: CommandSpec | None) -> Resolved | None:
        if edited is None:
            return record.resolved
        judged = self._judge.judge(record.call, edited)
        if judged.verdict.kind == "refuse":
            raise Refused(f"the edited command is denied: {judged.verdict.reason}", hint="Edit it again, or deny it")
        return judged.resolved

    def on_judged(self, record: CallRecord) -> None:
        """Start the preview of a call whose rule asks for one."""
        verdict = record.verdict
        if verdict is None or verdict.preview != "always" or not isinstance(record.state, Waiting):
            return
        if record.preview is None:
            self._keep(self._start_by_rule(record.id, Decider(surface="rule", who=verdict.rule or "")))

    async def _start_by_rule(self, call_id: str, by: Decider) -> None:
        await self._opened.wait()
        try:
            await self.start(call_id, by, None)
        except (Refused, JournalFailed) as error:
            # The call waits for its human in any case.
            _log.warning("call %s was not previewed: %s", call_id, error.sentence())

    async def drop(self, call_id: str) -> None:
        """End a preview that runs, and discard its changes. Raises `Refused` if there is none."""
        record = self._store.call(call_id)
        if record.preview is None or record.preview.dropped or not isinstance(record.state, Waiting):
            raise Refused(f"call {call_id} has no preview that could be dropped", hint=f"whisper-tui show {call_id}")
        await self._discard(record)

    async def _discard(self, record: CallRecord) -> None:
        preview = record.preview
        if preview is None or preview.dropped:
            return
        key = RunKey(record.id, preview.attempt)
        self._store.record(PreviewDropped(at=self._clock(), call_id=record.id, attempt=preview.attempt))
        if preview.report is None:
            with suppress(NotRunning, Unavailable):
                await self._executor.end(key, 0)
        else:
            await asyncio.to_thread(transition.discard, preview_directory(self._runs, key))

    async def end_all(self) -> None:
        """End all previews that run: the supervisor is stopping, and their calls wait for the next one."""
        for call_id in tuple(self._store.board.previewing):
            preview = self._store.board.calls[call_id].preview
            if preview is not None:
                with suppress(NotRunning, Unavailable):
                    await self._executor.end(RunKey(call_id, preview.attempt), 0)

    def on_decided(self, record: CallRecord) -> None:
        """Discard the preview of a call that was denied, withdrawn, or approved to run for real."""
        preview = record.preview
        if preview is not None and not preview.dropped and not record.applies:
            self._keep(self._discard(record))

    def take(self, reports: Sequence[Report]) -> tuple[Report, ...]:
        """Take the reports about previews, and about runs whose changes are not real yet. Returns all others."""
        return tuple(report for report in reports if not self._is_taken(report))

    def _is_taken(self, report: Report) -> bool:
        board, key = self._store.board, report.key
        record = board.calls.get(key.call_id)
        if record is None:
            return False
        if self._is_preview(record, key):
            if isinstance(report, HasEnded):
                self._keep(self._read(record, report))
            elif isinstance(report, NeverRan):
                why = "the supervisor was stopped before the preview began"
                self._ended(record.id, key.attempt, not_started(record.spec, why))
            return True
        if not isinstance(report, HasEnded | HasSettled) or not self._becomes_real(record, key):
            return False
        if isinstance(report, HasEnded) and key not in self._reading:
            self._reading.add(key)
            self._keep(self._make_real(record, key))
        return True

    def _is_preview(self, record: CallRecord, key: RunKey) -> bool:
        preview = record.preview
        return preview is not None and preview.attempt == key.attempt and record.attempt != key.attempt

    def _becomes_real(self, record: CallRecord, key: RunKey) -> bool:
        """True if the changes of a run are to become real before its end is recorded."""
        waits = isinstance(record.state, Starting | Running) and record.attempt == key.attempt
        return waits and record.undoable and key not in self._real

    def discarded(self, key: RunKey) -> str:
        """Return why the changes of a run did not become real. Empty: they did, or it made them itself."""
        return self._real.get(key, "")

    async def _read(self, record: CallRecord, report: HasEnded) -> None:
        """Find the changes of a preview that has ended."""
        directory = preview_directory(self._runs, report.key)
        made = await asyncio.to_thread(self._report, record, report, directory)
        if record.id in self._store.board.previewing:
            self._ended(record.id, report.key.attempt, made)
        else:
            await asyncio.to_thread(transition.discard, directory)

    def _report(self, record: CallRecord, ended: HasEnded, directory: str) -> PreviewReport:
        if isinstance(ended.ending, FailedToStart):
            return PreviewReport(ending=ended.ending, problem=ended.ending.message.rstrip("."))
        try:
            read_changes(directory)
            return report_of(PreviewStore(directory), ended, self._workspace(record))
        except (OSError, ValueError, PreviewTooLarge) as error:
            return PreviewReport(ending=ended.ending, output=ended.output, problem=f"its changes cannot be read: {error}")

    def _workspace(self, record: CallRecord) -> str:
        session = self._store.board.sessions.get(record.call.session_id)
        return os.path.realpath(session.root if session is not None and session.root else record.call.spec.cwd)

    def _ended(self, call_id: str, attempt: int, report: PreviewReport) -> None:
        event = PreviewEnded(at=self._clock(), call_id=call_id, attempt=attempt, report=report)
        self._store.retry_until_journaled(lambda: self._store.record(event))

    async def apply(self, record: CallRecord) -> None:
        """Make the changes of a preview real. Its end is then reported like that of a run."""
        key = RunKey(record.id, record.attempt or 1)
        await self._make_real(record, key)

    async def _make_real(self, record: CallRecord, key: RunKey) -> None:
        directory = preview_directory(self._runs, key)

        def work() -> None:
            if record.undoable and not record.applies:
                read_changes(directory)
            transition.apply(directory)

        try:
            async with self._turn(record.id):
                await asyncio.to_thread(work)
            self._real[key] = ""
        except Conflict as conflict:
            if record.applies:
                self._ask_again(record, conflict.paths)
                return
            self._real[key] = f"{named_paths(conflict.paths)} changed while it ran"
        except (OSError, ValueError, PreviewTooLarge) as error:
            _log.warning("the changes of call %s could not be made real: %s", record.id, error)
            self._real[key] = f"they could not be written: {error}"
        self._reading.discard(key)
        # All is reported again, and recorded this time.
        await self._executor.attach(key)

    def _ask_again(self, record: CallRecord, paths: Sequence[str]) -> None:
        """Put a call back into the queue, because files have changed since its preview."""
        reason = f"nothing was applied: {named_paths(paths)} changed since the preview"
        verdict = (record.verdict or Verdict(kind="ask", reason=reason)).model_copy(
            update={"kind": "ask", "reason": reason}
        )
        judged = Judged(
            at=self._clock(), call_id=record.id, verdict=verdict, resolved=record.resolved or Resolved(cwd=record.spec.cwd)
        )
        self._store.retry_until_journaled(lambda: self._requeue(record, judged))

    def store_of(self, record: CallRecord) -> PreviewStore:
        """Return the changes of the preview of a call, or of its run. Raises `Refused`."""
        attempt = record.attempt if record.undoable else record.preview.attempt if record.preview is not None else None
        if attempt is None or (not record.undoable and record.preview is not None and record.preview.dropped):
            raise Refused(NO_PREVIEW.format(record.id), hint=f"whisper-tui preview {record.id} makes one")
        found = PreviewStore(preview_directory(self._runs, RunKey(record.id, attempt)))
        if not found.exists:
            raise Refused(NO_PREVIEW.format(record.id), hint="Changes are removed with old output: whisper-tui prune")
        return found

    async def page(self, call_id: str, after: int = 0, limit: int = 1000) -> PreviewPage:
        """Return changes of a preview, or of a run whose changes were kept, from a number on."""
        record = self._store.call(call_id)
        store, workspace = self.store_of(record), self._workspace(record)
        return await asyncio.to_thread(store.page, workspace, after, limit)

    async def versions(self, call_id: str, number: int) -> FileVersions:
        """Return the content of one changed file before and after it."""
        record = self._store.call(call_id)
        store, workspace = self.store_of(record), self._workspace(record)
        return await asyncio.to_thread(store.versions, workspace, number)

    async def undo(self, call_id: str, paths: Sequence[str], direction: UndoDirection, by: Decider) -> None:
        """Take back the changes of an ended call, or make them again. Raises `Refused`; then nothing was done."""
        record = self._store.call(call_id)
        if not isinstance(record.state, Ended) or not record.undoable:
            why = "nothing of what it changed was kept" if isinstance(record.state, Ended) else "it has not ended"
            raise Refused(f"call {call_id} cannot be undone: {why}", hint=f"whisper-tui show {call_id}")
        store = self.store_of(record)
        async with self._turn(call_id):
            problem = await asyncio.to_thread(store.why_not, direction, paths)
            if problem:
                raise Refused(problem, hint="Nothing was changed. Compare the files, and name only paths that are as it left them")
            self._mark(call_id)
            event = UndoStarted(at=self._clock(), call_id=call_id, direction=direction, paths=tuple(paths), by=by)
            self._store.record(event, durable=True)
            await self._transition(record, store, direction, paths)

    async def _transition(
        self, record: CallRecord, store: PreviewStore, direction: UndoDirection, paths: Sequence[str]
    ) -> None:
        problem = ""
        try:
            await asyncio.to_thread(store.move, direction, paths)
        except Conflict as conflict:
            problem = f"{named_paths(conflict.paths)} changed meanwhile"
        except OSError as error:
            problem = f"a file could not be written: {error.strerror or error}"
        event = UndoEnded(at=self._clock(), call_id=record.id, problem=problem)
        self._store.retry_until_journaled(lambda: self._store.record(event))
        self._unmark(record.id)
        if problem:
            raise Refused(f"call {record.id} was not undone: {problem}", hint="Undo it again once that is mended")

    async def _finish_undo(self, call_id: str) -> None:
        """Finish an undo during which the supervisor was killed."""
        with suppress(Refused):
            record = self._store.call(call_id)
            if record.undo is None or record.undo.done or record.undo.problem:
                self._unmark(call_id)
                return
            await self._transition(record, self.store_of(record), record.undo.direction, record.undo.paths)

    def _interrupted(self) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(f"{self._runs}/{PENDING}")))
        except FileNotFoundError:
            return ()

    def _mark(self, call_id: str) -> None:
        # The journal knows which undo was begun, but a call of long ago is not on the board that a restart rebuilds.
        directory = Path(self._runs) / PENDING
        directory.mkdir(mode=0o700, exist_ok=True)
        (directory / call_id).touch(mode=0o600)

    def _unmark(self, call_id: str) -> None:
        (Path(self._runs) / PENDING / call_id).unlink(missing_ok=True)

    def _turn(self, call_id: str) -> asyncio.Lock:
        return self._turns.setdefault(call_id, asyncio.Lock())

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a preview could not be carried on", exc_info=error)
