"""Which sizes a terminal was given, and from which byte of its output on: without them no recording is drawn right."""

import time
from contextlib import suppress

from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.row_file import RowFile

MOST_ROWS = 4096
"""Sizes of one run that are kept; of more, the first ones and the newest."""


class Sizes:
    """The writer of one run's sizes. A row that cannot be written now is written with the next one, or at the end."""

    def __init__(self, path: str, size: tuple[int, int]) -> None:
        """`size`: the rows and columns with which the terminal begins."""
        self._file = RowFile(path, layout.SIZE_ROW)
        self._size = size
        self._pending: list[bytes] = []

    def note(self, rows: int, columns: int, start: int) -> None:
        """The terminal has this size now, after so many bytes of output."""
        if (rows, columns) == self._size:
            return
        self._size = rows, columns
        if self._file.count + len(self._pending) == MOST_ROWS:
            self._drop_newest()
        self._pending.append(layout.SIZE_ROW.pack(time.time(), start, rows, columns))
        self.flush()

    def flush(self) -> None:
        """Write what was not written yet."""
        if not self._pending:
            return
        with suppress(OSError):
            del self._pending[: self._file.append(self._pending)]

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _drop_newest(self) -> None:
        if self._pending:
            self._pending.pop()
        else:
            self._file.take_back()
