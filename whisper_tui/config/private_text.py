"""Reading a file that decides what runs: nobody else may have written it."""

import os
import stat
from pathlib import Path

from whisper_tui.model.errors import BadConfiguration


def private_text(path: Path) -> str | None:
    """The text of a file that only its owner can change. None: there is none. Raises `BadConfiguration`."""
    try:
        with path.open("rb") as file:
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
