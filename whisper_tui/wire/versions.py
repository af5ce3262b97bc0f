"""Which version of the protocol both ends of a connection speak, told in their first lines. Standard library only."""

import os
from collections.abc import Mapping
from typing import Any

from whisper_tui import __version__
from whisper_tui.model.errors import OtherVersion
from whisper_tui.wire.protocol import OLDEST, VERSION

HAND_OVER = "Run whisper-tui restart: a supervisor of this version takes over, and what runs goes on"
"""What a human can do about a supervisor of another version."""


def hello() -> dict[str, Any]:
    """The first line of a client of the port."""
    return {"door": "port", "version": VERSION, "oldest": OLDEST, "program": __version__}


def greeting(said: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a client's first line. Raises `OtherVersion`."""
    newest = said.get("version")
    oldest = said.get("oldest", newest)
    if isinstance(newest, int) and isinstance(oldest, int):
        version = min(newest, VERSION)
        if version >= max(oldest, OLDEST):
            return {"ok": True, "version": version, "supervisor": __version__, "pid": os.getpid()}
    raise OtherVersion(
        f"this program{_of(said.get('program'))} speaks version {newest!r} of the protocol, and the supervisor "
        f"(whisper_tui {__version__}, pid {os.getpid()}) speaks version {VERSION}",
        hint=HAND_OVER
        if isinstance(newest, int) and newest > VERSION
        else "Start it again as it is installed now, or run whisper-tui restart with the version that you want; "
        "what runs goes on",
    )


def check_greeting(told: Mapping[str, Any]) -> None:
    """What the supervisor answered to the first line. Raises `OtherVersion`."""
    version = told.get("version")
    if not isinstance(version, int) or not OLDEST <= version <= VERSION:
        raise OtherVersion(
            f"the supervisor{_of(told.get('supervisor'))} speaks version {version!r} of the protocol, and this program "
            f"(whisper_tui {__version__}) speaks version {VERSION}",
            hint=HAND_OVER,
        )


def _of(program: object) -> str:
    return f" (whisper_tui {program})" if isinstance(program, str) else ""
