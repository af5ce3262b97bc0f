"""A tool whose calls go through the supervisor: handed in, decided there, and followed to their answer."""

import asyncio
from abc import abstractmethod
from contextlib import suppress
from typing import Any

from whisper_tui.model.call import CallRequest
from whisper_tui.model.errors import WhisperError
from whisper_tui.tools.ai_tool import AITool
from whisper_tui.tools.answer import Answer
from whisper_tui.tools.context import ToolContext


class SupervisedTool(AITool):
    """Asks the supervisor before anything happens."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    async def is_asked(self, arguments: object) -> bool:
        """Whether a call goes to the supervisor at all. Raises `ArgumentError`."""
        return True

    @abstractmethod
    def request(self, arguments: object, *, key: str | None = None) -> CallRequest:
        """Check the arguments and make a request of them. Raises `WhisperError`; nothing is submitted."""

    async def call(self, arguments: object) -> Answer:
        """Submit and follow; given up, withdraw. Raises `WhisperError` where there is no result."""
        request = self.request(arguments)
        call_id = await self._context.supervision.submit(request)
        try:
            return await self.follow(request, call_id)
        except asyncio.CancelledError:
            with suppress(WhisperError):
                await self._context.supervision.withdraw(call_id, "the caller gave up")
            raise

    @abstractmethod
    async def follow(self, request: CallRequest, call_id: str) -> Answer:
        """Wait for what becomes of a submitted call, and answer. Raises `WhisperError` where there is no result."""

    async def execute(self, **kwargs: Any) -> Any:
        """Submit, wait for as long as a human takes, and return the result."""
        return (await self.call(kwargs)).result
