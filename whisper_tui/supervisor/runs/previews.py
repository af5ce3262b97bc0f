"""Previews: a waiting call runs in a view of the files that nobody else sees, before it is decided (decision 16).

A preview is an attempt of its own under a keeper, with its own output. A supervisor that is killed meanwhile leaves it
running, and the next one reads what it changed.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from whisper_tui.changes.change_records import Plan, save_plan
from whisper_tui.changes.file_trees import PreviewTooLarge, remove_tree
from whisper_tui.changes.overlay_diff import LAYERS, read_changes
from whisper_tui.model.call import CarriedOut, CommandSpec
from whisper_tui.model.decision import Approve, Decider, Decision
from whisper_tui.model.ending import Exited, FailedToStart
from whisper_tui.model.errors import JournalFailed, NotRunning, Refused, Unavailable
from whisper_tui.model.event import Judged, PreviewDropped, PreviewEnded, PreviewStarted
from whisper_tui.model.preview import PreviewReport, PreviewSupport
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.verdict import DRAFT_RULE, HELD_BACK_RULE, Resolved
from whisper_tui.supervisor.approvals.judge import Judge
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.preview.confined import is_copy, read_copy
from whisper_tui.supervisor.runs.executor import Executor, HasEnded, NeverRan, Report, RunKey
from whisper_tui.supervisor.runs.held_back import drop_caches, why_withheld
from whisper_tui.supervisor.runs.kept_changes import BackgroundTasks, KeptChanges
from whisper_tui.supervisor.runs.open_drafts import OVER, OpenDrafts
from whisper_tui.supervisor.runs.preview_probe import PreviewProbe
from whisper_tui.supervisor.runs.preview_report import CHANGED_MEANWHILE, report_of
from whisper_tui.supervisor.runs.rule_on_effects import RuleOnEffects
from whisper_tui.supervisor.runs.start_order import StartOrders
from whisper_tui.system.host_files import home_of_user

_log = logging.getLogger(__name__)


_HELD_BACK = Decider(surface="rule", who=HELD_BACK_RULE)
_IN_DRAFT = Decider(surface="rule", who=DRAFT_RULE)
"""The makers of previews of calls that are held back. A human may be asked about them meanwhile."""


class Previews:
    """Starts previews, reads what they have changed, and discards them."""

    def __init__(
        self,
        *,
        store: Store,
        executor: Executor,
        judge: Judge,
        orders: StartOrders,
        changes: KeptChanges,
        clock: Callable[[], float],
        decide: Callable[[str, Decision, Decider, str], None],
        probe: PreviewProbe,
        held_back_s: float,
        drafts: OpenDrafts,
    ) -> None:
        """`decide` records the decision of a rule on effects.

        `held_back_s`: seconds for which a call may be held back before a human is asked about it.
        """
        self.changes = changes
        """The changes that they have found."""
        self._store = store
        self._executor = executor
        self._judge = judge
        self._orders = orders
        self._clock = clock
        self._decide = decide
        self.probe = probe
        self._held_back_s = held_back_s
        self.drafts = drafts
        self._tasks = BackgroundTasks()
        self._opened = asyncio.Event()
        """Set once keepers can be asked."""

    async def open(self) -> None:
        """Go on with the previews and the undos that an earlier supervisor began."""
        board = self._store.board
        for call_id in tuple(board.previewing):
            if (preview := board.calls[call_id].preview) is not None:
                await self._executor.attach(RunKey(call_id, preview.attempt))
                if preview.by == _IN_DRAFT:
                    self._tasks.start(self._end_in_draft(board.calls[call_id]))
        self.changes.open()
        for call_id in tuple(board.previewed):
            self._approve_by_effects(board.calls[call_id])
        for call_id in tuple(board.held_back):
            self.on_judged(board.calls[call_id])
        self._opened.set()

    async def close(self) -> None:
        """Stop. Previews go on under their keepers."""
        await self.probe.close()
        await self._tasks.close()
        await self.changes.close()

    async def start(self, call_id: str, by: Decider, edited: CommandSpec | None) -> int:
        """Start a preview of a waiting call. Returns its attempt. Raises `Refused`."""
        self._previewable(call_id, edited, by)
        support = await self.probe.found()
        record = self._previewable(call_id, edited, by)
        if edited == record.call.spec:
            edited = None
        spec, resolved = edited or record.call.spec, self._resolved(record, edited)
        if record.preview is not None:
            await self._discard(record)
        attempt = record.attempts + 1
        event = PreviewStarted(at=self._clock(), call_id=call_id, attempt=attempt, by=by, edited=edited)
        self._store.record(event, durable=True)
        if not support.ways:
            self._ended(call_id, attempt, _not_supported(spec, support))
            return attempt
        try:
            # In a thread: it looks at the directories of the workspace.
            order = await asyncio.to_thread(
                self._orders.of_preview,
                record,
                spec,
                resolved,
                attempt=attempt,
                support=support,
                held_back=by in (_HELD_BACK, _IN_DRAFT),
            )
            await self._executor.start(order)
        except (Refused, Unavailable) as error:
            self._ended(call_id, attempt, not_started(spec, error.sentence()))
        return attempt

    def _previewable(self, call_id: str, edited: CommandSpec | None, by: Decider) -> CallRecord:
        record = self._store.call(call_id)
        if not isinstance(record.state, Waiting):
            hint = f"whisper-tui show {call_id} prints what became of it"
            raise Refused(f"call {call_id} does not wait for a decision, so it cannot be previewed", hint=hint)
        if isinstance(record.call.spec.command, CarriedOut):
            problem = f"call {call_id} is no command: its agent runs it itself"
            raise Refused(problem, hint="Only commands can be previewed")
        if place := record.call.spec.place or (edited.place if edited is not None else ""):
            problem = f"call {call_id} runs at {place}, and views of the files are made on this machine only"
            raise Refused(problem, hint="Approve it to run for real, or deny it")
        if record.verdict is not None and record.verdict.preview == "never":
            rule = record.verdict.rule or "that asks about it"
            raise Refused(f"the rule {rule!r} says that call {call_id} is never previewed", hint="Change the rule")
        if record.in_draft and by != _IN_DRAFT:
            problem = f"call {call_id} runs in the draft of its session, where a preview would be the run itself"
            raise Refused(problem, hint="Approve it to run there, or deny it")
        if by == _IN_DRAFT and not (record.in_draft and self.drafts.has(record.call.session_id)):
            raise Refused(OVER, hint="Decide about the call")
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
        if record.preview is None and record.in_draft:
            self._tasks.start(self._run_in_draft(record))
        elif record.preview is None:
            self._tasks.start(self._start_by_rule(record.id, Decider(surface="rule", who=verdict.rule or "")))
        if record.is_held_back and not record.in_draft:
            self._tasks.start(self._ask_in_time(record.id))

    async def _run_in_draft(self, record: CallRecord) -> None:
        """Run a call in the draft of its session when those before it have ended."""
        await self._opened.wait()
        async with self.drafts.turn(record.call.session_id):
            now = self._store.board.calls.get(record.id)
            if now is not None and now.is_held_back and now.preview is None:
                await self._start_by_rule(record.id, _IN_DRAFT)
                await self.drafts.over(record.id)

    async def _end_in_draft(self, record: CallRecord) -> None:
        """Keep others from the files of a draft until a command has ended that an earlier supervisor has begun."""
        async with self.drafts.turn(record.call.session_id):
            await self.drafts.over(record.id)

    async def _start_by_rule(self, call_id: str, by: Decider) -> None:
        await self._opened.wait()
        try:
            await self.start(call_id, by, None)
        except (Refused, JournalFailed) as error:
            # The call waits for its human in any case.
            _log.warning("call %s was not previewed: %s", call_id, error.sentence())
            self._ask(call_id, f"it could not be held back: {error.sentence().rstrip('.')}")

    async def _ask_in_time(self, call_id: str) -> None:
        """Ask a human about a call that is held back for long: it may be a server, which would never end."""
        await asyncio.sleep(self._held_back_s)
        self._ask(call_id, f"it still runs, held back, after {self._held_back_s:.0f} s")

    def _ask(self, call_id: str, why: str) -> None:
        """Ask a human about a call that is held back. Its effects may still allow it before somebody has answered."""
        record = self._store.board.calls.get(call_id)
        if record is None or not record.is_held_back or record.verdict is None or record.resolved is None:
            return
        verdict = record.verdict.model_copy(update={"held_back": False, "reason": why})
        judged = Judged(at=self._clock(), call_id=call_id, verdict=verdict, resolved=record.resolved)
        self._store.retry_until_journaled(lambda: self._store.record(judged))

    async def drop(self, call_id: str) -> None:
        """End a preview that runs, and discard its changes. Raises `Refused` if there is none."""
        record = self._store.call(call_id)
        if record.preview is None or record.preview.dropped or not isinstance(record.state, Waiting):
            problem = f"call {call_id} has no preview that could be dropped"
            raise Refused(problem, hint=f"whisper-tui show {call_id}")
        await self._discard(record)

    def on_decided(self, record: CallRecord) -> None:
        """Discard the preview of a call that was denied, withdrawn, or approved to run for real."""
        preview = record.preview
        if preview is not None and not preview.dropped and not record.applies:
            self._tasks.start(self._discard(record))

    async def _discard(self, record: CallRecord) -> None:
        preview = self._store.call(record.id).preview
        if preview is None or preview.dropped:
            return
        key = RunKey(record.id, preview.attempt)
        event = PreviewDropped(at=self._clock(), call_id=record.id, attempt=preview.attempt)
        self._store.retry_until_journaled(lambda: self._store.record(event))
        if preview.report is None:
            # Its files are removed when its keeper reports the end.
            with suppress(NotRunning, Unavailable):
                await self._executor.end(key, 0)
        else:
            await asyncio.to_thread(remove_tree, self.changes.directory(key))

    async def end_all(self) -> None:
        """End all previews that run: the supervisor is stopping, and their calls wait for the next one."""
        for call_id in tuple(self._store.board.previewing):
            preview = self._store.board.calls[call_id].preview
            if preview is not None:
                with suppress(NotRunning, Unavailable):
                    await self._executor.end(RunKey(call_id, preview.attempt), 0)

    def take(self, reports: Sequence[Report]) -> tuple[Report, ...]:
        """Take the reports about previews. Returns all others: those about runs."""
        return tuple(report for report in reports if not self._is_taken(report))

    def _is_taken(self, report: Report) -> bool:
        record = self._store.board.calls.get(report.key.call_id)
        preview = record.preview if record is not None else None
        # Once it is approved, the attempt of a preview is that of its call.
        if record is not None and preview is not None and preview.attempt == report.key.attempt != record.attempt:
            self._on_preview(record, report)
            return True
        return False

    def _on_preview(self, record: CallRecord, report: Report) -> None:
        if isinstance(report, HasEnded):
            self._tasks.start(self._read(record, report))
        elif isinstance(report, NeverRan):
            self._tasks.start(self._start_again(record))

    async def _start_again(self, record: CallRecord) -> None:
        """Replace a preview that never began: the supervisor was stopped while it was ordered."""
        preview = record.preview
        if preview is None or record.id not in self._store.board.previewing:
            return
        event = PreviewDropped(at=self._clock(), call_id=record.id, attempt=preview.attempt)
        self._store.retry_until_journaled(lambda: self._store.record(event))
        with suppress(Refused):
            await self.start(record.id, preview.by, preview.edited)

    async def _read(self, record: CallRecord, report: HasEnded) -> None:
        """Find the changes of a preview that has ended."""
        directory = self.changes.directory(report.key)
        if record.preview is not None and record.preview.by == _IN_DRAFT:
            await self._note_in_draft(record, report.key, directory)
        made = await asyncio.to_thread(self._report, record, report, directory)
        if record.is_held_back and made.problem.endswith(CHANGED_MEANWHILE) and record.attempts == 1:
            await self._start_again(record)  # Somebody else changed what it read: its own changes would be of no use.
        elif record.id in self._store.board.previewing:
            self._ended(record.id, report.key.attempt, made)
            self._approve_by_effects(self._store.call(record.id))
        else:
            # It was dropped, or its call was decided meanwhile.
            await asyncio.to_thread(remove_tree, directory)

    async def _note_in_draft(self, record: CallRecord, key: RunKey, directory: str) -> None:
        """Note what a command has changed in its draft. Of the real files it has changed nothing."""
        try:
            await self.drafts.note(record.call.session_id, key)
            if Path(directory).is_dir():
                await asyncio.to_thread(save_plan, directory, Plan((), ()))
        except OSError as error:
            _log.warning("the changes of call %s in its draft cannot be noted: %s", record.id, error)

    def _report(self, record: CallRecord, ended: HasEnded, directory: str) -> PreviewReport:
        if isinstance(ended.ending, FailedToStart):
            return PreviewReport(ending=ended.ending, problem=ended.ending.message.rstrip("."))
        preview, conditions = record.preview, record.verdict.allow_if_preview if record.verdict is not None else ()
        is_ours = preview is not None and preview.by in (_HELD_BACK, _IN_DRAFT)
        try:
            plan = _read_changes(directory)
            store, workspace = self.changes.store_in(directory), self.changes.workspace(record)
            if is_ours and plan is not None:
                # The agent's home need not be the one that the user database names.
                own_home = self._orders.environment_of(record).get("HOME") or home_of_user()
                drop_caches(directory, plan, {os.path.realpath(own_home), home_of_user()}, workspace)
            report = report_of(store, ended, workspace)
            beyond = [
                why for condition in conditions for why in RuleOnEffects(condition, store, workspace).beyond(report)
            ]
            if is_ours:
                attempt, environment = str(Path(directory).parent), self._orders.environment_of(record)
                closed, failed = partial(self._orders.closed_files, record), ended.ending != Exited(code=0)
                beyond += why_withheld(attempt, environment, closed, failed=failed)
            return report.model_copy(update={"beyond_rule": tuple(dict.fromkeys(beyond))})
        except (OSError, ValueError, PreviewTooLarge) as error:
            problem = f"its changes cannot be read: {error}"
            return PreviewReport(ending=ended.ending, output=ended.output, problem=problem)

    def _ended(self, call_id: str, attempt: int, report: PreviewReport) -> None:
        event = PreviewEnded(at=self._clock(), call_id=call_id, attempt=attempt, report=report)
        self._store.retry_until_journaled(lambda: self._store.record(event))

    def _approve_by_effects(self, record: CallRecord) -> None:
        """Have the changes of a preview made real if the rule that asked for it permits its effects (decision 12)."""
        verdict, preview = record.verdict, record.preview
        if verdict is None or preview is None or not verdict.allow_if_preview or not isinstance(record.state, Waiting):
            return
        report = preview.report
        # A preview that a human began is for the human; so is one that could not be applied before.
        by_rule = preview.by.surface == "rule" and record.state.returned_because is None
        if report is None or report.beyond_rule or not by_rule or not preview.can_be_applied:
            return
        # Like each start, this one is judged again before it is made: by then a rule may deny it.
        decision, by = Approve(preview=report.digest), Decider(surface="rule", who=verdict.rule or "")
        seen = record.seen_digest()
        self._store.retry_until_journaled(lambda: self._decide(record.id, decision, by, seen))


def _read_changes(directory: str) -> Plan | None:
    """Find out what a command has changed. None: it could not write at all."""
    if is_copy(directory):
        return read_copy(directory)
    return read_changes(directory) if Path(directory, LAYERS).exists() else None


def _not_supported(spec: CommandSpec, support: PreviewSupport) -> PreviewReport:
    here = "commands cannot be previewed here"
    found = not_started(spec, f"{here}: {'; '.join(support.reasons)}")
    problem = f"{here}: {support.problem}" if support.problem else here
    return found.model_copy(update={"problem": problem, "instead": support.refused, "is_possible": False})


def not_started(spec: CommandSpec, why: str) -> PreviewReport:
    """Return the report of a preview that never began."""
    sentence = f"{why[:1].upper()}{why[1:].rstrip('.')}."
    ending = FailedToStart(problem="other", subject=spec.command.words()[0], message=sentence)
    return PreviewReport(ending=ending, problem=why.rstrip("."))
