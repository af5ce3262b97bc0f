"""Stopping the world: every run stands still and nothing new starts, until it is told to go on."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Lost
from whisper_tui.model.errors import NotRunning
from whisper_tui.model.event import Event, Paused, Resumed, Spawned
from whisper_tui.model.run import RunProcess
from whisper_tui.model.state import Ended, Running
from whisper_tui.supervisor.abandoned import let_go_on
from whisper_tui.supervisor.executor import Executor, RunKey
from whisper_tui.supervisor.ledger import Ledger

_log = logging.getLogger(__name__)

TOLD_S = 10.0
"""Seconds in which the keepers are told before whoever asked is answered; the others are told later."""


class Pausing:
    """Keeps every run as the journal says that it has to be: still, or going on."""

    def __init__(self, ledger: Ledger, executor: Executor, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._executor = executor
        self._clock = clock
        self._telling: set[asyncio.Task[None]] = set()

    @property
    def paused(self) -> bool:
        """Whether nothing may start."""
        return self._ledger.board.paused is not None

    def open(self) -> None:
        """An earlier supervisor may have journaled it and not have come to doing it."""
        self._ledger.listen(self._notice)
        self._tell_all()

    async def close(self) -> None:
        """Tell nobody any more."""
        for task in self._telling:
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)

    async def pause(self, by: Decider) -> None:
        """Journal it, then hold every run still. Nothing changes where everything is paused already.

        Raises `Unavailable` if it holds, and a keeper could not be told.
        """
        if not self.paused:
            self._ledger.record(Paused(at=self._clock(), by=by), durable=True)
        await self._told()

    async def resume(self, by: Decider) -> None:
        """Journal it, then let every run go on."""
        held = self._ledger.board.paused
        if held is not None:
            self._ledger.record(Resumed(at=self._clock(), by=by), durable=True)
            self._free_abandoned(since=held.at)
        await self._told()

    def _free_abandoned(self, since: float) -> None:
        """A run whose keeper was killed meanwhile has ended for us, and its processes still stand where they were."""
        board = self._ledger.board
        for call_id in board.settled:
            match board.calls[call_id].state:
                case Ended(ending=Lost(), process=RunProcess(leader=leader), at=at) if at >= since:
                    let_go_on(leader)

    async def _told(self) -> None:
        tasks = self._tell_all()
        if not tasks:
            return
        done, _ = await asyncio.wait(tasks, timeout=TOLD_S)
        problems = [error for task in done if not task.cancelled() and (error := task.exception()) is not None]
        if problems:
            raise problems[0]

    def _tell_all(self) -> list[asyncio.Task[None]]:
        """What is still starting is told once it has a process."""
        board = self._ledger.board
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
            _log.warning("a run cannot be told to stand still, or to go on: %s", error)

    async def _hold(self, call_id: str) -> None:
        record = self._ledger.call(call_id)
        with suppress(NotRunning):
            await self._executor.hold(RunKey(call_id, record.attempt or 1), still=self.paused)

    def _notice(self, event: Event) -> None:
        if isinstance(event, Spawned) and self.paused:
            self._tell(event.call_id)
