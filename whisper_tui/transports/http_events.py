"""A stream of messages as an HTTP answer (server-sent events), which notices when nobody reads it any more."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.types import Receive, Scope, Send

from whisper_tui.transports.http_session import MessageQueue

PING_S = 15.0
"""Seconds of silence after which a comment is sent, so that nobody between takes the connection for dead."""

HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Events:
    """Sends what a queue is given, until its end, its answer, or until nobody reads."""

    def __init__(self, queue: MessageQueue, left: Callable[[], None], *, answers: bool = False) -> None:
        """`left` is called when it is over. `answers`: the first message that is an answer is the last."""
        self._queue = queue
        self._left = left
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Be the answer to one request."""
        gone = asyncio.create_task(_until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            while (piece := await self._next(gone)) is not None:
                await send({"type": "http.response.body", "body": piece[0], "more_body": True})
                if piece[1]:
                    break
            if not gone.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except OSError:
            return  # It was closed in the middle of a message.
        finally:
            self._left()
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)

    async def _next(self, gone: asyncio.Task[None]) -> tuple[bytes, bool] | None:
        """The next piece, and whether it is the last. None: there is none."""
        message = asyncio.create_task(self._queue.get())
        try:
            waits: tuple[asyncio.Task[Any], ...] = (message, gone)
            await asyncio.wait(waits, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED)
            if not message.done():
                return None if gone.done() else (b": still there\n\n", False)
            content = await message
        finally:
            message.cancel()
        if content is None:
            return None
        return f"event: message\ndata: {json.dumps(content)}\n\n".encode(), self._answers and "method" not in content


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
