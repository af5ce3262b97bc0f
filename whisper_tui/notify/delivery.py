"""The channels of notifications: escape sequences, the desktop, the user's program."""

import asyncio
import html
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Literal

from whisper_tui.model.text import visible
from whisper_tui.present.quantities import limit

BELL = "\a"
SAVE_TITLE = "\x1b[22;2t"
RESTORE_TITLE = "\x1b[23;2t"
LONGEST = 200
"""The longest notification in characters."""


def one_safe_line(text: str) -> str:
    """Return untrusted text as one short line without control characters or field separators."""
    # A semicolon separates the fields of OSC 777, and agents choose the names of sessions (decision 21).
    shown = visible(text).replace(";", ",")
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def notification(kind: Literal["osc9", "osc777"], title: str, body: str, *, tmux: bool = False) -> str:
    """Return the escape sequence that asks the terminal to show a notification."""
    fields = ("9", f"{one_safe_line(title)}: {one_safe_line(body)}")
    if kind == "osc777":
        fields = ("777;notify", f"{one_safe_line(title)};{one_safe_line(body)}")
    return _through(f"\x1b]{fields[0]};{fields[1]}\a", tmux=tmux)


def terminal_title(text: str) -> str:
    """Return the escape sequence that sets the title of the terminal window."""
    return f"\x1b]2;{one_safe_line(text)}\a"


def _through(sequence: str, *, tmux: bool) -> str:
    """Wrap a sequence for tmux, which passes it on if `allow-passthrough` is on."""
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\" if tmux else sequence


DESKTOP_TIMEOUT_S = 5.0
_SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


def desktop_program(title: str, body: str, find: Callable[[str], str | None] = shutil.which) -> tuple[str, ...] | None:
    """Return the argv that shows a notification on this desktop. None: there is no program for that."""
    title, body = visible(title), visible(body)
    if (program := find("notify-send")) is not None:
        # The specification allows markup in the body, so that text is escaped. The title is plain.
        return (program, "--app-name=whisper_tui", "--", title, html.escape(body, quote=False))
    if (program := find("osascript")) is not None:
        # Title and body are arguments. Inside the script's text, quotes in them would become AppleScript code.
        lines = [word for line in _SCRIPT for word in ("-e", line)]
        return (program, *lines, "--", title, body)
    return None


def desktop_environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for the user's desktop session, even if this process was not started from it."""
    environment = dict(own)
    # An agent over SSH may have started the supervisor. On Linux the bus of the session has a fixed path.
    runtime = environment.setdefault("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    if os.path.exists(bus := f"{runtime}/bus"):  # noqa: PTH110
        environment.setdefault("DBUS_SESSION_BUS_ADDRESS", f"unix:path={bus}")
    return environment


async def run_program(
    argv: tuple[str, ...], stdin: bytes, timeout_s: float, environment: dict[str, str] | None = None
) -> str | None:
    """Run a program until it ends or times out. Return a description of the problem, or None.

    `environment` None: this process's environment.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    try:
        code = await asyncio.wait_for(_feed(process, stdin), timeout_s)
    except TimeoutError:
        return f"was still running after {limit(timeout_s)}"
    finally:
        if process.returncode is None:
            await _end(process)
    return None if code == 0 else f"exited with {code}"


async def _feed(process: asyncio.subprocess.Process, stdin: bytes) -> int:
    if (pipe := process.stdin) is not None:
        with suppress(BrokenPipeError, ConnectionResetError):  # the program may exit without reading
            pipe.write(stdin)
            await pipe.drain()
        pipe.close()
    return await process.wait()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the program with its process group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
