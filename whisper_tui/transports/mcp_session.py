"""One agent that speaks MCP: the official SDK serves the protocol, the tools do the work."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from whisper_tui import __version__
from whisper_tui.model.call import ClientInfo
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import Ended
from whisper_tui.tools import Answer, SupervisedTool, ToolContext, ToolRegistry, UnknownTool
from whisper_tui.tools.arguments import check_arguments
from whisper_tui.tools.room import Room
from whisper_tui.tools.wait import WAIT
from whisper_tui.transports.client_habits import helper_behind, model_behind, patience, shown, without_added_keys
from whisper_tui.transports.goodbye import Heard
from whisper_tui.transports.mcp_answers import INSTRUCTIONS, answered, declared, failed_by, plain, still_open
from whisper_tui.transports.mcp_calls import Calls, Followed
from whisper_tui.transports.mcp_lines import serve_lines
from whisper_tui.transports.mcp_progress import Overview
from whisper_tui.transports.request_keys import RequestKeys

LONGEST_NAME = 100
"""Characters of what a client says about itself."""

RENDERED_WITHIN_S = 10.0
"""Seconds in which the answer to a call that has ended is made."""

Context = ServerRequestContext[Any, Any]


class McpSession:
    """Answers one agent. What it has submitted goes on when the agent is gone."""

    def __init__(
        self,
        context: ToolContext,
        registry: Callable[[ToolContext], ToolRegistry],
        overview: Overview,
        progress_interval_s: float,
        *,
        wait_s: float | None = None,
        over_http: bool = False,
    ) -> None:
        """`wait_s`: seconds in which every call is answered. None: what is known of the agent's program decides."""
        self._supervision = context.supervision
        self._session = context.session
        self._overview = overview
        self._progress_interval_s = progress_interval_s
        self._wait_s = wait_s
        self._over_http = over_http
        self._client: ClientInfo | None = context.session.client
        context = replace(context, room=self._room)
        self._registry = registry(context)
        self._calls = Calls(context, self._registry)
        self._unanswered: dict[str, asyncio.Task[Followed]] = {}
        """By request id: the call whose answer it waits for."""
        self._keys = RequestKeys()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Heard) -> None:
        """Speak until the agent's side ends; `heard` counts its lines."""
        await serve_lines(self.server(), reader, writer, heard)

    def server(self) -> Server[object]:
        """What answers the agent's messages."""
        server: Server[object] = Server(
            "whisper_tui",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        server.add_notification_handler("notifications/initialized", types.NotificationParams, self._initialized)
        server.add_notification_handler("notifications/cancelled", types.CancelledNotificationParams, self._cancelled)
        return server

    async def leave(self, why: str) -> None:
        """The agent is gone: what it waits for waits on, marked."""
        await self._calls.leave_all(why)

    async def close(self) -> None:
        """Follow its calls no more."""
        await self._calls.close()

    async def _initialized(self, ctx: Context, _params: types.NotificationParams) -> None:
        await self._introduce(ctx)

    async def _list_tools(self, ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        await self._introduce(ctx)
        return types.ListToolsResult(tools=[declared(tool) for tool in self._registry.get_all_tools()])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        await self._introduce(ctx)
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
            return plain(tool, await self._registry.call(tool.name, arguments), self._room())
        except WhisperError as error:
            return failed_by(tool, error)

    async def _answer(
        self, ctx: Context, opening: Coroutine[Any, Any, Followed], wait_s: float | None = None
    ) -> types.CallToolResult:
        """The answer to a call, or a ticket for it when the client can wait no longer, or was asked not to."""
        request_id = str(ctx.request_id)
        # A cancelled request must not leave a half-made submission behind: the task goes on to its end.
        self._unanswered[request_id] = task = asyncio.create_task(opening)
        try:
            call = await asyncio.shield(task)
            result = await self._result(ctx, call, wait_s)
        except WhisperError:
            self._unanswered.pop(request_id, None)
            raise
        self._unanswered.pop(request_id, None)
        return result

    async def _result(self, ctx: Context, call: Followed, wait_s: float | None) -> types.CallToolResult:
        bound = self._bound(ctx)
        try:
            answer = await self._follow(ctx, call, bound if wait_s is None else min(wait_s, bound))
            record = await self._supervision.record(call.call_id)
            if answer is None and isinstance(record.state, Ended):
                # It ended in the very moment in which the time was over.
                answer = await self._calls.answer(call, RENDERED_WITHIN_S)
        except WhisperError as error:
            return failed_by(call.tool, error, call.call_id)
        if answer is None:
            return still_open(record)
        return answered(answer, call.call_id, self._room())

    async def _follow(self, ctx: Context, call: Followed, seconds: float) -> Answer | None:
        if not _wants_progress(ctx):
            return await self._calls.answer(call, seconds)
        async with self._overview.reporting(call.call_id, ctx.session.report_progress, self._progress_interval_s):
            return await self._calls.answer(call, seconds)

    def _room(self) -> Room:
        """What the agent's model is shown whole."""
        return shown(self._client)

    def _bound(self, ctx: Context) -> float:
        """Seconds in which this request must be answered."""
        if self._wait_s is not None:
            return self._wait_s
        return patience(self._client, progress=_wants_progress(ctx) and not self._over_http)

    async def _cancelled(self, _ctx: Context, params: types.CancelledNotificationParams) -> None:
        """Leave the call of a cancelled request; one that was answered, or is unknown, is nobody's business.

        To give up waiting is not to take back: many clients cancel because a human thinks longer than they wait.
        """
        opening = self._unanswered.pop(str(params.request_id), None)
        if opening is None:
            return
        try:
            call = await opening
        except WhisperError:
            return
        await self._calls.leave(call, "the agent cancelled it" + (f": {params.reason}" if params.reason else ""))

    async def _introduce(self, ctx: Context) -> None:
        """Record which program the agent is, as soon as it has said so."""
        if ctx.session.client_params is None:
            return
        info = ctx.session.client_params.client_info
        model = model_behind(_meta(ctx)) or (self._client.model if self._client else "")
        client = ClientInfo(
            name=info.name[:LONGEST_NAME], version=info.version[:LONGEST_NAME], model=model[:LONGEST_NAME]
        )
        if client != self._client:
            self._client = client
            await self._supervision.describe_session(self._session.id, client)


def _asker(ctx: Context) -> str:
    return helper_behind(_meta(ctx))[:LONGEST_NAME]


def _meta(ctx: Context) -> Mapping[str, Any]:
    """What the client says about a request, beside its arguments."""
    meta = (ctx.params or {}).get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def _wants_progress(ctx: Context) -> bool:
    return ctx.meta is not None and ctx.meta.get("progress_token") is not None
