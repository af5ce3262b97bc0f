"""Authorization of the process at the other end of a connection, and the record of refused attempts."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from whisper_tui.model.call import Session, SessionHello
from whisper_tui.model.errors import NotAllowed, WhisperError
from whisper_tui.model.event import LONGEST_PROGRAM, AttemptRefused
from whisper_tui.model.secrets import masked
from whisper_tui.model.text import visible
from whisper_tui.system.processes import command_of
from whisper_tui.wire.operations import Operation
from whisper_tui.wire.peers import ancestry, has_ended, look, supervised_call, why_supervised
from whisper_tui.wire.rendezvous import peer_process
from whisper_tui.wire.server_state import ServerState

RecordRefusal = Callable[[AttemptRefused], None]
"""Journals a refused attempt, of which every watcher then learns. Raises `WhisperError`."""

AT_ONCE = 20
"""Size of the burst: attempts that are recorded at any rate."""

EVERY_S = 60.0
"""Seconds for each further attempt that is recorded."""

_log = logging.getLogger(__name__)


class RefusalLog:
    """A rate limit for recorded refusals; those left out are counted in the next record."""

    def __init__(self, record: RecordRefusal | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._record = record
        self._clock = clock
        self._room = float(AT_ONCE)
        self._looked = clock()
        self._left_out = 0

    def note(self, attempt: AttemptRefused) -> None:
        """Record one refused attempt, or count it if too many came lately."""
        # A token bucket: a loop of attempts must not fill the disk with its own refusals.
        now = self._clock()
        self._room = min(float(AT_ONCE), self._room + (now - self._looked) / EVERY_S)
        self._looked = now
        if self._room < 1:
            self._left_out += 1
            return
        self._room -= 1
        attempt = attempt.model_copy(update={"left_out": self._left_out})
        self._left_out = 0
        _log.warning("%r by pid %d was refused because %s", attempt.operation, attempt.pid, visible(attempt.why))
        if self._record is None:
            return
        try:
            self._record(attempt)
        except WhisperError as error:
            _log.warning("that could not be recorded: %s", error.sentence())


@dataclass(frozen=True)
class _Objection:
    """The reason why a peer may not decide."""

    why: str
    from_call: str | None = None
    """The call whose command it belongs to, where that is known."""


class PeerAuthorizer:
    """The peer of one connection, examined when it connects and again before every guarded operation (decision 18)."""

    def __init__(self, connection: socket.socket, picture: ServerState, refusals: RefusalLog) -> None:
        self._connection = connection
        self._pid, _ = peer_process(connection)
        self._picture = picture
        self._refusals = refusals
        self._sessions: set[str] = set()
        self._calls: set[str] = set()
        self._start: str | None = None
        # A supervised command could lose its keeper after it has connected, so the first result stays valid.
        self._first_look = asyncio.create_task(self._look())

    async def looked_at(self) -> None:
        """Wait until the peer was examined."""
        # It gets no answer before: until then it waits, and its ancestors are still there to be seen.
        await asyncio.shield(self._first_look)

    async def leave(self) -> None:
        """Stop examining the peer."""
        self._first_look.cancel()
        await asyncio.wait([self._first_look])

    async def check(self, operation: Operation, given: dict[str, Any]) -> None:
        """Raise `NotAllowed` if the operation is guarded and the peer descends from a command or an agent."""
        if operation.guard == "nobody" or self._is_own(operation, given):
            return
        objection = await asyncio.shield(self._first_look) or await self._look()
        if objection is None:
            return
        self._refusals.note(await self._attempt(operation, given, objection))
        raise NotAllowed(
            f"{operation.name!r} was refused because {objection.why}",
            hint="Only a human, from a terminal that no agent has started, may do this",
        )

    def remember(self, operation: Operation, result: Any) -> None:
        """Remember the sessions and calls that this peer has created: they are its own."""
        if operation.name == "open_session" and isinstance(result, Session):
            self._sessions.add(result.id)
        elif operation.name == "submit" and isinstance(result, str):
            self._calls.add(result)

    def _is_own(self, operation: Operation, given: dict[str, Any]) -> bool:
        match operation.guard:
            case "own session":
                request = given.get("request")
                return (request.session_id if request is not None else given["session_id"]) in self._sessions
            case "own call":
                return given["call_id"] in self._calls
            case "own resume":
                hello = given["hello"]
                return (
                    isinstance(hello, SessionHello)
                    and {hello.resume, hello.key} == {None}
                    and hello.trust == "untrusted_external"
                )
            case _:
                return False

    async def _look(self) -> _Objection | None:
        """Why this peer may not decide. None: it may."""
        line = await asyncio.to_thread(ancestry, self._pid, look)
        keepers = self._picture.keepers()
        problem = why_supervised(line, keepers, self._picture.agents())
        if problem is not None or line is None:
            return _Objection(problem or "the process that asks is gone", supervised_call(line, keepers))
        # A pid can be reused between two checks; the start time tells the processes apart.
        if self._start is None:
            self._start = line[0].start
        if self._start != line[0].start or has_ended(self._connection):
            return _Objection("the process that connected is gone")
        return None

    async def _attempt(self, operation: Operation, given: dict[str, Any], objection: _Objection) -> AttemptRefused:
        about = next((given[key] for key in ("call_id", "grant_id", "denial_id", "session_id") if given.get(key)), None)
        program = masked(await asyncio.to_thread(command_of, self._pid)).encode("utf-8", "replace").decode()
        return AttemptRefused(
            at=time.time(),
            operation=operation.name,
            about=str(about)[:LONGEST_PROGRAM] if about else None,
            why=objection.why,
            pid=self._pid,
            program=program[:LONGEST_PROGRAM],
            from_call=objection.from_call,
        )
