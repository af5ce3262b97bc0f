"""A journal that one write after the other fails in, by the hand of SQLite itself."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

WORDS = "the disk is broken"


class BrokenFrom:
    """Fact `seq` cannot be written, nor any that would take its number, until it is mended."""

    def __init__(self, journal: Path, seq: int) -> None:
        self._journal = journal
        self._seq = seq

    def begin(self) -> None:
        """Break it."""
        with _opened(self._journal) as db:
            db.execute(
                f"CREATE TRIGGER broken BEFORE INSERT ON events WHEN NEW.seq >= {self._seq} "
                f"BEGIN SELECT RAISE(ABORT, '{WORDS}'); END"
            )

    def mend(self) -> None:
        """Let it be written again."""
        with _opened(self._journal) as db:
            db.execute("DROP TRIGGER broken")


def facts(journal: Path) -> list[dict[str, Any]]:
    """Everything in a journal, in order."""
    with _opened(journal) as db:
        return [json.loads(body) for (body,) in db.execute("SELECT body FROM events ORDER BY seq")]


@contextmanager
def _opened(journal: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(journal, isolation_level=None, timeout=10.0)) as db:
        yield db
