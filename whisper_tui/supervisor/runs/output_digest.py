"""Digests of the output of runs, for the journal: a later change of the files is detected (decision 2).

The files of a run are outside of the journal, so the hash chain of the journal does not cover them by itself.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from whisper_tui.model.event import EVENT, Settled
from whisper_tui.model.run import OutputDigest
from whisper_tui.supervisor.journal.sqlite_file import read_rows
from whisper_tui.supervisor.keeper import run_files
from whisper_tui.supervisor.runs.attempt import attempt_directory
from whisper_tui.supervisor.runs.executor import RunKey

READ_WHOLE = 64 * 1024 * 1024
"""Files up to this size are hashed completely. Of a longer one the size, the first and the last half of this are."""
SMALL = 65_536
"""Total bytes up to which it is faster to read the files than to start a thread for them."""
_CHUNK = 1024 * 1024
_FILES = tuple(
    stream + suffix
    for stream in (run_files.OUT, run_files.ERR)
    for suffix in ("", run_files.TAIL_SUFFIX, run_files.RING_SUFFIX)
)


class OutputCheck(NamedTuple):
    """The result of a check of all recorded output."""

    checked: int
    """Runs whose output is kept and has a digest."""
    gone: int
    """Runs whose output is no longer kept."""
    changed: tuple[str, ...]
    """Ids of the calls whose output differs from the recorded one."""


class RecordedOutput:
    """The current files of both streams of a run. Raises `OSError`."""

    def __init__(self, runs: str, key: RunKey) -> None:
        self._key = key
        self._directory = attempt_directory(runs, key)
        try:
            found = set(os.listdir(self._directory))  # noqa: PTH208 (one listing is cheaper than trying each file)
        except FileNotFoundError:
            found = set()
        self._exists = bool(found)
        self._paths = [(name, f"{self._directory}/{name}") for name in _FILES if name in found]

    @property
    def is_small(self) -> bool:
        """True if it is small enough to be read in the event loop."""
        return sum(os.lstat(path).st_size for _, path in self._paths) <= SMALL

    def digest(self) -> OutputDigest | None:
        """Return the digest of all kept files. None: there are no files."""
        if not self._exists:
            return None
        made = hashlib.sha256()
        for name, path in self._paths:
            # A command can write to the directory of its run. A link there must not lead to another file.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                size = os.fstat(fd).st_size
                made.update(b"%s %d\n" % (name.encode(), size))
                for start, end in _parts(size):
                    _add(made, fd, start, end)
            finally:
                os.close(fd)
        return OutputDigest(attempt=self._key.attempt, sha256=made.hexdigest())


def check_outputs(journal: Path, runs: str) -> OutputCheck:
    """Compare the kept output with its digests in the journal. Raises `Unavailable`."""
    checked, gone, changed = 0, 0, list[str]()
    for call_id, noted in _noted(journal):
        key = RunKey(call_id, noted.attempt)
        try:
            same = RecordedOutput(runs, key).digest() == noted
        except OSError:
            same = False
        if not same and not Path(attempt_directory(runs, key)).is_dir():
            gone += 1
            continue
        checked += 1
        if not same:
            changed.append(call_id)
    return OutputCheck(checked, gone, tuple(changed))


def _noted(journal: Path) -> Iterator[tuple[str, OutputDigest]]:
    query = """SELECT body FROM events WHERE body LIKE '{"seq":%"kind":"settled"%"digest":{%' ORDER BY seq"""
    for (body,) in read_rows(journal, query):
        event = EVENT.validate_json(body)
        if isinstance(event, Settled) and event.digest is not None:
            yield event.call_id, event.digest


def _parts(size: int) -> tuple[tuple[int, int], ...]:
    """Return the ranges of a file that are hashed, each from its first offset up to its second."""
    if size <= READ_WHOLE:
        return ((0, size),)
    half = READ_WHOLE // 2
    return ((0, half), (size - half, size))


def _add(found: "hashlib._Hash", fd: int, start: int, end: int) -> None:
    while start < end and (data := os.pread(fd, min(_CHUNK, end - start), start)):
        found.update(data)
        start += len(data)
