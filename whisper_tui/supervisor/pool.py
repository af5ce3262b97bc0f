"""The worker pool: starts what may start, and records what the executor reports about it."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from whisper_tui.model.call import ToolCall
from whisper_tui.model.command import CommandSpec, Function
from whisper_tui.model.ending import FailedToStart, Lost
from whisper_tui.model.errors import JournalFailed, NotRunning, Unavailable
from whisper_tui.model.event import Claimed, Decided, Event, Finished, Judged, Resumed, Settled, Started
from whisper_tui.model.run import Limits
from whisper_tui.model.state import CallRecord, Queued, Starting, Waiting
from whisper_tui.supervisor.environments import Environments
from whisper_tui.supervisor.executor import Executor, NeverRan, RunKey, StartOrder
from whisper_tui.supervisor.fair_queue import FairQueue
from whisper_tui.supervisor.judge import Judge
from whisper_tui.supervisor.ledger import RETRY_S, Ledger
from whisper_tui.supervisor.reported import facts
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.supervisor.start_form import start_order
from whisper_tui.supervisor.workers import LONG_S, Workers, by_human

_log = logging.getLogger(__name__)


class Pool:
    """Starts commands while there are workers for them, taken fairly from the sessions' queues."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        executor: Executor,
        judge: Judge,
        environments: Environments,
        settings: SupervisorSettings,
        limits: Limits,
        clock: Callable[[], float],
        private: tuple[str, ...],
        turn_back: Callable[[CallRecord, Judged], None],
        fail: Callable[[], None],
    ) -> None:
        """`private`: directories that no sandbox opens.

        `fail`: what stops the supervisor, so that the next one takes everything back.
        """
        self._ledger = ledger
        self._executor = executor
        self._judge = judge
        self._environments = environments
        self._settings = settings
        self._limits = limits
        self._private = private
        self._clock = clock
        self._turn_back = turn_back
        self._fail = fail
        self._line = FairQueue()
        self._approved = FairQueue()
        """The calls that a human approved, who do not wait for those in the other line."""
        self.workers = Workers(ledger.board, settings.workers)
        self._unordered: deque[str] = deque()
        """Ids of the calls whose start is journaled, and was not ordered yet."""
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = True
        self._postponed: list[NeverRan] = []
        """Attempts that never ran, to be replaced once everything goes on."""
        self._doubted = set[str]()
        """Ids of the calls that were being started when the last supervisor was killed."""

    async def open(self) -> None:
        """Take back what an earlier supervisor started, and begin to work."""
        board = self._ledger.board
        self._ledger.listen(self._notice)
        if not self._ledger.journal.ended_cleanly:
            self._doubted = set(board.running)
        for call_id in board.queued:
            if board.calls[call_id].function is not None:
                continue
            self._enqueue(board.calls[call_id])
        self._keep(asyncio.create_task(self._take_reports()))
        for call_id in (*board.running, *board.unsettled):
            record = board.calls[call_id]
            if record.function is not None:
                continue
            if call_id in board.running:
                self.workers.take(record)
            await self._executor.attach(RunKey(call_id, record.attempt or 1))
        self._wake.set()
        self._keep(asyncio.create_task(self._work()))

    async def close(self) -> None:
        """Stop starting and recording. What runs goes on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def at_once(self, call: ToolCall) -> Started | None:
        """The fact that a call starts which is allowed in this moment. None: it waits for its turn.

        Recorded together with its submission it needs one wait for the disk, and no second look: nothing has
        happened since the first.
        """
        if call.ticket is not None or isinstance(call.spec.command, Function) or not self._has_room(0, for_human=False):
            return None
        board = self._ledger.board
        if any(board.calls[call_id].function is None for call_id in board.queued):
            return None
        return self._started(call.id, call.spec, attempt=1)

    def _notice(self, event: Event) -> None:
        match event:
            case Decided() | Judged() | Claimed():
                record = self._ledger.board.calls.get(event.call_id)
                if record is not None and isinstance(record.state, Queued) and record.function is None:
                    self._enqueue(record)
                    self._wake.set()
                elif record is not None and isinstance(record.state, Waiting):
                    self.workers.free(record.id)
                    self._wake.set()
            case Started() if self._ledger.board.calls[event.call_id].function is None:
                self.workers.take(self._ledger.board.calls[event.call_id])
                asyncio.get_running_loop().call_later(LONG_S, self._wake.set)
                self._unordered.append(event.call_id)
            case Resumed():
                self._start_postponed()
                self._wake.set()
            case Finished() | Settled():
                self.workers.free(event.call_id)
                self._wake.set()
            case _:
                pass

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.give_orders()
                await self._fill()
            except JournalFailed:
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    async def _fill(self) -> None:
        """Start what may start now, together: one wait for the disk is enough for all of it."""
        board = self._ledger.board
        ready: list[CallRecord] = []
        for line in (self._approved, self._line):
            while self._has_room(len(ready), for_human=line is self._approved):
                call_id = line.take()
                if call_id is None:
                    break
                record = board.calls.get(call_id)
                if record is not None and isinstance(record.state, Queued):
                    ready.append(record)
        try:
            await self._launch(ready)
        except JournalFailed:
            for record in ready:
                self._enqueue(record)
            raise

    def _enqueue(self, record: CallRecord) -> None:
        line = self._approved if by_human(record) else self._line
        line.add(record.call.session_id, record.id)

    def _has_room(self, taken: int, *, for_human: bool) -> bool:
        """Whether one more may start, beside those that do not run yet and are as good as started."""
        may = self._starting and self._ledger.board.paused is None
        return may and self.workers.has_room(taken, for_human=for_human)

    async def _launch(self, records: Sequence[CallRecord]) -> None:
        """Start these, unless a second look keeps one of them from it."""
        unchanged = []
        for record in records:
            again = self._judge.judge_again(record)
            if again is None:
                unchanged.append(record)
            else:
                self._turn_back(record, again)
        await self._start(unchanged)

    async def _start(self, records: Sequence[CallRecord]) -> None:
        """Journal the orders, flushed to the disk, and only then give them."""
        if not records:
            return
        started = (self._started(record.id, record.spec, record.attempts + 1) for record in records)
        self._ledger.record(*started, durable=True)
        await self.give_orders()

    async def give_orders(self) -> None:
        """Have everything started whose start is journaled: whoever has journaled one sees to that.

        Whoever is stopped in the middle of it leaves the rest to the pool.
        """
        while self._unordered:
            call_id = self._unordered.popleft()
            try:
                await self._give_order(self._ledger.board.record(call_id))
            except BaseException:
                self._unordered.appendleft(call_id)
                self._wake.set()
                raise

    async def _give_order(self, record: CallRecord) -> None:
        try:
            await self._executor.start(self._order(record))
        except Unavailable as error:
            ending = FailedToStart(problem="other", subject=record.spec.command.words()[0], message=error.sentence())
            await self._record(
                Finished(at=self._clock(), call_id=record.id, ending=ending),
                Settled(at=self._clock(), call_id=record.id),
            )

    def _started(self, call_id: str, spec: CommandSpec, attempt: int) -> Started:
        return Started(at=self._clock(), call_id=call_id, attempt=attempt, spec=spec, limits=self._limits)

    def _order(self, record: CallRecord) -> StartOrder:
        environment = self._environments.of(record.call.session_id)
        session = self._ledger.board.sessions.get(record.call.session_id)
        root = session.root if session is not None else ""
        return start_order(record, environment, self._settings, self._limits, root=root, private=self._private)

    async def _take_reports(self) -> None:
        async for reports in self._executor.reports():
            if news := facts(reports, self._ledger.board.calls, self._clock()):
                await self._record(*news)
            for report in reports:
                record = self._ledger.board.calls.get(report.key.call_id)
                if isinstance(report, NeverRan) and record is not None and record.attempt == report.key.attempt:
                    await self._start_anew(record, report)

    async def _start_anew(self, record: CallRecord, report: NeverRan) -> None:
        """An attempt that provably never ran is replaced by the next one."""
        if not isinstance(record.state, Starting):
            ending = Lost(why="the journal says that it ran, and its files say that it never did")
            await self._record(
                Finished(at=self._clock(), call_id=record.id, ending=ending),
                Settled(at=self._clock(), call_id=record.id),
            )
            return
        if self._ledger.board.paused is not None:
            self._postponed.append(report)
            return
        while True:
            try:
                again = self._judge.judge_after_kill(record) if record.id in self._doubted else None
                if again is None:
                    await self._start((record,))
                else:
                    self._turn_back(record, again)
                    self._doubted.discard(record.id)
            except JournalFailed:
                await asyncio.sleep(RETRY_S)
            else:
                return

    def _start_postponed(self) -> None:
        postponed, self._postponed = self._postponed, []
        for report in postponed:
            record = self._ledger.call(report.key.call_id)
            self._keep(asyncio.create_task(self._start_anew(record, report)))

    async def _record(self, *facts: Event) -> None:
        """Record what has happened already: it is tried until the journal takes it."""
        while True:
            try:
                self._ledger.record(*facts)
            except JournalFailed:
                await asyncio.sleep(RETRY_S)
            else:
                return

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._has_ended)

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        """Without one of these nothing would be started or recorded any more, and nobody would be told."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical("the supervisor stops: it has failed; what runs goes on", exc_info=error)
            self._fail()

    async def end(self, record: CallRecord) -> None:
        """End a run and everything that it left behind; nothing happens where all of it is gone."""
        await self.give_orders()
        try:
            await self._executor.end(RunKey(record.id, record.attempt or 1), record.spec.grace_s)
        except NotRunning:
            return

    async def end_all(self, within_s: float) -> None:
        """Start nothing more, end every run, and wait until all is gone or the time is over."""
        self._starting = False
        board = self._ledger.board
        for call_id in (*board.running, *board.unsettled):
            if board.calls[call_id].function is None:
                with suppress(Unavailable):
                    await self.end(board.calls[call_id])
        try:
            async with asyncio.timeout(within_s):
                while self.workers or board.unsettled:
                    await self._ledger.news()
        except TimeoutError:
            return
