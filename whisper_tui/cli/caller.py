"""A session for calls from a shell, which outlives the supervisor's death."""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

from whisper_tui.config import load
from whisper_tui.config.offered import offered
from whisper_tui.model.call import CallRequest, SessionHello
from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.model.home import Home
from whisper_tui.tools import AITool, Answer, CommandTool, ExecCommandTool, SupervisedTool, ToolContext
from whisper_tui.wire.client import RemoteSupervision
from whisper_tui.wire.rendezvous import was_stopped

RETURNS = 5
"""How often a lost supervisor is looked for again."""

PAUSE_S = 1.0


class Caller:
    """Use as an asynchronous context manager."""

    def __init__(self, home: Home, name: str, environ: Mapping[str, str]) -> None:
        self._hello = SessionHello(
            name=name,
            root=os.path.realpath(os.curdir),
            pid=os.getpid(),
            environment={key: value for key, value in environ.items() if _is_text(key + value)},
        )
        self._home = home
        self._supervision = RemoteSupervision(home)

    async def __aenter__(self) -> Self:
        self._session = await self._supervision.open_session(self._hello)
        return self

    async def __aexit__(self, *_: object) -> None:
        if not was_stopped(self._home):
            with suppress(WhisperError):
                await self._supervision.close_session(self._session.id, "the command ended")
        await self._supervision.close()

    async def call(self, tool_name: str, arguments: object) -> Answer:
        """What the tool answers. Given up, it withdraws a call that still waits."""
        registry = offered(load(self._home).tools, ToolContext(self._supervision, self._session))
        tool: AITool = registry.get_tool_by_name(tool_name)
        if not isinstance(tool, SupervisedTool) or not await tool.is_asked(arguments):
            result = await registry.call(tool_name, arguments)
            return Answer(result, tool.text(result), None, failed=tool.is_error(result))
        request = tool.request(arguments)
        call_id = await self._supervision.submit(request)
        try:
            await self._say_that_it_waits(call_id)
            # A tool of the caller's own is carried out here, and never twice.
            returns = RETURNS if isinstance(tool, CommandTool | ExecCommandTool) else 0
            return await self._answer(tool, request, call_id, returns)
        except asyncio.CancelledError:
            with suppress(WhisperError):
                await self._supervision.withdraw(call_id, "the caller gave up")
            raise

    async def _answer(self, tool: SupervisedTool, request: CallRequest, call_id: str, returns: int) -> Answer:
        """Wait for the answer, also of a supervisor that had to be started again."""
        for _ in range(returns):
            try:
                return await tool.follow(request, call_id)
            except Unavailable as error:
                if was_stopped(self._home):
                    raise Unavailable(
                        f"the supervisor was stopped before call {call_id} ended",
                        hint=f"Nothing is lost: whisper-tui show {call_id} says how it stands",
                    ) from error
                await asyncio.sleep(PAUSE_S)
                await self._supervision.open_session(self._hello.model_copy(update={"resume": self._session.id}))
        return await tool.follow(request, call_id)

    async def _say_that_it_waits(self, call_id: str) -> None:
        record = await self._supervision.record(call_id)
        if record.state.kind == "waiting" and sys.stderr.isatty():
            sys.stderr.write(f"whisper-tui: call {call_id} waits for a human: whisper-tui approve {call_id}\n")


def _is_text(value: str) -> bool:
    """Whether it can be sent; what is not UTF-8 is left out."""
    return not any("\ud800" <= character <= "\udfff" for character in value)
