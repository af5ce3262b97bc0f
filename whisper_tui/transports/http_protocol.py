"""Connections over HTTP that are bounded in number, and in the time that they take to begin a request."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 400
"""Each session may have one that listens, and each waiting call one."""

BEGINS_WITHIN_S = 30.0
"""Seconds in which the head of the first request has to be there."""

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"%d connections are open already: close some, then try again.\n"
)


class BoundedProtocol(H11Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it, or say that there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS and not self._take_the_place_of_a_silent_one():
            transport.write(_FULL % MOST_CONNECTIONS)
            transport.close()
        else:
            self.loop.call_later(BEGINS_WITHIN_S, self._end_if_silent)

    def _take_the_place_of_a_silent_one(self) -> bool:
        """Other users can connect, too. Who says nothing gives way, so that they cannot keep everybody else out."""
        for other in self.connections:
            if other is not self and isinstance(other, BoundedProtocol) and other.cycle is None:
                other.transport.abort()
                return True
        return False

    def _end_if_silent(self) -> None:
        if self.cycle is None:
            self.transport.close()
