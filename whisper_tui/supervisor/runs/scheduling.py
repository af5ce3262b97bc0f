"""Scheduling of starts: the calls that wait for a worker, the runs that occupy one (decision 15), and the pause."""

import asyncio
import logging
import re
import signal
import sys
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from heapq import heappop, heappush
from math import inf
from typing import Any, NamedTuple

from whisper_tui.model.board import Board
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Lost
from whisper_tui.model.errors import NotRunning
from whisper_tui.model.event import Paused, Resumed
from whisper_tui.model.masking import masked_command
from whisper_tui.model.run import ProcessIdentity, QueueReason, QueueReasons, RunProcess, shortened_command
from whisper_tui.model.state import CallRecord, Ended, Queued, Running, Starting
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.runs.executor import Executor, RunKey
from whisper_tui.system.processes import LINUX, Descendants, boot_id, find_process, is_stopped, send_to

LONG_S = 10.0
"""Seconds after which a run no longer occupies a worker."""

MOST = 8
"""How many unasked commands may run at once per worker, including long ones, because nobody sees them start."""

RECHECK_S = 1.0
"""Seconds between two looks at the queue while calls are in it: no event says that a run has become a long one, or
that there is memory again."""

SETTLES_AFTER_S, MEASURE_EVERY_S = 1.0, 0.1
"""Seconds after which a command has taken the memory that it needs, and between two measurements."""

RESERVE = 4 << 20
"""Bytes of memory that a command which has just started, and its keeper, will have taken at least."""

ANSWER_AFTER_S = 10.0
"""Seconds that a request to pause waits for all keepers. It is answered then, and the rest are told afterwards."""

_log = logging.getLogger(__name__)


class FairQueue:
    """A queue of call ids that takes from the owners in turn, and of each owner from its sessions in turn."""

    def __init__(self) -> None:
        self._owners: OrderedDict[str, OrderedDict[str, deque[str]]] = OrderedDict()
        self._members: set[str] = set()

    def __len__(self) -> int:
        return len(self._members)

    def add(self, owner: str, session_id: str, call_id: str) -> None:
        """Append a call to its session's queue, unless it is already queued."""
        if call_id not in self._members:
            self._members.add(call_id)
            self._owners.setdefault(owner, OrderedDict()).setdefault(session_id, deque()).append(call_id)

    def take(self, may_start: Callable[[str], bool] = lambda _owner: True) -> str | None:
        """Remove and return the next call of an owner that may start one. None: there is none."""
        owner = next(filter(may_start, self._owners), None)
        if owner is None:
            return None
        sessions = self._owners[owner]
        session_id, calls = next(iter(sessions.items()))
        call_id = calls.popleft()
        self._members.discard(call_id)
        # Both go to the back: an agent with a hundred calls, or a hundred sessions, delays no agent with a single call.
        _put_back(sessions, session_id)
        _put_back(self._owners, owner)
        return call_id

    def sessions(self) -> Iterator[tuple[str, str]]:
        """Yield the sessions that have calls in the queue, each behind its owner."""
        return ((owner, session_id) for owner, sessions in self._owners.items() for session_id in sessions)


def _put_back(queues: OrderedDict[str, Any], key: str) -> None:
    """Move a queue behind the others, or remove it if it is empty."""
    if queues[key]:
        queues.move_to_end(key)
    else:
        del queues[key]


def available_memory() -> int:
    """Return how many bytes of memory programs can still get without pushing others out."""
    if LINUX:
        with suppress(OSError, ValueError), open("/proc/meminfo", "rb") as facts:  # noqa: PTH123 faster than a Path
            found = re.search(rb"^MemAvailable: +([0-9]+) kB$", facts.read(), re.MULTILINE)
            return int(found[1]) * 1024 if found else sys.maxsize
        return sys.maxsize
    import psutil

    return int(psutil.virtual_memory().available)


class MemoryGauge:
    """Says if enough memory is available for one more command.

    A command that has just started has not taken its memory yet. So each of the last second counts with a reserve:
    otherwise a thousand approvals at once would all see the same free memory.
    """

    def __init__(
        self,
        least: int,
        clock: Callable[[], float] = time.monotonic,
        available: Callable[[], int] = available_memory,
    ) -> None:
        """`least`: bytes that stay available; 0 for no limit."""
        self._least = least
        self._clock = clock
        self._available = available
        self._found, self._measured_at = 0, -inf
        self._starts: deque[float] = deque()

    def note_start(self) -> None:
        """Count a command that starts now."""
        self._starts.append(self._clock())

    def problem(self) -> str:
        """Return why no command may start, as a clause. Empty: one may."""
        if not self._least:
            return ""
        now = self._clock()
        while self._starts and self._starts[0] <= now - SETTLES_AFTER_S:
            self._starts.popleft()
        if now - self._measured_at >= MEASURE_EVERY_S:
            self._found, self._measured_at = self._available(), now
        if self._found - RESERVE * len(self._starts) >= self._least:
            return ""
        return f"{_mebibytes(self._found)} of memory are available, and commands start above {_mebibytes(self._least)}"


class _CountedRun(NamedTuple):
    """The facts about a run that decide whether it occupies a worker."""

    began: float
    """Monotonic seconds."""
    owner: str
    asked: bool
    """True if a human approved it."""
    background: bool
    place: str


class _Obstacle(NamedTuple):
    """An obstacle to the start of a command, cheap to make: it is asked for at every start."""

    why: str
    runs: tuple[str, ...] = ()
    """Ids of the runs that are in the way."""


class Workers:
    """The commands that are starting or running, and what keeps one more from starting (decision 15).

    A worker is a slot for a command that nobody was asked about and that somebody waits for. A server would keep its
    slot for ever. So a run that has lasted `LONG_S`, or that its agent runs in the background, occupies none. A call
    that a human approved needs no worker, but memory. Tools that their callers execute need neither.
    """

    def __init__(
        self,
        board: Board,
        workers: int,
        memory: MemoryGauge,
        wall: Callable[[], float],
        *,
        owner_of: Callable[[str], str],
        most_at: Callable[[str], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wall`: returns seconds since the epoch, as the journal has them. `owner_of`: the owner of a session.

        `most_at`: how many commands a place runs at once; 0 for no limit.
        """
        self._board = board
        self._workers = workers
        self._memory = memory
        self._wall = wall
        self._owner_of = owner_of
        self._most_at = most_at
        self._clock = clock
        self._runs: dict[str, _CountedRun] = {}
        self._unasked: Counter[str] = Counter()
        """Number of commands that run unasked, by owner."""
        self._at_place: Counter[str] = Counter()
        """Number of commands by the place where they run, for those that run at one."""
        self._occupying: dict[str, None] = {}
        """Ids of the runs that occupied a worker when they started; some may have become long since."""
        self._begins: list[tuple[float, str]] = []
        """A heap: when they began, by the monotonic clock, with those that have ended since."""

    def __bool__(self) -> bool:
        """True while any command runs."""
        return bool(self._runs)

    def take(self, record: CallRecord) -> None:
        """Count a command that starts, or that an earlier supervisor has started."""
        if record.id in self._runs:
            return
        owner, asked = self._owner_of(record.call.session_id), record.decided_by_human
        now = self._wall()
        age = max(0.0, now - _started_at(record, now))
        self._runs[record.id] = _CountedRun(
            self._clock() - age, owner, asked, record.call.background, record.spec.place
        )
        if record.spec.place:
            self._at_place[record.spec.place] += 1
        if not asked:
            self._unasked[owner] += 1
            if not record.call.background:
                self._occupying[record.id] = None
                heappush(self._begins, (self._runs[record.id].began, record.id))
        if age < SETTLES_AFTER_S:
            self._memory.note_start()

    def free(self, call_id: str) -> None:
        """Forget a command that has ended."""
        run = self._runs.pop(call_id, None)
        self._occupying.pop(call_id, None)
        if run is not None and run.place:
            self._at_place[run.place] -= 1
        if run is not None and not run.asked:
            self._unasked[run.owner] -= 1
            if not self._unasked[run.owner]:
                del self._unasked[run.owner]

    def obstacle(self, *, asked: bool) -> _Obstacle | None:
        """Return what keeps one more command from starting. `asked`: a human approved it. None: nothing does."""
        if memory := self._memory.problem():
            return _Obstacle(memory)
        if asked:
            return None
        since = self._clock() - LONG_S
        # Asked for each call, so it must not look at all runs.
        while self._begins and self._begins[0][0] <= since:
            _, call_id = heappop(self._begins)
            if (run := self._runs.get(call_id)) is not None and run.began <= since:
                self._occupying.pop(call_id, None)
        if len(self._occupying) >= self._workers:
            return _Obstacle(f"{len(self._occupying)} of {self._workers} workers busy", tuple(self._occupying))
        # Long unasked commands occupy no worker either. Without this second limit an agent could accumulate
        # any number of them.
        most, count = MOST * self._workers, self._unasked.total()
        if count < most:
            return None
        unasked = (call_id for call_id, run in self._runs.items() if not run.asked)
        return _Obstacle(f"{count} of {most} commands running without approval", tuple(unasked))

    def obstacle_of(self, owner: str) -> _Obstacle | None:
        """Return what keeps the unasked commands of this owner alone from starting."""
        # Half, so that one agent cannot fill the second limit with long commands and lock out all others.
        most, count = max(1, MOST * self._workers // 2), self._unasked[owner]
        if count < most:
            return None
        own = (call_id for call_id, run in self._runs.items() if not run.asked and run.owner == owner)
        return _Obstacle(f"{count} of {most} commands of its agent running without approval", tuple(own))

    def is_full(self, place: str) -> bool:
        """True if a place runs as many commands as it may, whoever allowed them."""
        return 0 < self._most_at(place) <= self._at_place[place]

    def obstacle_at(self, place: str) -> _Obstacle | None:
        """Return what keeps commands at a place from starting. None: it is not full."""
        if not self.is_full(place):
            return None
        most, count = self._most_at(place), self._at_place[place]
        there = (call_id for call_id, run in self._runs.items() if run.place == place)
        return _Obstacle(f"{count} of {most} commands of {place} running", tuple(there))

    def reason(self, obstacle: _Obstacle) -> QueueReason:
        """Return an obstacle as people are told, with the longest of its runs."""
        if not obstacle.runs:
            return QueueReason(why=obstacle.why)
        oldest = min(obstacle.runs, key=lambda call_id: self._runs[call_id].began)
        record, lasts = self._board.calls.get(oldest), self._clock() - self._runs[oldest].began
        # Secrets of another agent's command, and its long lines, are none of anybody else's business.
        command = masked_command(record.spec.command).text if record is not None else ""
        return QueueReason(
            why=obstacle.why, call_id=oldest, command=shortened_command(command), lasts_s=max(0.0, lasts)
        )


def _started_at(record: CallRecord, now: float) -> float:
    """Return when a run started, in seconds since the epoch; now, if it is about to start."""
    match record.state:
        case Running(process=process):
            return process.started_at
        case Starting(since=since):
            return since
        case _:
            return now


def _mebibytes(size: int) -> str:
    return f"{size >> 20:,} MiB"


class StartQueue:
    """The calls that may start once nothing keeps them: one queue for human approvals, one for all others."""

    def __init__(
        self,
        board: Board,
        workers: Workers,
        *,
        is_open: Callable[[], bool],
        problem_at: Callable[[str], str | None],
        is_ready: Callable[[CallRecord], bool],
        owner_of: Callable[[str], str],
    ) -> None:
        """`is_open`: returns False once nothing may start any more. `problem_at`: why nothing starts at a place.

        `is_ready`: returns False while the files of a call's place are looked at. `owner_of`: the owner of a session.
        """
        self._board = board
        self._workers = workers
        self._is_open = is_open
        self._problem_at = problem_at
        self._is_ready = is_ready
        self._owner_of = owner_of
        self._approved = FairQueue()
        self._unasked = FairQueue()

    def __len__(self) -> int:
        return len(self._approved) + len(self._unasked)

    def add(self, record: CallRecord) -> None:
        """Queue a call."""
        queue = self._approved if record.decided_by_human else self._unasked
        queue.add(self._owner_of(record.call.session_id), record.call.session_id, record.id)

    def take_ready(self) -> list[CallRecord]:
        """Remove and return all calls that may start now. Each of them has its worker already."""
        ready: list[CallRecord] = []
        away: list[CallRecord] = []
        for queue, asked in ((self._approved, True), (self._unasked, False)):
            while self._obstacle(asked=asked) is None:
                call_id = queue.take() if asked else queue.take(self._may_start)
                if call_id is None:
                    break
                record = self._board.calls.get(call_id)
                # It may have been withdrawn, or returned to the human, since it was queued.
                if record is None or not isinstance(record.state, Queued):
                    continue
                if record.spec.place and (self._is_closed(record.spec.place) or not self._is_ready(record)):
                    away.append(record)
                    continue
                self._workers.take(record)
                ready.append(record)
        for record in away:
            self.add(record)
        return ready

    def closed(self) -> str:
        """Return why nothing at all may start, as a clause. Empty: something may."""
        if not self._is_open():
            return "the supervisor ends all runs"
        return "everything is paused" if self._board.paused is not None else ""

    def has_room(self, session_id: str, place: str) -> bool:
        """True if an unasked command of this session may start now at a place, ahead of nobody."""
        if place and self._is_closed(place):
            return False
        return self._obstacle(asked=False) is None and self._may_start(self._owner_of(session_id))

    def reasons(self) -> QueueReasons:
        """Return why calls are queued."""
        approved, unasked = self._obstacle(asked=True), self._obstacle(asked=False)
        full = {owner: self._workers.obstacle_of(owner) for owner, _ in self._unasked.sessions()}
        sessions = ((session_id, full[owner]) for owner, session_id in self._unasked.sessions())
        return QueueReasons(
            approved=self._workers.reason(approved) if approved else None,
            unasked=self._workers.reason(unasked) if unasked else None,
            sessions={session_id: self._workers.reason(obstacle) for session_id, obstacle in sessions if obstacle},
            places=dict(self._closed_places()),
        )

    def _is_closed(self, place: str) -> bool:
        """True if nothing can start at a place now. Asked for each call in the queue: the reason takes longer."""
        return self._problem_at(place) is not None or self._workers.is_full(place)

    def _closed_at(self, place: str) -> QueueReason | None:
        """Return why nothing can start at a place now. None: something can."""
        if problem := self._problem_at(place):
            return QueueReason(why=problem)
        full = self._workers.obstacle_at(place)
        return self._workers.reason(full) if full is not None else None

    def _closed_places(self) -> Iterator[tuple[str, QueueReason]]:
        """Yield the places of queued calls where nothing can start now, each with the reason."""
        calls = (self._board.calls[call_id] for call_id in self._board.queued)
        for place in {record.spec.place for record in calls} - {""}:
            if (closed := self._closed_at(place)) is not None:
                yield place, closed

    def _obstacle(self, *, asked: bool) -> _Obstacle | None:
        closed = self.closed()
        return _Obstacle(closed) if closed else self._workers.obstacle(asked=asked)

    def _may_start(self, owner: str) -> bool:
        return self._workers.obstacle_of(owner) is None


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
