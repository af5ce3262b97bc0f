"""What is compared: a way to have a command run and to learn its result. One small adapter each."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

Argv = tuple[str, ...]


class Failed(Exception):
    """This way cannot do what was asked; the message says how it showed, in words for the table."""


class Way(Protocol):
    """One way to run commands. It is opened afresh for each measurement, in an empty directory."""

    name: str
    most_at_once: int | None = None
    """None: as many as it is asked for."""

    async def open(self, place: Path, at_once: int, commands: Sequence[Argv]) -> None:
        """Get ready to run these commands, so many at once. Raises `Failed`."""
        ...

    async def run(self, argv: Argv) -> None:
        """Have a command run and wait for its result. Raises `Failed` unless the result says that it did well."""
        ...

    def kept(self) -> int:
        """Bytes of the last command's output that are there to be read."""
        ...

    async def close(self) -> None:
        """Stop what was started for it."""
        ...


def environment(place: Path, **more: str) -> dict[str, str]:
    """A small environment, with a home of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(place), **more}
