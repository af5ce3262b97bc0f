"""What the process at the other end of a connection may ask for."""

import asyncio
import socket
import time
from dataclasses import dataclass
from typing import Any

from whisper_tui.model.call import Session, SessionHello
from whisper_tui.model.errors import NotAllowed
from whisper_tui.model.event import LONGEST_PROGRAM, AttemptRefused
from whisper_tui.model.masking import masked
from whisper_tui.supervisor.keeper.processes import command_of
from whisper_tui.wire.operations import Operation
from whisper_tui.wire.peers import ancestry, has_ended, look, supervised_call, why_supervised
from whisper_tui.wire.picture import Picture
from whisper_tui.wire.refusals import Refusals
from whisper_tui.wire.rendezvous import peer_process


@dataclass(frozen=True)
class _Objection:
    """Why a peer may not decide."""

    why: str
    from_call: str | None = None
    """The call whose command it belongs to, where that is known."""


class Visitor:
    """One connection's peer: looked at when it comes, and again whenever that matters.

    A supervised command could lose its keeper after it has connected, so what was seen first counts for ever.
    """

    def __init__(self, connection: socket.socket, picture: Picture, refusals: Refusals) -> None:
        self._connection = connection
        self._pid, _ = peer_process(connection)
        self._picture = picture
        self._refusals = refusals
        self._sessions: set[str] = set()
        self._calls: set[str] = set()
        self._start: str | None = None
        self._first_look = asyncio.create_task(self._look())

    async def looked_at(self) -> None:
        """Wait until it was looked at: before it gets its first answer, so that it cannot lose its keeper meanwhile."""
        await asyncio.shield(self._first_look)

    async def leave(self) -> None:
        """Forget it."""
        self._first_look.cancel()
        await asyncio.wait([self._first_look])

    async def check(self, operation: Operation, given: dict[str, Any]) -> None:
        """Raises `NotAllowed` for what a supervised command, or what an agent has started, may not do."""
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
        """Note what this peer has brought itself."""
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
        if self._start is None:
            self._start = line[0].start
        if self._start != line[0].start or has_ended(self._connection):
            return _Objection("the process that connected is gone")
        return None

    async def _attempt(self, operation: Operation, given: dict[str, Any], objection: _Objection) -> AttemptRefused:
        about = given.get("call_id") or given.get("grant_id") or given.get("session_id")
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
