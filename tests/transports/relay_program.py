"""Runs the relay over a socket that the test owns: `relay_program.py SOCKET ROOT [NAME]`.

Where nobody listens, asking to start a supervisor leaves the file SOCKET.asked and waits for one.
"""

import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from whisper_tui.model.errors import Unavailable
from whisper_tui.transports.mcp.relay import run_relay

PATH = sys.argv[1]


def look() -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(PATH)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection


def reach(starting: Callable[[], None]) -> socket.socket:
    if (connection := look()) is not None:
        return connection
    starting()
    Path(PATH + ".asked").touch()
    deadline = time.monotonic() + (0.3 if Path(PATH + ".hopeless").exists() else 30)
    while time.monotonic() < deadline:
        if (connection := look()) is not None:
            return connection
        time.sleep(0.02)
    raise Unavailable("the supervisor cannot be started", hint="Look into its log")


sys.exit(run_relay(reach, look, root=sys.argv[2], name=(sys.argv[3:] or [None])[0]))
