"""A file of rows of one length: made with the first row, and written only behind what is whole."""

import os
from collections.abc import Sequence
from struct import Struct


class RowFile:
    """The writer of one file. What it could not write, whoever uses it keeps."""

    def __init__(self, path: str, row: Struct) -> None:
        self._path = path
        self._row = row
        self._file = -1
        self.count = 0
        """Whole rows in the file."""

    def append(self, rows: Sequence[bytes]) -> int:
        """Write rows. Returns how many of them are whole in the file now. Raises `OSError`."""
        if self._file < 0:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        written = os.pwrite(self._file, b"".join(rows), self.count * self._row.size) // self._row.size
        self.count += written
        return written

    def take_back(self) -> None:
        """Have the next row written over the newest."""
        self.count -= 1

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
