"""The worker pool: it starts runs, and records the facts that keepers report about them."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from whisper_tui.model.board import Board, advance
from whisper_tui.model.call import CarriedOut, CommandSpec, ToolCall
from whisper_tui.model.ending import FailedToStart, Lost
from whisper_tui.model.errors import JournalFailed, NotRunning, Refused, Unavailable
from whisper_tui.model.event import (
    ORDER,
    AttemptRefused,
    BackgroundSeen,
    Event,
    Finished,
    Judged,
    Settled,
    Spawned,
    Started,
)
from whisper_tui.model.secrets import masked
from whisper_tui.model.state import CallRecord, Ended, Queued, Running, Starting, Waiting
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.supervisor.approvals.judge import Judge
from whisper_tui.supervisor.approvals.placed_calls import PlacedCalls
from whisper_tui.supervisor.journal.store import RETRY_S, Store
from whisper_tui.supervisor.runs.attempt_ways import (
    NOTHING_KEPT,
    ApplyPreview,
    AskAgain,
    AttemptWay,
    AttemptWays,
    InDraft,
    InView,
    IsOver,
    PlainWay,
    PreImages,
    RunPlainly,
    keeps_of,
)
from whisper_tui.supervisor.runs.executor import (
    Executor,
    HasBackground,
    HasEnded,
    HasForeignOrders,
    HasSettled,
    HasSpawned,
    NeverRan,
    Report,
    RunKey,
)
from whisper_tui.supervisor.runs.previews import Previews
from whisper_tui.supervisor.runs.scheduling import RECHECK_S, MemoryGauge, StartQueue, Workers
from whisper_tui.supervisor.runs.start_order import StartOrders

ReportedFact = Spawned | BackgroundSeen | Finished | Settled
"""A fact that a keeper has reported about a run."""


def facts_from_reports(
    reports: Sequence[Report], calls: Mapping[str, CallRecord], at: float, over: Mapping[str, IsOver] = NOTHING_KEPT
) -> tuple[ReportedFact, ...]:
    """Return the new facts about runs of these calls, in order. `over`: of those that kept something, by call."""
    news: list[ReportedFact] = []
    ahead: dict[str, CallRecord] = {}
    for report in reports:
        call_id = report.key.call_id
        # The records only change after all facts of one batch are journaled together, so each report is compared with
        # the record as the reports before it change it.
        record = ahead.get(call_id) or calls.get(call_id)
        if record is None or record.attempt != report.key.attempt:
            continue
        if (fact := _fact_from_report(record, report, at, over.get(call_id, IsOver()))) is not None:
            news.append(fact)
            ahead[call_id] = advance(record, fact)
    return tuple(news)


def refused_orders(reports: Sequence[Report], known: Iterable[AttemptRefused]) -> tuple[AttemptRefused, ...]:
    """Return the attempts to send a keeper orders without the supervisor that are not `known` yet."""
    news: list[AttemptRefused] = []
    for report in reports:
        if not isinstance(report, HasForeignOrders):
            continue
        call_id = report.key.call_id
        earlier = [event for event in (*known, *news) if (event.operation, event.about) == (ORDER, call_id)]
        # After a restart the files of a run report the same attempts again. Their time tells them from new ones.
        if any(event.at >= report.at for event in earlier):
            continue
        told = sum(1 + event.left_out for event in earlier)
        news.append(
            AttemptRefused(
                at=report.at,
                operation=ORDER,
                about=call_id,
                why=f"the order does not have the supervisor's key: {masked(report.line)}",
                pid=0,
                program="",
                left_out=max(0, report.count - told - 1),
            )
        )
    return tuple(news)


def _fact_from_report(record: CallRecord, report: Report, at: float, over: IsOver) -> ReportedFact | None:
    """Return the fact in one report. None: the record has it already, or its state contradicts it."""
    state = record.state
    match report:
        case HasSpawned(process=process) if isinstance(state, Starting):
            return Spawned(at=at, call_id=record.id, attempt=report.key.attempt, process=process)
        case HasBackground(processes=processes) if record.background != processes:
            return BackgroundSeen(at=at, call_id=record.id, processes=processes)
        case HasEnded() if isinstance(state, Starting | Running):
            return Finished(
                at=at,
                call_id=record.id,
                ending=report.ending,
                output=report.output,
                usage=report.usage,
                blocked=report.blocked,
                **over._asdict(),
            )
        case HasSettled(digest=digest) if isinstance(state, Ended) and not state.settled:
            return Settled(at=at, call_id=record.id, digest=digest)
        case _:
            return None


_log = logging.getLogger(__name__)


class _JournaledStarts:
    """The calls whose start is journaled but not yet ordered from the executor, oldest first."""

    def __init__(self) -> None:
        self._starts: deque[tuple[str, asyncio.Event | None]] = deque()

    def add(self, call_id: str, flush: asyncio.Event | None) -> None:
        """Add a call. `flush`: set once its start is flushed; None: it is."""
        self._starts.append((call_id, flush))

    def put_back(self, call_id: str) -> None:
        """Put back a call that was taken."""
        self._starts.appendleft((call_id, None))

    async def take(self) -> str | None:
        """Remove and return the oldest call, once its start is flushed (decision 1). None: there is none."""
        while self._starts:
            call_id, flush = self._starts[0]
            if flush is None or flush.is_set():
                self._starts.popleft()
                return call_id
            # Several wait here, and one of them takes it.
            await flush.wait()
        return None


@dataclass
class _Run:
    """A run from its journaled start to its recorded end."""

    key: RunKey
    way: AttemptWay
    starting: asyncio.Task[None] | None = None
    """Keeps files before the command starts."""
    settled: list[HasSettled] | None = None
    """The facts that follow its end, while its changes become real. None: it has not ended."""


def _has_gone_on(board: Board, record: CallRecord) -> bool:
    """True if a call is in another attempt or state than in this record of it."""
    now = board.calls.get(record.id)
    return now is None or (now.attempt, type(now.state)) != (record.attempt, type(record.state))


class Pool:
    """Starts commands while nothing keeps them, and records their progress and endings."""

    def __init__(
        self,
        *,
        store: Store,
        executor: Executor,
        judge: Judge,
        placed: PlacedCalls,
        orders: StartOrders,
        clock: Callable[[], float],
        previews: Previews,
        ways: AttemptWays,
        requeue: Callable[[CallRecord, Judged], None],
        problem_at: Callable[[str], str | None],
        owner_of: Callable[[str], str],
        fail: Callable[[], None],
    ) -> None:
        """`fail` stops the supervisor, so that the next one recovers the runs. `problem_at`: why no place starts it.

        `owner_of`: the owner of a session.
        """
        self._store, self._executor = store, executor
        self._judge, self.placed, self._clock = judge, placed, clock
        self._orders, self.previews, self._ways = orders, previews, ways
        self._requeue_for_approval, self._fail = requeue, fail
        self.workers = Workers(
            store.board,
            orders.workers,
            MemoryGauge(orders.min_memory_bytes),
            clock,
            owner_of=owner_of,
            most_at=judge.placement.most_at,
        )
        self._queue = StartQueue(
            store.board,
            self.workers,
            is_open=lambda: self._starting,
            problem_at=problem_at,
            is_ready=placed.is_ready,
            owner_of=owner_of,
        )
        self.queue_reasons = self._queue.reasons
        self._undispatched = _JournaledStarts()
        self._wake = asyncio.Event()
        placed.when_ready = self._wake.set
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = True
        self._runs: dict[str, _Run] = {}
        """The runs whose end is not recorded yet, by call."""
        self._postponed: list[tuple[RunKey, str]] = []
        """Attempts to be replaced after the pause, and why the next ones keep nothing."""
        self._doubted = set[str]()
        """Ids of the calls that were running when the last supervisor was killed."""

    async def open(self) -> None:
        """Recover the runs that an earlier supervisor started, and begin to start queued calls."""
        board = self._store.board
        # Whoever can kill the supervisor may also have written to the journal. So after an unclean end an approval is
        # judged again before its command is restarted (decision 11).
        if not self._store.journal.ended_cleanly:
            self._doubted = set(board.running)
        for call_id in board.queued:
            if board.calls[call_id].function is None:
                self._queue.add(board.calls[call_id])
        self._keep(asyncio.create_task(self._take_reports()))
        for call_id in (*board.running, *board.unsettled):
            record = board.calls[call_id]
            if record.function is not None:
                continue
            if call_id in board.running:
                self.workers.take(record)
                self._follow(record)
            if isinstance(record.state, Starting) and record.applies:
                await self._dispatch(record)
            else:
                await self._executor.attach(RunKey(call_id, record.attempt or 1))
        await self.previews.open()
        self._wake.set()
        self._keep(asyncio.create_task(self._work()))

    async def close(self) -> None:
        """Stop starting and recording. Running commands continue."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def try_start_now(self, call: ToolCall) -> Started | None:
        """Return the start of a call that a rule has just allowed. None: it has to be queued.

        It is journaled with the submission. That saves a wait for the disk and a second judgement, because nothing
        can have changed since the first (decision 1).
        """
        if call.ticket is not None or isinstance(call.spec.command, CarriedOut):
            return None
        if not self._queue.has_room(call.session_id, call.spec.place):
            return None
        board = self._store.board
        # A call must not overtake calls that are already queued.
        if any(board.calls[call_id].function is None for call_id in board.queued):
            return None
        return self._started(call.id, call.spec, attempt=1)

    def on_moved(self, call_id: str) -> None:
        """Queue a command that was judged, decided or claimed. If it is asked about again, free its worker."""
        record = self._store.board.calls.get(call_id)
        if record is not None and isinstance(record.state, Queued) and record.function is None:
            self._queue.add(record)
            self._wake.set()
        elif record is not None and isinstance(record.state, Waiting):
            self._runs.pop(record.id, None)
            self.workers.free(record.id)
            self._wake.set()

    def on_started(self, call_id: str) -> None:
        """Give a worker to a command whose start is journaled. The executor has not started it yet."""
        record = self._store.board.calls[call_id]
        if record.function is None:
            self.workers.take(record)
            self._follow(record)
            self._undispatched.add(call_id, self._store.pending_flush)

    def on_over(self, call_id: str) -> None:
        """Free the worker of a command that ended."""
        self._runs.pop(call_id, None)
        self.workers.free(call_id)
        if len(self._queue):
            self._wake.set()

    def on_resumed(self) -> None:
        """Start the postponed commands after a pause."""
        postponed, self._postponed = self._postponed, []
        for key, unkept in postponed:
            self._keep(asyncio.create_task(self._start_anew(self._store.call(key.call_id), unkept)))
        self._wake.set()

    async def _work(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RECHECK_S if len(self._queue) else None):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self.dispatch_started()
                await self._fill()
            except JournalFailed:
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    async def _fill(self) -> None:
        """Start all calls for which there is a worker, in one write, so that they share one wait for the disk."""
        ready = self._queue.take_ready()
        try:
            await self._launch(ready)
        except JournalFailed:
            for record in ready:
                self.workers.free(record.id)
                self._queue.add(record)
            raise

    async def start_anyway(self, record: CallRecord) -> None:
        """Start a queued call whatever the limits say. Raises `Refused`."""
        if not isinstance(record.state, Queued) or record.function is not None:
            raise Refused(f"call {record.id} is not queued for a worker", hint="whisper-tui list shows the calls")
        if closed := self._queue.closed():
            raise Refused(f"call {record.id} cannot start: {closed}", hint="whisper-tui resume ends a pause")
        await self.placed.look(record)
        await self._launch((record,))
        if isinstance(self._store.call(record.id).state, Waiting):
            raise Refused(f"call {record.id} waits for a decision again", hint=f"whisper-tui show {record.id} says why")

    async def _launch(self, records: Sequence[CallRecord]) -> None:
        """Start these calls, except those whose second judgement differs from the first."""
        unchanged = []
        for record in records:
            # Files may have been replaced while the call waited for its approval and for a worker (decision 11).
            again = self._judge.judge_again(record, self.placed.examined(record))
            if again is None:
                unchanged.append(record)
            else:
                self._requeue_for_approval(record, again)
        await self._start(unchanged)

    async def _start(self, records: Sequence[CallRecord], *, unkept: str = "") -> None:
        """Journal the starts, flushed to the disk, and only then order them (decision 1).

        `unkept`: why nothing is kept of them, although an earlier attempt was to keep it.
        """
        if not records:
            return
        self._store.record_and_flush(*(self._next_start(record, unkept) for record in records))
        for record in records if unkept else ():
            self._follow(self._store.board.calls[record.id], PlainWay(unkept))
            self._keep(asyncio.create_task(self._ways.discard(record)))
        await self.dispatch_started()

    def _follow(self, record: CallRecord, way: AttemptWay | None = None) -> None:
        """Remember a run until its end is recorded."""
        self._runs[record.id] = _Run(RunKey(record.id, record.attempt or 1), way or self._ways.of(record))

    async def dispatch_started(self) -> None:
        """Order all journaled starts from the executor, once they are flushed. Whoever journals a start calls this."""
        while (call_id := await self._undispatched.take()) is not None:
            try:
                await self._dispatch(self._store.board.record(call_id))
            except BaseException:
                # The calling request may be cancelled at any await, but its start is journaled. The pool's own
                # task orders it then.
                self._undispatched.put_back(call_id)
                self._wake.set()
                raise

    async def _dispatch(self, record: CallRecord) -> None:
        if (run := self._runs.get(record.id)) is None:
            return  # Its order was repeated, and it is over.
        if isinstance(run.way, PreImages | ApplyPreview | InDraft):
            # Files are kept or moved for seconds, perhaps, and other starts wait behind this one.
            run.starting = asyncio.create_task(self._begin(run, record))
            self._keep(run.starting)
        else:
            await self._begin(run, record)

    async def _begin(self, run: _Run, record: CallRecord) -> None:
        """Start a run in its way."""
        if (again := await run.way.start(lambda: self._order(record))) is not None:
            self._ask_again(record, again)

    async def _order(self, record: CallRecord) -> None:
        """Order a start from the executor."""
        try:
            if record.in_draft:
                order = await asyncio.to_thread(self._orders.of_draft, record)
            else:
                order = self._orders.of(record)
            await self._executor.start(order)
        except (Refused, Unavailable) as error:
            ending = FailedToStart(problem="other", subject=record.spec.command.words()[0], message=error.sentence())
            await self._record(
                Finished(at=self._clock(), call_id=record.id, ending=ending),
                Settled(at=self._clock(), call_id=record.id),
            )

    def _next_start(self, record: CallRecord, unkept: str) -> Started:
        if not record.applies or record.preview is None:
            started = self._started(record.id, record.spec, record.attempts + 1)
            return started if unkept else started.model_copy(update={"keeps": keeps_of(record)})
        # Nothing runs again: the attempt is the preview itself, whose output and end become those of the call.
        started = self._started(record.id, record.spec, record.preview.attempt)
        return started.model_copy(update={"applies": True})

    def _started(self, call_id: str, spec: CommandSpec, attempt: int) -> Started:
        return Started(at=self._clock(), call_id=call_id, attempt=attempt, spec=spec, limits=self._orders.limits)

    async def _take_reports(self) -> None:
        async for reported in self._executor.reports():
            reports = [report for report in self.previews.take(reported) if not self._is_of_end(report)]
            await self._record_reported(reports)
            for report in reports:
                record = self._store.board.calls.get(report.key.call_id)
                if isinstance(report, NeverRan) and record is not None and record.attempt == report.key.attempt:
                    anew = asyncio.create_task(self._start_anew(record))
                    self._keep(anew)
                    # Reports of other runs must not wait for a place that answers late.
                    if not record.spec.place:
                        await anew

    def _is_of_end(self, report: Report) -> bool:
        """Take the end of a run whose way has work to do before it is recorded, and what follows it."""
        run = self._runs.get(report.key.call_id)
        if run is None or run.key != report.key or run.way == PlainWay():
            return False
        if isinstance(report, HasEnded) and run.settled is None:
            run.settled = []
            self._keep(asyncio.create_task(self._end_in_its_way(run, report)))
        elif isinstance(report, HasSettled) and run.settled is not None:
            run.settled.append(report)
        return isinstance(report, HasEnded | HasSettled)

    async def _end_in_its_way(self, run: _Run, ended: HasEnded) -> None:
        """Record the end of a run once its changes are real. Until then, others are reported."""
        outcome = await run.way.settle(ended)
        record = self._store.board.calls.get(run.key.call_id)
        if record is None or self._runs.get(record.id) is not run:
            return
        match outcome:
            case IsOver():
                await self._record_reported((ended, *(run.settled or ())), {record.id: outcome})
            case RunPlainly(why=why):
                await self._start_anew(record, why)
            case AskAgain():
                self._ask_again(record, outcome)
                if isinstance(run.way, InView):
                    await self._ways.discard(record)

    def _ask_again(self, record: CallRecord, again: AskAgain) -> None:
        """Put a call back into the queue."""
        before = record.verdict or Verdict(kind="ask", reason=again.reason)
        update = {"kind": "ask", "reason": again.reason} | ({"undo": again.undo} if again.undo is not None else {})
        judged = Judged(
            at=self._clock(),
            call_id=record.id,
            verdict=before.model_copy(update=update),
            resolved=record.resolved or Resolved(cwd=record.spec.cwd),
        )
        self._store.retry_until_journaled(lambda: self._requeue_for_approval(record, judged))

    async def _record_reported(self, reports: Sequence[Report], over: Mapping[str, IsOver] = NOTHING_KEPT) -> None:
        """Record the new facts in these reports."""
        board = self._store.board
        news: list[Event] = [
            *facts_from_reports(reports, board.calls, self._clock(), over),
            *refused_orders(reports, board.refused),
        ]
        if news:
            await self._record(*news)

    async def _start_anew(self, record: CallRecord, unkept: str = "") -> None:
        """Replace an attempt that provably never ran by the next attempt.

        `unkept`: it ran in a view, has changed nothing, and the next one keeps nothing for this reason.
        """
        if not isinstance(record.state, Starting) and not unkept:
            ending = Lost(why="according to the journal it ran, but its files say that it never did")
            await self._record(
                Finished(at=self._clock(), call_id=record.id, ending=ending),
                Settled(at=self._clock(), call_id=record.id),
            )
            return
        if self._store.board.paused is not None:
            self._postponed.append((RunKey(record.id, record.attempt or 1), unkept))
            return
        while True:
            try:
                again = await self.placed.judge_before_restart(record, doubted=record.id in self._doubted)
                if _has_gone_on(self._store.board, record):
                    return
                if again is None:
                    await self._start((record,), unkept=unkept)
                else:
                    self._requeue_for_approval(record, again)
                    self._doubted.discard(record.id)
            except JournalFailed:
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def _record(self, *facts: Event) -> None:
        """Record facts, and retry until the journal accepts them, because they have already happened (decision 1)."""
        while True:
            try:
                self._store.record(*facts)
            except JournalFailed:
                await asyncio.sleep(RETRY_S)
            else:
                return

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._has_ended)

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        # Without this task nothing would be started or recorded, and nobody would notice (decision 1).
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical("the supervisor stops because a task has failed; running commands continue", exc_info=error)
            self._fail()

    async def end(self, record: CallRecord) -> None:
        """End a run and all processes that it has left behind, if any of them is alive."""
        await self.dispatch_started()
        run = self._runs.get(record.id)
        if run is not None and run.starting is not None and isinstance(run.way, PreImages):
            await asyncio.wait([run.starting])
        try:
            await self._executor.end(RunKey(record.id, record.attempt or 1), record.spec.grace_s)
        except NotRunning:
            return

    async def end_all(self, within_s: float) -> None:
        """Stop starting, end every run, and wait at most `within_s` seconds until all processes are gone."""
        self._starting = False
        board = self._store.board
        await self.previews.end_all()
        for call_id in (*board.running, *board.unsettled):
            if board.calls[call_id].function is None:
                with suppress(Unavailable):
                    await self.end(board.calls[call_id])
        try:
            async with asyncio.timeout(within_s):
                while self.workers or board.unsettled:
                    await self._store.news()
        except TimeoutError:
            return
