"""The supervisor's socket: who connects is checked, says which door it wants, and is handed over to it."""

import asyncio
import json
import logging
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from whisper_tui.model.errors import BadStateDirectory, InvalidRequest, NotAllowed, Unavailable, WhisperError
from whisper_tui.model.home import Home
from whisper_tui.supervisor.state_directory import prepare
from whisper_tui.wire.codec import error_line
from whisper_tui.wire.origin import check_origin
from whisper_tui.wire.peers import origin_by_mark
from whisper_tui.wire.picture import InProcess, Picture
from whisper_tui.wire.places import Places, most_connections
from whisper_tui.wire.port_door import PortDoor
from whisper_tui.wire.protocol import LONGEST_REQUEST, SOCKET
from whisper_tui.wire.refusals import Record, Refusals
from whisper_tui.wire.rendezvous import peer_process, socket_address

Door = Callable[[asyncio.StreamReader, asyncio.StreamWriter, dict[str, Any]], Awaitable[None]]
"""Takes over a connection after its hello, until the coroutine ends."""

HELLO_S = 30.0
"""Seconds in which a client has to say what it wants."""

FAREWELL_S = 2.0
"""Seconds in which a client has to take what it was told before its connection ends."""

_BACKLOG = 512
_log = logging.getLogger(__name__)


class Server:
    """Listens until it is closed."""

    def __init__(self, supervision: InProcess, home: Home, doors: Mapping[str, Door], refusals: Refusals) -> None:
        self._home = home
        self._picture = Picture(supervision)
        self._doors: dict[str, Door] = {"port": PortDoor(supervision, self._picture, refusals), **doors}
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._places = Places(most_connections())
        self._listening: asyncio.Server | None = None
        self._path = Path(home.runtime) / SOCKET
        self._inode = 0

    async def open(self) -> None:
        """Begin to listen. Raises `Unavailable`."""
        self._picture.open()
        await self.listen()

    async def listen(self) -> None:
        """Make the socket, and listen there and nowhere else. Connections stay. Raises `WhisperError`."""
        prepare(self._home)
        earlier, bound = self._listening, _bound_socket(self._path)
        self._inode = self._path.lstat().st_ino
        self._listening = await asyncio.start_unix_server(
            self._accept, sock=bound, limit=LONGEST_REQUEST, backlog=_BACKLOG
        )
        if earlier is not None:
            earlier.close()

    @property
    def is_found(self) -> bool:
        """Whether the socket is where clients look for it."""
        try:
            return self._path.lstat().st_ino == self._inode
        except OSError:
            return False

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._listening is not None:
            if self.is_found:
                self._path.unlink(missing_ok=True)
            self._listening.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=FAREWELL_S)
        for writer in self._connections.values():
            # What is left waits for a client that does not read its answers.
            writer.transport.abort()
        if self._connections:
            await asyncio.wait(self._connections)
        await self._picture.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections[connection] = writer
        connection.add_done_callback(self._ended)

    def _ended(self, connection: asyncio.Task[None]) -> None:
        del self._connections[connection]
        if not connection.cancelled() and (error := connection.exception()) is not None:
            _log.error("a connection failed", exc_info=error)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with ExitStack() as place:
            try:
                pid = _own_peer(writer.get_extra_info("socket"))
                place.enter_context(self._places.taken(pid, origin_by_mark(pid)))
                door, hello = await self._receive(reader)
                await check_origin(writer.get_extra_info("socket"), hello)
                await door(reader, writer, hello)
            except WhisperError as error:
                writer.write(error_line(error))
            except ConnectionError:
                return
            finally:
                await _closed(writer)

    async def _receive(self, reader: asyncio.StreamReader) -> tuple[Door, dict[str, Any]]:
        try:
            async with asyncio.timeout(HELLO_S):
                line = await reader.readline()
        except TimeoutError:
            raise InvalidRequest(f"no hello came within {HELLO_S:g} s") from None
        except ValueError:
            raise InvalidRequest(f"the hello is longer than {LONGEST_REQUEST:,} bytes") from None
        if not line:
            raise ConnectionResetError
        hello = _hello(line)
        door = self._doors.get(hello["door"])
        if door is None:
            raise InvalidRequest(f"there is no door {hello['door']!r}", hint=f"There are {', '.join(self._doors)}")
        return door, hello


async def serve(
    supervision: InProcess, home: Home, doors: Mapping[str, Door], *, refused: Record | None = None
) -> Server:
    """Listen at the instance's socket. The door `port` is there by itself; the others are given by name.

    `refused` records the attempts to decide of those who may not. None: they are only logged.
    """
    server = Server(supervision, home, doors, Refusals(refused))
    await server.open()
    return server


def _own_peer(connection: Any) -> int:
    """The pid at the other end. Raises `NotAllowed` if it is another user's."""
    pid, uid = peer_process(connection)
    if uid != os.geteuid():
        raise NotAllowed(f"this supervisor serves uid {os.geteuid()}, and you are uid {uid}")
    return pid


async def _closed(writer: asyncio.StreamWriter) -> None:
    """End a connection once the client has taken what it was told, or does not take it."""
    writer.close()
    try:
        async with asyncio.timeout(FAREWELL_S):
            await writer.wait_closed()
    except OSError:
        writer.transport.abort()


def _hello(line: bytes) -> dict[str, Any]:
    try:
        hello = json.loads(line)
    except (ValueError, RecursionError):
        hello = None
    if not isinstance(hello, dict) or not isinstance(hello.get("door"), str):
        raise InvalidRequest(
            "the first line of a connection must be a hello", hint='For example {"door": "port", "version": 1}'
        )
    return hello


def _bound_socket(path: Path) -> socket.socket:
    """A listening socket that only this user can open. Whoever holds the state directory may replace a stale one."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise BadStateDirectory(f"{path} is not a socket", hint="Move it away, or choose another --home")
        path.unlink()
    except FileNotFoundError:
        pass
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(path.parent) as address:
            listening.bind(address)
        path.chmod(0o600)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise Unavailable(
            f"the socket {path} cannot be made: {error.strerror}", hint="Check free disk space"
        ) from error
    return listening
