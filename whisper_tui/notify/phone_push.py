"""Pushes to paired phones: they say nothing but that the page's worker should look (decision 40)."""

import asyncio
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.push_endpoint import PushEndpoint, PushOrder, push_endpoint

PUSH_S = 10.0
"""Seconds for one push, from looking up its service to the answer."""
LARGEST_ANSWER = 16_384
"""Bytes of the head of an answer; its body is not read."""
LONGEST_PROBLEM = 200
"""Characters of what went wrong."""
MOST_ADDRESSES = 3
"""Addresses of a service that are tried."""
KEPT_S = 12 * 3600
"""Seconds for which a service keeps a push for a phone that it does not reach."""
GONE = (404, 410)
"""Answers of a service that knows the address no more: the browser has given it up."""


class PushedPhones(Protocol):
    """The phones that have asked for pushes."""

    def push_orders(self) -> tuple[PushOrder, ...]:
        """Return a push for each of them. Raises `WhisperError`."""
        ...

    def push_gone(self, order: PushOrder) -> None:
        """Forget an address that its service does not know any more. Raises `WhisperError`."""
        ...


class PhonePush:
    """Wakes all phones that want it. One round at a time: a slow service must not pile them up."""

    def __init__(
        self,
        phones: PushedPhones,
        *,
        addresses: Callable[[str, int], tuple[str, ...]],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`addresses` finds those of a host that may be connected to, and may wait. `tls` None: the system's own."""
        self._phones = phones
        self._addresses = addresses
        self._tls = tls
        self._round = asyncio.Lock()
        self._waits = False
        """True if a round waits for the one before it."""
        self._problem: str | None = None

    async def ping(self) -> str | None:
        """Push to all phones. Returns a description of the problem, or None."""
        if self._waits:
            return self._problem
        self._waits = True
        async with self._round:
            self._waits = False
            self._problem = await self._push_all()
        return self._problem

    async def _push_all(self) -> str | None:
        try:
            orders = self._phones.push_orders()
        except WhisperError as error:
            return error.message
        problems = await asyncio.gather(*map(self._push, orders))
        found = dict.fromkeys(problem for problem in problems if problem)
        return "; ".join(found) or None

    async def _push(self, order: PushOrder) -> str | None:
        try:
            endpoint = push_endpoint(order.endpoint)
            async with asyncio.timeout(PUSH_S):
                status = await self._status(endpoint, order.authorization)
            if status in GONE:
                self._phones.push_gone(order)
                return None
        except WhisperError as error:
            return error.message
        except TimeoutError:
            return f"{endpoint.host} has not answered within {PUSH_S:g} s"
        except (OSError, ValueError) as error:
            # The service has a say in it.
            return f"{endpoint.host} cannot be reached: {str(error)[:LONGEST_PROBLEM] or type(error).__name__}"
        return None if 200 <= status < 300 else f"{endpoint.host} answered {status}"

    async def _status(self, endpoint: PushEndpoint, authorization: str) -> int:
        """Send a push. Returns the status of the answer; a redirection is not followed."""
        addresses = (await self._looked_up(endpoint))[:MOST_ADDRESSES]
        if self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        problem = OSError("it has no address")
        for address in addresses:
            try:
                # The address that was looked at is the one that is connected to: a name can change in between.
                reader, writer = await asyncio.open_connection(
                    address, endpoint.port, ssl=self._tls, server_hostname=endpoint.host
                )
            except OSError as error:
                problem = error
                continue
            try:
                return await _asked(reader, writer, endpoint, authorization)
            finally:
                writer.transport.abort()
        raise problem

    async def _looked_up(self, endpoint: PushEndpoint) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[str, ...]] = loop.create_future()

        def settle(found: tuple[str, ...], problem: OSError | None) -> None:
            if not answer.done():
                answer.set_result(found) if problem is None else answer.set_exception(problem)

        def look_up() -> None:
            found: tuple[str, ...] = ()
            problem: OSError | None = None
            try:
                found = self._addresses(endpoint.host, endpoint.port)
            except OSError as error:
                problem = error
            except UnicodeError as error:
                problem = OSError(str(error))
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(settle, found, problem)

        # In a daemon: a name server that does not answer must not keep the supervisor from ending.
        threading.Thread(target=look_up, name=f"look up {endpoint.host}", daemon=True).start()
        return await answer


async def _asked(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, endpoint: PushEndpoint, authorization: str
) -> int:
    """Send the request of a push without content. Returns the status of the answer."""
    import h11

    headers = {
        "Host": endpoint.origin.removeprefix("https://"),
        "Authorization": authorization,
        "TTL": str(KEPT_S),
        "Urgency": "high",
        # Of several that wait for a phone, the service keeps the newest.
        "Topic": "calls",
        "Content-Length": "0",
        "Connection": "close",
    }
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_ANSWER)
    request = h11.Request(method="POST", target=endpoint.target, headers=list(headers.items()))
    writer.write((connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b""))
    with suppress(ConnectionError):  # it may have answered before it closed
        await writer.drain()
    read = 0
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Response):
                return int(event.status_code)
            if event is h11.NEED_DATA:
                piece = await reader.read(4_096)
                read += len(piece)
                if read > LARGEST_ANSWER:
                    raise ValueError("its answer is too long")
                connection.receive_data(piece)
    except h11.ProtocolError as error:
        raise ValueError(f"its answer is no HTTP: {error}") from error
