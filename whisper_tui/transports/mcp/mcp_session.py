"""One MCP session of an agent, and its stream of lines."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from whisper_tui import __version__
from whisper_tui.agents.model_instructions import INSTRUCTIONS, OWN_SHELL_INSTRUCTIONS, THERE_INSTRUCTIONS, WORK_RUNS
from whisper_tui.model.call import ClientInfo, digest
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import Ended
from whisper_tui.model.text import is_sendable
from whisper_tui.tools import Answer, SupervisedTool, ToolContext, ToolRegistry, UnknownTool
from whisper_tui.tools.agent_text import OutputBudget
from whisper_tui.tools.ai_tool import check_arguments
from whisper_tui.tools.registry import AS_OWN_TOOLS
from whisper_tui.tools.wait import WAIT
from whisper_tui.transports.json_lines import LineCutter
from whisper_tui.transports.mcp.mcp_calls import (
    Calls,
    FollowedCall,
    ProgressReporter,
    answered,
    declared,
    failed_by,
    model_of,
    output_budget,
    plain,
    still_open,
    subagent_of,
    wait_limit,
    without_added_keys,
)
from whisper_tui.transports.mcp.relay import SERVER_NAME, LineCount

LONGEST_LINE = 16 * 1024 * 1024
"""The longest message in bytes. A longer one is refused, and the connection stays open."""

_PIECE = 256 * 1024

Inbound = MemoryObjectSendStream[SessionMessage | Exception]
Outbound = MemoryObjectSendStream[SessionMessage]


async def serve_lines(
    server: Server[object], reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lines_read: LineCount
) -> None:
    """Serve the peer of a stream until it disconnects. After a cancellation nothing is written."""
    inbound, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, to_client = anyio.create_memory_object_stream[SessionMessage](0)
    voice = _LineWriter(writer)
    ended = anyio.Event()

    async def run() -> None:
        try:
            await server.run(from_client, outbound, server.create_initialization_options())
        finally:
            ended.set()

    async def discover(request: types.JSONRPCRequest, answers: Outbound) -> None:
        await _answer_alone(server, request, answers)

    async with anyio.create_task_group() as group:
        group.start_soon(_read, reader, inbound, outbound.clone(), lines_read, discover)
        group.start_soon(voice.write, to_client, group.cancel_scope)
        group.start_soon(run)
        try:
            await ended.wait()
        except asyncio.CancelledError:
            # The SDK would answer pending requests with errors, but their agent may return for the results.
            voice.silent = True
            raise


class _LineWriter:
    """Writes the server's messages as lines."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.silent = False

    async def write(self, messages: MemoryObjectReceiveStream[SessionMessage], everything: anyio.CancelScope) -> None:
        async with messages:
            try:
                async for item in messages:
                    if self.silent:
                        return
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    self._writer.write(text.encode() + b"\n")
                    await self._writer.drain()
            except ConnectionError:
                everything.cancel()


async def _answer_alone(server: Server[object], request: types.JSONRPCRequest, answers: Outbound) -> None:
    """Answer a request as if its connection had no other one."""
    inbound, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](1)
    outbound, to_client = anyio.create_memory_object_stream[SessionMessage](1)
    async with inbound, to_client, anyio.create_task_group() as group:
        group.start_soon(server.run, from_client, outbound, server.create_initialization_options())
        await inbound.send(SessionMessage(request))
        await answers.send(await to_client.receive())
        group.cancel_scope.cancel()


Discover = Callable[[types.JSONRPCRequest, Outbound], Coroutine[Any, Any, None]]


async def _read(
    reader: asyncio.StreamReader, inbound: Inbound, outbound: Outbound, lines_read: LineCount, discover: Discover
) -> None:
    """Pass on the client's messages.

    The SDK takes the era of a connection from its first request, and refuses `initialize` after `server/discover`. But
    a client that gets no answer to its `server/discover` in time, because this machine is busy or a supervisor had to
    start, tries `initialize` next. So requests to discover are answered by themselves until another request has come.
    """
    begun = False
    async with inbound, outbound:
        try:
            async for line in _lines(reader):
                lines_read.lines += 1
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line or b"", by_name=False)
                except ValidationError:
                    await outbound.send(SessionMessage(_refusal(line)))
                    continue
                if isinstance(message, types.JSONRPCRequest) and not begun:
                    if message.method == "server/discover":
                        await discover(message, outbound)
                        continue
                    begun = True
                await inbound.send(SessionMessage(message))
        except (ConnectionError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes | None]:
    """Yield lines without their ends, and None for a line that was too long."""
    cutter = LineCutter(LONGEST_LINE)
    while data := await reader.read(_PIECE):
        for line in cutter.cut(data):
            yield line


def _refusal(line: bytes | None) -> types.JSONRPCError:
    """Return the error for an invalid line, with the request's id if that can be read."""
    if line is None:
        return _error(types.INVALID_REQUEST, f"The message is longer than {LONGEST_LINE:,} bytes")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _error(types.PARSE_ERROR, f"The message is not valid JSON: {error}")
    request_id = message.get("id") if isinstance(message, dict) and "method" in message else None
    return _error(types.INVALID_REQUEST, "The message is not JSON-RPC 2.0", request_id if _is_id(request_id) else None)


def _is_id(request_id: object) -> bool:
    """True if an answer can have this id. A lone surrogate cannot be sent."""
    if isinstance(request_id, str):
        return is_sendable(request_id)
    return isinstance(request_id, int) and not isinstance(request_id, bool)


def _error(code: int, message: str, request_id: types.RequestId | None = None) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))


REMEMBERED = 10_000
"""How many keys of requests of one agent are remembered."""


class RequestKeys:
    """Derives a key for each request of a session. A request that is repeated after a crash has the same key."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        """How often each key was used, the most recent one last."""
        self._newest_forgotten = -1
        """The highest number among the ids of forgotten requests."""
        self._most_forgotten = 0
        """The highest count of a forgotten key."""

    def of(self, request_id: int | str | None, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the key of a request."""
        # A client may reuse an id once it was answered, so content and a number distinguish the requests.
        key = f"mcp {request_id} {digest(f'{tool} {sorted(arguments.items())!r}')}"
        # No forgotten request had a higher id. Any other id may have been used as often as the most frequent one.
        is_new = isinstance(request_id, int) and request_id > self._newest_forgotten
        number = self._used.pop(key, 0 if is_new else self._most_forgotten) + 1
        self._used[key] = number
        if len(self._used) > REMEMBERED:
            self._forget_oldest()
        return key if number == 1 else f"{key} {number}"

    def _forget_oldest(self) -> None:
        key = next(iter(self._used))
        self._most_forgotten = max(self._most_forgotten, self._used.pop(key))
        id_ = key.split(" ", 2)[1]
        if id_.isdecimal():
            self._newest_forgotten = max(self._newest_forgotten, int(id_))


LONGEST_NAME = 100
"""The longest name that a client gives itself in characters."""

RENDERED_WITHIN_S = 10.0
"""Seconds within which the answer to an ended call is created."""

Context = ServerRequestContext[Any, Any]


class McpSession:
    """Answers one agent. Its calls continue when the agent is gone."""

    def __init__(
        self,
        context: ToolContext,
        registry: Callable[[ToolContext], ToolRegistry],
        reporter: ProgressReporter,
        progress_interval_s: float,
        *,
        wait_s: float | None = None,
        over_http: bool = False,
        own_shell: bool = False,
    ) -> None:
        """`wait_s`: seconds within which every call is answered. None: it depends on the agent's program.

        `own_shell`: the agent's own shell is supervised, so no tools that run commands are offered.
        """
        self._supervision = context.supervision
        self._session = context.session
        self._overview = reporter
        self._progress_interval_s = progress_interval_s
        self._wait_s = wait_s
        self._over_http = over_http
        self._own_shell = own_shell
        self._work_runs = False
        """True if ordinary work of the session runs unasked."""
        self._client: ClientInfo | None = context.session.client
        context = replace(context, output_budget=self._output_budget)
        self._registry = registry(context)
        self._calls = Calls(context, self._registry)
        self._unanswered: dict[str, asyncio.Task[FollowedCall]] = {}
        """By request id: the call for whose answer it waits."""
        self._keys = RequestKeys()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lines_read: LineCount) -> None:
        """Serve the connection until the agent closes it. `lines_read` counts its lines."""
        level = (await self._supervision.status()).level_in(self._session.id)
        self._work_runs = level is not None and level.runs_work and not self._session.relayed
        await serve_lines(self.server(), reader, writer, lines_read)

    def server(self) -> Server[object]:
        """The SDK's server that answers the agent's messages."""
        server: Server[object] = Server(
            SERVER_NAME,
            version=__version__,
            instructions=self._instructions(),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        server.add_notification_handler("notifications/initialized", types.NotificationParams, self._initialized)
        server.add_notification_handler("notifications/cancelled", types.CancelledNotificationParams, self._cancelled)
        return server

    def _instructions(self) -> str:
        if self._session.relayed:
            return THERE_INSTRUCTIONS
        told = OWN_SHELL_INSTRUCTIONS if self._own_shell else INSTRUCTIONS
        return f"{told}\n- {WORK_RUNS}" if self._work_runs else told

    async def leave(self, why: str) -> None:
        """Handle the end of the agent. Its calls keep waiting, with a mark."""
        await self._calls.leave_all(why)

    async def close(self) -> None:
        """Stop monitoring its calls."""
        await self._calls.close()

    async def _initialized(self, ctx: Context, _params: types.NotificationParams) -> None:
        await self._record_client(ctx)

    async def _list_tools(self, ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        await self._record_client(ctx)
        # They are only left out of the list: an older conversation that goes on may still call them.
        hidden = AS_OWN_TOOLS if self._own_shell else frozenset[str]()
        offered = [tool for tool in self._registry.get_all_tools() if tool.name not in hidden]
        if [tool.name for tool in offered] == [WAIT]:
            # There is nothing to wait for.
            offered = []
        return types.ListToolsResult(tools=[declared(tool) for tool in offered])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        await self._record_client(ctx)
        client = self._client.name if self._client else ""
        arguments = without_added_keys(client, params.arguments or {})
        try:
            tool = self._registry.get_tool_by_name(params.name)
        except UnknownTool as error:
            raise MCPError(types.INVALID_PARAMS, error.sentence()) from error
        try:
            if tool.name == WAIT:
                checked = check_arguments(tool.name, tool.parameters_schema, arguments)
                opening = self._calls.of_ticket(checked["ticket"])
                return await self._answer(ctx, opening, checked.get("wait_s"))
            if isinstance(tool, SupervisedTool) and await tool.is_asked(arguments):
                key = self._keys.of(ctx.request_id, tool.name, arguments)
                return await self._answer(ctx, self._calls.submit(tool, arguments, key, asker=_asker(ctx)))
            return plain(tool, await self._registry.call(tool.name, arguments), self._output_budget())
        except WhisperError as error:
            return failed_by(tool, error)

    async def _answer(
        self, ctx: Context, opening: Coroutine[Any, Any, FollowedCall], wait_s: float | None = None
    ) -> types.CallToolResult:
        """Return the answer to a call, or a ticket if there is no answer within the client's time."""
        request_id = str(ctx.request_id)
        # A cancelled request must not leave half a submission behind, so the task runs to its end.
        self._unanswered[request_id] = task = asyncio.create_task(opening)
        # If the agent leaves before the submission is judged, nobody is left to be told that it was refused.
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception() and None)
        try:
            call = await asyncio.shield(task)
            result = await self._result(ctx, call, wait_s)
        except WhisperError:
            self._unanswered.pop(request_id, None)
            raise
        self._unanswered.pop(request_id, None)
        return result

    async def _result(self, ctx: Context, call: FollowedCall, wait_s: float | None) -> types.CallToolResult:
        bound = self._bound(ctx)
        try:
            answer = await self._follow(ctx, call, bound if wait_s is None else min(wait_s, bound))
            record = await self._supervision.record(call.call_id)
            if answer is None and isinstance(record.state, Ended):
                # It ended just when the time was over. A ticket would cost the agent another turn.
                answer = await self._calls.answer(call, RENDERED_WITHIN_S)
        except WhisperError as error:
            return failed_by(call.tool, error, call.call_id)
        if answer is None:
            return still_open(record)
        return answered(answer, call.call_id, self._output_budget())

    async def _follow(self, ctx: Context, call: FollowedCall, seconds: float) -> Answer | None:
        if not _wants_progress(ctx):
            return await self._calls.answer(call, seconds)
        async with self._overview.reporting(call.call_id, ctx.session.report_progress, self._progress_interval_s):
            return await self._calls.answer(call, seconds)

    def _output_budget(self) -> OutputBudget:
        """Return how much output the agent shows its model without truncation."""
        return output_budget(self._client)

    def _bound(self, ctx: Context) -> float:
        """Return the seconds within which this request must be answered."""
        if self._wait_s is not None:
            return self._wait_s
        return wait_limit(self._client, progress=_wants_progress(ctx) and not self._over_http)

    async def _cancelled(self, _ctx: Context, params: types.CancelledNotificationParams) -> None:
        """Mark the call of a cancelled request. Answered and unknown requests are ignored."""
        # Cancelling is not denying: many clients cancel because a human takes longer than their timeout.
        opening = self._unanswered.pop(str(params.request_id), None)
        if opening is None:
            return
        try:
            call = await opening
        except WhisperError:
            return
        await self._calls.leave(call, "the agent cancelled it" + (f": {params.reason}" if params.reason else ""))

    async def _record_client(self, ctx: Context) -> None:
        """Record the agent's program, as soon as it has identified itself."""
        if ctx.session.client_params is None:
            return
        info = ctx.session.client_params.client_info
        model = model_of(_meta(ctx)) or (self._client.model if self._client else "")
        client = ClientInfo(
            name=info.name[:LONGEST_NAME], version=info.version[:LONGEST_NAME], model=model[:LONGEST_NAME]
        )
        if client != self._client:
            self._client = client
            await self._supervision.describe_session(self._session.id, client)


def _asker(ctx: Context) -> str:
    return subagent_of(_meta(ctx))[:LONGEST_NAME]


def _meta(ctx: Context) -> Mapping[str, Any]:
    """Return the metadata that the client sends with a request."""
    meta = (ctx.params or {}).get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def _wants_progress(ctx: Context) -> bool:
    return ctx.meta is not None and ctx.meta.get("progress_token") is not None
