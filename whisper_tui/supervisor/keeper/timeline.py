"""The time index of a run: which bytes arrived when, so that both streams can be shown in one order."""

import os
import time

from whisper_tui.supervisor.keeper import layout

COALESCE_S = 0.004
"""Bytes of one stream that follow each other within this time share a row."""
COALESCE_LONG_S = 0.1
"""The same once there are `MANY_ROWS`."""
MANY_ROWS = 250_000
_LONGEST_ROW = 0xFFFF_FFFF


class Timeline:
    """The writer of one index. A row that cannot be written now is written later, so offsets stay right."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._rows = 0
        self._pending: list[list[float]] = []
        """Rows not yet written: time, stream, bytes."""

    @property
    def dirty(self) -> bool:
        """Whether there is something to flush."""
        return bool(self._pending)

    def note(self, stream: int, count: int) -> None:
        """Bytes of a stream (0: out, 1: err) arrived now."""
        now = time.time()
        window = COALESCE_S if self._rows < MANY_ROWS else COALESCE_LONG_S
        if self._pending:
            last = self._pending[-1]
            if last[1] == stream and 0 <= now - last[0] < window and last[2] + count <= _LONGEST_ROW:
                last[2] += count
                return
            if now - self._pending[0][0] >= window:
                self.flush()
        self._pending.append([now, stream, count])

    def flush(self) -> None:
        """Write the rows. What cannot be written stays."""
        if not self._pending:
            return
        data = b"".join(layout.INDEX_ROW.pack(at, int(stream), int(count)) for at, stream, count in self._pending)
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            written = os.pwrite(self._file, data, self._rows * layout.INDEX_ROW.size)
        except OSError:
            self._merge()
            return
        rows = written // layout.INDEX_ROW.size
        self._rows += rows
        del self._pending[:rows]

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)

    def _merge(self) -> None:
        """While the disk is full, one row a stream is enough to keep the offsets right."""
        merged: list[list[float]] = []
        for row in self._pending:
            same = [known for known in merged if known[1] == row[1] and known[2] + row[2] <= _LONGEST_ROW]
            if same:
                same[0][2] += row[2]
            else:
                merged.append(row)
        self._pending = merged
