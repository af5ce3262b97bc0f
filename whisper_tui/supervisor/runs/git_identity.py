"""Git in a sandbox: the home's configuration is closed to it, so it is told to read none, and who commits.

Git ends if it may not read a configuration that exists. Of that one, which can contain tokens, a sandboxed command
learns the name and the address that stand in each commit.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from whisper_tui.system.caged_program import cage_problem, look
from whisper_tui.system.closed_paths import lies_below
from whisper_tui.system.host_files import home_of_user

_TRUSTED_PATH = "/usr/bin:/bin:/usr/local/bin"
"""The directories in which git is looked for: never one that an agent may write to."""
_LONGEST_ANSWER = 10_000
_LONGEST_S = 0.5
_VARIABLES = {
    "user.name": ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"),
    "user.email": ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"),
}


def git_variables(environment: Mapping[str, str], read: Iterable[str], *, commits: bool) -> dict[str, str]:
    """Return what git in a sandbox needs in place of the user's configuration.

    `read`: the paths that the sandbox opens; a configuration in them is left to git. `commits`: it may write.
    """
    home = environment.get("HOME") or home_of_user()
    settings = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
    named = (os.path.realpath(path) for path in (f"{home}/.gitconfig", f"{settings}/git/config"))
    present = tuple(path for path in named if Path(path).is_file())
    opened = tuple(read)
    if all(lies_below(path, opened) for path in present):
        return {}
    identity = _identity(home, settings, present, _stamps(present)) if commits else {}
    return {"GIT_CONFIG_GLOBAL": os.devnull} | identity


def _stamps(paths: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    found = []
    for path in paths:
        with suppress(FileNotFoundError):
            status = Path(path).stat()
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


@lru_cache(maxsize=8)
def _identity(home: str, settings: str, files: tuple[str, ...], stamps: tuple[tuple[int, ...], ...]) -> dict[str, str]:
    """Return the variables that name the author and the committer as the configuration does, without its programs."""
    del stamps  # It only belongs to the key of the cache.
    program = shutil.which("git", path=_TRUSTED_PATH)
    if program is None or cage_problem():
        return {}
    words = ("config", "--null", "--get-regexp", r"^user\.(name|email)$")
    environment = {"PATH": _TRUSTED_PATH, "HOME": home, "XDG_CONFIG_HOME": settings, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        seen = look(
            (program, *words),
            environment,
            directory="/",
            read=files,
            timeout_s=_LONGEST_S,
            most_bytes=_LONGEST_ANSWER,
        )
    except (OSError, ValueError):
        return {}
    found: dict[str, str] = {}
    for entry in (seen.output or b"").decode("utf-8", "replace").split("\0"):
        name, _, value = entry.partition("\n")
        found |= dict.fromkeys(_VARIABLES.get(name, ()), value)
    return found
