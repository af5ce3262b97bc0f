"""The handshake of every connection, and the names and limits that both ends share. Standard library only."""

import os
from collections.abc import Mapping
from typing import Any

from whisper_tui import __version__
from whisper_tui.model.errors import OtherVersion
from whisper_tui.model.protocol_version import OLDEST, VERSION

SOCKET = "supervisor.sock"
"""Name of the socket in the runtime directory."""

PHONE_ROLE = "phone"
"""The interface of the page for phones."""

DIAL = "dial-stdio"
"""The subcommand that connects its standard input and output to the socket, for programs on other machines."""

LONGEST_ANSWER = 256 * 1024 * 1024
"""The longest line in bytes that a client accepts: enough for the largest page of history."""


HAND_OVER = "Run whisper-tui restart: a supervisor of this version takes over, and running commands continue"
"""The advice to a human about a supervisor of another version."""


_START_AGAIN = "Restart the agent, or have a human run whisper-tui restart with its version; running commands continue"
_PROGRAMS = {"port": "program", "mcp": "relay", PHONE_ROLE: "page for phones"}
"""Programs whose operation has another name."""


def hello(interface: str = "port") -> dict[str, Any]:
    """Return the first line of a client of the API, or of the page for phones."""
    # The key has its old name, because programs of released versions read and write it.
    return {"door": interface, "version": VERSION, "oldest": OLDEST, "program": __version__}


def greeting(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to the first line of any connection. Raises `OtherVersion`."""
    newest = said.get("version")
    oldest = said.get("oldest", newest)
    if isinstance(newest, int) and isinstance(oldest, int):
        version = min(newest, VERSION)
        if version >= max(oldest, OLDEST):
            return {"ok": True, "version": version, "supervisor": __version__, "pid": os.getpid()}
    operation = said.get("door", "port")
    raise OtherVersion(
        f"this {_PROGRAMS.get(operation, operation)}{_of(said.get('program'))} speaks version {newest!r} of the "
        f"protocol, and the supervisor (whisper_tui {__version__}, pid {os.getpid()}) speaks version {VERSION}",
        hint=_START_AGAIN if operation != "port" else _advice(newest),
    )


def _advice(newest: object) -> str:
    if isinstance(newest, int) and newest > VERSION:
        return HAND_OVER
    return (
        "Start it again as it is installed now, or run whisper-tui restart with the version that you want; "
        "running commands continue"
    )


def check_greeting(told: Mapping[str, Any]) -> None:
    """Check the supervisor's answer to the first line. Raises `OtherVersion`."""
    version = told.get("version")
    if not isinstance(version, int) or not OLDEST <= version <= VERSION:
        raise OtherVersion(
            f"the supervisor{_of(told.get('supervisor'))} speaks version {version!r} of the protocol, and this program "
            f"(whisper_tui {__version__}) speaks version {VERSION}",
            hint=HAND_OVER,
        )


def _of(program: object) -> str:
    return f" (whisper_tui {program})" if isinstance(program, str) else ""
