"""Moving the journal's write-ahead log into its database beside the work: in the way of a write, that takes as long as
a hundred commands."""

import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

EVERY = 200
"""Writes between two checkpoints: with about five pages each, as often as SQLite would by itself."""

LATEST_PAGES = 20_000
"""Pages of the log at which SQLite makes one by itself after all, because those beside the work came to nothing."""

LONGEST_S = 10.0
"""How long the end waits for one that is under way."""


class Checkpoints:
    """At most one at a time, in a thread and over a connection of its own. Nothing depends on its success."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writes = 0
        self._thread: threading.Thread | None = None

    def written(self) -> None:
        """Something was written."""
        self._writes += 1
        if self._writes >= EVERY and (self._thread is None or not self._thread.is_alive()):
            self._writes = 0
            self._thread = threading.Thread(target=self._make, name="checkpoint of the journal", daemon=True)
            with suppress(RuntimeError):  # No more threads: SQLite does it by itself in the end.
                self._thread.start()

    def close(self) -> None:
        """Wait for the one that is under way."""
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(LONGEST_S)

    def _make(self) -> None:
        with suppress(sqlite3.Error), closing(sqlite3.connect(self._path, timeout=0.0)) as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
