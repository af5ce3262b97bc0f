"""One agent over HTTP: it forwards messages to the supervisor, and routes each answer to its request."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from whisper_tui.transports.mcp.relay import Message, Relay, parsed

MessageQueue = asyncio.Queue[Message | None]
"""The messages for one HTTP request. None: the end."""


class HttpSession:
    """Routes the messages of one connection with the supervisor to the requests that they belong to."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._relay: Relay | None = None
        self._asked: dict[str, MessageQueue] = {}
        """By request id as JSON, which distinguishes 1 and "1": the queue for its answer."""
        self._tokens: dict[str, str] = {}
        """By progress token as JSON: the id of its request."""
        self._standing: MessageQueue | None = None
        """The listener for messages that belong to no request."""
        self._sending: set[asyncio.Task[None]] = set()
        self.quiet_since = self._loop.time()
        """The time of the last request on the loop's clock."""

    def with_relay(self, relay: Relay) -> "HttpSession":
        """Set the relay that passes its lines to `receive`, and return the session."""
        self._relay = relay
        return self

    def receive(self, line: bytes) -> None:
        """Receive a line of the supervisor, from any thread."""
        # The loop may be closed when the last lines arrive.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._route, line)

    @property
    def busy(self) -> bool:
        """True if a request is pending or the agent listens."""
        return bool(self._asked) or self._standing is not None

    def is_pending(self, request_id: Any) -> bool:
        """True if a request with that id is pending."""
        return json.dumps(request_id) in self._asked

    async def request(self, request: Message) -> MessageQueue:
        """Send a request. The queue receives its progress and finally its answer."""
        key = json.dumps(request["id"])
        self._asked[key] = queue = MessageQueue()
        token = _progress_token(request)
        if token is not None:
            self._tokens[json.dumps(token)] = key
        await self.notify(request)
        return queue

    def cancel(self, request: Message) -> None:
        """Cancel a request whose connection was closed. Its call keeps waiting."""
        if self._forget(json.dumps(request["id"])) is None:
            return
        params = {"requestId": request["id"], "reason": "its HTTP connection was closed"}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        task = asyncio.create_task(self.notify(message))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def notify(self, message: Message) -> None:
        """Send a message without an answer."""
        self.quiet_since = self._loop.time()
        match message:
            case {"method": "notifications/cancelled", "params": {"requestId": request_id}}:
                # A cancelled request is never answered.
                if (queue := self._forget(json.dumps(request_id))) is not None:
                    queue.put_nowait(None)
        # In a thread, because the relay blocks while it starts a supervisor.
        if self._relay is not None:
            await asyncio.to_thread(self._relay.send, json.dumps(message).encode())

    def listen(self) -> MessageQueue | None:
        """Return the queue of messages that belong to no request. None: another connection has it."""
        if self._standing is not None:
            return None
        self._standing = MessageQueue()
        return self._standing

    def stop_listening(self) -> None:
        """Release that queue."""
        self._standing = None
        self.quiet_since = self._loop.time()

    async def close(self) -> None:
        """Handle the end of the agent."""
        for queue in (*self._asked.values(), *([self._standing] if self._standing else [])):
            queue.put_nowait(None)
        if self._relay is not None:
            await asyncio.to_thread(self._relay.close)

    def _route(self, line: bytes) -> None:
        message = parsed(line)
        match message:
            case {"method": "notifications/progress", "params": {"progressToken": token}}:
                queue = self._asked.get(self._tokens.get(json.dumps(token), ""))
            case {"method": _}:
                queue = self._standing
            case {"id": request_id}:
                queue = self._forget(json.dumps(request_id))
            case _:
                queue = None
        if queue is not None:
            queue.put_nowait(message)

    def _forget(self, key: str) -> MessageQueue | None:
        self.quiet_since = self._loop.time()
        self._tokens = {token: asked for token, asked in self._tokens.items() if asked != key}
        return self._asked.pop(key, None)


def _progress_token(request: Message) -> Any:
    match request:
        case {"params": {"_meta": {"progressToken": token}}}:
            return token
        case _:
            return None
