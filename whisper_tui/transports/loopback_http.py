"""HTTP servers on the loopback interface: their port, their connections, and how they end."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn
from h11 import LocalProtocolError
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from whisper_tui.model.errors import InvalidRequest, Unavailable

# Only loopback, by design. Other machines need a tunnel (decision 19).
HOST = "127.0.0.1"

LAST_S = 2
"""Seconds in which requests are finished when the server stops."""

MOST_CONNECTIONS = 400
"""The most open connections. A session may have one that listens, and each waiting call has one."""

FIRST_REQUEST_WITHIN_S = 30.0
"""Seconds within which the headers of the first request must arrive."""

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"%d connections are open already: close some, then try again.\n"
)


class BoundedProtocol(H11Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or refuse it with 503."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS and not self._evict_a_silent_connection():
            transport.write(_FULL % MOST_CONNECTIONS)
            transport.close()
        else:
            self.loop.call_later(FIRST_REQUEST_WITHIN_S, self._end_if_silent)

    def _evict_a_silent_connection(self) -> bool:
        """Close one connection that has sent no request. Return False if there is none."""
        # Other users of this machine can connect too. They must not lock agents out with silent connections.
        for other in self.connections:
            if other is not self and isinstance(other, BoundedProtocol) and other.cycle is None:
                other.transport.abort()
                return True
        return False

    def _end_if_silent(self) -> None:
        if self.cycle is None:
            self.transport.close()


@contextmanager
def listening_on(port: int) -> Iterator[socket.socket]:
    """Listen on a port of loopback. Raises `WhisperError`."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        # A client may connect as soon as the address is printed, and uvicorn listens only once it has started.
        listening.listen()
    except OSError as error:
        listening.close()
        raise Unavailable(
            f"port {port} of {HOST} cannot be listened on: {error.strerror}",
            hint="Choose another with --port; 0 is any that is free",
        ) from error
    except OverflowError as error:
        listening.close()
        raise InvalidRequest(f"there is no port {port}", hint="Name one from 1 to 65535, or 0 for any") from error
    with listening:
        yield listening


class LoopbackServer(uvicorn.Server):
    """Serves an application, without an access log and without uvicorn's signal handlers."""

    def __init__(self, application: ASGIApp) -> None:
        async def unless_broken(scope: Scope, receive: Receive, send: Send) -> None:
            # A client that breaks the protocol in the middle of an answer makes h11 raise; the answer is lost anyway.
            with suppress(LocalProtocolError):
                await application(scope, receive, send)

        super().__init__(
            uvicorn.Config(
                unless_broken,
                lifespan="off",
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=LAST_S,
                ws="none",
                http=BoundedProtocol,
                interface="asgi3",
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        # uvicorn raises the signal again at its end, which would kill the process before its sessions are closed.
        yield
