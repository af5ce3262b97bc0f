"""Authorization of the process at the other end of a connection, and the record of refused attempts."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from whisper_tui.model.api import Submission
from whisper_tui.model.call import Session, SessionHello
from whisper_tui.model.errors import NotAllowed, WhisperError
from whisper_tui.model.event import LONGEST_PROGRAM, AttemptRefused
from whisper_tui.model.secrets import masked
from whisper_tui.model.text import visible
from whisper_tui.system.ancestry import PeerThere, ancestry, has_ended, read_process
from whisper_tui.system.processes import command_of, peer_process
from whisper_tui.wire.operations import Operation
from whisper_tui.wire.peers import ssh_client, supervised_call, why_from_command, why_supervised
from whisper_tui.wire.server_state import ServerState

RecordRefusal = Callable[[AttemptRefused], None]
"""Journals a refused attempt, so that every watcher learns of it. Raises `WhisperError`."""

BURST = 20
"""Burst size: so many attempts are recorded at any rate."""

EVERY_S = 60.0
"""Seconds after which one further attempt is recorded."""

FAREWELL = "report_presence"
"""The last request of a cockpit: it may have ended before it is examined, and that is no attempt of anybody."""

LONGEST_DOOR, LONGEST_NAME = 50, 200
"""Characters of what an agent at a place says, that are kept."""

_log = logging.getLogger(__name__)


class RefusalLog:
    """A rate limit for recorded refusals. The next record counts those that were left out."""

    def __init__(self, record: RecordRefusal | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._record = record
        self._clock = clock
        self._tokens = float(BURST)
        self._refilled_at = clock()
        self._left_out = 0

    def note(self, attempt: AttemptRefused) -> None:
        """Record one refused attempt, or only count it if there were too many recently."""
        # A token bucket, so that a loop of attempts cannot fill the disk with refusals.
        now = self._clock()
        self._tokens = min(float(BURST), self._tokens + (now - self._refilled_at) / EVERY_S)
        self._refilled_at = now
        if self._tokens < 1:
            self._left_out += 1
            return
        self._tokens -= 1
        attempt = attempt.model_copy(update={"left_out": self._left_out})
        self._left_out = 0
        _log.warning("%r by pid %d was refused because %s", attempt.operation, attempt.pid, visible(attempt.why))
        if self._record is None:
            return
        try:
            self._record(attempt)
        except WhisperError as error:
            _log.warning("the refusal could not be recorded: %s", error.sentence())


@dataclass(frozen=True)
class _Objection:
    """The reason why a peer may not decide."""

    why: str
    from_call: str | None = None
    """The call whose command it belongs to, if that is known."""
    gone: bool = False
    """True if nothing is known but that it has ended."""


class PeerAuthorizer:
    """The peer of one connection, examined when it connects and again before every guarded operation (decision 13)."""

    def __init__(self, connection: socket.socket, state: ServerState, refusals: RefusalLog) -> None:
        self._connection = connection
        self._pid, _ = peer_process(connection)
        self._state = state
        self._refusals = refusals
        self._sessions: set[str] = set()
        self._calls: set[str] = set()
        self._start: str | None = None
        self.ssh_client = ""
        """The address from which the peer has come by ssh, as its session says. Empty: from none."""
        # The first result stays valid, because a supervised command could lose its keeper after connecting.
        self._first_check = asyncio.create_task(self._find_objection())

    async def examined(self) -> None:
        """Wait until the peer was examined."""
        # It gets no answer before that. So it is still waiting, and its ancestors are still visible.
        await asyncio.shield(self._first_check)

    async def leave(self) -> None:
        """Stop examining the peer."""
        self._first_check.cancel()
        await asyncio.wait([self._first_check])

    async def check(self, operation: Operation, given: dict[str, Any]) -> None:
        """Raise `NotAllowed` if the operation is guarded and the peer descends from a command or an agent."""
        if operation.guard == "nobody" or self._is_own(operation, given):
            return
        objection = await asyncio.shield(self._first_check) or await self._find_objection()
        if objection is None:
            return
        if not (objection.gone and operation.name == FAREWELL):
            self._refusals.note(await self._attempt(operation, given, objection))
        raise NotAllowed(
            f"{operation.name!r} was refused because {objection.why}",
            hint="Only a human may do this, at a terminal that no agent has started, or over ssh from another machine",
        )

    def remember(self, operation: Operation, result: Any) -> None:
        """Remember the sessions and calls that this peer has created."""
        if operation.name == "open_session" and isinstance(result, Session):
            self._sessions.add(result.id)
        elif operation.name == "submit" and isinstance(result, str):
            self._calls.add(result)
        elif operation.name == "submit_and_begin" and isinstance(result, Submission):
            self._calls.add(result.call_id)

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

    async def _find_objection(self) -> _Objection | None:
        """Return why this peer may not decide. None: it may."""
        line = await asyncio.to_thread(ancestry, self._pid, read_process)
        keepers = self._state.keepers()
        problem = await asyncio.to_thread(why_supervised, line, keepers, self._state.agents())
        if problem is not None or line is None:
            gone = line is None and has_ended(self._connection)
            return _Objection(problem or "the requesting process is gone", supervised_call(line, keepers), gone=gone)
        self.ssh_client = ssh_client(line)
        # A pid can be reused between two checks. The start time distinguishes the processes.
        if self._start is None:
            self._start = line[0].start
        if self._start != line[0].start or has_ended(self._connection):
            return _Objection("the process that connected is gone", gone=True)
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


ONLY_MCP = "an agent at a place is served over MCP alone"


def admitted(peer: PeerThere, hello: dict[str, Any], state: ServerState, refusals: RefusalLog) -> dict[str, Any]:
    """Return the hello of an agent at a place as it counts: over MCP, bound to its place. Raises `NotAllowed`.

    Only that interface keeps an agent to its own session, and it decides nothing.
    """
    keepers = state.keepers(peer.place)
    objection = why_from_command(peer.line, keepers)
    if objection is None and hello["door"] != "mcp":
        objection = ONLY_MCP
    if objection is not None:
        refusals.note(
            AttemptRefused(
                at=time.time(),
                operation=f"{hello['door'][:LONGEST_DOOR]} at {peer.place}",
                why=objection,
                pid=peer.pid,
                program=masked(peer.program).encode("utf-8", "replace").decode()[:LONGEST_PROGRAM],
                from_call=supervised_call(peer.line, keepers),
            )
        )
        raise NotAllowed(f"no agent is served at {peer.place}, because {objection}", hint="Start the agent outside")
    given = hello.get("session")
    said = given if isinstance(given, dict) else {}
    session = {name: said[name] for name in ("name", "root", "client") if name in said}
    bound = {"name": f"{str(said.get('name', ''))[:LONGEST_NAME]} at {peer.place}", "place": peer.place}
    return {
        **{name: hello[name] for name in ("door", "version", "wait_s") if name in hello},
        "session": {**session, **bound, "relayed": True, "key": peer.key},
    }
