"""Notifications: their settings, their text, and their channels: escape sequences, the desktop, the user's program."""

import asyncio
import html
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from pydantic import Field, field_validator

from whisper_tui.model.board import Board
from whisper_tui.model.call_rows import call_row, masked_record
from whisper_tui.model.run import StallNews
from whisper_tui.model.state import CallRecord
from whisper_tui.model.text import visible
from whisper_tui.model.value import Value
from whisper_tui.present.quantities import count, limit
from whisper_tui.present.security_text import is_grave
from whisper_tui.present.words import session_label

_HOURS = re.compile(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d")


class NotifySettings(Value):
    """The `[calling]` table of the configuration file. The table keeps its old name, so that old files load."""

    when: Literal["away", "always", "never"] = "away"
    """`away` notifies only while the terminal is unfocused or idle."""
    away_after_s: float = Field(default=30.0, ge=0)
    """Seconds without a key or mouse movement until the person counts as away."""
    at_most_every_s: float = Field(default=10.0, ge=1)
    """Rate limit: seconds between two notifications. Calls in between share the next one."""
    bell: bool = True
    """Ring the terminal's bell."""
    notify: Literal["osc9", "osc777", "off"] = "osc9"
    """The escape sequence of notifications: OSC 9 of iTerm2, WezTerm and others, or OSC 777 of urxvt,
    foot and others."""
    desktop: bool = False
    """Show notifications with `notify-send` or `osascript`."""
    desktop_buttons: bool = False
    """Show a desktop notification for each waiting call, with its command and buttons. It needs the extra `desktop`."""
    desktop_open: tuple[str, ...] = ()
    """The program of the button Open, such as a terminal with the cockpit. Empty: no such button."""
    title: bool = True
    """Show the number of waiting calls in the terminal's title."""
    command: tuple[str, ...] = ()
    """A program and its arguments. It gets each notification as JSON on standard input. Empty: none."""
    command_timeout_s: float = Field(default=10.0, gt=0, le=300)
    """Seconds until that program is killed."""
    quiet: str = ""
    """Quiet hours in local time, like 22:00-07:00. Empty: none."""

    @field_validator("quiet")
    @classmethod
    def _hours(cls, value: str) -> str:
        if value and not _HOURS.fullmatch(value):
            raise ValueError(f"hours are written like 22:00-07:00, not {value!r}")
        return value

    @field_validator("command", "desktop_open")
    @classmethod
    def _program(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value and (not value[0] or any("\0" in word for word in value)):
            raise ValueError("the first word must be a program, and no word may contain a null byte")
        return value


NO_NOTIFICATIONS = NotifySettings(when="never", title=False)
"""No notifications, and no change of the terminal's title."""


TITLE = "whisper_tui"
MOST_ROWS = 20
"""The most calls in the JSON for the user's program. `new` counts the rest."""
MOST_NAMES = 2


def waiting_title(waiting: int, need_input: int = 0) -> str:
    """Return the title of the terminal window."""
    # Only numbers, because window titles are visible to bystanders and in screen sharing.
    parts = ([str(waiting)] if waiting else []) + ([f"{need_input} input"] if need_input else [])
    return f"({', '.join(parts)}) {TITLE}" if parts else TITLE


def stall_text(records: Sequence[CallRecord], board: Board, news: StallNews) -> str:
    """Return a sentence about stalled runs, with the names of their sessions."""
    names = dict.fromkeys(
        session_label(board.sessions.get(each.call.session_id), each.call.session_id) for each in records
    )
    one, many = ("needs input", "need input") if news == "needs-input" else ("is stopped", "are stopped")
    who = ", ".join(list(names)[:MOST_NAMES])
    return f"{count(len(records), 'command')} of {who} {one if len(records) == 1 else many}"


def alarm_text(records: Sequence[CallRecord], board: Board) -> str:
    """Return a sentence about calls with alarms, with the names of their sessions."""
    names = dict.fromkeys(
        session_label(board.sessions.get(each.call.session_id), each.call.session_id) for each in records
    )
    who = ", ".join(list(names)[:MOST_NAMES])
    return f"ALARM: {count(len(records), 'approved call')} of {who}: something else may have run"


def waiting_text(records: Sequence[CallRecord], board: Board) -> str:
    """Return a sentence about new calls: which sessions ask, and the gravest risk."""
    # Commands are left out, because locked screens show notifications.
    sessions = dict.fromkeys(record.call.session_id for record in records)
    names = [session_label(board.sessions.get(id_), id_) for id_ in sessions]
    others = f" and {count(len(names) - MOST_NAMES, 'other')}" if len(names) > MOST_NAMES else ""
    who = ", ".join(names[:MOST_NAMES]) + others
    risks = [risk for record in records if record.verdict for risk in record.verdict.risks if is_grave(risk)]
    grave = f" ({risks[0].id.replace('-', ' ')})" if risks else ""
    # Calls of several seconds are told together, and an agent may have gone before.
    left = sum(record.agent_gave_up is not None for record in records)
    gone = "" if not left else " · agent gone" if left == len(records) else f" · agent of {left} gone"
    asks = count(len(records), "new call")
    return f"{asks} from {who}{grave}{gone} · {count(len(board.waiting), 'waits', 'wait')} for you"


def notification_json(
    records: Sequence[CallRecord], board: Board, event: Literal["waiting", "alarm"] | StallNews = "waiting"
) -> bytes:
    """Return a JSON object and a line feed: the calls as rows with their risks, and how many wait or are set aside.

    Secrets are masked even in calls that await a decision, because the program may send this anywhere.
    """
    rows = [
        {
            **call_row(masked_record(record), board.sessions.get(record.call.session_id)),
            "risks": [risk.id for risk in record.verdict.risks] if record.verdict else [],
        }
        for record in records[:MOST_ROWS]
    ]
    numbers = {"waiting": len(board.waiting), "aside": len(board.aside), "new": len(records)}
    content = {"event": event, **numbers, "calls": rows}
    return json.dumps(content).encode("ascii") + b"\n"


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
