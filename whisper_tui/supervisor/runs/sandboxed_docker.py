"""Docker in a sandbox: its client asks the daemon of this machine through the keeper, and reads no configuration.

The sandbox answers for one daemon only, so a human is asked wherever the user's docker may mean another one.
"""

import json
import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

from whisper_tui.system import host_files

SOCKET = "/var/run/docker.sock"
"""The daemon's socket, where docker looks for it unless it is told otherwise."""
_LONGEST_CONFIGURATION = 1024 * 1024


class DockerInSandbox(NamedTuple):
    """The variables that a sandbox has for docker, and the socket of the daemon whose lists it gets."""

    variables: Mapping[str, str]
    socket: str = ""


def docker_in_sandbox(environment: Mapping[str, str]) -> DockerInSandbox:
    """Return what docker in a sandbox needs in the place of the user's configuration. Nothing: it stays closed."""
    if docker_problem(environment):
        return DockerInSandbox({})
    # Where there is no configuration, there are no plug-ins, helpers and formats of the user either.
    return DockerInSandbox({"DOCKER_HOST": f"unix://{SOCKET}", "DOCKER_CONFIG": "/nonexistent"}, SOCKET)


def docker_problem(environment: Mapping[str, str]) -> str:
    """Return why a sandbox cannot answer docker in this environment, as a clause. Empty: it can.

    Without any daemon docker says so itself.
    """
    host, home = environment.get("DOCKER_HOST"), environment.get("HOME") or host_files.home_of_user()
    if host and host != f"unix://{SOCKET}":
        return f"DOCKER_HOST is {host}, which may be another daemon"
    # A host that is named goes before any context. Docker takes an empty variable for none.
    context: str | None = "" if host else environment.get("DOCKER_CONTEXT") or None
    path = f"{environment.get('DOCKER_CONFIG') or f'{home}/.docker'}/config.json"
    if context is None and not path.startswith("/"):
        return f"{path} depends on where docker starts, and may name another daemon"
    if context is None and host_files.lexists(path):
        context = _context(path)
        if context is None:
            return f"{path} cannot be read, which may name another daemon"
    if context and context != "default":
        return f"its context is {context}, which may be another daemon"
    return _problem_of_socket()


def _context(path: str) -> str | None:
    """Return the context that a configuration names. None: it cannot be read."""
    content, _ = host_files.read_regular(path, _LONGEST_CONFIGURATION, follow=True)
    try:
        found = json.loads(content or b"", object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    # Docker, like all of Go, ignores the case of a name, and the last of several counts.
    named = [value for name, value in found if name.lower() == "currentcontext"] if isinstance(found, tuple) else [None]
    if not all(isinstance(each, str) for each in named):
        return None
    return next((each for each in named if each not in {"", "default"}), "")


def _problem_of_socket() -> str:
    try:
        found = host_files.lstat(SOCKET)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{SOCKET} cannot be looked at: {error.strerror}"
    # A link leads to the daemon of another program, such as podman.
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid not in {0, os.geteuid()}:
        return f"{SOCKET} is no socket of root or of this user"
    return "" if os.access(SOCKET, os.W_OK) else f"this user may not connect to {SOCKET}"
