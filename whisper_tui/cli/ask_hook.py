"""The question of a hook, asked by a program that is one already: the server over HTTP, and the Claude Agent SDK."""

import asyncio
import json
import os
import secrets
from contextlib import suppress
from functools import partial
from typing import Any

from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.model.protocol_version import HELLO_VERSIONS
from whisper_tui.model.text import sendable
from whisper_tui.system.own_program import installed_program
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.rendezvous import home_options, reach


def denied(reason: str) -> dict[str, Any]:
    """Return the output of a hook of Claude Code that denies."""
    decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": decision}


async def ask_hook(home: Directories, client: str, asked: str, deadline_s: float) -> dict[str, Any] | None:
    """Ask the supervisor the question of a hook, and return its output. None: no decision. Raises `WhisperError`."""
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
        return denied(reason)
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
