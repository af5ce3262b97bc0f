"""Where the bytes of one stream go: to the end of a file, to a ring once that has to stop, to memory on a full disk."""

import errno
import os
import time

from whisper_tui.supervisor.keeper import layout

CHECK_FREE_EVERY = 16 * 1024 * 1024
"""Bytes between two looks at the free disk."""
SMALL_RING = 1024 * 1024
"""Bytes kept of what follows once the disk is low."""
REMEMBERED = layout.CHUNK
"""Bytes kept in memory while nothing can be written."""
LATEST = 4096
"""Bytes at the end of a stream that are at hand: programs write one sentence in several pieces."""
RETRY_S = 0.5
"""Seconds between two attempts to write again."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ENOENT})
"""What a disk says that takes no more, or on which the directory was removed."""


class StreamFile:
    """The stored bytes of one stream. Offsets count every byte that ever arrived, dropped ones included.

    The file is made for the first byte: most commands print to one stream only, and many to none.
    """

    def __init__(self, path: str, limit: int | None, min_free: int) -> None:
        """`limit`: bytes kept, half from the head and half from the tail; None: all. `min_free`: bytes of disk."""
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
        self.total = 0
        """Bytes that arrived."""
        self.latest = b""
        """The end of what arrived, `LATEST` bytes at least where there were so many."""

    @property
    def kept(self) -> int:
        """Bytes that can still be read."""
        in_ring = min(self.total - self._start, self._ring) if self._ring and not self._memory else 0
        return self._head + in_ring

    @property
    def uncounted(self) -> bool:
        """Whether the files do not even show how many bytes there were."""
        return self._unnoted or bool(self._memory)

    def take(self, source: int) -> int:
        """Move at most one chunk from a pipe or terminal. Returns 0 at its end; raises what reading it raises."""
        data = os.read(source, layout.CHUNK)
        if data:
            self.latest = data if len(data) >= LATEST else (self.latest + data)[-2 * LATEST :]
            self._store(data)
        return len(data)

    def retry(self) -> None:
        """Try to write again what had to stay in memory."""
        memory = self._memory
        if not memory:
            self._memory = None
            if self._unnoted:
                self._note_total()
            return
        written = min(self.total - len(memory) - self._start, self._ring)
        ring = min(self._wanted_ring, max(written, SMALL_RING))
        kept = memory[-ring:]
        start = self.total - len(kept)
        try:
            self._open_ring()
            os.pwrite(self._state_file, layout.RING.pack(self._head, start, ring, start), 0)
            if os.pwrite(self._ring_file, kept, 0) < len(kept):
                return
        except OSError as error:
            if error.errno not in _FULL:
                raise
            return
        self._start, self._ring, self._memory = start, ring, None
        self._note_total()

    def close(self) -> None:
        """Let go of the files."""
        for fd in (self._file, self._ring_file, self._state_file):
            if fd >= 0:
                os.close(fd)

    def _place(self) -> tuple[int, int, int]:
        """The file to write to, the position in it and how many bytes fit there."""
        if self._file < 0:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        if self.total >= self._next_check:
            self._look_at_disk()
        if not self._ring:
            if self._head_limit is None:
                return self._file, self.total, layout.CHUNK
            if self.total < self._head_limit:
                return self._file, self.total, min(layout.CHUNK, self._head_limit - self.total)
            self._begin_ring(self._wanted_ring)
        position = (self.total - self._start) % self._ring
        return self._ring_file, position, min(layout.ring_step(self._ring), self._ring - position)

    def _advance(self, count: int) -> None:
        self.total += count
        if not self._ring:
            self._head = self.total
        elif count:
            self._note_total()

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
            self._remember(bytes(rest))

    def _remember(self, data: bytes) -> None:
        """Keep the last bytes in memory, and try now and then to write them after all."""
        self._memory = ((self._memory or bytearray()) + data)[-REMEMBERED:]
        self.total += len(data)
        now = time.monotonic()
        if now >= self._retry_at:
            self._retry_at = now + RETRY_S
            self.retry()

    def _look_at_disk(self) -> None:
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
        """From here on keep only the last bytes."""
        self._open_ring()
        os.pwrite(self._state_file, layout.RING.pack(self._head, self.total, size, self.total), 0)
        self._start, self._ring = self.total, size

    def _open_ring(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        if self._state_file < 0:
            self._state_file = os.open(self._path + layout.RING_SUFFIX, flags, 0o600)
        if self._ring_file < 0:
            self._ring_file = os.open(self._path + layout.TAIL_SUFFIX, flags, 0o600)

    def _note_total(self) -> None:
        """Tell readers how far the ring goes; later, where the disk refuses even that."""
        state = layout.RING.pack(self._head, self._start, self._ring, self.total)
        try:
            os.pwrite(self._state_file, state, 0)
            self._unnoted = False
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._unnoted = True
