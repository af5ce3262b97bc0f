"""Scheduling of starts: the calls that wait for a worker, the runs that occupy one (decision 15), and the pause."""

import asyncio
import logging
import signal
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from whisper_tui.model.board import Board
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Lost
from whisper_tui.model.errors import NotRunning
from whisper_tui.model.event import Paused, Resumed
from whisper_tui.model.run import ProcessIdentity, RunProcess
from whisper_tui.model.state import CallRecord, Ended, Queued, Running
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.runs.executor import Executor, RunKey
from whisper_tui.system.processes import Descendants, boot_id, find_process, is_stopped, send_to

LONG_S = 10.0
"""Seconds after which a run no longer occupies a worker."""

MOST = 8
"""How many unasked commands may run at once per worker, including long ones, because nobody sees them start."""

ANSWER_AFTER_S = 10.0
"""Seconds that a request to pause waits for all keepers. It is answered then, and the rest are told afterwards."""

_log = logging.getLogger(__name__)


class FairQueue:
    """A queue of call ids that takes from the sessions in turn (round robin)."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, deque[str]] = OrderedDict()
        self._members: set[str] = set()

    def __len__(self) -> int:
        return len(self._members)

    def add(self, session_id: str, call_id: str) -> None:
        """Append a call to its session's queue, unless it is already queued."""
        if call_id not in self._members:
            self._members.add(call_id)
            self._sessions.setdefault(session_id, deque()).append(call_id)

    def take(self) -> str | None:
        """Remove and return the next call. None: the queue is empty."""
        if not self._sessions:
            return None
        session_id, calls = next(iter(self._sessions.items()))
        call_id = calls.popleft()
        self._members.discard(call_id)
        if calls:
            # The session goes to the back, so an agent with a hundred calls does not delay one with a single call.
            self._sessions.move_to_end(session_id)
        else:
            del self._sessions[session_id]
        return call_id


class _CountedRun(NamedTuple):
    """The facts about a run that decide whether it occupies a worker."""

    began: float
    """Monotonic seconds."""
    by_human: bool
    background: bool


class Workers:
    """The commands that are starting or running, and whether there is a free worker for one more.

    A worker is a slot for a command that somebody waits for. A server would keep its slot for ever. So a run that has
    lasted `LONG_S`, or that its agent runs in the background, occupies none. Calls that a human approved only compete
    with each other. Tools that their callers execute need no worker.
    """

    def __init__(self, board: Board, workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._board = board
        self._workers = workers
        self._clock = clock
        self._runs: dict[str, _CountedRun] = {}

    def __bool__(self) -> bool:
        """True while any command runs."""
        return bool(self._runs)

    def take(self, record: CallRecord) -> None:
        """Count a command that starts."""
        self._runs.setdefault(record.id, _CountedRun(self._clock(), record.decided_by_human, record.call.background))

    def free(self, call_id: str) -> None:
        """Forget a command that has ended."""
        self._runs.pop(call_id, None)

    def has_room(self, taken: int, *, for_human: bool) -> bool:
        """True if one more command may start, in addition to `taken` others that are about to start."""
        # Long unasked commands occupy no worker either. Without this second limit an agent could accumulate
        # any number of them.
        if not for_human and len(self._runs) + taken >= MOST * self._workers:
            return False
        since = self._clock() - LONG_S
        counted = sum(
            run.began > since and not run.background and (run.by_human or not for_human) for run in self._runs.values()
        )
        return counted + taken < self._workers

    @property
    def sentence(self) -> str:
        """Return why a command has to wait, for people: how many run, and which one has run longest."""
        count = len(self._runs)
        oldest = min(self._runs, key=lambda call_id: self._runs[call_id].began, default=None)
        record = self._board.calls.get(oldest) if oldest is not None else None
        running = f"{_count(count, 'command')} {'runs' if count == 1 else 'run'} on {_count(self._workers, 'worker')}"
        if record is None:
            return running
        return f"{running}; longest: call {record.id}, for {_age(self._clock() - self._runs[record.id].began)}"


class StartQueue:
    """The calls that may start once a worker is free: one queue for human approvals, one for all others."""

    def __init__(self, board: Board, has_room: Callable[[int, bool], bool]) -> None:
        """`has_room(taken, for_human)`: true if one more may start in addition to `taken` others."""
        self._board = board
        self._has_room = has_room
        self._approved = FairQueue()
        self._unasked = FairQueue()

    def add(self, record: CallRecord) -> None:
        """Queue a call."""
        queue = self._approved if record.decided_by_human else self._unasked
        queue.add(record.call.session_id, record.id)

    def take_ready(self) -> list[CallRecord]:
        """Remove and return all calls for which there is a worker now."""
        ready: list[CallRecord] = []
        for queue, for_human in ((self._approved, True), (self._unasked, False)):
            while self._has_room(len(ready), for_human):
                call_id = queue.take()
                if call_id is None:
                    break
                record = self._board.calls.get(call_id)
                # It may have been withdrawn, or returned to the human, since it was queued.
                if record is not None and isinstance(record.state, Queued):
                    ready.append(record)
        return ready


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _age(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h"


class Pause:
    """Freezes and thaws all runs according to the journal (decision 14)."""

    def __init__(self, store: Store, executor: Executor, clock: Callable[[], float]) -> None:
        self._store = store
        self._executor = executor
        self._clock = clock
        self._telling: set[asyncio.Task[None]] = set()

    @property
    def paused(self) -> bool:
        """True while no call may start."""
        return self._store.board.paused is not None

    def open(self) -> None:
        """Freeze or thaw all runs according to the journal."""
        # An earlier supervisor may have ended after writing to the journal and before telling the keepers.
        self._apply_to_all()

    async def close(self) -> None:
        """Cancel outstanding orders."""
        for task in self._telling:
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)

    async def pause(self, by: Decider) -> None:
        """Journal the pause, then freeze every run. Nothing changes if everything is already paused.

        Raises `Unavailable` if the pause is journaled, but a keeper could not be reached.
        """
        if not self.paused:
            self._store.record(Paused(at=self._clock(), by=by), durable=True)
        await self._wait_until_applied()

    async def resume(self, by: Decider) -> None:
        """Journal the end of the pause, then thaw every run."""
        held = self._store.board.paused
        if held is not None:
            self._store.record(Resumed(at=self._clock(), by=by), durable=True)
            self._continue_orphans(since=held.at)
        await self._wait_until_applied()

    def _continue_orphans(self, since: float) -> None:
        """Continue the processes of runs whose keepers were killed during the pause."""
        # Such a run has ended as lost. No keeper thaws it, and its processes are still stopped.
        board = self._store.board
        for call_id in board.settled:
            match board.calls[call_id].state:
                case Ended(ending=Lost(), process=RunProcess(leader=leader), at=at) if at >= since:
                    continue_held_orphans(leader)

    async def _wait_until_applied(self) -> None:
        tasks = self._apply_to_all()
        if not tasks:
            return
        done, _ = await asyncio.wait(tasks, timeout=ANSWER_AFTER_S)
        problems = [error for task in done if not task.cancelled() and (error := task.exception()) is not None]
        if problems:
            raise problems[0]

    def _apply_to_all(self) -> list[asyncio.Task[None]]:
        """Freeze or thaw all runs that have a process. Runs that are starting follow on `Spawned`."""
        board = self._store.board
        return [
            self._report(call_id)
            for call_id in (*board.running, *board.unsettled)
            if board.calls[call_id].function is None
            and (call_id in board.unsettled or isinstance(board.calls[call_id].state, Running))
        ]

    def _report(self, call_id: str) -> asyncio.Task[None]:
        task = asyncio.create_task(self._hold(call_id))
        self._telling.add(task)
        task.add_done_callback(self._on_applied)
        return task

    def _on_applied(self, task: asyncio.Task[None]) -> None:
        self._telling.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("a run cannot be paused or resumed: %s", error)

    async def _hold(self, call_id: str) -> None:
        record = self._store.call(call_id)
        with suppress(NotRunning):
            await self._executor.set_frozen(RunKey(call_id, record.attempt or 1), frozen=self.paused)

    def on_spawned(self, call_id: str) -> None:
        """Freeze a run that got its process while everything is paused."""
        if self.paused:
            self._report(call_id)


def continue_held_orphans(leader: ProcessIdentity) -> None:
    """Send SIGCONT to the stopped descendants of a run's leader, and then to the leader itself."""
    # The pid may belong to another process by now. Its start time and the boot show that.
    seen = find_process(leader.pid) if leader.boot_id == boot_id() else None
    if seen is None or seen.start != leader.start_time:
        return
    for each in (*Descendants(leader.pid, adopts=False).now(), seen):
        if is_stopped(each.pid):
            send_to(each, signal.SIGCONT)
