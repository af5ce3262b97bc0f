"""Where a call stands, in words for the client that waits for it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from whisper_tui.model.board import Board
from whisper_tui.model.errors import BrokenHistory
from whisper_tui.model.port import Supervision
from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Running, Starting, Unjudged, Waiting

COUNTED_EVERY_S = 1.0
"""Places in the queue are counted at most this often, however many calls wait."""

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Sends one progress notification: progress, total, message."""


class Overview:
    """The board, followed only while somebody waits for a call; one for all connections."""

    def __init__(self, supervision: Supervision, clock: Callable[[], float] = time.time) -> None:
        self._supervision = supervision
        self._clock = clock
        self._board = Board()
        self._lookers = 0
        self._following: asyncio.Task[None] | None = None
        self._places: dict[str, int] = {}
        self._counted_at = -COUNTED_EVERY_S

    @asynccontextmanager
    async def reporting(self, call_id: str, report: Report, interval_s: float) -> AsyncIterator[None]:
        """Report about a call now and then, for as long as the block lasts."""
        self._lookers += 1
        if self._following is None:
            self._board = Board()
            self._following = asyncio.create_task(self._follow())
        reports = asyncio.create_task(self._report(call_id, report, interval_s))
        try:
            yield
        finally:
            reports.cancel()
            self._lookers -= 1
            if self._lookers == 0:
                self._following.cancel()
                self._following = None

    async def _follow(self) -> None:
        async for events in self._supervision.watch():
            self._board.apply_all(events)

    async def _report(self, call_id: str, report: Report, interval_s: float) -> None:
        """Progress is the time since the call was handed in: it grows even over a supervisor's restart."""
        record = await self._supervision.record(call_id)
        last = 0.0
        while True:
            last = max(last + 0.001, round(self._clock() - record.call.submitted_at, 3))
            await report(last, None, self.words(call_id, record))
            await asyncio.sleep(interval_s)

    def words(self, call_id: str, otherwise: CallRecord) -> str:
        """Where the call stands; of one that the board does not show yet, `otherwise` is said."""
        try:
            record = self._board.record(call_id)
        except BrokenHistory:
            record = otherwise
        match record.state:
            case Unjudged():
                return "received"
            case Waiting():
                return f"waiting for a human ({self._ahead(call_id)} ahead)"
            case Held():
                return "approved, waiting for its ticket"
            case Queued():
                return "approved, waiting for a free worker"
            case Starting():
                return "starting"
            case Running(process=process):
                seconds = max(0, int(self._clock() - process.started_at))
                return f"running, pid {process.leader.pid}, {seconds} s"
            case Ended():
                return "ended"

    def _ahead(self, call_id: str) -> int:
        now = asyncio.get_running_loop().time()
        if now - self._counted_at >= COUNTED_EVERY_S or call_id not in self._places:
            self._places = {waiting: place for place, waiting in enumerate(self._board.waiting)}
            self._counted_at = now
        return self._places.get(call_id, 0)
