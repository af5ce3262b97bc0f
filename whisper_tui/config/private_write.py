"""Writing a file that decides what runs: readable by its owner alone, and there as a whole or not at all."""

import os
from pathlib import Path

from whisper_tui.model.errors import Refused


def write_private(path: Path, text: str) -> None:
    """Replace a file. Raises `Refused` if it cannot be written."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        unfinished.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}", hint="Check its directory") from error
