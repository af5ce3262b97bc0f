"""One connection of a client: the operations of the API, as requests and answers in lines."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from whisper_tui.model.api import Supervision
from whisper_tui.model.errors import InvalidRequest, Refused, Unavailable, WhisperError
from whisper_tui.wire.authorization import PeerAuthorizer, RefusalLog
from whisper_tui.wire.operations import (
    Arguments,
    BadLine,
    Cancel,
    Operation,
    answer_line,
    error_line,
    line_of,
    parse_line,
)
from whisper_tui.wire.protocol import LONGEST_ANSWER, LONGEST_REQUEST, greeting
from whisper_tui.wire.server_state import Rows, ServerState

MOST_IN_FLIGHT = 10_000
"""Requests of one connection that may wait for their answers at the same time."""

MOST_WATCHES = 16
"""Of them, requests that watch the events: each starts with a copy of the whole board."""

LARGEST_IN_FLIGHT = 64 * 1024 * 1024
"""Bytes of those requests."""

EVENTS_A_LINE = 200
"""Events of a watch that go into one line at most."""

LARGEST_PART = 1024 * 1024
"""Bytes of several events in one line at most; a larger one has a line of its own."""

UNTAKEN = 64 * 1024
"""Bytes of answers that may wait for the client before the next one is made."""

_log = logging.getLogger(__name__)


class Cancelled(Refused):
    """The request was cancelled by its client."""

    kind = "cancelled"


class ApiEndpoint:
    """Serves connections, each with as many requests at once as its client likes."""

    def __init__(self, supervision: Supervision, picture: ServerState, refusals: RefusalLog) -> None:
        self._supervision = supervision
        self._picture = picture
        self._refusals = refusals
        self._rows = Rows(supervision, picture)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]) -> None:
        """Serve one connection until it ends."""
        answer = greeting(hello)
        visitor = PeerAuthorizer(writer.get_extra_info("socket"), self._picture, self._refusals)
        await visitor.looked_at()
        writer.write(line_of(answer))
        connection = _Connection(self._supervision, self._rows, visitor, writer)
        try:
            await connection.read(reader)
        finally:
            await connection.close()


@dataclass(frozen=True)
class _UnderWay:
    """A request that is not answered yet."""

    operation: Operation
    task: asyncio.Task[None]
    size: int
    """Bytes of its line."""


class _Connection:
    def __init__(
        self, supervision: Supervision, rows: Rows, visitor: PeerAuthorizer, writer: asyncio.StreamWriter
    ) -> None:
        self._supervision = supervision
        self._rows = rows
        self._visitor = visitor
        self._writer = writer
        self._under_way: dict[int, _UnderWay] = {}
        self._size = 0
        """Bytes of all requests that are under way."""
        self._ends = False

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Read requests. While the client does not read its answers, nothing more is read from it."""
        while True:
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
            # A decision half carried out would be worse than one whose answer nobody reads.
            if request.operation.patient:
                request.task.cancel()
        if self._under_way:
            await asyncio.wait([request.task for request in self._under_way.values()])
        await self._visitor.leave()

    def _take(self, line: bytes) -> None:
        parsed = parse_line(line)
        if isinstance(parsed, Cancel):
            request = self._under_way.get(parsed.cancel)
            if request is not None and request.operation.patient:
                request.task.cancel()
            return
        operation, request_id, arguments = parsed
        self._check_room(request_id, operation, len(line))
        task = asyncio.create_task(self._answer(operation, request_id, arguments))
        self._under_way[request_id] = _UnderWay(operation, task, len(line))
        self._size += len(line)
        task.add_done_callback(lambda done: self._finish(request_id, operation, done))

    def _check_room(self, request_id: int, operation: Operation, size: int) -> None:
        """Raise `BadLine` if the request would exceed a limit."""
        if request_id in self._under_way:
            raise BadLine(f"request {request_id} is still being answered", hint="Give every request its own id")
        hint = "Wait for answers, or give requests up"
        if len(self._under_way) >= MOST_IN_FLIGHT:
            raise BadLine(f"{MOST_IN_FLIGHT:,} requests wait for answers already", request_id=request_id, hint=hint)
        if operation.streams and sum(one.operation.streams for one in self._under_way.values()) >= MOST_WATCHES:
            raise BadLine(f"{MOST_WATCHES} requests follow the events already", request_id=request_id, hint=hint)
        if self._size + size > LARGEST_IN_FLIGHT:
            message = f"the requests that wait for answers would be longer than {LARGEST_IN_FLIGHT:,} bytes"
            raise BadLine(message, request_id=request_id, hint=hint)

    def _finish(self, request_id: int, operation: Operation, task: asyncio.Task[None]) -> None:
        self._size -= self._under_way.pop(request_id).size
        error = self._given_up(request_id) if task.cancelled() else task.exception()
        if error is None or isinstance(error, ConnectionError):
            return
        if not isinstance(error, WhisperError):
            _log.error("the operation %s failed", operation.name, exc_info=error)
            error = Unavailable(
                f"the supervisor failed at {operation.name!r} ({type(error).__name__})",
                hint="supervisor.log in the state directory has the details",
            )
        self._writer.write(error_line(error, request_id))

    def _given_up(self, request_id: int) -> WhisperError:
        return _stopping() if self._ends else Cancelled(f"request {request_id} was given up")

    async def _answer(self, operation: Operation, request_id: int, arguments: Arguments) -> None:
        given = {name: getattr(arguments, name) for name in type(arguments).model_fields}
        await self._visitor.check(operation, given)
        source = self._rows if operation.name == "rows" else self._supervision
        method = getattr(source, operation.name)
        await self._taken()
        if operation.streams:
            await self._stream(operation, request_id, method(**given))
            return
        result = await method(**given)
        self._visitor.remember(operation, result)
        if operation.patient:
            await self._taken()
        body = operation.result.dump_json(result)
        if len(body) > LONGEST_ANSWER - UNTAKEN:
            raise Refused(f"the answer would be {len(body):,} bytes long", hint="Ask for less at once")
        self._writer.write(answer_line(request_id, "ok", body))

    async def _taken(self) -> None:
        """Wait until the client has read most of its answers."""
        # Without this backpressure, a client that does not read would fill the supervisor's memory (decision 21).
        while self._writer.transport.get_write_buffer_size() > UNTAKEN:
            await self._writer.drain()

    async def _stream(self, operation: Operation, request_id: int, items: AsyncIterator[tuple[Any, ...]]) -> None:
        """Send items as fast as the client reads; the source is asked for more only when the last ones were read."""
        async for item in items:
            lines = deque(
                answer_line(request_id, "item", part)
                for start in range(0, len(item), EVENTS_A_LINE)
                for part in _parts(operation, item[start : start + EVENTS_A_LINE])
            )
            # Encoded lines take a small part of the memory of the event objects that a slow reader would hold.
            del item
            while lines:
                self._writer.write(lines.popleft())
                await self._writer.drain()
        raise _stopping()


def _parts(operation: Operation, items: tuple[Any, ...]) -> Iterator[bytes]:
    """Items as JSON, in pieces that are not too long for a line."""
    body = operation.result.dump_json(items)
    if len(body) <= LARGEST_PART or len(items) == 1:
        yield body
        return
    # JSON of unknown length cannot be cut by bytes, so the items are halved until each part fits.
    half = len(items) // 2
    yield from _parts(operation, items[:half])
    yield from _parts(operation, items[half:])


def _stopping() -> WhisperError:
    return Unavailable(
        "the connection to the supervisor was lost: it is stopping",
        hint="Running commands continue; any whisper-tui command brings the supervisor back",
    )
