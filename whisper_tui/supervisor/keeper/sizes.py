"""Which sizes a terminal was given, and from which byte of its output on: without them no recording is drawn right."""

import os
import time

from whisper_tui.supervisor.keeper import layout

MOST_ROWS = 4096
"""Sizes of one run that are kept; of more, the first ones and the newest."""


class Sizes:
    """The writer of one run's sizes. A row that cannot be written now is written with the next one, or at the end."""

    def __init__(self, path: str, size: tuple[int, int]) -> None:
        """`size`: the rows and columns with which the terminal begins."""
        self._path = path
        self._size = size
        self._file = -1
        self._written = 0
        self._pending: list[bytes] = []

    def note(self, rows: int, columns: int, start: int) -> None:
        """The terminal has this size now, after so many bytes of output."""
        if (rows, columns) == self._size:
            return
        self._size = rows, columns
        if self._written + len(self._pending) == MOST_ROWS:
            self._drop_newest()
        self._pending.append(layout.SIZE_ROW.pack(time.time(), start, rows, columns))
        self.flush()

    def flush(self) -> None:
        """Write what was not written yet."""
        if not self._pending:
            return
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            written = os.pwrite(self._file, b"".join(self._pending), self._written * layout.SIZE_ROW.size)
        except OSError:
            return
        rows = written // layout.SIZE_ROW.size
        self._written += rows
        del self._pending[:rows]

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)

    def _drop_newest(self) -> None:
        if self._pending:
            self._pending.pop()
        else:
            self._written -= 1
