"""A digest of what a run has printed, for the journal: output that is changed afterwards shows.

The files of a run stand beside the journal, and the chain of the journal says nothing about them by itself.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from whisper_tui.model.errors import Unavailable
from whisper_tui.model.event import EVENT, Settled
from whisper_tui.model.run import OutputDigest
from whisper_tui.supervisor.executor import RunKey
from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.output_files import attempt_directory

READ_WHOLE = 64 * 1024 * 1024
"""Bytes of one file that are read whole; of a longer one, its size and half as many from its head and its tail."""
SMALL = 65_536
"""Bytes of all files together that are read in less time than it takes to have another thread do it."""
_CHUNK = 1024 * 1024
_FILES = tuple(
    stream + suffix for stream in (layout.OUT, layout.ERR) for suffix in ("", layout.TAIL_SUFFIX, layout.RING_SUFFIX)
)


class Outputs(NamedTuple):
    """What became of a check of all recorded output."""

    checked: int
    """Runs whose output is kept and has a digest."""
    gone: int
    """Runs whose output is no longer kept."""
    changed: tuple[str, ...]
    """Ids of the calls whose output is not what was recorded."""


class Recorded:
    """The files of both streams of a run, as they are now. Raises `OSError`."""

    def __init__(self, runs: str, key: RunKey) -> None:
        self._key = key
        self._directory = attempt_directory(runs, key)
        try:
            found = set(os.listdir(self._directory))  # noqa: PTH208 (once for each run; it is cheaper to list than to try)
        except FileNotFoundError:
            found = set()
        self._exists = bool(found)
        self._paths = [(name, f"{self._directory}/{name}") for name in _FILES if name in found]

    @property
    def is_small(self) -> bool:
        """Whether it is read at once."""
        return sum(os.lstat(path).st_size for _, path in self._paths) <= SMALL

    def digest(self) -> OutputDigest | None:
        """Of all that is kept of them. None: there are no files."""
        if not self._exists:
            return None
        made = hashlib.sha256()
        for name, path in self._paths:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                size = os.fstat(fd).st_size
                made.update(b"%s %d\n" % (name.encode(), size))
                for start, end in _parts(size):
                    _add(made, fd, start, end)
            finally:
                os.close(fd)
        return OutputDigest(attempt=self._key.attempt, sha256=made.hexdigest())


def check_outputs(journal: Path, runs: str) -> Outputs:
    """Compare the output that is kept with its digests in the journal. Raises `Unavailable`."""
    checked, gone, changed = 0, 0, list[str]()
    for call_id, noted in _noted(journal):
        key = RunKey(call_id, noted.attempt)
        try:
            same = Recorded(runs, key).digest() == noted
        except OSError:
            same = False
        if not same and not Path(attempt_directory(runs, key)).is_dir():
            gone += 1
            continue
        checked += 1
        if not same:
            changed.append(call_id)
    return Outputs(checked, gone, tuple(changed))


def _noted(journal: Path) -> Iterator[tuple[str, OutputDigest]]:
    query = """SELECT body FROM events WHERE body LIKE '{"seq":%"kind":"settled"%"digest":{%' ORDER BY seq"""
    try:
        with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)) as db:
            for (body,) in db.execute(query):
                event = EVENT.validate_json(body)
                if isinstance(event, Settled) and event.digest is not None:
                    yield event.call_id, event.digest
    except sqlite3.Error as error:
        raise Unavailable(f"the journal {journal} cannot be read: {error}") from error


def _parts(size: int) -> tuple[tuple[int, int], ...]:
    """Which bytes of a file are read: from the first offset up to the second."""
    if size <= READ_WHOLE:
        return ((0, size),)
    half = READ_WHOLE // 2
    return ((0, half), (size - half, size))


def _add(found: "hashlib._Hash", fd: int, start: int, end: int) -> None:
    while start < end and (data := os.pread(fd, min(_CHUNK, end - start), start)):
        found.update(data)
        start += len(data)
