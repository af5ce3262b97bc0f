"""The secret that agents show who come over HTTP: made once, and kept in a file that only the user can read."""

import os
import secrets
import stat
from pathlib import Path

from whisper_tui.model.errors import Unavailable

FILE = "http-token"
"""Name of the file in the state directory."""


def token_in(directory: Path) -> str:
    """The token of an instance, which is made if there is none. Raises `Unavailable`."""
    path = directory / FILE
    try:
        return _read(path)
    except FileNotFoundError:
        _make(path)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        return _read(path)
    except OSError as error:
        raise _unusable(path, error) from error


def _make(path: Path) -> None:
    """Written beside its place and then put there whole; whoever is first has made it."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        try:
            os.link(beside, path)
        except FileExistsError:
            pass
        finally:
            beside.unlink()
    except OSError as error:
        raise _unusable(path, error) from error


def _read(path: Path) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(fd, "r", encoding="ascii", errors="replace") as file:
        about = os.fstat(fd)
        if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise Unavailable(
                f"{path} can be read by others, so it is no secret any more",
                hint="Remove it: a new one is made, which agents must then be given",
            )
        token = file.read(1024).strip()
    if not token:
        raise Unavailable(f"{path} is empty", hint="Remove it: a new one is made")
    return token


def _unusable(path: Path, error: OSError) -> Unavailable:
    return Unavailable(f"{path} cannot be used: {error.strerror}", hint="Check the permissions of its directory")
