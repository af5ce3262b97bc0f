"""The endpoint for agents that speak MCP: it opens their session and lets the SDK serve it."""

import asyncio
import json
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from whisper_tui.agents.known_clients import profiles
from whisper_tui.agents.profile import LONG_WAIT_S
from whisper_tui.model.api import Supervision
from whisper_tui.model.call import SessionHello
from whisper_tui.model.errors import InvalidRequest, WhisperError
from whisper_tui.tools import ToolContext, ToolRegistry, standard_registry
from whisper_tui.transports.mcp.mcp_calls import ProgressReporter
from whisper_tui.transports.mcp.relay import LineCount, goodbye

if TYPE_CHECKING:
    from whisper_tui.transports.mcp.mcp_session import McpSession

PROGRESS_EVERY_S = 10.0

GONE = "the agent disconnected"


class McpEndpoint:
    """Serves any number of agents with one supervisor. Each connection is one session."""

    def __init__(
        self,
        supervision: Supervision,
        *,
        registry: Callable[[ToolContext], ToolRegistry] = standard_registry,
        progress_interval_s: float = PROGRESS_EVERY_S,
        wait_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`wait_s`: seconds within which calls are answered. None: as long as each client is known to wait."""
        self._supervision = supervision
        self._registry = registry
        self._progress_interval_s = progress_interval_s
        self._wait_s = wait_s
        self._overview = ProgressReporter(supervision, clock)
        self._connections: dict[str, asyncio.StreamWriter] = {}
        """By session id: its current connection."""

    async def prepare(self) -> None:
        """Load the SDK and the profiles of clients ahead of the first agent."""
        # In a thread, because importing the SDK takes half a second and the event loop serves the cockpit.
        await asyncio.to_thread(_session_class)
        await asyncio.to_thread(list, profiles())

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]) -> None:
        """Serve one connection. If cancelled, send a goodbye and keep the session open for the agent's return."""
        try:
            session = await self._supervision.open_session(_checked(hello))
            context = ToolContext(self._supervision, session)
            agent = await self._agent(context, hello)
        except WhisperError as error:
            await _say(writer, {"error": {"kind": error.kind, "message": error.message, "hint": error.hint}})
            return
        self._connections[session.id] = writer
        supervisor_stops = False
        lines_read = LineCount()
        try:
            await _say(writer, {"ok": True, "session_id": session.id})
            await agent.serve(reader, writer, lines_read)
        except ConnectionError:
            pass
        except asyncio.CancelledError:
            supervisor_stops = True
            writer.write(goodbye(lines_read.lines))
            raise
        finally:
            # An agent that has returned meanwhile has a new connection, which owns the session.
            if self._connections.get(session.id) is writer:
                del self._connections[session.id]
                if not supervisor_stops:
                    await agent.leave(GONE)
                    await self._supervision.close_session(session.id, GONE)
            await agent.close()

    async def _agent(self, context: ToolContext, hello: dict[str, Any]) -> "McpSession":
        wait_s = _wait_s(hello)
        await self.prepare()
        return _session_class()(
            context,
            self._registry,
            self._overview,
            self._progress_interval_s,
            wait_s=self._wait_s if wait_s is None else wait_s,
            over_http=hello.get("over_http") is True,
            own_shell=hello.get("own_shell") is True,
        )


def _session_class() -> "type[McpSession]":
    from whisper_tui.transports.mcp.mcp_session import McpSession

    return McpSession


def _checked(hello: dict[str, Any]) -> SessionHello:
    """Return the session that a hello line requests. Raises `InvalidRequest`."""
    try:
        asked = SessionHello.model_validate(hello.get("session"))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "session"
        raise InvalidRequest(f"the hello line is wrong at {where}: {first['msg']}") from error
    if not asked.relayed and not os.path.isdir(asked.root):  # noqa: PTH112  an impossible path is not a directory, and not an error
        raise InvalidRequest(
            f"the workspace {asked.root} is not a directory", hint="Name an existing one with `whisper-tui mcp --root`"
        )
    return asked


def _wait_s(hello: dict[str, Any]) -> float | None:
    """Return the seconds within which calls must be answered, as set by the agent's user. Raises `InvalidRequest`."""
    wait_s = hello.get("wait_s")
    if wait_s is None:
        return None
    if isinstance(wait_s, bool) or not isinstance(wait_s, int | float) or not 0 < wait_s <= LONG_WAIT_S:
        raise InvalidRequest(
            f"{wait_s!r} is not a valid number of seconds to wait",
            hint=f"Choose one above 0, at most {LONG_WAIT_S:.0f}",
        )
    return float(wait_s)


async def _say(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")
    await writer.drain()
