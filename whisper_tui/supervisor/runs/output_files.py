"""The output of runs in their files: read by byte offset (decision 3), and digested for the journal (decision 2).

The supervisor and local clients read. The files are outside of the journal, so its hash chain does not cover them by
itself: the digest of their content does.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import NamedTuple

from whisper_tui.model.errors import Unavailable
from whisper_tui.model.event import EVENT, Settled
from whisper_tui.model.run import OutputChunk, OutputDigest, OutputSizes, OutputSpan, Stream, TerminalSize
from whisper_tui.supervisor.journal.sqlite_file import read_rows
from whisper_tui.supervisor.runs.attempt import attempt_directory
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.system import run_files
from whisper_tui.system.run_files import RingState

LARGEST_READ = 8 * 1024 * 1024
"""The largest answer in bytes, whatever limit a request has."""
_TRIES = 4
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""A command can put a named pipe in the place of a file of its run: opening it must not wait for a writer."""
_MISSING = (FileNotFoundError, NotADirectoryError)
"""Errors that mean that the run has no such file. No other error says anything about the run (decision 1)."""
_CHECKPOINT_ROWS = 4096
_CHECKPOINTED_RUNS = 64


class OutputFiles:
    """The output of all runs below a runs directory. It needs no executor and no event loop."""

    def __init__(self, runs_directory: Path) -> None:
        self._runs = str(runs_directory)
        self._checkpoints: dict[RunKey, list[tuple[int, int]]] = {}

    def read_output(self, key: RunKey, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """Return at most `limit` bytes of a stream from `offset`. A negative offset counts from the end.

        A chunk that starts later than requested follows bytes that were dropped. A run without files has no output.
        Raises `Unavailable` if the output cannot be read now.
        """
        with _readable(key):
            return self._read(key, stream, offset, max(0, min(limit, LARGEST_READ)))

    def _read(self, key: RunKey, stream: Stream, offset: int, limit: int) -> OutputChunk:
        path = f"{attempt_directory(self._runs, key)}/{stream}"
        final = self._final_size(key, stream)
        ring = _read_ring(path)
        if ring is None:
            return _read_plain(path, offset, limit, final)
        # The keeper writes while we read. A chunk is only valid if the ring has not moved past it meanwhile.
        for _ in range(_TRIES):
            chunk = _read_with_ring(path, ring, offset, limit, ended=final is not None)
            after = _read_ring(path) or ring
            if after.same_layout(ring) and (chunk.start < ring.head or chunk.start >= after.oldest or not chunk.data):
                return chunk
            ring = after
        return OutputChunk(data=b"", start=ring.total, size=ring.total, ended=final is not None)

    def whole_file(self, key: RunKey, stream: Stream) -> str | None:
        """Return the absolute path of the file with a whole stream. None: there is no file, or bytes were dropped."""
        path = f"{attempt_directory(self._runs, key)}/{stream}"
        if _read_ring(path) is not None or not Path(path).is_file() or self._final_size(key, stream):
            return None
        return str(Path(path).absolute())

    def read_timeline(self, key: RunKey, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Return at most `limit` rows of the time index, from row `after`."""
        with _readable(key):
            return self._read_timeline(key, max(0, after), max(0, limit))

    def _read_timeline(self, key: RunKey, after: int, limit: int) -> tuple[OutputSpan, ...]:
        path = f"{attempt_directory(self._runs, key)}/{run_files.INDEX}"
        try:
            fd = os.open(path, _READ)
        except _MISSING:
            return ()
        try:
            block = after // _CHECKPOINT_ROWS
            starts = list(self._checkpoint(key, fd, block))
            first = block * _CHECKPOINT_ROWS
            rows = _read_rows(fd, first, after - first + limit)
        finally:
            os.close(fd)
        spans = []
        for number, (at, stream, length) in enumerate(rows, first):
            if number >= after:
                name: Stream = "err" if stream else "out"
                spans.append(OutputSpan(at=at, stream=name, start=starts[stream], length=length))
            starts[stream] += length
        return tuple(spans)

    def terminal_sizes(self, key: RunKey) -> tuple[TerminalSize, ...]:
        """Return all sizes of the terminal of a run. The first one applies from the first byte on."""
        with _readable(key):
            return tuple(_read_sizes(f"{attempt_directory(self._runs, key)}/{run_files.SIZES}"))

    def sizes(self, key: RunKey) -> OutputSizes:
        """Return the bytes of both streams so far, including dropped ones."""
        sizes = {stream: self.read_output(key, stream, 0, 0).size for stream in ("out", "err")}
        return OutputSizes(**sizes)

    def _final_size(self, key: RunKey, stream: Stream) -> int | None:
        """Return None while the stream can grow; afterwards its size if its files do not show it, else 0."""
        directory = attempt_directory(self._runs, key)
        path = f"{directory}/{run_files.DONE}"
        status = run_files.status(path)
        if status is None:
            return None if Path(directory).is_dir() else 0
        try:
            return int(run_files.read_json(path)[stream]) if status.st_size else 0
        except (*_MISSING, ValueError, KeyError, TypeError):
            return 0

    def _checkpoint(self, key: RunKey, fd: int, block: int) -> tuple[int, int]:
        """Return the offsets of both streams at the first row of a block of the index."""
        # A row has a length, not an offset. Without checkpoints a late row would need the sum of all rows before it.
        known = self._checkpoints.pop(key, [(0, 0)])
        self._checkpoints[key] = known
        while len(self._checkpoints) > _CHECKPOINTED_RUNS:
            del self._checkpoints[next(iter(self._checkpoints))]
        while len(known) <= block:
            rows = _read_rows(fd, (len(known) - 1) * _CHECKPOINT_ROWS, _CHECKPOINT_ROWS)
            sums = list(known[-1])
            for _, stream, length in rows:
                sums[stream] += length
            if len(rows) < _CHECKPOINT_ROWS:
                return sums[0], sums[1]
            known.append((sums[0], sums[1]))
        return known[block]


class LocalOutput:
    """The output of the runs of this machine, for a client in another process than the supervisor."""

    def __init__(self, state: PurePath) -> None:
        """`state`: the state directory of the supervisor."""
        self._files = OutputFiles(Path(state) / "runs")

    def read_output(self, call_id: str, attempt: int, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """Return at most `limit` bytes of a stream from `offset`. A negative offset counts from the end."""
        return self._files.read_output(RunKey(call_id, attempt), stream, offset, limit)

    def read_timeline(self, call_id: str, attempt: int, after: int, limit: int) -> tuple[OutputSpan, ...]:
        """Return at most `limit` rows of the time index, from row `after`."""
        return self._files.read_timeline(RunKey(call_id, attempt), after, limit)

    def terminal_sizes(self, call_id: str, attempt: int) -> tuple[TerminalSize, ...]:
        """Return all sizes of the terminal of a run."""
        return self._files.terminal_sizes(RunKey(call_id, attempt))


@contextmanager
def _readable(key: RunKey) -> Iterator[None]:
    """Turn read errors into `Unavailable`."""
    try:
        yield
    except OSError as error:
        message = f"the output of call {key.call_id} cannot be read: {error.strerror}"
        raise Unavailable(message, hint="Check the disk and the limit of open files, then try again") from error


def _read_rows(fd: int, first: int, count: int) -> list[tuple[float, int, int]]:
    size = run_files.INDEX_ROW.size
    data = os.pread(fd, min(count * size, LARGEST_READ // size * size), first * size)
    whole = len(data) // size * size
    return list(run_files.INDEX_ROW.iter_unpack(data[:whole]))


def _read_sizes(path: str) -> list[TerminalSize]:
    sizes = [TerminalSize()]
    try:
        data = _pread(path, LARGEST_READ, 0)
    except _MISSING:
        return sizes
    whole = len(data) // run_files.SIZE_ROW.size * run_files.SIZE_ROW.size
    for at, start, rows, columns in run_files.SIZE_ROW.iter_unpack(data[:whole]):
        if not start:
            sizes.clear()
        sizes.append(TerminalSize(at=at, start=start, rows=max(1, rows), columns=max(1, columns)))
    return sizes


def _read_ring(path: str) -> RingState | None:
    try:
        data = _pread(path + run_files.RING_SUFFIX, run_files.RING.size, 0)
    except _MISSING:
        return None
    return RingState(*run_files.RING.unpack(data)) if len(data) == run_files.RING.size else None


def _read_plain(path: str, offset: int, limit: int, final: int | None) -> OutputChunk:
    try:
        fd = os.open(path, _READ)
    except _MISSING:
        return OutputChunk(data=b"", start=0, size=final or 0, ended=final is not None)
    try:
        status = os.fstat(fd)
        stored = status.st_size
        start = min(offset if offset >= 0 else max(0, stored + offset), stored)
        data = os.pread(fd, min(limit, stored - start), start)
    finally:
        os.close(fd)
    size = max(stored, final or 0)
    return OutputChunk(data=data, start=start, size=size, ended=final is not None, written_at=status.st_mtime)


def _read_with_ring(path: str, ring: RingState, offset: int, limit: int, *, ended: bool) -> OutputChunk:
    start = offset if offset >= 0 else max(0, ring.total + offset)
    written_at = os.stat(path + run_files.TAIL_SUFFIX).st_mtime  # noqa: PTH116
    if start < ring.head:
        data = _pread(path, min(limit, ring.head - start), start)
        return OutputChunk(data=data, start=start, size=ring.total, ended=ended, written_at=written_at)
    start = min(max(start, ring.oldest), ring.total)
    wanted = min(limit, ring.total - start)
    position = (start - ring.start) % ring.size
    data = _pread(path + run_files.TAIL_SUFFIX, min(wanted, ring.size - position), position)
    if len(data) < wanted and position + len(data) == ring.size:
        data += _pread(path + run_files.TAIL_SUFFIX, wanted - len(data), 0)
    return OutputChunk(data=data, start=start, size=ring.total, ended=ended, written_at=written_at)


def _pread(path: str, count: int, position: int) -> bytes:
    fd = os.open(path, _READ)
    try:
        return os.pread(fd, count, position)
    finally:
        os.close(fd)


READ_WHOLE = 64 * 1024 * 1024
"""Files up to this size are hashed completely. Of a longer one the size, the first and the last half of this are."""
SMALL = 65_536
"""Total bytes up to which it is faster to read the files than to start a thread for them."""
_CHUNK = 1024 * 1024
OUTPUT_FILES = tuple(
    stream + suffix
    for stream in (run_files.OUT, run_files.ERR)
    for suffix in ("", run_files.TAIL_SUFFIX, run_files.RING_SUFFIX)
)
"""The names of the files of recorded output, in the order of their digest."""


def heading_of(name: str, size: int) -> bytes:
    """Return what a digest of recorded output covers before the bytes of each file."""
    return b"%s %d\n" % (name.encode(), size)


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
        self.exists = bool(found)
        self._paths = [(name, f"{self._directory}/{name}") for name in OUTPUT_FILES if name in found]

    @property
    def names(self) -> list[str]:
        """Names of the kept files."""
        return [name for name, _ in self._paths]

    @property
    def is_small(self) -> bool:
        """True if it is small enough to be read in the event loop."""
        return sum(os.lstat(path).st_size for _, path in self._paths) <= SMALL

    def contents(self, largest: int) -> Iterator[tuple[str, bytes]]:
        """Yield the kept files that are no larger than that, by their names, in the order of their digest."""
        for name, path in self._paths:
            fd = os.open(path, _READ | os.O_NOFOLLOW)
            with os.fdopen(fd, "rb") as file:
                if os.fstat(fd).st_size <= largest:
                    yield name, file.read(largest)

    def digest(self) -> OutputDigest | None:
        """Return the digest of all kept files. None: there are no files."""
        if not self.exists:
            return None
        made = hashlib.sha256()
        for name, path in self._paths:
            # A command can write to the directory of its run. A link there must not lead to another file.
            fd = os.open(path, _READ | os.O_NOFOLLOW)
            try:
                size = os.fstat(fd).st_size
                made.update(heading_of(name, size))
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
