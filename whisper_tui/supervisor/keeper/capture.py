"""Capture of a command's output: pipes and terminals into files, with quotas and a time index."""

import errno
import os
import select
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any

from whisper_tui.supervisor.keeper import channels
from whisper_tui.system import run_files


class RowFile:
    """The writer of one file of rows. The caller keeps rows that could not be written."""

    def __init__(self, path: str, row: Struct) -> None:
        self._path = path
        self._row = row
        self._file = -1
        self.count = 0
        """Whole rows in the file."""

    def take_over(self) -> list[tuple[Any, ...]]:
        """Go on with the file of another process. Return the whole rows in it."""
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return []
        self._file = fd
        self.count = os.fstat(fd).st_size // self._row.size
        return list(self._row.iter_unpack(_read_whole(fd, self.count * self._row.size)))

    def append(self, rows: Sequence[bytes]) -> int:
        """Write rows. Return how many of them were written completely. Raises `OSError`."""
        if self._file < 0:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        written = os.pwrite(self._file, b"".join(rows), self.count * self._row.size) // self._row.size
        self.count += written
        return written

    def drop_last(self) -> None:
        """Drop the last row: the next one overwrites it."""
        self.count -= 1

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _read_whole(fd: int, size: int) -> bytes:
    pieces, at = [], 0
    while at < size and (piece := os.pread(fd, size - at, at)):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


CHECK_FREE_EVERY = 16 * 1024 * 1024
"""Bytes between two checks of the free disk space."""
SMALL_RING = 1024 * 1024
"""How many bytes of further output are kept once the disk is nearly full."""
BUFFERED = run_files.CHUNK
"""How many bytes are kept in memory while the disk accepts no writes."""
LATEST = 8192
"""Bytes at the end of a stream in which its last sentences are looked for."""
RETRY_S = 0.5
"""Seconds between two attempts to write again."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ENOENT})
"""Errors of a disk that accepts no more data, or on which the directory was removed."""


class StreamFile:
    """The stored bytes of one stream: all, or a head and a ring of the last ones. Offsets count dropped bytes."""

    def __init__(self, path: str, limit: int | None, min_free: int) -> None:
        """`limit`: bytes kept, half from the head and half from the tail; None: all. `min_free`: bytes kept free."""
        self._path = path
        self._file = -1
        self._ring_file = -1
        self._state_file = -1
        self._head_limit = None if limit is None else limit // 2
        self._wanted_ring = SMALL_RING if limit is None else limit - limit // 2
        self._min_free = min_free
        self._next_check = 0
        self._head = 0
        self._start = 0
        self._ring = 0
        self._memory: bytearray | None = None
        self._retry_at = 0.0
        self._unnoted = False
        self._splices = hasattr(os, "splice")
        self.total = 0
        """Bytes that arrived."""
        self.before_inexact: Callable[[], object] = lambda: None
        """Called before the files and the pipe alone would not tell all that has arrived."""

    def take_over(self) -> None:
        """Go on with the file of another process, which was exact until its end."""
        with suppress(FileNotFoundError):
            self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            self._head = self.total = os.fstat(self._file).st_size

    @property
    def kept(self) -> int:
        """Bytes that can still be read."""
        in_ring = min(self.total - self._start, self._ring) if self._ring and not self._memory else 0
        return self._head + in_ring

    @property
    def uncounted(self) -> bool:
        """True if not even the number of bytes can be derived from the files."""
        return self._unnoted or bool(self._memory)

    def latest(self) -> bytes:
        """Return the end of the stream, as far as it is kept: at most `LATEST` bytes."""
        if self._memory:
            return bytes(self._memory[-LATEST:])
        try:
            end = self._end_of_ring() if self._ring else b""
            count = min(self._head, LATEST - len(end))
            # The head is next to what the ring has, as long as the ring has overwritten nothing.
            if not count or (self._ring and self.total - self._start != len(end)):
                return end
            return os.pread(self._file, count, self._head - count) + end
        except OSError:
            return b""

    def take(self, source: int, *, is_pipe: bool = False) -> int:
        """Move at most one chunk from a pipe or terminal. Returns 0 at its end. Raises the error of reading it."""
        if is_pipe and self._splices and self._memory is None:
            try:
                return self._splice(source) if self._file >= 0 or _holds_bytes(source) else 0
            except OSError as error:
                # The bytes are still in the pipe. They are read instead, now if the disk is full, else always.
                if error.errno == errno.EINVAL:
                    self._splices = False
                elif error.errno not in _FULL:
                    raise
        self.before_inexact()
        data = os.read(source, run_files.CHUNK)
        if data:
            self._store(data)
        return len(data)

    def retry(self) -> None:
        """Try again to write the bytes that had to stay in memory."""
        memory = self._memory
        if not memory:
            self._memory = None
            if self._unnoted:
                self._save_ring_state()
            return
        written = min(self.total - len(memory) - self._start, self._ring)
        ring = min(self._wanted_ring, max(written, SMALL_RING))
        kept = memory[-ring:]
        start = self.total - len(kept)
        try:
            self._open_ring()
            os.pwrite(self._state_file, run_files.RING.pack(self._head, start, ring, start), 0)
            if os.pwrite(self._ring_file, kept, 0) < len(kept):
                return
        except OSError as error:
            if error.errno not in _FULL:
                raise
            return
        self._start, self._ring, self._memory = start, ring, None
        self._save_ring_state()

    def close(self) -> None:
        """Close the files."""
        for fd in (self._file, self._ring_file, self._state_file):
            if fd >= 0:
                os.close(fd)

    def _place(self) -> tuple[int, int, int]:
        """Return the file to write to, the position in it and how many bytes fit there."""
        # Created for the first byte only: most commands print to one stream, and many to none.
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        if self.total >= self._next_check:
            self._check_free_space()
        if not self._ring:
            if self._head_limit is None:
                return self._file, self.total, run_files.CHUNK
            if self.total < self._head_limit:
                return self._file, self.total, min(run_files.CHUNK, self._head_limit - self.total)
            self._begin_ring(self._wanted_ring)
        position = (self.total - self._start) % self._ring
        return self._ring_file, position, min(run_files.ring_step(self._ring), self._ring - position)

    def _advance(self, count: int) -> None:
        self.total += count
        if not self._ring:
            self._head = self.total
        elif count:
            self._save_ring_state()

    def _end_of_ring(self) -> bytes:
        count = min(self.total - self._start, self._ring, LATEST)
        position = (self.total - count - self._start) % self._ring
        end = os.pread(self._ring_file, min(count, self._ring - position), position)
        return end + os.pread(self._ring_file, count - len(end), 0)

    def _splice(self, source: int) -> int:
        """Have the kernel move bytes from a pipe into the file, so that none is ever only here."""
        file, position, room = self._place()
        count = os.splice(source, file, room, offset_dst=position, flags=os.SPLICE_F_NONBLOCK)
        self._advance(count)
        return count

    def _store(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest and self._memory is None:
                file, position, room = self._place()
                written = os.pwrite(file, rest[:room], position)
                self._advance(written)
                rest = rest[written:]
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._memory = bytearray()
        if rest:
            self._buffer(bytes(rest))

    def _buffer(self, data: bytes) -> None:
        """Keep the last bytes in memory, and try to write them every `RETRY_S`."""
        self._memory = ((self._memory or bytearray()) + data)[-BUFFERED:]
        self.total += len(data)
        now = time.monotonic()
        if now >= self._retry_at:
            self._retry_at = now + RETRY_S
            self.retry()

    def _check_free_space(self) -> None:
        self._next_check = self.total + CHECK_FREE_EVERY
        if not self._min_free:
            return
        disk = os.fstatvfs(self._file)
        if disk.f_bavail * disk.f_frsize >= self._min_free:
            return
        if self._ring:
            self._ring = min(self._ring, max(self.total - self._start, SMALL_RING))
        else:
            self._begin_ring(min(self._wanted_ring, SMALL_RING))

    def _begin_ring(self, size: int) -> None:
        """From now on keep only the last bytes."""
        # Between a write into the ring and the note of its state, nobody knows where it ends.
        self.before_inexact()
        self._open_ring()
        os.pwrite(self._state_file, run_files.RING.pack(self._head, self.total, size, self.total), 0)
        self._start, self._ring = self.total, size

    def _open_ring(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        if self._state_file < 0:
            self._state_file = os.open(self._path + run_files.RING_SUFFIX, flags, 0o600)
        if self._ring_file < 0:
            self._ring_file = os.open(self._path + run_files.TAIL_SUFFIX, flags, 0o600)

    def _save_ring_state(self) -> None:
        """Write the state of the ring for readers; on a full disk it is written later."""
        state = run_files.RING.pack(self._head, self._start, self._ring, self.total)
        try:
            os.pwrite(self._state_file, state, 0)
            self._unnoted = False
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._unnoted = True


COALESCE_S = 0.004
"""Seconds within which consecutive bytes of one stream share a row."""
COALESCE_LONG_S = 0.1
"""The same interval once there are `MANY_ROWS`."""
MANY_ROWS = 250_000
_LONGEST_ROW = 0xFFFF_FFFF


class Timeline:
    """The writer of a time index. A row that cannot be written is written later, so that offsets stay right."""

    def __init__(self, path: str) -> None:
        self._file = RowFile(path, run_files.INDEX_ROW)
        self._pending: list[list[float]] = []
        """Unwritten rows: time, stream, bytes."""
        self.fresh = False
        """True if bytes were recorded that no flush has tried to write yet."""

    def take_over(self, totals: Sequence[int]) -> None:
        """Go on with the file of another process, which may not have written its last rows."""
        rows = self._file.take_over()
        for stream, total in enumerate(totals):
            if (missing := total - sum(length for _, which, length in rows if which == stream)) > 0:
                self.note(stream, missing)

    def note(self, stream: int, count: int) -> None:
        """Record that bytes of a stream (0: out, 1: err) have arrived now."""
        now = time.time()
        window = COALESCE_S if self._file.count < MANY_ROWS else COALESCE_LONG_S
        if self._pending:
            last = self._pending[-1]
            if last[1] == stream and 0 <= now - last[0] < window and last[2] + count <= _LONGEST_ROW:
                last[2] += count
                self.fresh = True
                return
            if now - self._pending[0][0] >= window:
                self.flush()
        self._pending.append([now, stream, count])
        self.fresh = True

    def flush(self) -> None:
        """Write the rows; those that cannot be written are kept."""
        self.fresh = False
        if not self._pending:
            return
        rows = [run_files.INDEX_ROW.pack(at, int(stream), int(count)) for at, stream, count in self._pending]
        try:
            del self._pending[: self._file.append(rows)]
        except OSError:
            self._merge()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _merge(self) -> None:
        """Merge the unwritten rows into one for each stream."""
        # While the disk is full this bounds the memory, and the offsets stay right.
        merged: list[list[float]] = []
        for row in self._pending:
            same = [known for known in merged if known[1] == row[1] and known[2] + row[2] <= _LONGEST_ROW]
            if same:
                same[0][2] += row[2]
            else:
                merged.append(row)
        self._pending = merged


MOST_ROWS = 4096
"""How many sizes are kept for one run: the first ones and the newest."""


class TerminalSizes:
    """The writer of a terminal's sizes. A row that cannot be written is written with the next one, or at the end."""

    def __init__(self, path: str, size: tuple[int, int]) -> None:
        """`size`: the first rows and columns of the terminal."""
        self._file = RowFile(path, run_files.SIZE_ROW)
        self._size = size
        self._pending: list[bytes] = []

    def take_over(self) -> None:
        """Go on with the file of another process."""
        for _, _, rows, columns in self._file.take_over()[-1:]:
            self._size = rows, columns

    def note(self, rows: int, columns: int, start: int) -> None:
        """Record that the terminal has this size from now on, after `start` bytes of output."""
        if (rows, columns) == self._size:
            return
        self._size = rows, columns
        if self._file.count + len(self._pending) == MOST_ROWS:
            self._drop_newest()
        self._pending.append(run_files.SIZE_ROW.pack(time.time(), start, rows, columns))
        self.flush()

    def flush(self) -> None:
        """Write the rows that have not been written yet."""
        if not self._pending:
            return
        with suppress(OSError):
            del self._pending[: self._file.append(self._pending)]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _drop_newest(self) -> None:
        if self._pending:
            self._pending.pop()
        else:
            self._file.drop_last()


CHUNKS_IN_A_ROW = 16
"""How many chunks are read from a terminal before anything else gets its turn."""
HELD = 1 << 20
"""Bytes that a pipe or a terminal holds at most, as long as no administrator allows more."""
QUIET_S = 0.02
"""Seconds of silence after which a terminal counts as empty: the kernel delivers its bytes shortly after the write."""


class CapturedStream:
    """One captured stream and its file."""

    def __init__(self, fd: int, number: int, file: StreamFile, relay: Sequence[int], *, is_terminal: bool) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.relay = relay
        """Both ends of a pipe through which the kernel moves bytes from a terminal, so that none is ever only here."""
        self.number = number
        self.file = file
        self.is_terminal = is_terminal
        self.open = True
        self.paused = False
        """True while no process has the terminal open; one may open it again."""

    def take(self) -> int:
        """Store at most one chunk. Returns 0 at its end. Raises the error of reading it."""
        if not self.relay:
            return self.file.take(self.fd, is_pipe=not self.is_terminal)
        reader, writer = self.relay
        try:
            if not channels.holds_bytes(reader) and not os.splice(
                self.fd, writer, run_files.CHUNK, flags=os.SPLICE_F_NONBLOCK
            ):
                return 0
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self.close_relay()  # This kernel moves nothing from terminals.
            return self.take()
        return self.file.take(reader, is_pipe=True)

    def close_relay(self) -> None:
        """Read without it, if at all."""
        for fd in self.relay:
            os.close(fd)
        self.relay = ()


class Capture:
    """The captured streams of one run; their descriptors are registered with `poll`."""

    def __init__(
        self, directory: str, spec: dict[str, Any], poll: Any, before_inexact: Callable[[], object] = lambda: None
    ) -> None:
        """`before_inexact` is called before the files and channels alone would not tell all that has arrived."""
        limit, free = spec["max_bytes"], spec["min_free"]
        self._poll = poll
        self._files = [StreamFile(os.path.join(directory, run_files.OUT), limit, free)]
        self._files.append(StreamFile(os.path.join(directory, run_files.ERR), limit, free))
        for file in self._files:
            file.before_inexact = before_inexact
        self.timeline = Timeline(os.path.join(directory, run_files.INDEX))
        self._sizes = TerminalSizes(os.path.join(directory, run_files.SIZES), (channels.ROWS, channels.COLUMNS))
        self._sources: dict[int, CapturedStream] = {}
        self.on_large: Callable[[], object] | None = None
        """Called once, when a stream gets longer than a chunk; an `OSError` is ignored."""

    def take_over(self) -> None:
        """Go on with the files of another process."""
        for file in self._files:
            file.take_over()
        self.timeline.take_over(self.totals)
        self._sizes.take_over()

    def add(self, fd: int, number: int, relay: Sequence[int] = (), *, is_terminal: bool = False) -> None:
        """Take over a descriptor of stream `number` (0: out, 1: err), and the relay of a terminal."""
        self._sources[fd] = CapturedStream(fd, number, self._files[number], relay, is_terminal=is_terminal)
        self._poll.register(fd, select.POLLIN)

    @property
    def at_end(self) -> bool:
        """True once no process can write any more."""
        return not self._sources

    @property
    def paused(self) -> bool:
        """True while no process has the terminal open."""
        return any(source.paused for source in self._sources.values())

    def has(self, fd: int) -> bool:
        """True if a descriptor belongs to one of the streams."""
        return fd in self._sources

    def pump(self, fd: int) -> bool:
        """Store the bytes that have arrived on one stream. Return whether there may be more already."""
        source = self._sources[fd]
        for _ in range(CHUNKS_IN_A_ROW):
            try:
                count = source.take()
            except BlockingIOError:
                return False
            except OSError as error:
                # Linux answers EIO while no process has the other side of a terminal open.
                if error.errno != errno.EIO or not source.is_terminal:
                    raise
                self._pause(source)
                return False
            if not count:
                self._close(source)
                return False
            self.timeline.note(source.number, count)
            if self.on_large is not None and source.file.total > run_files.CHUNK:
                on_large, self.on_large = self.on_large, None
                with suppress(OSError):
                    on_large()
            if not source.is_terminal:
                break  # A chunk is all that a pipe holds: reading on would mostly find it empty.
        return True

    def resize(self, fd: int, rows: int, columns: int) -> None:
        """Set the size of a terminal, and record after how many bytes of output."""
        # Output before the change belongs to the old size.
        source = self._sources.get(fd)
        if source is not None and not source.paused:
            self.pump(fd)
        if fd in self._sources and channels.set_size(fd, rows, columns):
            self._sizes.note(rows, columns, self.totals[0])

    def drain(self, seconds: float) -> None:
        """Store all bytes that have been written so far. What a process goes on writing is read for so many seconds."""
        deadline = time.monotonic() + seconds
        self.resume()
        for source in list(self._sources.values()):
            # On a busy machine the time may be over before the first byte was read.
            least = source.file.total + HELD
            while not source.paused and (source.file.total < least or time.monotonic() < deadline):
                if source.fd not in self._sources or self.pump(source.fd):
                    continue
                if not source.is_terminal or source.paused or not _events(source.fd, QUIET_S):
                    break

    def resume(self) -> None:
        """Check again whether a process has opened the terminal."""
        for source in self._sources.values():
            if source.paused:
                source.paused = False
                self._poll.register(source.fd, select.POLLIN)

    def close_sources(self) -> None:
        """Close the streams, even if a process still holds the other end."""
        for source in list(self._sources.values()):
            self._close(source)

    def latest(self, number: int) -> bytes:
        """Return the end of a stream (0: out, 1: err)."""
        return self._files[number].latest()

    def retry(self) -> None:
        """Try again to write the bytes that a full disk has not accepted."""
        for file in self._files:
            file.retry()

    def finish(self) -> None:
        """Write all remaining data, after the end of the output."""
        self.retry()
        self._sizes.flush()
        self.timeline.flush()

    def close(self) -> None:
        """Close all descriptors."""
        self.close_sources()
        for file in self._files:
            file.close()
        self.timeline.close()
        self._sizes.close()

    @property
    def totals(self) -> tuple[int, int]:
        """Bytes of the two streams so far."""
        return self._files[0].total, self._files[1].total

    @property
    def dropped(self) -> tuple[int, int]:
        """Bytes of the two streams that were dropped."""
        return self._files[0].total - self._files[0].kept, self._files[1].total - self._files[1].kept

    @property
    def uncounted(self) -> bool:
        """True if not even the number of bytes can be derived from the files."""
        return any(file.uncounted for file in self._files)

    def _pause(self, source: CapturedStream) -> None:
        source.paused = True
        self._poll.unregister(source.fd)

    def _close(self, source: CapturedStream) -> None:
        del self._sources[source.fd]
        if not source.paused:
            self._poll.unregister(source.fd)
        source.close_relay()
        os.close(source.fd)


def _holds_bytes(pipe: int) -> bool:
    """True if there is something to read from a pipe, false at its end. Raises `BlockingIOError`."""
    # No file is created before the first byte, and no byte may be read to find out.
    events = _events(pipe, 0.0)
    if not events:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return bool(events & select.POLLIN)


def _events(fd: int, seconds: float) -> int:
    """Return the events of a descriptor that is read, waiting some seconds for them. 0: there are none."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return next((events for _, events in poll.poll(int(seconds * 1000))), 0)
