"""A connection to a supervisor that runs, for programs that start with every command: `socket`, `pathlib` and `typing`
take longer to import than Python takes to start."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Connection
    from collections.abc import Mapping, Sequence

_LONGEST_ADDRESS = 103


def connect_quickly(runtime: str) -> "Connection | None":
    """Connect to the socket in a runtime directory. None: it takes the longer way to know what is there."""
    path = f"{runtime}/supervisor.sock"
    if not sys.platform.startswith("linux") or len(os.fsencode(path)) > _LONGEST_ADDRESS:
        return None
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(path)
        about = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    except OSError:
        connection.close()
        return None
    known = int.from_bytes(about[4:8], sys.byteorder) == os.geteuid()
    if not known or _may_be_supervised(int.from_bytes(about[:4], sys.byteorder)):
        connection.close()
        return None
    return connection


def _may_be_supervised(pid: int) -> bool:
    """Whether a process has the limit that marks what supervised commands start, so that a closer look is wanted."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:  # noqa: PTH123
            limits = file.read()
    except OSError:
        return True
    return limits.partition(b"Max file locks")[2].lstrip().split(None, 2)[1:2] != [b"unlimited"]


def quick_runtime(chosen: "Sequence[str]", environ: "Mapping[str, str]") -> str | None:
    """The runtime directory that these options and variables choose. None: `find_home` has to say.

    `chosen` is empty, `--home DIR` or `--directories CONFIG STATE RUNTIME`.
    """
    if len(chosen) == 4:
        return chosen[3]
    if len(chosen) == 2 and not chosen[1]:
        return None
    home = chosen[1] if len(chosen) == 2 else environ.get("WHISPER_TUI_HOME", "")
    if home:
        return os.path.join(os.path.abspath(home), "run")  # noqa: PTH100, PTH118
    state = environ.get("XDG_STATE_HOME", "")
    if sys.platform == "darwin" or not environ.get("HOME") or environ.get("XDG_CONFIG_HOME", "").startswith("/"):
        return None
    if state.startswith("/"):
        return os.path.join(state, "whisper_tui", "run")  # noqa: PTH118
    usual = usual_directories(environ)
    return None if usual is None else usual[2]


def usual_directories(environ: "Mapping[str, str]") -> tuple[str, str, str] | None:
    """The directories that are found where only the home directory is known. None: `find_home` has to say."""
    home = environ.get("HOME")
    if sys.platform == "darwin" or not home:
        return None
    state = os.path.join(home, ".local/state/whisper_tui")  # noqa: PTH118
    if os.path.lexists(os.path.join(state, "elsewhere")):  # noqa: PTH118
        return None
    return os.path.join(home, ".config/whisper_tui"), state, os.path.join(state, "run")  # noqa: PTH118
