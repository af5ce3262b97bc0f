"""`mcp --http`: agents that come over HTTP, between their requests and the supervisor."""

import asyncio
import json
import os
import secrets
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from whisper_tui.cli.standard_streams import on_signals
from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.model.protocol_version import HELLO_VERSIONS
from whisper_tui.model.text import sendable
from whisper_tui.system.own_program import installed_program
from whisper_tui.system.state_directory import Directories, make_private
from whisper_tui.transports.loopback_http import HOST, LoopbackServer, listening_on
from whisper_tui.transports.mcp.http_session import HttpSession
from whisper_tui.transports.mcp.http_site import McpSite, token_in
from whisper_tui.transports.mcp.relay import Relay
from whisper_tui.wire.rendezvous import connect, home_options, reach

DENIED = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}


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
    site = McpSite(token, port, opened, partial(_ask_hook, home))
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


async def _ask_hook(home: Directories, client: str, asked: str, deadline_s: float) -> dict[str, Any] | None:
    """Ask the supervisor the question of a hook. Raises `WhisperError`."""
    hello = {
        "door": "hook",
        "version": HELLO_VERSIONS["hook"],
        "client": client,
        "input": asked,
        "nonce": secrets.token_hex(12),
        "environment": _environment(),
        "launcher": installed_program(),
        "places": home_options(home),
        "deadline_s": deadline_s,
    }
    connection = await asyncio.to_thread(partial(reach, home, for_agent=True))
    connection.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    try:
        writer.write(json.dumps(hello).encode() + b"\n")
        head = await reader.readline()
        if head.startswith(b"{") or not head.strip():
            raise Unavailable("the supervisor did not answer the hook", hint="Its log says why")
        code, out, err = map(int, head.split())
        stdout, stderr = await reader.readexactly(out), await reader.readexactly(err)
    except (OSError, asyncio.IncompleteReadError) as error:
        raise Unavailable("the connection with the supervisor was lost", hint="Run the command again") from error
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return _answer(code, stdout, stderr)


def _answer(code: int, stdout: bytes, stderr: bytes) -> dict[str, Any] | None:
    """Return the output of a hook as the body of an answer; an exit code that refuses becomes a denial."""
    if code:
        reason = stderr.decode("utf-8", "replace").strip() or f"the hook ended with {code}"
        return {"hookSpecificOutput": {**DENIED, "permissionDecisionReason": reason}}
    if not stdout.strip():
        return None
    try:
        answer = json.loads(stdout)
    except ValueError as error:
        raise WhisperError("the supervisor's answer to the hook is not JSON") from error
    return answer if isinstance(answer, dict) else None


def _environment() -> dict[str, str]:
    """Return the environment for commands: this program's, without the variables of an agent that started it."""
    # A command would otherwise take itself for a part of the Claude Code session that started this server.
    return {
        name: value for name, value in sendable(os.environ).items() if not name.startswith(("CLAUDE_", "CLAUDECODE"))
    }
