"""Scheduling of starts: the calls that wait for a worker, the runs that occupy one (decision 20), and the pause."""

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
"""Limit of unasked commands that run at the same time, per worker, long ones included: nobody sees them start."""

TOLD_S = 10.0
"""Seconds that a request to pause waits until all keepers are told; the remaining ones are told after its answer."""

_log = logging.getLogger(__name__)


class FairQueue:
    """A queue of call ids that takes from the sessions in turn (round robin)."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, deque[str]] = OrderedDict()
        self._members: set[str] = set()

    def __len__(self) -> int:
        return len(self._members)

    def add(self, session_id: str, call_id: str) -> None:
        """Put a call at the end of its session's queue, unless it is queued already."""
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
            # The session goes to the back: an agent with a hundred calls does not hold up one with a single call.
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

    A worker is a slot for a command that somebody waits for. A server would keep its slot for ever; so a run that has
    lasted `LONG_S`, or that its agent has put into the background, occupies none. Calls that a human approved compete
    only with each other. Tools that their callers carry out need no worker.
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
        """True if one more command may start, beside `taken` others that are about to start."""
        # Unasked commands that have lasted long occupy no worker either: without this second limit an agent could pile
        # up any number of them.
        if not for_human and len(self._runs) + taken >= MOST * self._workers:
            return False
        since = self._clock() - LONG_S
        counted = sum(
            run.began > since and not run.background and (run.by_human or not for_human) for run in self._runs.values()
        )
        return counted + taken < self._workers

    @property
    def sentence(self) -> str:
        """The reason why a command has to wait, for people: how many run, and which of them for longest."""
        count = len(self._runs)
        oldest = min(self._runs, key=lambda call_id: self._runs[call_id].began, default=None)
        record = self._board.calls.get(oldest) if oldest is not None else None
        running = f"{_count(count, 'command')} {'runs' if count == 1 else 'run'} on {_count(self._workers, 'worker')}"
        if record is None:
            return running
        return f"{running}; longest: call {record.id}, for {_age(self._clock() - self._runs[record.id].began)}"


class StartQueue:
    """The calls that may start as soon as a worker is free: one queue for human approvals, one for all others."""

    def __init__(self, board: Board, has_room: Callable[[int, bool], bool]) -> None:
        """`has_room`: whether one more may start beside so many others; the second argument is `for_human`."""
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
                # It may have been withdrawn, or sent back to the human, since it was queued.
                if record is not None and isinstance(record.state, Queued):
                    ready.append(record)
        return ready


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _age(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h"


class Pause:
    """Freezes and thaws all runs, as the journal says (decision 19)."""

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
        """Tell all runs what the journal says."""
        # An earlier supervisor may have ended between the journal and the keepers.
        self._tell_all()

    async def close(self) -> None:
        """Stop telling."""
        for task in self._telling:
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)

    async def pause(self, by: Decider) -> None:
        """Journal the pause, then freeze every run. Nothing changes if everything is paused already.

        Raises `Unavailable` if the pause holds, but a keeper could not be told.
        """
        if not self.paused:
            self._store.record(Paused(at=self._clock(), by=by), durable=True)
        await self._told()

    async def resume(self, by: Decider) -> None:
        """Journal the end of the pause, then thaw every run."""
        held = self._store.board.paused
        if held is not None:
            self._store.record(Resumed(at=self._clock(), by=by), durable=True)
            self._free_abandoned(since=held.at)
        await self._told()

    def _free_abandoned(self, since: float) -> None:
        """Continue the processes of runs whose keepers were killed during the pause."""
        # Such a run has ended as lost, so that no keeper thaws it; its processes are still stopped.
        board = self._store.board
        for call_id in board.settled:
            match board.calls[call_id].state:
                case Ended(ending=Lost(), process=RunProcess(leader=leader), at=at) if at >= since:
                    continue_held_orphans(leader)

    async def _told(self) -> None:
        tasks = self._tell_all()
        if not tasks:
            return
        done, _ = await asyncio.wait(tasks, timeout=TOLD_S)
        problems = [error for task in done if not task.cancelled() and (error := task.exception()) is not None]
        if problems:
            raise problems[0]

    def _tell_all(self) -> list[asyncio.Task[None]]:
        """Tell all runs that have a process; those that are starting are told on `Spawned`."""
        board = self._store.board
        return [
            self._tell(call_id)
            for call_id in (*board.running, *board.unsettled)
            if board.calls[call_id].function is None
            and (call_id in board.unsettled or isinstance(board.calls[call_id].state, Running))
        ]

    def _tell(self, call_id: str) -> asyncio.Task[None]:
        task = asyncio.create_task(self._hold(call_id))
        self._telling.add(task)
        task.add_done_callback(self._has_told)
        return task

    def _has_told(self, task: asyncio.Task[None]) -> None:
        self._telling.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("a run cannot be paused or resumed: %s", error)

    async def _hold(self, call_id: str) -> None:
        record = self._store.call(call_id)
        with suppress(NotRunning):
            await self._executor.hold(RunKey(call_id, record.attempt or 1), still=self.paused)

    def on_spawned(self, call_id: str) -> None:
        """Hold a run that got its process while everything is paused."""
        if self.paused:
            self._tell(call_id)


def continue_held_orphans(leader: ProcessIdentity) -> None:
    """Send SIGCONT to the stopped descendants of a run's leader, and then to the leader itself."""
    # The pid may belong to another process by now: its start time and the boot tell.
    seen = find_process(leader.pid) if leader.boot_id == boot_id() else None
    if seen is None or seen.start != leader.start_time:
        return
    for each in (*Descendants(leader.pid, adopts=False).now(), seen):
        if is_stopped(each.pid):
            send_to(each, signal.SIGCONT)
