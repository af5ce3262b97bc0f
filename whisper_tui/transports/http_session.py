"""One agent that comes over HTTP: its messages go to the supervisor, and what comes back to the requests that wait."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from whisper_tui.transports.relay import Relay
from whisper_tui.transports.relay_memory import Message, parsed

MessageQueue = asyncio.Queue[Message | None]
"""What one HTTP request is told. None: nothing more comes."""


class HttpSession:
    """Sorts the messages of one connection with the supervisor by the request that they belong to."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._relay: Relay | None = None
        self._asked: dict[str, MessageQueue] = {}
        """By request id, as JSON: who waits for its answer."""
        self._tokens: dict[str, str] = {}
        """By progress token, as JSON: the request that it is about."""
        self._standing: MessageQueue | None = None
        """Who wants to hear what belongs to no request."""
        self._sending: set[asyncio.Task[None]] = set()
        self.quiet_since = self._loop.time()
        """When it was last asked something, by the clock of the loop."""

    def joined(self, relay: Relay) -> "HttpSession":
        """This session, with the relay whose lines it `hears`."""
        self._relay = relay
        return self

    def hear(self, line: bytes) -> None:
        """Take a line of the supervisor, from any thread."""
        # The loop may be gone when the last lines come.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._sort, line)

    @property
    def busy(self) -> bool:
        """Whether a request waits or the agent listens."""
        return bool(self._asked) or self._standing is not None

    def asks(self, request_id: Any) -> bool:
        """Whether a request of that id waits."""
        return json.dumps(request_id) in self._asked

    async def ask(self, request: Message) -> MessageQueue:
        """Send a request. The queue is given its progress and at last its answer."""
        key = json.dumps(request["id"])
        self._asked[key] = queue = MessageQueue()
        token = _progress_token(request)
        if token is not None:
            self._tokens[json.dumps(token)] = key
        await self.tell(request)
        return queue

    def leave(self, request: Message) -> None:
        """Nobody listens for the answer to a request any more: its call waits on without it."""
        if self._forget(json.dumps(request["id"])) is None:
            return
        params = {"requestId": request["id"], "reason": "its HTTP connection was closed"}
        task = asyncio.create_task(self.tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def tell(self, message: Message) -> None:
        """Send a message that has no answer."""
        self.quiet_since = self._loop.time()
        match message:
            case {"method": "notifications/cancelled", "params": {"requestId": request_id}}:
                # A request that was cancelled is never answered.
                if (queue := self._forget(json.dumps(request_id))) is not None:
                    queue.put_nowait(None)
        if self._relay is not None:
            await asyncio.to_thread(self._relay.send, json.dumps(message).encode())

    def listen(self) -> MessageQueue | None:
        """Hear what belongs to no request. None: somebody does already."""
        if self._standing is not None:
            return None
        self._standing = MessageQueue()
        return self._standing

    def stop_listening(self) -> None:
        """Hear of that no more."""
        self._standing = None
        self.quiet_since = self._loop.time()

    async def close(self) -> None:
        """The agent is gone."""
        for queue in (*self._asked.values(), *([self._standing] if self._standing else [])):
            queue.put_nowait(None)
        if self._relay is not None:
            await asyncio.to_thread(self._relay.close)

    def _sort(self, line: bytes) -> None:
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
