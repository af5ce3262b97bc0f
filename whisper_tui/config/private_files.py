"""Private files, whose content decides what runs: only their owner may change them, and writes are atomic."""

import os
import stat
from pathlib import Path

from whisper_tui.model.errors import BadConfiguration, Refused


def read_private(path: Path) -> str | None:
    """Read a text file that only its owner can change. None: there is no file. Raises `BadConfiguration`."""
    try:
        with path.open("rb") as file:
            # The descriptor is checked, not the path, which could be swapped between the check and the read.
            about = os.fstat(file.fileno())
            if about.st_uid not in {os.getuid(), 0} or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise BadConfiguration(
                    f"{path} can be changed by other users, so it is not used",
                    hint=f"Make it yours alone: chown {os.getuid()} and chmod go-w on it",
                )
            return file.read().decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadConfiguration(f"{path} cannot be read: {error.strerror}", hint="Check its permissions") from error
    except UnicodeDecodeError as error:
        raise BadConfiguration(f"{path} is not UTF-8 text (byte {error.start})", hint="Save it as UTF-8") from error


def write_private(path: Path, text: str) -> None:
    """Replace a file. Raises `Refused` if it cannot be written."""
    # Renamed into place: a reader, or a crash in between, never sees half a file.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        unfinished.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}", hint="Check its directory") from error
