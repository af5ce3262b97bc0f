"""Draft sessions: begun, shown, applied and dropped by a human (decision 44).

What is applied of a draft is a call of its own with a finished preview, so that it becomes real as any other preview
does: all or nothing, resumed after a kill, and undone by the id of that call.
"""

import asyncio
import fcntl
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from whisper_tui.changes import draft_changes
from whisper_tui.changes.change_records import Plan, load_plan, save_plan
from whisper_tui.changes.draft_changes import DraftChanges, at_paths, is_only_time, with_belonging
from whisper_tui.changes.file_trees import PreviewTooLarge, remove_tree
from whisper_tui.effects.changes import printable
from whisper_tui.model.call import Argv, CommandSpec, FileVersions, Session, ToolCall
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.draft import DraftApplied, DraftApply, DraftChange, DraftPage, SessionDraft
from whisper_tui.model.ending import Exited
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.event import Decided, Judged, PreviewEnded, PreviewStarted, Submitted
from whisper_tui.model.preview import MOST_LISTED, PreviewReport
from whisper_tui.model.state import CallRecord, Ended, Queued, Running, Starting, Waiting
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.supervisor.agent_messages import draft_applied_message, draft_dropped_message, draft_message
from whisper_tui.supervisor.approvals.approval_queue import ApprovalQueue
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.supervisor.runs.held_back import drop_caches
from whisper_tui.supervisor.runs.kept_changes import BackgroundTasks, KeptChanges, named_paths
from whisper_tui.supervisor.runs.open_drafts import OpenDrafts
from whisper_tui.supervisor.runs.preview_changes import PreviewStore
from whisper_tui.supervisor.runs.preview_probe import PreviewProbe
from whisper_tui.supervisor.sessions import Environments, Sessions
from whisper_tui.system import run_files
from whisper_tui.system.host_files import home_of_user

TURN_S = 3.0
"""Seconds for which a human waits for a command that runs in the draft."""
_PENDING = "applying.json"
"""The file in a draft that names the call which makes it real, or a part of it."""
_SHOWN = "shown"
"""The directory in a draft with the plan that was shown last."""
_NOT_OURS = "its agent runs commands or edits files itself, outside of the view, and would find another tree"
_NO_PROGRAM = "draft"
"""The program of a call that only makes a preview real: there is none of this name to be started."""


class DraftSessions:
    """Begins, shows, applies and drops drafts."""

    def __init__(
        self,
        *,
        store: Store,
        open_drafts: OpenDrafts,
        changes: KeptChanges,
        queue: ApprovalQueue,
        sessions: Sessions,
        environments: Environments,
        probe: PreviewProbe,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._drafts = open_drafts
        self._changes = changes
        self._queue = queue
        self._sessions = sessions
        self._environments = environments
        self._probe = probe
        self._clock = clock
        self._tasks = BackgroundTasks()

    def listed(self) -> tuple[SessionDraft, ...]:
        """Return all drafts, the oldest first."""
        found = [self._drafts.about(session_id) for session_id in self._drafts.all]
        return tuple(sorted(found, key=lambda draft: draft.started_at))

    def named(self, word: str) -> str:
        """Return the session of a draft, by its id, its name or its workspace. "": the only draft. Raises `Refused`."""
        found = [each for each in self._drafts.all.values() if word in ("", each.session_id, each.name, each.root)]
        if not found:
            what = f"there is no draft of {word!r}" if word else "there is no draft"
            raise Refused(what, hint="whisper-tui draft start begins one, and whisper-tui draft list shows all")
        return _only([(each.session_id, each.name) for each in found], "drafts")

    def _living(self, word: str) -> str:
        """Return an open session by its id, its name or its workspace. Raises `Refused`."""
        board = self._store.board
        found = [each for each in board.sessions.values() if each.closed_at is None]
        found = [each for each in found if word in (each.id, each.name) or os.path.realpath(each.root) == word]
        if word not in board.sessions and not found:
            raise Refused(f"there is no open session {word!r}", hint="Its agent opens one when it connects")
        return word if word in board.sessions else _only([(each.id, each.name) for each in found], "open sessions")

    async def start(self, session_id: str, by: Decider) -> SessionDraft:
        """Have all commands of a session run in a draft from now on, and tell its agent. Raises `Refused`."""
        session_id = self._living(session_id)
        self._startable(session_id)
        support = await self._probe.found()
        session = self._startable(session_id)
        if support.ways[:1] != ("overlay",) or support.memory:
            why = "; ".join(support.reasons) or "changes are held in memory here"
            hint = "docs/drafts.md says what a draft needs, and whisper-tui doctor what is missing"
            raise Refused(f"there are no drafts here: they need namespaces and overlayfs: {why}", hint=hint)
        draft = SessionDraft(
            session_id=session_id, name=session.name, root=session.root, started_at=self._clock(), by=by
        )
        try:
            self._drafts.begin(draft)
        except OSError as error:
            raise Refused(f"the draft cannot be made: {error.strerror}", hint="Make room on the disk") from None
        self._sessions.tell(session_id, draft_message(), by)
        self._judge_again(session_id)
        return self._drafts.about(session_id)

    def _startable(self, session_id: str) -> Session:
        session = self._sessions.living(session_id)
        if self._drafts.has(session_id):
            raise Refused(f"session {session_id} has a draft already", hint="whisper-tui draft show prints its changes")
        if session.place or session.relayed:
            raise Refused(f"session {session_id} is at a place, and drafts are on this machine only")
        if not session.root or session.root == "/":
            raise Refused(f"session {session_id} has no workspace", hint="Start its agent in a project")
        # Whoever connects anew for every call is a hook, or an environment of which files are asked for.
        if session.key is not None or any(_runs_itself(record) for record in self._calls(session_id)):
            hint = "Connect its agent over MCP, or use the Python library: docs/drafts.md says which agents can"
            raise Refused(f"session {session_id} can have no draft: {_NOT_OURS}", hint=hint)
        for record in self._calls(session_id):
            if record.is_open and not (isinstance(record.state, Waiting) and record.preview is None):
                raise Refused(
                    f"call {record.id} of session {session_id} is not over", hint="Decide about it, or wait for its end"
                )
        return session

    def _calls(self, session_id: str) -> Iterator[CallRecord]:
        """Yield the calls of a session that the board knows."""
        board = self._store.board
        for call_id in (*board.open_in.get(session_id, ()), *board.settled):
            record = board.calls.get(call_id)
            if record is not None and record.call.session_id == session_id:
                yield record

    def _judge_again(self, session_id: str) -> None:
        """Judge what waits anew, since it now runs elsewhere."""
        board = self._store.board

        def judge(call_id: str) -> None:
            record = board.calls.get(call_id)
            if record is not None and isinstance(record.state, Waiting) and record.preview is None:
                self._queue.record_judged(record.call, self._queue.judge.judge(record.call, record.call.spec))

        self._store.retry_each_until_journaled(judge, board.waiting_in(session_id))

    @contextmanager
    def _quiet(self, session_id: str) -> Iterator[DraftChanges]:
        """Keep commands from the files of a draft, in a thread. Raises `Refused` if one still is on them."""
        lock = os.open(self._drafts.path(session_id), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            until = time.monotonic() + TURN_S
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise Refused("a command still runs in the draft", hint="Wait for its end") from None
                    time.sleep(0.01)
            yield self._drafts.changes(session_id)
        except (OSError, ValueError, PreviewTooLarge) as error:
            raise Refused(f"the changes of the draft cannot be read: {error}", hint="Nothing was changed") from error
        finally:
            os.close(lock)

    async def _last_turn(self, session_id: str) -> asyncio.Lock:
        """Take the turn as `_turn` does, unless a command is still to run in the draft. Raises `Refused`."""
        turn = await self._turn(session_id)
        for record in self._calls(session_id):
            if record.in_draft and (record.is_held_back or isinstance(record.state, Queued | Starting | Running)):
                turn.release()
                raise Refused(f"call {record.id} is about to run in the draft", hint="Wait for its end, or deny it")
        return turn

    async def _turn(self, session_id: str) -> asyncio.Lock:
        """Take the turn on the files of a draft. Raises `Refused` if a command is on them for long."""
        self._drafts.about(session_id)
        turn = self._drafts.turn(session_id)
        try:
            async with asyncio.timeout(TURN_S):
                await turn.acquire()
        except TimeoutError:
            running = self._drafts.running(session_id)
            what = f"call {running}" if running else "a command"
            raise Refused(f"{what} runs in the draft now", hint="Wait for its end, or end it") from None
        try:
            if (running := self._drafts.running(session_id)) is not None:
                raise Refused(f"call {running} runs in the draft now", hint="Wait for its end, or end it")
            self._drafts.about(session_id)
        except BaseException:
            turn.release()
            raise
        return turn

    async def page(self, session_id: str, after: int = 0, limit: int = 1000) -> DraftPage:
        """Return changes of a draft from a number on, as they would be applied now."""
        session_id = self.named(session_id)
        turn = await self._turn(session_id)
        try:
            return await asyncio.to_thread(self._page, self._drafts.about(session_id), after, limit)
        finally:
            turn.release()

    def _page(self, draft: SessionDraft, after: int, limit: int) -> DraftPage:
        with self._quiet(draft.session_id) as changes:
            store, plan = self._shown(draft, changes)
            page = store.page(os.path.realpath(draft.root), after, limit)
            rows = store.rows[after : after + limit]
            found = tuple(
                DraftChange(
                    change=change,
                    calls=_ids(changes.calls_of([row.path])),
                    only_time=is_only_time(plan.changes[row.change]),
                )
                for change, row in zip(page.changes, rows, strict=True)
            )
            conflicts = tuple(map(printable, plan.meanwhile[:MOST_LISTED]))
            return DraftPage(draft=draft, changes=found, total=page.total, counts=page.counts, conflicts=conflicts)

    def _shown(self, draft: SessionDraft, changes: DraftChanges) -> tuple[PreviewStore, Plan]:
        """Write what a draft would change now where it is shown from."""
        directory = f"{changes.directory}/{_SHOWN}"
        remove_tree(directory)
        Path(directory).mkdir(0o700)
        draft_changes.save(directory, plan := changes.plan())
        self._drop_caches(directory, plan, draft)
        store = self._changes.store_in(directory)
        return store, store.plan

    def _drop_caches(self, directory: str, plan: Plan, draft: SessionDraft) -> None:
        home = self._environments.of(draft.session_id).get("HOME") or home_of_user()
        drop_caches(directory, plan, {os.path.realpath(home), home_of_user()}, os.path.realpath(draft.root))

    async def versions(self, session_id: str, number: int) -> FileVersions:
        """Return the content of a file before the draft and in it, by the number of its change in the last page."""
        session_id = self.named(session_id)
        turn = await self._turn(session_id)
        try:
            draft = self._drafts.about(session_id)
            store = self._changes.store_in(f"{self._drafts.path(session_id)}/{_SHOWN}")
            if not store.exists:
                raise Refused("the draft was not shown yet", hint="whisper-tui draft show prints its changes")
            return await asyncio.to_thread(store.versions, os.path.realpath(draft.root), number)
        finally:
            turn.release()

    async def apply(self, order: DraftApply, by: Decider) -> DraftApplied:
        """Make a draft real, or a part of it, and tell its agent. Raises `Refused`; then nothing was changed."""
        order = order.model_copy(update={"session_id": self.named(order.session_id)})
        turn = await self._last_turn(order.session_id)
        try:
            return await self._apply(order, by)
        finally:
            turn.release()

    async def _apply(self, order: DraftApply, by: Decider) -> DraftApplied:
        draft = self._drafts.about(order.session_id)
        if order.seen is not None and order.seen != draft.version:
            raise Refused("the draft has changed since it was shown", hint="Look at it again")
        if order.dry_run:
            return await asyncio.to_thread(self._foretold, draft, order)
        staging = f"{self._drafts.path(draft.session_id)}/applying"
        plan, applied = await asyncio.to_thread(self._staged, draft, order, staging)
        if not plan.changes:
            await asyncio.to_thread(remove_tree, staging)
            if _is_all(order):
                await self._end(draft, draft_applied_message(over=True), by)
            return applied.model_copy(update={"over": _is_all(order)})
        record = self._submitted(draft, order, plan, staging, by)
        ended = await self._ended(draft, record.id, by, is_all=_is_all(order))
        if not ended:
            record = self._store.call(record.id)
            why = record.discarded or (record.verdict.reason if record.verdict is not None else "its call was ended")
            raise Refused(f"the draft was not applied: {why}", hint="whisper-tui draft show names conflicts")
        return applied.model_copy(update={"call_id": record.id, "over": _is_all(order)})

    async def _ended(self, draft: SessionDraft, call_id: str, by: Decider, *, is_all: bool) -> bool:
        """Wait until a call has made changes of a draft real, and take note of that. False: nothing was changed."""
        # A call that waits again wakes nobody who waits for it alone.
        while not isinstance((record := self._store.call(call_id)).state, Ended | Waiting):
            await self._store.news()
        await self._store.flushed()
        if isinstance(record.state, Waiting):
            # Somebody has changed a file in the last moment, or the supervisor was killed: nothing was done.
            self._queue.withdraw(record, "nothing of the draft was applied")
        is_real = isinstance(record.state, Ended) and isinstance(record.state.ending, Exited) and not record.discarded
        if is_real and is_all:
            await self._end(draft, draft_applied_message(over=True), by)
        elif is_real:
            store = self._changes.directory(RunKey(call_id, 1))
            await asyncio.to_thread(self._drafts.changes(draft.session_id).applied, store)
            self._sessions.tell(draft.session_id, draft_applied_message(over=False), by)
        run_files.remove(f"{self._drafts.path(draft.session_id)}/{_PENDING}")
        return is_real

    def open(self) -> None:
        """Take note of what was applied while the last supervisor was killed."""
        for draft in tuple(self._drafts.all.values()):
            with suppress(OSError, ValueError):
                noted = run_files.read_json(f"{self._drafts.path(draft.session_id)}/{_PENDING}")
                self._tasks.start(self._go_on(draft, noted["call"], is_all=noted["all"]))

    async def close(self) -> None:
        """Stop. The next supervisor takes note of what is just applied."""
        await self._tasks.close()

    async def _go_on(self, draft: SessionDraft, call_id: str, *, is_all: bool) -> None:
        async with self._drafts.turn(draft.session_id):
            try:
                by = self._store.call(call_id).decided_by or draft.by
            except WhisperError:
                # It was never journaled.
                run_files.remove(f"{self._drafts.path(draft.session_id)}/{_PENDING}")
                return
            await self._ended(draft, call_id, by, is_all=is_all)

    def _foretold(self, draft: SessionDraft, order: DraftApply) -> DraftApplied:
        """Return what an order would do. Raises `Refused` as it would."""
        with self._quiet(draft.session_id) as changes:
            _, plan = self._shown(draft, changes)
            return _applied(changes, changes.part(plan, _wanted(changes, plan, order)))

    def _staged(self, draft: SessionDraft, order: DraftApply, staging: str) -> tuple[Plan, DraftApplied]:
        """Copy what is to be applied. Raises `Refused` if somebody else has changed any of it since."""
        remove_tree(staging)
        with self._quiet(draft.session_id) as changes:
            try:
                plan = changes.copy(staging, lambda plan: _wanted(changes, plan, order))
                draft_changes.save(staging, plan)
                if not order.paths or order.all_but:
                    self._drop_caches(staging, plan, draft)
                plan = load_plan(staging)
                return plan, _applied(changes, plan)
            except BaseException:
                remove_tree(staging)
                raise

    def _submitted(self, draft: SessionDraft, order: DraftApply, plan: Plan, staging: str, by: Decider) -> CallRecord:
        """Journal the call that makes a plan real, with its preview and the human's yes, in one write."""
        number, now = self._store.journal.last_call + 1, self._clock()
        words = ("apply", *(("--but",) if order.all_but else ()), *order.paths, *order.calls)
        call = ToolCall(
            id=str(number),
            submitted_at=now,
            session_id=draft.session_id,
            tool="draft",
            arguments={},
            spec=CommandSpec(command=Argv(program=_NO_PROGRAM, args=words[:MOST_LISTED]), cwd=draft.root),
            description="What the commands of this session have changed in its draft becomes real.",
        )
        # Its session may be long over.
        self._store.bring_back(draft.session_id)
        key = RunKey(call.id, 1)
        store = self._changes.directory(key)
        attempt = str(Path(store).parent)
        remove_tree(attempt)
        try:
            Path(attempt).mkdir(0o700)
            Path(staging).rename(store)
            # Where the contents are is only known now.
            save_plan(store, draft_changes.moved(plan, staging, store))
            _write_end(attempt)
            shown = self._changes.store_in(store)
            workspace = os.path.realpath(draft.root)
            report = PreviewReport(ending=Exited(code=0), digest=shown.digest(), counts=shown.counts(workspace))
            resolved = self._queue.judge.judge(call, call.spec).resolved
            verdict = Verdict(kind="ask", reason="a human has asked for it")
            pending = f"{self._drafts.path(draft.session_id)}/{_PENDING}"
            run_files.write_whole(pending, json.dumps({"call": call.id, "all": _is_all(order)}).encode(), durable=True)
            self._store.record_and_flush(
                Submitted(at=now, call=call),
                Judged(at=now, call_id=call.id, verdict=verdict, resolved=resolved or Resolved()),
                PreviewStarted(at=now, call_id=call.id, attempt=1, by=by),
                PreviewEnded(at=now, call_id=call.id, attempt=1, report=report),
                Decided(at=now, call_id=call.id, decision=Approve(preview=report.digest), by=by),
            )
        except OSError as error:
            remove_tree(attempt)
            raise Refused(f"nothing was applied: {error.strerror}", hint="Make room on the disk") from error
        except WhisperError:
            remove_tree(attempt)
            raise
        self._store.journal.last_call = number
        return self._store.call(call.id)

    async def drop(self, session_id: str, by: Decider) -> None:
        """Discard a draft with all that it has changed, and tell its agent."""
        session_id = self.named(session_id)
        turn = await self._last_turn(session_id)
        try:
            await self._end(self._drafts.about(session_id), draft_dropped_message(), by)
        finally:
            turn.release()

    async def _end(self, draft: SessionDraft, said: str, by: Decider) -> None:
        remove = self._drafts.end(draft.session_id)
        self._sessions.tell(draft.session_id, said, by)
        self._judge_again(draft.session_id)
        await asyncio.to_thread(remove)


def _only(found: Sequence[tuple[str, str]], what: str) -> str:
    """Return the id of the only one of these sessions. Raises `Refused`."""
    if len(found) > 1:
        names = ", ".join(f"{session_id} ({name})" for session_id, name in found)
        raise Refused(f"there are several {what}: {names}", hint="Name one by its id: --session s3")
    return found[0][0]


def _is_all(order: DraftApply) -> bool:
    return not order.paths and not order.calls


def _applied(changes: DraftChanges, plan: Plan) -> DraftApplied:
    """Return what a plan would apply. Raises `Refused` if somebody else has changed any of it since."""
    if plan.meanwhile:
        raise Refused(
            f"nothing was applied: {named_paths(plan.meanwhile)} changed in the real files since",
            hint="whisper-tui draft apply --but PATH… applies the others",
        )
    calls = changes.calls_of(path for change in plan.changes for path in change.paths)
    paths = tuple(printable(path) for change in plan.changes for path in change.paths)
    return DraftApplied(calls=_ids(calls), paths=paths[:MOST_LISTED], total=len(plan.changes))


def _wanted(changes: DraftChanges, plan: Plan, order: DraftApply) -> set[int]:
    """Return the numbers of the changes that an order means. Raises `Refused` if one of its paths is none of them."""
    if missing := [path for path in order.paths if not at_paths(plan, [path], linked=order.all_but)]:
        raise Refused(f"{missing[0]} is not among the changes of the draft", hint="whisper-tui draft show lists them")
    if order.calls:
        names = {name for change in plan.changes for name in changes.calls_of(change.paths)}
        return with_belonging(
            plan, changes.changes_of(plan, (name for name in names if name.partition(".")[0] in order.calls))
        )
    every = set(range(len(plan.changes)))
    if not order.paths:
        return every
    if order.all_but:
        # What belongs to something that stays, stays as well.
        return every - with_belonging(plan, at_paths(plan, order.paths, linked=True))
    return with_belonging(plan, at_paths(plan, order.paths))


def _ids(names: Collection[str]) -> tuple[str, ...]:
    """Return the ids of calls, by the names of their attempts."""
    return tuple(dict.fromkeys(name.partition(".")[0] for name in names))


def _runs_itself(record: CallRecord) -> bool:
    """True if the agent of a call runs commands or edits files itself."""
    return record.call.ticket is not None or record.call.by_agent or record.call.spec.command.kind == "edits"


def _write_end(attempt: str) -> None:
    """Write the files of an attempt that has ended well, and said nothing: no process was started."""
    ended: Mapping[str, object] = {"code": 0, "timed_out": None, "out": 0, "err": 0}
    for name, content in ((run_files.OUT, b""), (run_files.ERR, b""), (run_files.EXIT, json.dumps(ended).encode())):
        run_files.write_whole(f"{attempt}/{name}", content)
    run_files.claim(attempt, run_files.RUN)
    Path(attempt, run_files.DONE).touch(0o600)
