"""A client's connections to the supervisor's port: one with many requests under way, and one that follows a stream."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Self

from pydantic import ValidationError
from pydantic_core import from_json

from whisper_tui.model.errors import InvalidRequest, OtherVersion, Unavailable, WhisperError
from whisper_tui.wire.codec import error_in, line_of, request_line
from whisper_tui.wire.operations import OPERATIONS, Operation, explain
from whisper_tui.wire.protocol import LONGEST_ANSWER, LONGEST_REQUEST
from whisper_tui.wire.versions import HAND_OVER, check_greeting, hello

GREETING_S = 30.0
"""Seconds in which the supervisor has to answer a hello."""

_STREAM_BUFFER = 16 * 1024 * 1024
_HINT = "What runs goes on; any whisper-tui command brings the supervisor back"


class Link:
    """Sends requests and hands out their answers. Use `open`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lost: WhisperError | None = None
        """Why nothing more can be asked. None: it can."""
        self._reader = reader
        self._writer = writer
        self._last_id = 0
        self._waiting: dict[int, tuple[Operation, asyncio.Future[Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, connection: socket.socket) -> Self:
        """Say hello on a fresh connection. Raises `Unavailable`."""
        return cls(*await _greeted(connection, LONGEST_ANSWER))

    async def close(self) -> None:
        """End the connection. Whoever still waits is told that it was lost."""
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def ask(self, name: str, **arguments: Any) -> Any:
        """One request and its answer. Raises what the supervisor raised, or `Unavailable`."""
        if self.lost is not None:
            raise Unavailable(self.lost.message, hint=self.lost.hint)
        self._last_id += 1
        request_id = self._last_id
        line = _request(request_id, name, arguments)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = OPERATIONS[name], answer
        self._writer.write(line)
        try:
            await self._drain()
            return await answer
        except asyncio.CancelledError:
            if request_id in self._waiting:
                self._writer.write(line_of({"cancel": request_id}))
            raise
        finally:
            self._waiting.pop(request_id, None)

    async def _drain(self) -> None:
        """Wait while the supervisor does not take what is sent; a lost connection is told by the answer."""
        try:
            await self._writer.drain()
        except ConnectionError:
            return

    async def _read(self) -> None:
        lost: WhisperError = _gone()
        try:
            while (line := await self._reader.readline()).endswith(b"\n"):
                content = from_json(line)
                if "id" in content:
                    self._deliver(content["id"], content, line)
                else:
                    lost = error_in(content) or lost
        except OSError:
            pass
        except ValueError as error:
            lost = Unavailable(f"the supervisor's answer cannot be read: {error}")
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


async def follow(connection: socket.socket, name: str, **arguments: Any) -> AsyncGenerator[Any, None]:
    """The items of a stream, on a connection of its own: what is not yet taken here is not yet sent there."""
    reader, writer = await _greeted(connection, _STREAM_BUFFER)
    try:
        writer.write(_request(1, name, arguments))
        while (line := await reader.readline()).endswith(b"\n"):
            if (error := error_in(from_json(line))) is not None:
                raise error
            value = _value(OPERATIONS[name], line)
            if isinstance(value, WhisperError):
                raise value
            yield value
    except OSError:
        pass
    finally:
        writer.close()
    raise _gone()


async def _greeted(connection: socket.socket, limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The two ends of a connection on which the supervisor has answered a hello."""
    connection.setblocking(False)
    with suppress(BrokenPipeError):  # Who is turned away at once hears why.
        connection.sendall(line_of(hello()))
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
    except (WhisperError, asyncio.CancelledError):
        writer.close()
        raise
    return reader, writer


def _check_greeting(line: bytes) -> None:
    if not line.endswith(b"\n"):
        raise _gone()
    greeting = from_json(line)
    error = error_in(greeting)
    if error is not None:
        raise error
    check_greeting(greeting)


def _gone() -> WhisperError:
    return Unavailable("the connection to the supervisor was lost", hint=_HINT)


def _request(request_id: int, name: str, arguments: dict[str, Any]) -> bytes:
    """One request as a line. Raises `InvalidRequest` if it is too long."""
    body = OPERATIONS[name].arguments(**arguments).model_dump_json().encode()
    line = request_line(request_id, name, body)
    if len(line) > LONGEST_REQUEST:
        raise InvalidRequest(
            f"the request is {len(line):,} bytes long", hint=f"At most {LONGEST_REQUEST:,} can be sent at once"
        )
    return line


def _value(operation: Operation, line: bytes) -> Any:
    """The value in an answer, or the error that it cannot be read."""
    try:
        answer: Any = operation.answer.model_validate_json(line)
    except ValidationError as error:
        return OtherVersion(
            f"the supervisor's answer to {operation.name!r} cannot be read: {explain(error)}",
            hint=f"It may be of another version. {HAND_OVER}",
        )
    return answer.item if operation.streams else answer.ok
