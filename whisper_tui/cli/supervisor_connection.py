"""The fastest connection to the supervisor, for programs that agents and scripts start with every command.

`places` names the directories as options do: nothing, `--home DIR` or `--directories CONFIG STATE RUNTIME`.
`environ` is the environment that may say where they are if the options do not.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from whisper_tui.wire.light_client import connect_quickly, quick_runtime

if TYPE_CHECKING:
    # `socket` and `pathlib` take as long to import as all else that a short command needs.
    from _socket import socket as Connection

    from whisper_tui.system.state_directory import Directories


def of_agents(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the environment that may choose directories for a program of an agent: `HOME` alone."""
    # A project's settings can give an agent any variable. One that moved the directories would send the question to
    # another instance, with rules that the project brings along.
    return {"HOME": environ["HOME"]} if environ.get("HOME") else {}


def connect(places: Sequence[str], environ: Mapping[str, str] = os.environ) -> "Connection | None":
    """Connect to the running supervisor. None: none runs, or only the slower way can tell. Raises nothing."""
    runtime = quick_runtime(places, environ)
    return connect_quickly(runtime) if runtime is not None else None


def reach(places: Sequence[str], environ: Mapping[str, str] = os.environ) -> "Connection":
    """Connect to the supervisor, and start one if none runs. Raises `WhisperError`."""
    connection = connect(places, environ)
    if connection is not None:
        return connection
    from whisper_tui.wire import rendezvous

    return rendezvous.reach(home_at(places, environ), for_agent=True)


def reach_again(places: Sequence[str], environ: Mapping[str, str] = os.environ) -> "Connection | None":
    """Connect again after a lost connection. None: the supervisor was stopped on purpose."""
    # A human who stopped it decides when it starts again, not a command that lost its connection.
    from whisper_tui.wire import rendezvous

    home = home_at(places, environ)
    return rendezvous.connect(home) if rendezvous.stopped_on_purpose(home) else rendezvous.reach(home, for_agent=True)


def home_at(places: Sequence[str], environ: Mapping[str, str] = os.environ) -> "Directories":
    """Return the directories that these options choose. Raises `BadConfiguration`."""
    from pathlib import Path

    from whisper_tui.config.paths import find_directories
    from whisper_tui.system.state_directory import Directories

    if len(places) == 4:
        return Directories(*map(Path, places[1:]))
    return find_directories(places[1] if places else None, environ)
