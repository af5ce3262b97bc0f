"""The port, implemented over the supervisor's socket."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Self

from whisper_tui.model.call import CallRequest, ClientInfo, Session, SessionHello
from whisper_tui.model.command import CommandSpec
from whisper_tui.model.decision import Coverage, Decider, Decision, Grant, Scope
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.event import Event, RulesChanged
from whisper_tui.model.home import Home
from whisper_tui.model.port import HistoryQuery, Pruned, SupervisorStatus
from whisper_tui.model.run import OutputChunk, OutputSpan, SignalTarget, Stream, TerminalSize
from whisper_tui.model.state import CallRecord, Claim, Ended, Running
from whisper_tui.supervisor.executor import RunKey
from whisper_tui.supervisor.output_files import OutputFiles
from whisper_tui.wire.link import Link, follow
from whisper_tui.wire.rendezvous import connect, reach

ATTEMPTS_KEPT = 10_000
"""Runs of which this client remembers where their output is."""


class RemoteSupervision:
    """A supervisor in another process. It connects again by itself when a request finds the connection lost."""

    def __init__(self, home: Home, *, start: bool = True) -> None:
        """`start`: whether a supervisor is started when none runs."""
        self._home = home
        self._start = start
        self._link: Link | None = None
        self._connecting = asyncio.Lock()
        self._files = OutputFiles(Path(home.state) / "runs")
        self._keys: dict[str, RunKey] = {}

    @classmethod
    async def connect(cls, home: Home, *, start: bool = True) -> Self:
        """A client that is connected. Raises `WhisperError`."""
        client = cls(home, start=start)
        await client._connected()
        return client

    async def close(self) -> None:
        """End the connection."""
        if self._link is not None:
            await self._link.close()
            self._link = None

    async def open_session(self, hello: SessionHello) -> Session:
        """Begin, or resume, an agent's session."""
        session: Session = await self._ask("open_session", hello=hello)
        return session

    async def describe_session(self, session_id: str, client: ClientInfo) -> None:
        """Say which program the agent is."""
        await self._ask("describe_session", session_id=session_id, client=client)

    async def session(self, session_id: str) -> Session:
        """Any session that the journal knows."""
        session: Session = await self._ask("session", session_id=session_id)
        return session

    async def say(self, session_id: str, text: str, by: Decider) -> None:
        """Add to the conversation of a session."""
        await self._ask("say", session_id=session_id, text=text, by=by)

    async def close_session(self, session_id: str, why: str) -> None:
        """End a session."""
        await self._ask("close_session", session_id=session_id, why=why)

    async def submit(self, request: CallRequest) -> str:
        """Hand in a call."""
        call_id: str = await self._ask("submit", request=request)
        return call_id

    async def decided(self, call_id: str) -> CallRecord:
        """Wait until nobody needs to be asked any more."""
        record: CallRecord = await self._ask("decided", call_id=call_id)
        return record

    async def claim(self, call_id: str, ticket: str, claim: Claim, names: tuple[str, ...] | None = None) -> CallRecord:
        """Start an approved call for the one who shows its ticket."""
        record: CallRecord = await self._ask("claim", call_id=call_id, ticket=ticket, claim=claim, names=names)
        return record

    async def hand_over(self, call_id: str, ticket: str) -> CallRecord:
        """Leave an approved call to its agent."""
        record: CallRecord = await self._ask("hand_over", call_id=call_id, ticket=ticket)
        return record

    async def started(self, call_id: str) -> CallRecord:
        """Wait until the call has a process or its ending."""
        record: CallRecord = await self._ask("started", call_id=call_id)
        return record

    async def begin_function(self, call_id: str) -> CallRecord:
        """Wait until the caller's own tool may be carried out."""
        record: CallRecord = await self._ask("begin_function", call_id=call_id)
        return record

    async def end_function(self, call_id: str, problem: str | None = None) -> None:
        """The caller's own tool is done."""
        await self._ask("end_function", call_id=call_id, problem=problem)

    async def outcome(self, call_id: str) -> CallRecord:
        """Wait until the call has its ending."""
        record: CallRecord = await self._ask("outcome", call_id=call_id)
        return record

    async def withdraw(self, call_id: str, why: str, *, stop_running: bool = False) -> None:
        """The agent no longer wants it."""
        await self._ask("withdraw", call_id=call_id, why=why, stop_running=stop_running)

    async def leave(self, call_id: str, why: str) -> None:
        """The agent stops waiting for the answer."""
        await self._ask("leave", call_id=call_id, why=why)

    async def watch(self, after: int | None = None) -> AsyncIterator[tuple[Event, ...]]:
        """Numbered events in batches, on a connection of their own, so that a slow reader holds up nothing else."""
        async with aclosing(follow(await self._connection(), "watch", after=after)) as batches:
            async for batch in batches:
                yield batch

    async def decide(self, call_id: str, decision: Decision, by: Decider, seen: str) -> None:
        """Decide about a waiting call."""
        await self._ask("decide", call_id=call_id, decision=decision, by=by, seen=seen)

    async def signal(self, call_id: str, number: int, target: SignalTarget, by: Decider) -> None:
        """Send a signal to a run."""
        await self._ask("signal", call_id=call_id, number=number, target=target, by=by)

    async def pause(self, by: Decider) -> None:
        """Hold every run still."""
        await self._ask("pause", by=by)

    async def resume(self, by: Decider) -> None:
        """Let everything go on."""
        await self._ask("resume", by=by)

    async def write_stdin(self, call_id: str, data: bytes, *, eof: bool = False) -> None:
        """Write to the command's input."""
        await self._ask("write_stdin", call_id=call_id, data=data, eof=eof)

    async def resize(self, call_id: str, rows: int, columns: int) -> None:
        """Tell the command's terminal its size."""
        await self._ask("resize", call_id=call_id, rows=rows, columns=columns)

    async def read_output(self, call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """A piece of a stream, straight from the run's files once there are any."""
        key = await self._key(call_id)
        if key is not None:
            return self._files.read_output(key, stream, offset, limit)
        chunk: OutputChunk = await self._ask("read_output", call_id=call_id, stream=stream, offset=offset, limit=limit)
        return chunk

    async def output_file(self, call_id: str, stream: Stream) -> str | None:
        """The file that holds all of a stream."""
        path: str | None = await self._ask("output_file", call_id=call_id, stream=stream)
        return path

    async def read_timeline(self, call_id: str, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Rows of the time index, straight from the run's files once there are any."""
        key = await self._key(call_id)
        if key is not None:
            return self._files.read_timeline(key, after, limit)
        spans: tuple[OutputSpan, ...] = await self._ask("read_timeline", call_id=call_id, after=after, limit=limit)
        return spans

    async def terminal_sizes(self, call_id: str) -> tuple[TerminalSize, ...]:
        """The sizes of the command's terminal, straight from the run's files once there are any."""
        key = await self._key(call_id)
        if key is not None:
            return self._files.terminal_sizes(key)
        sizes: tuple[TerminalSize, ...] = await self._ask("terminal_sizes", call_id=call_id)
        return sizes

    async def record(self, call_id: str) -> CallRecord:
        """Any call that the journal knows."""
        record: CallRecord = await self._ask("record", call_id=call_id)
        return record

    async def history(self, query: HistoryQuery) -> tuple[CallRecord, ...]:
        """Calls that match."""
        records: tuple[CallRecord, ...] = await self._ask("history", query=query)
        return records

    async def grants(self, session_id: str | None = None) -> tuple[Grant, ...]:
        """The remembered approvals that hold."""
        grants: tuple[Grant, ...] = await self._ask("grants", session_id=session_id)
        return grants

    async def would_cover(self, call_id: str, scope: Scope, edited: CommandSpec | None = None) -> Coverage:
        """Which of the newest calls an approval with this scope would have let through."""
        covered: Coverage = await self._ask("would_cover", call_id=call_id, scope=scope, edited=edited)
        return covered

    async def revoke(self, grant_id: str, by: Decider) -> None:
        """Forget a remembered approval."""
        await self._ask("revoke", grant_id=grant_id, by=by)

    async def rule_files(self) -> tuple[RulesChanged, ...]:
        """What the files of rules say."""
        known: tuple[RulesChanged, ...] = await self._ask("rule_files")
        return known

    async def trust_rules(
        self, path: str, by: Decider, digest: str | None = None, add: tuple[str, ...] = (), remove: tuple[str, ...] = ()
    ) -> None:
        """Let what a file of rules allows hold."""
        await self._ask("trust_rules", path=path, by=by, digest=digest, add=add, remove=remove)

    async def prune(self, *, dry_run: bool = False) -> Pruned:
        """Remove recorded output beyond what the user keeps."""
        pruned: Pruned = await self._ask("prune", dry_run=dry_run)
        return pruned

    async def status(self) -> SupervisorStatus:
        """How the supervisor is."""
        status: SupervisorStatus = await self._ask("status")
        return status

    async def shutdown(self, *, end_runs: bool = False) -> None:
        """Stop the supervisor."""
        await self._ask("shutdown", end_runs=end_runs)

    async def _ask(self, name: str, **arguments: Any) -> Any:
        link = await self._connected()
        return await link.ask(name, **arguments)

    async def _connected(self) -> Link:
        async with self._connecting:
            if self._link is None or self._link.lost is not None:
                self._link = await Link.open(await self._connection())
            return self._link

    async def _connection(self) -> socket.socket:
        connection = await asyncio.to_thread(reach if self._start else connect, self._home)
        if connection is None:
            raise Unavailable(
                f"no supervisor runs for {self._home.state}", hint="Any other whisper-tui command starts one"
            )
        return connection

    async def _key(self, call_id: str) -> RunKey | None:
        """Where a run's files are. None: it has not surely started; an attempt that never ran is replaced."""
        known = self._keys.get(call_id)
        if known is None:
            record = await self.record(call_id)
            if record.attempt is None or not isinstance(record.state, Running | Ended):
                return None
            if len(self._keys) >= ATTEMPTS_KEPT:
                self._keys.clear()
            known = self._keys[call_id] = RunKey(call_id, record.attempt)
        return known
