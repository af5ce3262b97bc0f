"""The server's own picture of now, folded from the port's events like everybody else's."""

import asyncio
from collections.abc import Mapping

from whisper_tui.model.board import Board
from whisper_tui.model.event import Event, SessionDescribed, SessionOpened, SessionResumed
from whisper_tui.model.port import HistoryQuery, Supervision
from whisper_tui.wire.agents import Agents


class Picture:
    """A board that follows the events. Reading it never waits, except for `caught_up`."""

    def __init__(self, supervision: Supervision) -> None:
        self.board = Board()
        self._supervision = supervision
        self._agents = Agents()
        self._progress = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to follow."""
        self._task = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def caught_up(self) -> Board:
        """The board once it knows the newest call."""
        newest = await self._supervision.history(HistoryQuery(limit=1))
        while newest and newest[0].id not in self.board.calls and self._task is not None and not self._task.done():
            await self._progress.wait()
        return self.board

    def keepers(self) -> Mapping[int, str]:
        """The calls of which anything is alive, by the pids of their keepers."""
        records = (self.board.calls.get(call_id) for call_id in (*self.board.running, *self.board.unsettled))
        return {record.process.keeper_pid: record.id for record in records if record and record.process}

    def agents(self) -> Mapping[tuple[int, str], str]:
        """What to call the agents' programs, by pid and start."""
        return self._agents.known

    async def _note_agents(self, batch: tuple[Event, ...]) -> None:
        for event in batch:
            if isinstance(event, SessionOpened | SessionDescribed | SessionResumed):
                session_id = event.session.id if isinstance(event, SessionOpened) else event.session_id
                session = self.board.sessions[session_id]
                if session.closed_at is None:
                    await self._agents.note(session)

    async def _follow(self) -> None:
        try:
            async for batch in self._supervision.watch():
                self.board.apply_all(batch)
                self._tell()
                await self._note_agents(batch)
        finally:
            self._tell()

    def _tell(self) -> None:
        told, self._progress = self._progress, asyncio.Event()
        told.set()
