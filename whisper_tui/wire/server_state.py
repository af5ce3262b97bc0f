"""The server's view of the current state: the board, the programs of the agents, and calls as rows."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from whisper_tui.model.api import HistoryQuery, Page, Supervision, SupervisorStatus, output_was_removed
from whisper_tui.model.board import Board
from whisper_tui.model.call import Session
from whisper_tui.model.call_rows import Row, call_details, call_row, denial_row, grant_row
from whisper_tui.model.decision import masked_denial
from whisper_tui.model.event import Event, SessionDescribed, SessionOpened, SessionResumed
from whisper_tui.model.masking import mask_unless_undecided, masked_grant
from whisper_tui.model.run import NO_STALL, NOT_QUEUED, QueueReasons
from whisper_tui.model.state import CallRecord, Queued
from whisper_tui.system import processes
from whisper_tui.system.ancestry import ProcessSeen, ReadProcess, ancestry, read_process

MOST = 1000
"""How many programs are remembered before those that have ended are removed."""


class AgentPrograms:
    """The programs of agents, remembered beyond their sessions."""

    def __init__(self, read: ReadProcess = read_process) -> None:
        self._read = read
        self._known: dict[tuple[int, str], str] = {}

    @property
    def known(self) -> Mapping[tuple[int, str], str]:
        """The name of each agent program, by pid and start."""
        return self._known

    async def note(self, session: Session) -> None:
        """Remember the program that says it is the agent of this session."""
        # Sessions of our hook have a key, and those of our relay a client. A program that uses the library belongs
        # to its author, and so do all processes that it starts.
        if session.key is None and session.client is None:
            return
        # After a restart another program may have its pid, even the terminal of the human. A session of an earlier
        # version does not show it, but what that has marked stays marked.
        if session.pid is None or session.pid < 1 or session.started is None:
            return
        seen = await asyncio.to_thread(self._agent, session.pid, session.started)
        if seen is None:
            return
        # Kept after the session ends: an agent that drops its connection is still an agent.
        self._known[seen.pid, seen.start] = f"{session.name} (session {session.id}, pid {session.pid})"
        processes.mark_agent(seen.pid)
        if len(self._known) > MOST:
            await asyncio.to_thread(self._forget_ended)

    def _agent(self, pid: int, started: int) -> ProcessSeen | None:
        # An ancestor of the supervisor, such as init, is also an ancestor of the human's terminals.
        ours = ancestry(os.getpid(), self._read) or ()
        if any(seen.pid == pid for seen in ours) or not processes.is_process(pid, started):
            return None
        seen = self._read(pid)
        # Also where our own ancestors cannot be determined: all that is started later would have the mark of init.
        return None if seen is None or seen.adopts else seen

    def _forget_ended(self) -> None:
        for pid, start in tuple(self._known):
            seen = self._read(pid)
            if seen is None or seen.start != start:
                del self._known[pid, start]


class InProcess(Supervision, Protocol):
    """A supervisor in this process, with a readable board."""

    @property
    def board(self) -> Board:
        """The current state, read-only."""
        ...

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call a function with every event, in order, after the board has applied it."""
        ...


class ServerState:
    """The supervisor's board, and the programs of the agents."""

    def __init__(self, supervisor: InProcess) -> None:
        self._supervisor = supervisor
        self._agents = AgentPrograms()
        self._came: asyncio.Queue[str] = asyncio.Queue()
        """Ids of sessions whose agents have not been examined yet."""
        self._task: asyncio.Task[None] | None = None
        self._watching: Counter[str] = Counter()
        """The connections that follow the events, by the address from which they have come by ssh."""

    @property
    def board(self) -> Board:
        """The current state."""
        return self._supervisor.board

    def open(self) -> None:
        """Start to follow the events."""
        for session_id in self.board.sessions:
            self._came.put_nowait(session_id)
        self._supervisor.listen(self._notice)
        self._task = asyncio.create_task(self._note_agents())

    async def close(self) -> None:
        """Stop following the events."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def keepers(self, place: str = "") -> Mapping[int, str]:
        """Return the calls with living processes at a place, by the pids of their keepers there."""
        records = (self.board.calls.get(call_id) for call_id in (*self.board.running, *self.board.unsettled))
        # A pid at a place may be that of any process here.
        there = (each for each in records if each and each.spec.place == place)
        return {each.process.keeper_pid: each.id for each in there if each.process}

    def agents(self) -> Mapping[tuple[int, str], str]:
        """The names of the agents' programs, by pid and start."""
        return self._agents.known

    @contextmanager
    def watched_from(self, address: str) -> Iterator[None]:
        """Count a connection that follows the events from another machine. Empty: it is one of this machine."""
        self._watching[address] += 1
        try:
            yield
        finally:
            self._watching[address] -= 1

    def with_desks(self, status: SupervisorStatus) -> SupervisorStatus:
        """Add the addresses of other machines from which somebody watches."""
        desks = sorted(address for address, number in self._watching.items() if address and number)
        return status.model_copy(update={"desks": tuple(desks)}) if desks else status

    def _notice(self, event: Event) -> None:
        if self._task is not None and isinstance(event, SessionOpened | SessionDescribed | SessionResumed):
            self._came.put_nowait(event.session.id if isinstance(event, SessionOpened) else event.session_id)

    async def _note_agents(self) -> None:
        while True:
            session = self.board.sessions.get(await self._came.get())
            if session is not None and session.closed_at is None:
                await self._agents.note(session)


RowKind = Literal["list", "ps", "history", "show", "review", "changes", "undone", "approvals", "denials"]


RowsAtOnce = Annotated[tuple[str, ...], Field(max_length=1000)]


class RowSource(Protocol):
    """The operations that the server offers besides the API."""

    async def rows(
        self,
        kind: RowKind,
        *,
        call_id: str | None = None,
        limit: Page = 50,
        session: str | None = None,
        text: str = "",
        unmasked: bool = False,
    ) -> list[dict[str, Any]]:
        """Return rows of one kind. `show` needs a call id; `limit` and `text` are for `history`, and
        `session` for that, `review`, `changes`: the newest calls that have changed files, or may have; and `undone`:
        those of which anything is undone.

        Secrets are masked, except in calls that wait for a human. `unmasked`: nowhere.
        """
        ...

    async def open_calls(self, limit: Page | None = None) -> list[str]:
        """Return the ids of the calls that `list` shows, in its order: first those that wait. `limit`: at most so many.

        A hundred thousand ids take longer than the rows that fit on a screen.
        """
        ...

    async def open_rows(self, call_ids: RowsAtOnce, *, brief: bool = False) -> list[dict[str, Any]]:
        """Return the rows of these calls as `list` shows them, without those that are over by now.

        `brief`: of those that wait only what a table of them needs.
        """
        ...


OF_ROWS = frozenset({"rows", "open_calls", "open_rows"})
"""The operations of `RowSource`."""


MOST_CHANGING = 1000
"""How many past calls are looked through for changes."""
ROWS_A_TURN, BRIEF_ROWS_A_TURN = 25, 100
"""Rows that are made before the event loop gets a turn."""


class Rows:
    """Creates rows from the board and from the journal."""

    def __init__(self, supervision: Supervision, state: ServerState) -> None:
        self._supervision = supervision
        self._state = state

    async def rows(
        self,
        kind: RowKind,
        *,
        call_id: str | None = None,
        limit: int = 50,
        session: str | None = None,
        text: str = "",
        unmasked: bool = False,
    ) -> list[dict[str, Any]]:
        """Return rows of one kind: waiting ones first in `list`, newest first in `history`."""
        board = self._state.board
        shown = _whole if unmasked else mask_unless_undecided
        match kind:
            case "list":
                return await self._call_rows(await self.open_calls(), shown)
            case "ps":
                return await self._call_rows((*board.running, *board.unsettled), shown)
            case "review":
                records = tuple(board.calls[call_id] for call_id in board.unreviewed)
                named = ((record, board.sessions.get(record.call.session_id)) for record in records)
                return [
                    call_details(shown(record), its_session)
                    for record, its_session in named
                    if session in {None, record.call.session_id, its_session.name if its_session else None}
                ]
            case "changes" | "undone":
                records = await self._supervision.history(HistoryQuery(limit=MOST_CHANGING, session=session))
                changing = (
                    record
                    for record in records
                    if (record.is_undone if kind == "undone" else record.has_changed or record.not_kept_because)
                )
                return [call_details(shown(record), await self._session(record)) for record in changing]
            case "show":
                record = await self._supervision.record(call_id or "")
                stall = (await self._supervision.stalls()).get(record.id, NO_STALL)
                its_session, still = await self._session(record), board.paused is not None
                row = call_details(shown(record), its_session, still=still, stall=stall)
                _say_why_queued(row, record, await self._queue_reasons())
                return [{**row, "output_removed": await output_was_removed(self._supervision, record)}]
            case "approvals":
                return [
                    grant_row(grant if unmasked else masked_grant(grant), board.sessions.get(grant.session_id))
                    for grant in await self._supervision.grants()
                ]
            case "denials":
                return [
                    denial_row(denial if unmasked else masked_denial(denial), board.sessions.get(denial.session_id))
                    for denial in await self._supervision.denials()
                ]
            case "history":
                records = await self._supervision.history(HistoryQuery(limit=limit, session=session, text=text))
                return [call_row(shown(record), await self._session(record)) for record in records]

    async def open_calls(self, limit: int | None = None) -> list[str]:
        """Return the ids of the calls that `list` shows, in its order; at most so many."""
        board = self._state.board
        return list(islice(chain(board.waiting, board.aside, board.held, board.queued, board.running), limit))

    async def open_rows(self, call_ids: tuple[str, ...], *, brief: bool = False) -> list[dict[str, Any]]:
        """Return the rows of these calls, without those that are over by now."""
        board = self._state.board
        sections = (board.waiting, board.aside, board.held, board.queued, board.running)
        still_open = (call_id for call_id in call_ids if any(call_id in section for section in sections))
        return await self._call_rows(tuple(still_open), mask_unless_undecided, brief=brief)

    async def _call_rows(
        self, call_ids: Sequence[str], shown: Callable[[CallRecord], CallRecord], *, brief: bool = False
    ) -> list[Row]:
        board, rows = self._state.board, list[Row]()
        stalls, reasons = await self._supervision.stalls(), await self._queue_reasons()
        for number, call_id in enumerate(call_ids, 1):
            if brief and (row := brief_row(board, call_id)) is not None:
                rows.append(row)
            elif (record := board.calls.get(call_id)) is not None:
                session, stall = board.sessions.get(record.call.session_id), stalls.get(call_id, NO_STALL)
                rows.append(call_row(shown(record), session, still=board.paused is not None, stall=stall))
                _say_why_queued(rows[-1], record, reasons)
            if number % (BRIEF_ROWS_A_TURN if brief else ROWS_A_TURN) == 0:
                # A hundred thousand rows take seconds: keys, answers and starts get their turn in between.
                await asyncio.sleep(0)
        return rows

    async def _queue_reasons(self) -> QueueReasons:
        if not self._state.board.queued:
            return NOT_QUEUED
        return (await self._supervision.status()).queue

    async def _session(self, record: CallRecord) -> Session:
        """Return the session of a call. The board only has recent ones."""
        session_id = record.call.session_id
        return self._state.board.sessions.get(session_id) or await self._supervision.session(session_id)


def brief_row(board: Board, call_id: str) -> Row | None:
    """Return what a table needs of a waiting command, without its record. None: it is another call."""
    line = board.calls.line(call_id) if call_id in board.waiting else None
    if line is None or line.carried_out:
        return None
    session = board.sessions.get(line.session_id)
    return {
        "id": line.id,
        "state": "waiting",
        "since": line.waits_since,
        "agent_gave_up": line.agent_gave_up,
        "risks": [{"id": id_, "grave": bool(grave)} for id_, *grave in line.risks],
        "not_inspected": line.not_inspected,
        "session": session.name if session else line.session_id,
        "command": line.command,
        "place": line.place or None,
        "asked": None,
        "description": line.description,
    }


def _whole(record: CallRecord) -> CallRecord:
    return record


def _say_why_queued(row: Row, record: CallRecord, reasons: QueueReasons) -> None:
    """Set the reason in the row of a call that is queued for a worker."""
    if isinstance(record.state, Queued) and record.function is None:
        reason = reasons.of(record.call.session_id, by_human=record.decided_by_human, place=record.spec.place)
        row["reason"] = reason.words() if reason is not None else None
