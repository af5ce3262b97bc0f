"""The supervisor's API, implemented over its socket."""

import asyncio
import functools
import inspect
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Any, Protocol, Self, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from whisper_tui.model.api import Supervision
from whisper_tui.model.errors import InvalidRequest, OtherVersion, Unavailable, WhisperError
from whisper_tui.model.packed_calls import BoardItem
from whisper_tui.model.protocol_version import LONGEST_REQUEST
from whisper_tui.model.run import OutputChunk, OutputSpan, Stream, TerminalSize
from whisper_tui.model.state import Ended, Running
from whisper_tui.model.text import visible
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.operations import (
    OPERATIONS,
    PHONE_OPERATIONS,
    Operation,
    error_in,
    explain,
    line_of,
    request_line,
)
from whisper_tui.wire.protocol import HAND_OVER, LONGEST_ANSWER, check_greeting, hello
from whisper_tui.wire.rendezvous import connect, reach

GREETING_S = 30.0
"""Seconds that the supervisor has to answer a hello."""

_STREAM_BUFFER = 16 * 1024 * 1024
LARGEST_BOARD = 512 * 1024 * 1024
"""Bytes that a watcher takes until the first empty item, which says that the board is whole: a machine that is taken
over could send parts of one without end."""
_ITEM, _NO_ITEM = b'{"id":1,"item":', b'{"id":1,"item":[]}\n'
_HINT = "Running commands continue; any whisper-tui command starts the supervisor again"


KNOWN = {**OPERATIONS, **PHONE_OPERATIONS}
"""All operations of both interfaces; the supervisor says which of them a connection has."""


class Link:
    """Sends requests and matches answers to them. Use `open`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lost: WhisperError | None = None
        """Why the connection is unusable. None: it is usable."""
        self._reader = reader
        self._writer = writer
        self._last_id = 0
        self._waiting: dict[int, tuple[Operation, asyncio.Future[Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, connection: socket.socket, interface: str = "port") -> Self:
        """Send the hello on a new connection. Raises `Unavailable`."""
        return cls(*await _greeted(connection, LONGEST_ANSWER, interface))

    async def close(self) -> None:
        """End the connection. Pending requests fail with `Unavailable`."""
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def ask(self, name: str, /, **arguments: Any) -> Any:
        """Send a request and return its answer. Raises the supervisor's error, or `Unavailable`."""
        if self.lost is not None:
            raise Unavailable(self.lost.message, hint=self.lost.hint)
        self._last_id += 1
        request_id = self._last_id
        line = _request(request_id, name, arguments)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = KNOWN[name], answer
        self._writer.write(line)
        try:
            await self._drain()
            return await answer
        except asyncio.CancelledError:
            # Otherwise the supervisor would keep a request open for nobody.
            if request_id in self._waiting:
                self._writer.write(line_of({"cancel": request_id}))
            raise
        finally:
            self._waiting.pop(request_id, None)

    async def _drain(self) -> None:
        """Apply backpressure while the supervisor does not read."""
        try:
            await self._writer.drain()
        except ConnectionError:
            return  # `_read` notices this too, and fails every pending request.

    async def _read(self) -> None:
        lost: WhisperError = _gone()
        try:
            while (line := await self._reader.readline()).endswith(b"\n"):
                content = _object(line)
                if isinstance(number := content.get("id"), int):
                    self._deliver(number, content, line)
                else:
                    lost = error_in(content) or lost
        except OSError:
            pass
        except ValueError as error:
            lost = _unreadable(error)
        finally:
            self.lost = lost
            for _, answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(lost)
            self._writer.close()

    def _deliver(self, request_id: int, content: dict[str, Any], line: bytes) -> None:
        operation, answer = self._waiting.get(request_id, (None, None))
        if operation is None or answer is None or answer.done():
            return
        value = error_in(content) or _value(operation, line)
        if isinstance(value, WhisperError):
            answer.set_exception(value)
        else:
            answer.set_result(value)


async def follow(connection: socket.socket, name: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
    """Yield the items of a stream, on a separate connection with backpressure."""
    reader, writer = await _greeted(connection, _STREAM_BUFFER)
    # Without a number to begin after, a board comes first, and an empty item behind it.
    left = LARGEST_BOARD if arguments.get("after") is None else 0
    try:
        writer.write(_request(1, name, arguments))
        while (line := await reader.readline()).endswith(b"\n"):
            # An item is not read twice: its line begins like this, and cannot hold an error.
            if not line.startswith(_ITEM) and (error := error_in(_object(line))) is not None:
                raise error
            if left:
                left = 0 if line == _NO_ITEM else left - len(line)
                if left < 0:
                    raise Unavailable(
                        f"the supervisor sends more than {LARGEST_BOARD:,} bytes before its board is whole"
                    )
            value = _value(OPERATIONS[name], line)
            if isinstance(value, WhisperError):
                raise value
            yield value
    except OSError:
        pass
    except ValueError as error:
        raise _unreadable(error) from None
    finally:
        writer.close()
    raise _gone()


async def _greeted(
    connection: socket.socket, limit: int, interface: str = "port"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send the hello, and return the connection's streams once the supervisor has answered."""
    connection.setblocking(False)
    # A full server refuses and closes before it reads. Its reason can still be received.
    with suppress(BrokenPipeError):
        connection.sendall(line_of(hello(interface)))
    reader, writer = await asyncio.open_unix_connection(sock=connection, limit=limit)
    try:
        async with asyncio.timeout(GREETING_S):
            _check_greeting(await reader.readline())
    except TimeoutError:
        writer.close()
        raise Unavailable(f"the supervisor did not answer within {GREETING_S:g} s", hint=_HINT) from None
    except OSError:
        writer.close()
        raise _gone() from None
    except ValueError as error:
        writer.close()
        raise _unreadable(error) from None
    except (WhisperError, asyncio.CancelledError):
        writer.close()
        raise
    return reader, writer


def _check_greeting(line: bytes) -> None:
    if not line.endswith(b"\n"):
        raise _gone()
    try:
        greeting = from_json(line)
        error = error_in(greeting)
    except (ValueError, AttributeError):
        raise Unavailable(f"this is no supervisor; it says {visible(repr(line[:200]))}") from None
    if error is not None:
        raise error
    check_greeting(greeting)


def _object(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line. Raises `ValueError`."""
    content = from_json(line)
    if not isinstance(content, dict):
        raise ValueError("it is no JSON object")
    return content


def _unreadable(error: ValueError) -> WhisperError:
    return Unavailable(f"the supervisor's answer cannot be read: {error}")


def _gone() -> WhisperError:
    return Unavailable("the connection to the supervisor was lost", hint=_HINT)


def _request(request_id: int, name: str, arguments: dict[str, Any]) -> bytes:
    """Return a request as a line. Raises `InvalidRequest` if it is too long."""
    body = KNOWN[name].arguments(**arguments).model_dump_json().encode()
    line = request_line(request_id, name, body)
    if len(line) > LONGEST_REQUEST:
        raise InvalidRequest(
            f"the request is {len(line):,} bytes long", hint=f"At most {LONGEST_REQUEST:,} can be sent at once"
        )
    return line


def _value(operation: Operation, line: bytes) -> Any:
    """Return the value in an answer. Raises `Unavailable` if it cannot be read."""
    try:
        answer: Any = operation.answer.model_validate_json(line)
    except ValidationError as error:
        return OtherVersion(
            f"the supervisor's answer to {operation.name!r} cannot be read: {explain(error)}",
            hint=f"It may be of another version. {HAND_OVER}",
        )
    return answer.item if operation.streams else answer.ok


ATTEMPTS_KEPT = 10_000
"""How many runs' output files this client remembers."""


class OutputReader(Protocol):
    """Reads the output of runs on this machine without the socket (decision 3)."""

    def read_output(self, call_id: str, attempt: int, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """Return at most `limit` bytes of a stream from `offset`. A negative offset counts from the end."""
        ...

    def read_timeline(self, call_id: str, attempt: int, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Return at most `limit` rows of the time index, from row `after`."""
        ...

    def terminal_sizes(self, call_id: str, attempt: int) -> tuple[TerminalSize, ...]:
        """Return all sizes of the command's terminal."""
        ...


_Client = TypeVar("_Client", bound="SupervisorClient")


def _request_method(operation: Operation) -> Callable[..., Any]:
    """Return the method that sends one operation, with the signature and docstring of the API."""
    declared = getattr(Supervision, operation.name)
    bind = inspect.signature(declared).bind

    if operation.streams:

        @functools.wraps(declared)
        async def follow_stream(self: "SupervisorClient", *given: Any, **named: Any) -> AsyncIterator[Any]:
            arguments = bind(self, *given, **named).arguments
            del arguments["self"]
            # On a separate connection, so that a slow reader delays no other request.
            async with aclosing(follow(await self._connection(), operation.name, **arguments)) as items:
                async for item in items:
                    yield item

        return follow_stream

    @functools.wraps(declared)
    async def request(self: "SupervisorClient", *given: Any, **named: Any) -> Any:
        arguments = bind(self, *given, **named).arguments
        del arguments["self"]
        return await self._ask(operation.name, **arguments)

    return request


def _with_requests(client: type[_Client]) -> type[_Client]:
    """Add every operation of the API that a class does not implement itself."""
    for operation in OPERATIONS.values():
        if hasattr(Supervision, operation.name) and operation.name not in vars(client):
            setattr(client, operation.name, _request_method(operation))
    return client


@_with_requests
class SupervisorClient(Supervision):
    """A supervisor in another process. It reconnects when a request finds the connection lost.

    Its methods are those of the API. Only those that may read the output of a run without the socket are defined here.
    """

    def __init__(self, find: Callable[[], socket.socket], local_output: OutputReader | None = None) -> None:
        """`find` connects to the supervisor. It may wait, so it is called in a thread."""
        self._find = find
        self._local = local_output
        self._link: Link | None = None
        self._connecting = asyncio.Lock()
        self._attempts: dict[str, int] = {}

    @classmethod
    def over(cls, find: Callable[[], socket.socket]) -> Self:
        """Return a client that connects with its first request, by `find`."""
        # Only the class itself can create instances, because mypy believes that the derived methods are missing.
        return cls(find)

    @classmethod
    def unconnected(
        cls,
        home: Directories,
        *,
        start: bool = True,
        for_agent: bool = False,
        local_output: OutputReader | None = None,
    ) -> Self:
        """Return a client that connects with its first request. The arguments are those of `connect`."""
        find: Callable[[Directories], socket.socket] = (
            functools.partial(reach, for_agent=for_agent) if start else _running
        )
        return cls(functools.partial(find, home), local_output)

    @classmethod
    async def connect(
        cls,
        home: Directories,
        *,
        start: bool = True,
        for_agent: bool = False,
        local_output: OutputReader | None = None,
    ) -> Self:
        """Return a connected client. Raises `WhisperError`.

        `start`: start a supervisor if none runs. `for_agent`: do not start one that a human has stopped. `local_output`
        reads the output of runs. None: the supervisor is asked for it.
        """
        client = cls.unconnected(home, start=start, for_agent=for_agent, local_output=local_output)
        await client._connected()
        return client

    @property
    def connected(self) -> bool:
        """True if the next request needs no new connection."""
        return self._link is not None and self._link.lost is None

    async def close(self) -> None:
        """End the connection."""
        if self._link is not None:
            await self._link.close()
            self._link = None

    async def watch_board(self, packing: str) -> AsyncIterator[tuple[BoardItem, ...]]:
        """Yield the board of now and then events, from a supervisor of any version."""
        try:
            async with aclosing(follow(await self._connection(), "watch_board", packing=packing)) as items:
                async for item in items:
                    yield item
        except InvalidRequest:
            # It is older, or packs records in another way, and says so before the first item.
            if (await self._ask("status")).now is None:
                # Nor does it say when all of the present was sent.
                yield ()
            async with aclosing(follow(await self._connection(), "watch", after=None)) as batches:
                async for events in batches:
                    yield events

    async def read_output(self, call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """Return a piece of a stream."""
        if self._local is not None and (attempt := await self._attempt(call_id)) is not None:
            return self._local.read_output(call_id, attempt, stream, offset, limit)
        chunk: OutputChunk = await self._ask("read_output", call_id=call_id, stream=stream, offset=offset, limit=limit)
        return chunk

    async def read_timeline(self, call_id: str, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Return rows of the time index."""
        if self._local is not None and (attempt := await self._attempt(call_id)) is not None:
            return self._local.read_timeline(call_id, attempt, after, limit)
        spans: tuple[OutputSpan, ...] = await self._ask("read_timeline", call_id=call_id, after=after, limit=limit)
        return spans

    async def terminal_sizes(self, call_id: str) -> tuple[TerminalSize, ...]:
        """Return the sizes of the command's terminal."""
        if self._local is not None and (attempt := await self._attempt(call_id)) is not None:
            return self._local.terminal_sizes(call_id, attempt)
        sizes: tuple[TerminalSize, ...] = await self._ask("terminal_sizes", call_id=call_id)
        return sizes

    async def _ask(self, name: str, /, **arguments: Any) -> Any:
        link = await self._connected()
        return await link.ask(name, **arguments)

    async def _connected(self) -> Link:
        async with self._connecting:
            if self._link is None or self._link.lost is not None:
                self._link = await Link.open(await self._connection())
            return self._link

    async def _connection(self) -> socket.socket:
        return await asyncio.to_thread(self._find)

    async def _attempt(self, call_id: str) -> int | None:
        """Return the attempt in the names of a run's files. None: it may not have started."""
        known = self._attempts.get(call_id)
        if known is None:
            record = await self.record(call_id)
            # Until it has started, another attempt with other files can still replace a failed one.
            if record.attempt is None or not isinstance(record.state, Running | Ended):
                return None
            if len(self._attempts) >= ATTEMPTS_KEPT:
                self._attempts.clear()
            known = self._attempts[call_id] = record.attempt
        return known


def _running(home: Directories) -> socket.socket:
    """Connect to the running supervisor. Raises `Unavailable` if none runs."""
    connection = connect(home)
    if connection is None:
        raise Unavailable(f"no supervisor runs for {home.state}", hint="Any other whisper-tui command starts one")
    return connection


async def ensure_supervisor(home: Directories) -> None:
    """Return once a supervisor listens for these directories; start one if none does. Raises `WhisperError`."""
    connection = await asyncio.to_thread(reach, home)
    connection.close()
