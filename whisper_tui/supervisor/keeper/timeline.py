"""The time index of a run: which bytes arrived when, so that both streams can be shown in one order."""

import time

from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.row_file import RowFile

COALESCE_S = 0.004
"""Bytes of one stream that follow each other within this time share a row."""
COALESCE_LONG_S = 0.1
"""The same once there are `MANY_ROWS`."""
MANY_ROWS = 250_000
_LONGEST_ROW = 0xFFFF_FFFF


class Timeline:
    """The writer of one index. A row that cannot be written now is written later, so offsets stay right."""

    def __init__(self, path: str) -> None:
        self._file = RowFile(path, layout.INDEX_ROW)
        self._pending: list[list[float]] = []
        """Rows not yet written: time, stream, bytes."""

    @property
    def dirty(self) -> bool:
        """Whether there is something to flush."""
        return bool(self._pending)

    def note(self, stream: int, count: int) -> None:
        """Bytes of a stream (0: out, 1: err) arrived now."""
        now = time.time()
        window = COALESCE_S if self._file.count < MANY_ROWS else COALESCE_LONG_S
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
        rows = [layout.INDEX_ROW.pack(at, int(stream), int(count)) for at, stream, count in self._pending]
        try:
            del self._pending[: self._file.append(rows)]
        except OSError:
            self._merge()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

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
