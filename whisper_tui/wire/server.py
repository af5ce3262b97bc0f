"""The supervisor's socket: it limits connections, checks peers, and passes each one to its endpoint."""

import asyncio
import json
import logging
import os
import resource
import socket
import stat
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from whisper_tui.model.errors import BadStateDirectory, InvalidRequest, NotAllowed, Unavailable, WhisperError
from whisper_tui.model.protocol_version import LONGEST_REQUEST
from whisper_tui.system.ancestry import Origin, PeerThere, ancestry, origin_by_mark, read_process
from whisper_tui.system.processes import peer_process
from whisper_tui.system.session_opener import OPENER
from whisper_tui.system.state_directory import Directories, StateDirectoryLock, prepare
from whisper_tui.wire.authorization import RecordRefusal, RefusalLog, admitted
from whisper_tui.wire.connection import GONE, ApiEndpoint, PhoneEndpoint
from whisper_tui.wire.operations import error_line
from whisper_tui.wire.peers import check_origin, why_supervised
from whisper_tui.wire.protocol import PHONE_ROLE, SOCKET, greeting
from whisper_tui.wire.rendezvous import socket_address
from whisper_tui.wire.server_state import InProcess, ServerState

MOST = 4096
"""The most connections, if the system allows so many open files."""


SHARES: dict[Origin, int] = {"command": 4, "agent": 2, "supervisor": 4}
"""The limit for one origin, as a divisor of all connections. The rest is reserved for the human."""

_STARTED_BY: dict[Origin, str] = {"command": "supervised commands", "agent": "agents", "supervisor": "supervisors"}


class ConnectionLimits:
    """Limits of open connections: in total, per process (half of the total), for commands and for agents."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[int] = Counter()
        self._started: Counter[Origin | None] = Counter()

    @contextmanager
    def taken(self, pid: int, origin: Origin | None) -> Iterator[None]:
        """Count one connection of a process. `origin` is None for a human's programs. Raises `Unavailable`."""
        # A forking command connects from ever new pids, so its origin is limited too (decision 15).
        if self._taken.total() >= self._most:
            raise Unavailable(
                f"{self._most:,} connections are open, which is the limit",
                hint="End programs that use whisper_tui, then try again",
            )
        if self._taken[pid] >= self._most // 2:
            raise Unavailable(
                f"process {pid} has {self._taken[pid]:,} connections open, half of the limit",
                hint="Let it use one connection for many requests",
            )
        if origin is not None and self._started[origin] >= max(1, self._most // SHARES[origin]):
            raise Unavailable(
                f"{self._started[origin]:,} connections are open from programs that {_STARTED_BY[origin]} have "
                "started, which is their limit",
                hint="End some of those programs, then try again",
            )
        self._taken[pid] += 1
        self._started[origin] += 1
        try:
            yield
        finally:
            self._started[origin] -= 1
            self._taken[pid] -= 1
            if not self._taken[pid]:
                del self._taken[pid]


def most_connections() -> int:
    """Return half of the files that this process may open. The journal and the runs need the other half."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if allowed == resource.RLIM_INFINITY else max(2, min(MOST, allowed // 2))


Endpoint = Callable[[asyncio.StreamReader, asyncio.StreamWriter, dict[str, Any]], Awaitable[None]]
"""Serves a connection after its hello, until the coroutine ends."""

HELLO_S = 30.0
"""Seconds that a client has to send its hello."""

FAREWELL_S = 2.0
"""Seconds that a client has to read its last answer before its connection is closed."""

RETURN_S = 60.0
"""Seconds that agents at a place have to come back after its connection was lost, before their sessions are closed."""

OF_PLACES = -1
"""Stands for the pid of all agents at places, where connections are counted."""

_BACKLOG = 512
_log = logging.getLogger(__name__)


class Server:
    """The listening socket and its open connections."""

    def __init__(
        self,
        supervision: InProcess,
        home: Directories,
        endpoints: Mapping[str, Endpoint],
        refusals: RefusalLog,
        phones: object | None = None,
    ) -> None:
        self._home = home
        self._supervision, self._refusals = supervision, refusals
        self._state = ServerState(supervision)
        self._endpoints: dict[str, Endpoint] = {
            "port": ApiEndpoint(supervision, self._state, refusals, phones),
            PHONE_ROLE: PhoneEndpoint(supervision, self._state, refusals, phones),
            **endpoints,
        }
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._places = ConnectionLimits(most_connections())
        self._listening: asyncio.Server | None = None
        self._path = Path(home.runtime) / SOCKET
        self._inode = 0
        self._closes = False
        self._closing: set[asyncio.Task[None]] = set()
        self._lost: dict[str, asyncio.TimerHandle] = {}
        """By the keys of agents at places: when their sessions end, because the connection to the place was lost."""

    async def objection_to(self, pid: int) -> str | None:
        """Return why a process may not decide, by the rules for clients (decision 13). None: it may."""
        line = await asyncio.to_thread(ancestry, pid, read_process)
        return await asyncio.to_thread(why_supervised, line, self._state.keepers(), self._state.agents())

    async def open(self) -> None:
        """Start to listen. Raises `Unavailable`."""
        self._state.open()
        await self.listen()

    async def listen(self) -> None:
        """Create a new socket and listen only on that. Open connections stay. Raises `WhisperError`."""
        prepare(self._home)
        # The new socket is bound before the old one closes, so that no client is refused in between.
        earlier, bound = self._listening, _bound_socket(self._path)
        self._inode = self._path.lstat().st_ino
        self._listening = await asyncio.start_unix_server(
            self._accept, sock=bound, limit=LONGEST_REQUEST, backlog=_BACKLOG
        )
        if earlier is not None:
            earlier.close()

    @property
    def is_found(self) -> bool:
        """True if clients can find the socket."""
        try:
            return self._path.lstat().st_ino == self._inode
        except OSError:
            return False

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._listening is not None:
            # Another supervisor may have taken over. Then the path is its socket.
            if self.is_found:
                self._path.unlink(missing_ok=True)
            self._listening.close()
        self._closes = True
        for timer in self._lost.values():
            timer.cancel()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=FAREWELL_S)
        for writer in self._connections.values():
            # The clients of these connections do not read their answers.
            writer.transport.abort()
        if self._connections:
            await asyncio.wait(self._connections)
        await self._state.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections[connection] = writer
        connection.add_done_callback(self._ended)

    def _ended(self, connection: asyncio.Task[None]) -> None:
        del self._connections[connection]
        if not connection.cancelled() and (error := connection.exception()) is not None:
            _log.error("a connection failed", exc_info=error)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with _answered(writer):
            pid = _own_peer(writer.get_extra_info("socket"))
            with self._places.taken(pid, origin_by_mark(pid)):
                endpoint, hello = await self._receive(reader)
                await check_origin(writer.get_extra_info("socket"), hello)
                _check_here(hello)
                OPENER.set(pid)
                await endpoint(reader, writer, hello)

    async def serve_agent(self, connected: socket.socket, peer: PeerThere) -> None:
        """Serve an agent at a place, whose bytes come over a socket of this process, as an agent and nothing else.

        If this is cancelled, the connection to the place was lost: the agent has `RETURN_S` to come back.
        """
        reader, writer = await asyncio.open_connection(sock=connected, limit=LONGEST_REQUEST)
        connection: asyncio.Task[Any] | None = asyncio.current_task()
        if connection is not None:
            self._connections[connection] = writer
            connection.add_done_callback(self._ended)
        if (timer := self._lost.pop(peer.key, None)) is not None:
            timer.cancel()
        async with _answered(writer):
            # Nothing tells one of its processes from another, so all of them count as one.
            with self._places.taken(OF_PLACES, "agent"):
                endpoint, hello = await self._receive(reader)
                try:
                    await endpoint(reader, writer, admitted(peer, hello, self._state, self._refusals))
                except asyncio.CancelledError:
                    if not self._closes:
                        later = asyncio.get_running_loop().call_later
                        self._lost[peer.key] = later(RETURN_S, self._give_up, peer.key)
                    raise

    def _give_up(self, key: str) -> None:
        """End the session of an agent at a place that has not come back."""
        del self._lost[key]
        closing = asyncio.create_task(self._end_session(key))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _end_session(self, key: str) -> None:
        board = self._state.board
        for session in tuple(board.sessions.values()):
            if session.relayed and session.key == key and session.closed_at is None:
                for call_id in tuple(board.open_in.get(session.id, ())):
                    await self._supervision.leave(call_id, GONE)
                await self._supervision.close_session(session.id, GONE)

    async def _receive(self, reader: asyncio.StreamReader) -> tuple[Endpoint, dict[str, Any]]:
        try:
            async with asyncio.timeout(HELLO_S):
                line = await reader.readline()
        except TimeoutError:
            raise InvalidRequest(f"no hello arrived within {HELLO_S:g} s") from None
        except ValueError:
            raise InvalidRequest(f"the hello is longer than {LONGEST_REQUEST:,} bytes") from None
        if not line:
            raise ConnectionResetError
        hello = _hello(line)
        endpoint = self._endpoints.get(hello["door"])
        if endpoint is None:
            names = ", ".join(self._endpoints)
            raise InvalidRequest(f"there is no interface {hello['door']!r}", hint=f"There are {names}")
        greeting(hello)
        return endpoint, hello


@asynccontextmanager
async def _answered(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Answer a connection with the error of the block, and close it."""
    try:
        yield
    except WhisperError as error:
        # Programs of every version understand an error in this format, so it also answers a wrong hello.
        writer.write(error_line(error))
    except ConnectionError:
        return
    finally:
        await _closed(writer)


def _check_here(hello: dict[str, Any]) -> None:
    """Raise `NotAllowed` for an agent of this machine that says to be at a place."""
    session = hello.get("session")
    if isinstance(session, dict) and session.get("relayed"):
        raise NotAllowed("this agent is not at a place", hint="Let it connect without saying so")


async def serve(
    supervision: InProcess,
    home: Directories,
    endpoints: Mapping[str, Endpoint],
    *,
    refused: RecordRefusal | None = None,
    phones: object | None = None,
) -> Server:
    """Listen at the instance's socket. `endpoints` serve the operations besides the API, by their names.

    `refused` records attempts to decide by processes that may not. None: they are only logged. `phones` has the
    operations of phones and about them. None: they are refused.
    """
    server = Server(supervision, home, endpoints, RefusalLog(refused), phones)
    await server.open()
    return server


def _own_peer(connection: Any) -> int:
    """Return the pid at the other end. Raises `NotAllowed` if it belongs to another user."""
    pid, uid = peer_process(connection)
    if uid != os.geteuid():
        raise NotAllowed(f"this supervisor serves uid {os.geteuid()}, and you are uid {uid}")
    return pid


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection once the client has read its last answer, or after `FAREWELL_S`."""
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
    """Return a listening socket that only this user can open. A stale one is replaced."""
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
        # bind() follows the umask, which must not open the socket to others.
        path.chmod(0o600)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise Unavailable(
            f"the socket {path} cannot be created: {error.strerror}", hint="Check free disk space"
        ) from error
    return listening


CHECK_EVERY_S = 5.0
"""Seconds between two checks."""


async def keep_listening(server: Server, occupation: StateDirectoryLock, on_unreachable: Callable[[], None]) -> None:
    """Listen again whenever the socket was removed.

    `on_unreachable` is called, and the loop ends, once the state directory was removed or replaced.
    """
    while True:
        await asyncio.sleep(CHECK_EVERY_S)
        # Clients then start another supervisor there, so this one would never be found again.
        if not occupation.holds:
            _log.critical("the state directory was removed or replaced: no client finds this supervisor, so it stops")
            on_unreachable()
            return
        if not server.is_found:
            _log.warning("the socket was removed and is created again")
            try:
                await server.listen()
            except (WhisperError, OSError) as error:
                _log.warning("the socket cannot be created now: %s", error)
