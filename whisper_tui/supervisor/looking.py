"""The part of the port that changes nothing: calls, output, sessions and remembered approvals, as they are."""

import asyncio
import os
from collections.abc import Callable

from whisper_tui import __version__
from whisper_tui.model.board import Board
from whisper_tui.model.call import Session
from whisper_tui.model.command import CommandSpec
from whisper_tui.model.decision import Coverage, Grant, Scope
from whisper_tui.model.errors import Refused
from whisper_tui.model.event import Event, RulesChanged
from whisper_tui.model.home import Home
from whisper_tui.model.port import HistoryQuery, SupervisorStatus
from whisper_tui.model.run import OutputChunk, OutputSpan, Stream, TerminalSize
from whisper_tui.model.state import CallRecord, Ended, Running, Starting
from whisper_tui.supervisor.coverage import LOOKED_AT, check_scope, coverage
from whisper_tui.supervisor.executor import Executor, RunKey
from whisper_tui.supervisor.keeper.processes import look_at
from whisper_tui.supervisor.ledger import Ledger
from whisper_tui.supervisor.sandboxing import sandbox_problem, sandbox_words
from whisper_tui.supervisor.settings import SupervisorSettings

READ_AT_ONCE = 25
"""Calls of the past that are read before somebody else gets a turn."""


class Looking:
    """Answers from the ledger and from the files of the runs."""

    def __init__(
        self, home: Home, ledger: Ledger, executor: Executor, settings: SupervisorSettings, started_at: float
    ) -> None:
        self._home = home
        self._ledger = ledger
        self._executor = executor
        self._settings = settings
        self._started_at = started_at

    @property
    def board(self) -> Board:
        """Everything as it is now; only to be read."""
        return self._ledger.board

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Have a function called with every fact, in order, once it is on the board."""
        self._ledger.listen(listener)

    async def session(self, session_id: str) -> Session:
        """Any session that the journal knows."""
        session = self._ledger.session(session_id)
        if session is None:
            raise Refused(f"there is no session {session_id}", hint="Open one first")
        return session

    async def read_output(self, call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """A piece of a stream."""
        record = self._ledger.call(call_id)
        if record.attempt is None:
            return OutputChunk(data=b"", start=0, size=0, ended=isinstance(record.state, Ended))
        chunk = self._executor.read_output(run_key(record), stream, offset, limit)
        return chunk.model_copy(update={"ended": False}) if isinstance(record.state, Starting) else chunk

    async def output_file(self, call_id: str, stream: Stream) -> str | None:
        """The file that holds all of a stream."""
        record = self._ledger.call(call_id)
        return None if record.attempt is None else self._executor.output_file(run_key(record), stream)

    def input_file(self, call_id: str) -> str | None:
        """Path of the FIFO that takes the input of a command. None: it takes none, or not any more."""
        record = self._ledger.call(call_id)
        return self._executor.input_file(run_key(record)) if isinstance(record.state, Running) else None

    def last_directory(self, call_id: str) -> str | None:
        """The directory in which the shell of a call has ended. None: it was not asked for, or is not known."""
        record = self._ledger.call(call_id)
        return self._executor.last_directory(run_key(record)) if isinstance(record.state, Ended) else None

    async def read_timeline(self, call_id: str, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Rows of the time index."""
        record = self._ledger.call(call_id)
        return () if record.attempt is None else self._executor.read_timeline(run_key(record), after, limit)

    async def terminal_sizes(self, call_id: str) -> tuple[TerminalSize, ...]:
        """The sizes that the command's terminal has had."""
        record = self._ledger.call(call_id)
        return (TerminalSize(),) if record.attempt is None else self._executor.terminal_sizes(run_key(record))

    async def record(self, call_id: str) -> CallRecord:
        """Any call that the journal knows."""
        return self._ledger.call(call_id)

    async def history(self, query: HistoryQuery) -> tuple[CallRecord, ...]:
        """Calls that match, newest first."""
        journal = self._ledger.journal
        takes_long = query.text or query.session is not None
        found = await journal.find_beside(query) if takes_long else journal.find(query)
        records: list[CallRecord] = []
        for number, call_id in enumerate(found, start=1):
            records.append(self._ledger.call(call_id))
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        return tuple(records)

    async def grants(self, session_id: str | None = None) -> tuple[Grant, ...]:
        """The remembered approvals that hold."""
        board = self._ledger.board
        # One that closed because its connection was lost has its approvals again if the same process comes back.
        open_sessions = {session.id for session in board.sessions.values() if _may_go_on(session)}
        return tuple(
            grant
            for grant in board.grants.values()
            if grant.revoked_at is None and grant.session_id in open_sessions and session_id in {None, grant.session_id}
        )

    async def would_cover(self, call_id: str, scope: Scope, edited: CommandSpec | None = None) -> Coverage:
        """Try a scope on the newest calls, beside the loop: it takes a fraction of a second."""
        record = self._ledger.call(call_id)
        spec = edited or record.call.spec
        check_scope(scope, spec)
        session = self._ledger.session(record.call.session_id)
        records = await self.history(HistoryQuery(limit=LOOKED_AT))
        return await asyncio.to_thread(coverage, scope, spec, session.root if session else "", records)

    async def rule_files(self) -> tuple[RulesChanged, ...]:
        """What the files of rules say."""
        return tuple(self._ledger.board.rules.values())

    async def status(self) -> SupervisorStatus:
        """How the supervisor is."""
        board = self._ledger.board
        return SupervisorStatus(
            version=__version__,
            pid=os.getpid(),
            started_at=self._started_at,
            workers=self._settings.workers,
            waiting=len(board.waiting),
            queued=len(board.queued),
            running=len(board.running),
            home=str(self._home.state),
            paused_since=board.paused.at if board.paused else None,
            paused_by=board.paused.by if board.paused else None,
            problem=self._ledger.trouble.words or self._executor.trouble,
            counts=self._executor.counts,
            sandbox=sandbox_words(),
            sandbox_problem=sandbox_problem() or None,
            unguarded=self._unguarded_now(),
        )

    def _unguarded_now(self) -> tuple[str, ...]:
        """What is known of agents whose own commands are not held."""
        return ()


def _may_go_on(session: Session) -> bool:
    return session.closed_at is None or (session.pid is not None and look_at(session.pid) is not None)


def run_key(record: CallRecord) -> RunKey:
    """Where the files of a call's run are; of one that has none, of its first attempt."""
    return RunKey(record.id, record.attempt or 1)
