"""A client's connection: the operations of the API, as requests and answers in lines."""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from whisper_tui.model.api import Supervision, SupervisorStatus
from whisper_tui.model.call import SessionHello
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import InvalidRequest, NotAllowed, Refused, Unavailable, WhisperError
from whisper_tui.model.protocol_version import LONGEST_REQUEST
from whisper_tui.wire.authorization import PeerAuthorizer, RefusalLog
from whisper_tui.wire.operations import (
    OF_DESK,
    OPERATIONS,
    PHONE_OPERATIONS,
    Arguments,
    BadLine,
    Cancel,
    Operation,
    answer_line,
    error_line,
    line_of,
    parse_line,
)
from whisper_tui.wire.protocol import LONGEST_ANSWER, greeting
from whisper_tui.wire.server_state import OF_ROWS, Rows, ServerState

MOST_IN_FLIGHT = 10_000
"""How many requests of one connection may be in progress at once."""

MOST_WATCHES = 16
"""How many of them may watch events. Each watch starts with a copy of the whole board."""

LARGEST_IN_FLIGHT = 64 * 1024 * 1024
"""The total size of those requests in bytes."""

REQUESTS_A_TURN = 4
"""The most requests of one connection that begin in one turn of the event loop: a call takes a millisecond."""

EVENTS_A_LINE = 200
"""The most events of a watch in one line."""

LARGEST_PART = 1024 * 1024
"""The largest line with several events in bytes. A larger event has a line of its own."""

MOST_UNREAD = 64 * 1024
"""Bytes of answers that the client may leave unread before the next answer is made."""

GONE = "the agent disconnected"

_log = logging.getLogger(__name__)


class Cancelled(Refused):
    """The request was cancelled by its client."""

    kind = "cancelled"


class ApiEndpoint:
    """Serves connections. Each may have many requests at once."""

    _operations: Mapping[str, Operation] = OPERATIONS
    """All that a client can ask for."""

    def __init__(
        self, supervision: Supervision, state: ServerState, refusals: RefusalLog, phones: object | None = None
    ) -> None:
        """`phones`: has the operations of phones and about them. None: there are none."""
        self._supervision = supervision
        self._state = state
        self._refusals = refusals
        self._sources = OperationSources(supervision, Rows(supervision, state), phones)
        self._owners: dict[str, _Connection] = {}
        """By session that ends with its connection: the connection that has opened or resumed it last."""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]) -> None:
        """Serve one connection until it ends."""
        answer = greeting(hello)
        authorizer = PeerAuthorizer(writer.get_extra_info("socket"), self._state, self._refusals)
        await authorizer.examined()
        await self._admit(authorizer)
        writer.write(line_of(answer))
        connection = _Connection(
            self._sources,
            self._operations,
            authorizer,
            writer,
            state=self._state,
            owners=self._owners,
        )
        supervisor_stops = False
        try:
            await connection.read(reader)
        except asyncio.CancelledError:
            supervisor_stops = True
            raise
        finally:
            await connection.close()
            if not supervisor_stops:
                await self._close_sessions(connection)

    async def _admit(self, authorizer: PeerAuthorizer) -> None:
        """Raise `NotAllowed` if this peer may not connect; every peer may ask for some operations of the API."""

    async def _close_sessions(self, connection: "_Connection") -> None:
        """Close the sessions that end with a connection, whose client may have been killed."""
        for session_id in [each for each, owner in self._owners.items() if owner is connection]:
            del self._owners[session_id]
            await self._supervision.close_session(session_id, GONE)


class PhoneEndpoint(ApiEndpoint):
    """Serves the page for phones, which can ask for the operations of its role and for nothing else (decision 40)."""

    _operations = PHONE_OPERATIONS

    async def _admit(self, authorizer: PeerAuthorizer) -> None:
        """Keep supervised commands, and what agents have started, from the role itself."""
        try:
            await authorizer.check(PHONE_OPERATIONS["phone_calls"], {})
        except NotAllowed:
            await authorizer.leave()
            raise


@dataclass(frozen=True)
class OperationSources:
    """The objects that carry out operations."""

    supervision: Supervision
    rows: Rows
    phones: object | None

    def method_of(self, operation: Operation) -> Any:
        """Return the method that carries out an operation. Raises `Refused` if nothing here does."""
        if operation.name in OF_ROWS:
            return getattr(self.rows, operation.name)
        if operation.name in OF_DESK or operation.name in PHONE_OPERATIONS:
            if self.phones is None:
                raise Refused("this supervisor takes no decisions from phones", hint="Use that of an instance")
            return getattr(self.phones, operation.name)
        return getattr(self.supervision, operation.name)


@dataclass(frozen=True)
class _PendingRequest:
    """A request without an answer yet."""

    operation: Operation
    task: asyncio.Task[None]
    size: int
    """Bytes of its line."""


class _Connection:
    def __init__(
        self,
        sources: OperationSources,
        operations: Mapping[str, Operation],
        authorizer: PeerAuthorizer,
        writer: asyncio.StreamWriter,
        *,
        state: ServerState,
        owners: dict[str, "_Connection"],
    ) -> None:
        self._sources = sources
        self._operations = operations
        self._state = state
        self._authorizer = authorizer
        self._writer = writer
        self._owners = owners
        self._under_way: dict[int, _PendingRequest] = {}
        self._size = 0
        """The total size of all pending requests in bytes."""
        self._ends = False

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Read requests. While the client does not read its answers, no further requests are read from it."""
        for number in itertools.count(1):
            if number % REQUESTS_A_TURN == 0:
                await asyncio.sleep(0)  # An agent that submits a thousand calls at once must not delay anybody.
            try:
                line = await reader.readline()
            except ValueError:
                raise InvalidRequest(
                    f"a line is longer than {LONGEST_REQUEST:,} bytes, so nothing after it can be understood",
                    hint="Send less at once, on a new connection",
                ) from None
            if not line.endswith(b"\n"):
                return
            try:
                self._take(line)
            except BadLine as error:
                self._writer.write(error_line(error, error.request_id))
            await self._writer.drain()

    async def close(self) -> None:
        """Cancel the requests that only wait, and complete the others."""
        self._ends = True
        for request in self._under_way.values():
            # A half executed decision would be worse than one whose answer nobody reads.
            if request.operation.patient:
                request.task.cancel()
        if self._under_way:
            await asyncio.wait([request.task for request in self._under_way.values()])
        await self._authorizer.leave()

    def _take(self, line: bytes) -> None:
        parsed = parse_line(line, self._operations)
        if isinstance(parsed, Cancel):
            request = self._under_way.get(parsed.cancel)
            if request is not None and request.operation.patient:
                request.task.cancel()
            return
        operation, request_id, arguments = parsed
        self._check_room(request_id, operation, len(line))
        task = asyncio.create_task(self._answer(operation, request_id, arguments))
        self._under_way[request_id] = _PendingRequest(operation, task, len(line))
        self._size += len(line)
        task.add_done_callback(lambda done: self._finish(request_id, operation, done))

    def _check_room(self, request_id: int, operation: Operation, size: int) -> None:
        """Raise `BadLine` if the request would exceed a limit."""
        if request_id in self._under_way:
            raise BadLine(f"request {request_id} is still being answered", hint="Give every request its own id")
        hint = "Wait for answers, or cancel requests"
        if len(self._under_way) >= MOST_IN_FLIGHT:
            raise BadLine(f"{MOST_IN_FLIGHT:,} requests are already pending", request_id=request_id, hint=hint)
        if operation.streams and sum(one.operation.streams for one in self._under_way.values()) >= MOST_WATCHES:
            raise BadLine(f"{MOST_WATCHES} requests already follow the events", request_id=request_id, hint=hint)
        if self._size + size > LARGEST_IN_FLIGHT:
            message = f"the pending requests would be longer than {LARGEST_IN_FLIGHT:,} bytes"
            raise BadLine(message, request_id=request_id, hint=hint)

    def _finish(self, request_id: int, operation: Operation, task: asyncio.Task[None]) -> None:
        self._size -= self._under_way.pop(request_id).size
        error = self._cancellation(request_id) if task.cancelled() else task.exception()
        if error is None or isinstance(error, ConnectionError):
            return
        if not isinstance(error, WhisperError):
            _log.error("the operation %s failed", operation.name, exc_info=error)
            error = Unavailable(
                f"the supervisor failed at {operation.name!r} ({type(error).__name__})",
                hint="supervisor.log in the state directory has the details",
            )
        self._writer.write(error_line(error, request_id))

    def _cancellation(self, request_id: int) -> WhisperError:
        return _stopping() if self._ends else Cancelled(f"request {request_id} was cancelled")

    async def _answer(self, operation: Operation, request_id: int, arguments: Arguments) -> None:
        given = {name: getattr(arguments, name) for name in type(arguments).model_fields}
        await self._authorizer.check(operation, given)
        if isinstance(by := given.get("by"), Decider) and by.surface == "phone":
            raise InvalidRequest(
                "only a signature says that a phone has decided", hint="Name the surface of this program"
            )
        method = self._sources.method_of(operation)
        await self._wait_until_read()
        if operation.streams:
            with self._state.watched_from(self._authorizer.ssh_client):
                await self._stream(operation, request_id, method(**given))
            return
        result = await method(**given)
        if isinstance(result, SupervisorStatus):
            result = self._state.with_desks(result)
        self._authorizer.remember(operation, result)
        if isinstance(hello := given.get("hello"), SessionHello) and hello.ends_with_connection:
            self._owners[result.id] = self
        if operation.patient:
            await self._wait_until_read()
        body = operation.result.dump_json(result)
        if len(body) > LONGEST_ANSWER - MOST_UNREAD:
            raise Refused(f"the answer would be {len(body):,} bytes long", hint="Ask for less at once")
        self._writer.write(answer_line(request_id, "ok", body))

    async def _wait_until_read(self) -> None:
        """Wait until the client has read most of its answers."""
        # Without this backpressure, a client that does not read would fill the supervisor's memory (decision 15).
        while self._writer.transport.get_write_buffer_size() > MOST_UNREAD:
            await self._writer.drain()

    async def _stream(self, operation: Operation, request_id: int, items: AsyncIterator[tuple[Any, ...]]) -> None:
        """Send items as fast as the client reads. More items are requested once the last ones were read."""
        async for item in items:
            lines = deque(
                answer_line(request_id, "item", part)
                # An empty batch says something, too, so it is a line of its own.
                for start in range(0, len(item) or 1, EVENTS_A_LINE)
                for part in _parts(operation, item[start : start + EVENTS_A_LINE])
            )
            # Encoded lines need much less memory than the event objects that a slow reader would keep alive.
            del item
            while lines:
                self._writer.write(lines.popleft())
                await self._writer.drain()
        raise _stopping()


def _parts(operation: Operation, items: tuple[Any, ...]) -> Iterator[bytes]:
    """Yield items as JSON, in parts that fit into a line."""
    body = operation.result.dump_json(items)
    if len(body) <= LARGEST_PART or len(items) < 2:
        yield body
        return
    # The length of the JSON is unknown before, so the items are halved until each part fits.
    half = len(items) // 2
    yield from _parts(operation, items[:half])
    yield from _parts(operation, items[half:])


def _stopping() -> WhisperError:
    return Unavailable(
        "the connection to the supervisor was lost: it is stopping",
        hint="Running commands continue; any whisper-tui command starts the supervisor again",
    )
