"""One agent that speaks MCP: the official SDK serves the protocol, the tools do the work."""

import asyncio
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from whisper_tui import __version__
from whisper_tui.model.call import CallRequest, ClientInfo, Session
from whisper_tui.model.command import digest
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import Supervision
from whisper_tui.tools import Answer, SupervisedTool, ToolRegistry, UnknownTool
from whisper_tui.transports.client_habits import without_added_keys
from whisper_tui.transports.goodbye import Heard
from whisper_tui.transports.mcp_answers import INSTRUCTIONS, answered, declared, failed_by, plain
from whisper_tui.transports.mcp_lines import serve_lines
from whisper_tui.transports.mcp_progress import Overview

LONGEST_NAME = 100
"""Characters of what a client says about itself."""

Context = ServerRequestContext[Any, Any]


class McpSession:
    """Answers one connection. What it has submitted goes on when the connection ends."""

    def __init__(
        self,
        supervision: Supervision,
        session: Session,
        registry: ToolRegistry,
        overview: Overview,
        progress_interval_s: float,
    ) -> None:
        self._supervision = supervision
        self._session = session
        self._registry = registry
        self._overview = overview
        self._progress_interval_s = progress_interval_s
        self._client: ClientInfo | None = session.client
        self._unanswered: dict[str, asyncio.Task[str]] = {}
        """By request id: the submission whose call nobody has been told the end of."""
        self._keys_used: dict[str, int] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Heard) -> None:
        """Speak until the agent's side ends; `heard` counts its lines."""
        server: Server[object] = Server(
            "whisper_tui",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        server.add_notification_handler("notifications/initialized", types.NotificationParams, self._initialized)
        server.add_notification_handler("notifications/cancelled", types.CancelledNotificationParams, self._cancelled)
        await serve_lines(server, reader, writer, heard)

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
            if isinstance(tool, SupervisedTool) and await tool.is_asked(arguments):
                return await self._run(ctx, tool, arguments)
            return plain(tool, await self._registry.call(tool.name, arguments))
        except WhisperError as error:
            return failed_by(tool, error)

    async def _run(self, ctx: Context, tool: SupervisedTool, arguments: Mapping[str, Any]) -> types.CallToolResult:
        request_id = str(ctx.request_id)
        request = tool.request(arguments, key=self._key(request_id, tool.name, arguments))
        submission = asyncio.create_task(self._supervision.submit(request))
        self._unanswered[request_id] = submission
        call_id: str | None = None
        try:
            # A cancelled request must not leave a half-made submission behind: the task goes on to its end.
            call_id = await asyncio.shield(submission)
            answer = await self._follow(ctx, tool, request, call_id)
        except WhisperError as error:
            self._unanswered.pop(request_id, None)
            return failed_by(tool, error, call_id)
        self._unanswered.pop(request_id, None)
        return answered(answer, call_id)

    async def _follow(self, ctx: Context, tool: SupervisedTool, request: CallRequest, call_id: str) -> Answer:
        if not ctx.meta or ctx.meta.get("progress_token") is None:
            return await tool.follow(request, call_id)
        async with self._overview.reporting(call_id, ctx.session.report_progress, self._progress_interval_s):
            return await tool.follow(request, call_id)

    async def _cancelled(self, _ctx: Context, params: types.CancelledNotificationParams) -> None:
        """Withdraw the call of a cancelled request; one that was answered, or is unknown, is nobody's business."""
        submission = self._unanswered.pop(str(params.request_id), None)
        if submission is None:
            return
        why = "the agent cancelled it" + (f": {params.reason}" if params.reason else "")
        await self._supervision.withdraw(await submission, why)

    async def _introduce(self, ctx: Context) -> None:
        """Record which program the agent is, as soon as it has said so."""
        if ctx.session.client_params is None:
            return
        info = ctx.session.client_params.client_info
        client = ClientInfo(name=info.name[:LONGEST_NAME], version=info.version[:LONGEST_NAME])
        if client != self._client:
            self._client = client
            await self._supervision.describe_session(self._session.id, client)

    def _key(self, request_id: str, tool: str, arguments: Mapping[str, Any]) -> str:
        """The same for a request that is sent again after a supervisor's crash, and for no other one.

        A client may use an id again once it is answered; its requests are then told apart by what they ask for and
        by their number.
        """
        key = f"mcp {request_id} {digest(f'{tool} {sorted(arguments.items())!r}')}"
        self._keys_used[key] = number = self._keys_used.get(key, 0) + 1
        return key if number == 1 else f"{key} {number}"
