"""What the server knows of now: the supervisor's own board, and the programs of the agents."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from whisper_tui.model.board import Board
from whisper_tui.model.event import Event, SessionDescribed, SessionOpened, SessionResumed
from whisper_tui.model.port import Supervision
from whisper_tui.wire.agents import Agents


class InProcess(Supervision, Protocol):
    """A supervisor in this very process, which lets its board be read."""

    @property
    def board(self) -> Board:
        """Everything as it is now; only to be read."""
        ...

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Have a function called with every fact, in order, once it is on the board."""
        ...


class Picture:
    """Reads the board of the supervisor, which is never behind, and follows who the agents are."""

    def __init__(self, supervisor: InProcess) -> None:
        self._supervisor = supervisor
        self._agents = Agents()
        self._came: asyncio.Queue[str] = asyncio.Queue()
        """Ids of sessions whose agents are to be looked at."""
        self._task: asyncio.Task[None] | None = None

    @property
    def board(self) -> Board:
        """Everything as it is now."""
        return self._supervisor.board

    def open(self) -> None:
        """Begin to follow."""
        for session_id in self.board.sessions:
            self._came.put_nowait(session_id)
        self._supervisor.listen(self._notice)
        self._task = asyncio.create_task(self._note_agents())

    async def close(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def keepers(self) -> Mapping[int, str]:
        """The calls of which anything is alive, by the pids of their keepers."""
        records = (self.board.calls.get(call_id) for call_id in (*self.board.running, *self.board.unsettled))
        return {record.process.keeper_pid: record.id for record in records if record and record.process}

    def agents(self) -> Mapping[tuple[int, str], str]:
        """What to call the agents' programs, by pid and start."""
        return self._agents.known

    def _notice(self, event: Event) -> None:
        if self._task is not None and isinstance(event, SessionOpened | SessionDescribed | SessionResumed):
            self._came.put_nowait(event.session.id if isinstance(event, SessionOpened) else event.session_id)

    async def _note_agents(self) -> None:
        while True:
            session = self.board.sessions.get(await self._came.get())
            if session is not None and session.closed_at is None:
                await self._agents.note(session)
