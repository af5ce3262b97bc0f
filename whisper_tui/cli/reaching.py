"""The way to the supervisor that takes least time, for what agents and scripts start with every command.

`places` names the directories as options do: nothing, `--home DIR` or `--directories CONFIG STATE RUNTIME`.
`environ` is the environment that may say where they are if the options do not.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Connection
    from collections.abc import Mapping, Sequence

    from whisper_tui.model.home import Home


def of_agents(environ: "Mapping[str, str]") -> dict[str, str]:
    """What counts of the environment of a program that an agent starts: the home directory.

    A project's settings can give an agent any variable, and one that moved the directories would move the question to
    another instance, with rules that the project brings along.
    """
    return {"HOME": environ["HOME"]} if environ.get("HOME") else {}


def connect(places: "Sequence[str]", environ: "Mapping[str, str]" = os.environ) -> "Connection | None":
    """The supervisor that runs. None: there is none, or it takes the longer way to know. Raises nothing."""
    from whisper_tui.wire.quick import connect_quickly, quick_runtime

    runtime = quick_runtime(places, environ)
    return connect_quickly(runtime) if runtime is not None else None


def reach(places: "Sequence[str]", environ: "Mapping[str, str]" = os.environ) -> "Connection":
    """The supervisor, which is started if none runs. Raises `WhisperError`."""
    connection = connect(places, environ)
    if connection is not None:
        return connection
    from whisper_tui.wire import rendezvous

    return rendezvous.reach(home_at(places, environ))


def reach_again(places: "Sequence[str]", environ: "Mapping[str, str]" = os.environ) -> "Connection | None":
    """The same after a connection was lost; a supervisor that was stopped on purpose is not started by this."""
    from whisper_tui.wire import rendezvous

    home = home_at(places, environ)
    return rendezvous.connect(home) if rendezvous.was_stopped(home) else rendezvous.reach(home)


def home_at(places: "Sequence[str]", environ: "Mapping[str, str]" = os.environ) -> "Home":
    """The directories. Raises `BadConfiguration`."""
    from pathlib import Path

    from whisper_tui.config.places import find_home
    from whisper_tui.model.home import Home

    if len(places) == 4:
        return Home(*map(Path, places[1:]))
    return find_home(places[1] if places else None, environ)
