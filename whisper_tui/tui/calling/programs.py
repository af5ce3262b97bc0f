"""Programs that call somebody: the desktop's own, and one of the user's choice; no shell, and not for long."""

import asyncio
import html
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress

from whisper_tui.model.text import visible
from whisper_tui.tui.words import limit

DESKTOP_TIMEOUT_S = 5.0
_SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


def desktop_program(title: str, body: str, find: Callable[[str], str | None] = shutil.which) -> tuple[str, ...] | None:
    """The argv that shows a notification on this desktop. None: there is no program for it."""
    title, body = visible(title), visible(body)
    if (program := find("notify-send")) is not None:
        return (program, "--app-name=whisper_tui", "--", title, html.escape(body, quote=False))
    if (program := find("osascript")) is not None:
        lines = [word for line in _SCRIPT for word in ("-e", line)]
        return (program, *lines, "--", title, body)
    return None


async def run_program(argv: tuple[str, ...], stdin: bytes, timeout_s: float) -> str | None:
    """Run a program until it ends or its time is over. Returns what went wrong, in words. None: nothing."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return f"it cannot be started: {error.strerror}"
    try:
        code = await asyncio.wait_for(_fed(process, stdin), timeout_s)
    except TimeoutError:
        return f"it had not ended after {limit(timeout_s)}"
    finally:
        if process.returncode is None:
            await _end(process)
    return None if code == 0 else f"it ended with {code}"


async def _fed(process: asyncio.subprocess.Process, stdin: bytes) -> int:
    if (pipe := process.stdin) is not None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it need not read
            pipe.write(stdin)
            await pipe.drain()
        pipe.close()
    return await process.wait()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End it with all of its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
