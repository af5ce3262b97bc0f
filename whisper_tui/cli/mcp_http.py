"""`mcp --http`: agents that come over HTTP, between their requests and the supervisor."""

import asyncio
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from whisper_tui.cli.ask_hook import ask_hook
from whisper_tui.cli.standard_streams import on_signals
from whisper_tui.system.state_directory import Directories, make_private
from whisper_tui.transports.loopback_http import HOST, LoopbackServer, listening_on
from whisper_tui.transports.mcp.http_session import HttpSession
from whisper_tui.transports.mcp.http_site import McpSite, token_in
from whisper_tui.transports.mcp.relay import Relay
from whisper_tui.wire.rendezvous import connect, reach


def token_of(home: Directories) -> str:
    """The token of an instance, which is made if there is none. Raises `WhisperError`."""
    make_private(home.state)
    return token_in(Path(home.state))


def serve_http(home: Directories, *, port: int, root: str, name: str | None, wait_s: float | None) -> None:
    """Serve until a signal ends it. Raises `WhisperError`."""
    token = token_of(home)
    with listening_on(port) as listening:
        # A supervisor that cannot start is reported here, not in the first request of an agent.
        reach(home).close()
        asyncio.run(_serve(home, listening, token, partial(_opened, home, root, name, wait_s)))


async def _serve(home: Directories, listening: socket.socket, token: str, opened: Callable[[], HttpSession]) -> None:
    port = listening.getsockname()[1]
    site = McpSite(token, port, opened, partial(ask_hook, home))
    server = LoopbackServer(site)

    async def stop() -> None:
        await site.close()
        server.should_exit = True

    stopping: list[asyncio.Task[None]] = []
    on_signals(lambda: stopping.append(asyncio.create_task(stop())))
    sys.stdout.write(f"MCP: http://{HOST}:{port}/mcp\nhook of Claude Code: http://{HOST}:{port}/hook/claude\n")
    sys.stdout.write(
        "Both want the header Authorization: Bearer TOKEN; whisper-tui mcp --http --show-token prints it.\n"
    )
    sys.stdout.flush()
    await server.serve(sockets=[listening])
    await asyncio.gather(*stopping)


def _opened(home: Directories, root: str, name: str | None, wait_s: float | None) -> HttpSession:
    session = HttpSession()
    relay = Relay(
        partial(reach, home, for_agent=True),
        partial(connect, home),
        session.receive,
        root=root,
        name=name,
        wait_s=wait_s,
        over_http=True,
    )
    return session.with_relay(relay)
