"""The FIFO in which keepers say that there is news about a run."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from whisper_tui.supervisor.keeper import layout


class Hints:
    """Listens for the names of runs about which there may be news. Hints can be lost: they only save time."""

    def __init__(self, listener: Callable[[str], None]) -> None:
        self._listener = listener
        self._fd = -1
        self._rest = b""

    def open(self, directory: Path) -> None:
        """Begin to listen. Raises `OSError`."""
        path = str(directory / layout.NOTIFY)
        with suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        asyncio.get_running_loop().add_reader(self._fd, self._hear)

    def close(self) -> None:
        """Listen no more."""
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _hear(self) -> None:
        try:
            data = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for name in dict.fromkeys(line.partition(b" ")[0].decode() for line in lines):
            self._listener(name)
