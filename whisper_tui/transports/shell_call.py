"""The endpoint of `whisper-tui call`: one tool call, executed like the calls of agents (decision 17)."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from whisper_tui.model.api import Supervision
from whisper_tui.model.call import (
    LARGEST_PID,
    LONGEST_NAME,
    LONGEST_PATH,
    CallRequest,
    PlaceName,
    Session,
    SessionHello,
)
from whisper_tui.model.errors import InvalidRequest, WhisperError
from whisper_tui.model.protocol_version import HELLO_VERSIONS
from whisper_tui.model.value import Value
from whisper_tui.tools import Answer, ArgumentError, SupervisedTool, ToolContext, ToolRegistry, UnknownTool
from whisper_tui.tools.agent_text import OutputBudget
from whisper_tui.tools.supervised_tool import unlimited

T = TypeVar("T")

# As JSON, output may be six times as long, and there are several copies in memory.
INLINE = 1024 * 1024
"""The most output in an answer in bytes."""


class CallHello(Value):
    """The hello of the program: the caller and the call."""

    door: str
    version: int
    name: str = Field(max_length=LONGEST_NAME)
    """The session's name in the queue."""
    root: str = Field(max_length=LONGEST_PATH)
    """The directory in which it was started."""
    pid: int | None = Field(default=None, ge=0, le=LARGEST_PID)
    environment: dict[str, str]
    nonce: str = Field(min_length=16, max_length=64)
    """Chosen by the program and secret. A repeated request with it is the same call."""
    tool: str
    arguments: Any
    place: PlaceName = ""
    """The place where the command runs. Empty: the program does not say."""


class ShellCallEndpoint:
    """Serves `call`: each connection is a session with one call. A repeated request is the same call."""

    def __init__(self, supervision: Supervision, registry: Callable[[ToolContext], ToolRegistry]) -> None:
        self._supervision = supervision
        self._registry = registry

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]) -> None:
        """Serve one connection. Its end withdraws a call that has not started, unless the supervisor ends."""
        said = _checked(hello)
        session = await self._supervision.open_session(_session(said))
        supervisor_stops = False
        try:
            answer = await self._answer(said, session, reader, writer)
        except (ArgumentError, UnknownTool) as error:
            # The program at the other end does not know the tools' own error formats.
            raise InvalidRequest(error.message, hint=error.hint) from error
        except asyncio.CancelledError:
            # The session stays open, because the program repeats the request with the next supervisor.
            supervisor_stops = True
            raise
        finally:
            if not supervisor_stops:
                await self._supervision.close_session(session.id, "the command ended")
        if answer is not None:
            facts = {"result": answer.result, "text": answer.text, "told": answer.told, "failed": answer.failed}
            _say(writer, {**facts, "left_out": answer.left_out})
            await writer.drain()

    def _context(self, said: CallHello, session: Session) -> ToolContext:
        # Programs of version 1 do not read long output themselves. They get its head and tail.
        reads_itself = said.version >= HELLO_VERSIONS["call"]
        return ToolContext(
            self._supervision,
            session,
            output_budget=unlimited if reads_itself else lambda: OutputBudget(INLINE),
            inline=INLINE if reads_itself else None,
            place=lambda: said.place,
        )

    async def _answer(
        self, said: CallHello, session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Answer | None:
        """Return the answer. None: the program has disconnected. Raises `WhisperError` if there is no result."""
        registry = self._registry(self._context(said, session))
        tool = registry.get_tool_by_name(said.tool)
        if not isinstance(tool, SupervisedTool) or not await tool.is_asked(said.arguments):
            result = await registry.call(said.tool, said.arguments)
            return Answer(result, tool.text(result), None, failed=tool.is_error(result))
        request = tool.request(said.arguments, key=said.nonce)
        call_id = await self._supervision.submit(request)
        record = await self._supervision.record(call_id)
        _say(writer, {"call": call_id, "waits": record.state.kind == "waiting"})
        return await self._follow(tool, request, call_id, reader)

    async def _follow(
        self, tool: SupervisedTool, request: CallRequest, call_id: str, reader: asyncio.StreamReader
    ) -> Answer | None:
        try:
            answer = await unless_gone(tool.follow(request, call_id), reader)
        except ConnectionError:
            answer = None
        if answer is None:
            with suppress(WhisperError):
                await self._supervision.withdraw(call_id, "the caller gave up")
        return answer


def _checked(hello: dict[str, Any]) -> CallHello:
    """Validate the hello. Raises `InvalidRequest`."""
    try:
        return CallHello.model_validate(hello)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise InvalidRequest(f"the hello of call is wrong: {where}: {problem['msg']}") from error


def _session(said: CallHello) -> SessionHello:
    return SessionHello(
        name=said.name, root=said.root, pid=said.pid, environment=said.environment, key=f"call {said.nonce}"
    )


def _say(writer: asyncio.StreamWriter, content: dict[str, Any]) -> None:
    writer.write(json.dumps(content, default=str).encode() + b"\n")


async def unless_gone(work: Coroutine[Any, Any, T], reader: asyncio.StreamReader) -> T | None:
    """Return the result of the work. None: the connection ended first, and the work was cancelled."""
    answer = asyncio.ensure_future(work)
    end = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({answer, end}, return_when=asyncio.FIRST_COMPLETED)
        # If both ended at the same time, the result is returned, because the work was done.
        return await answer if answer.done() else None
    finally:
        for task in (answer, end):
            task.cancel()
        await asyncio.gather(answer, end, return_exceptions=True)
