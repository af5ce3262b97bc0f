"""News of runs at a place: the pieces of their files that the near end does not have yet, as frames, in order.

The near end has a mirror of each attempt. It says which bytes of the growing files it has; what follows is sent once.
"""

import ctypes
import errno
import itertools
import os
import struct
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from whisper_tui.supervisor.places.frames import beginning
from whisper_tui.system import run_files
from whisper_tui.system.processes import LINUX
from whisper_tui.system.run_files import RingState

PIECE = 1 << 20
"""Bytes of a growing file that one frame has at most."""
SHORT = 1 << 16
"""Bytes up to which a piece is read into memory. The kernel sends longer ones from the file."""
MOST_PARTS = 64
"""Parts of frames that are written at once."""
STREAMS = (run_files.OUT, run_files.ERR)
ROWS = (run_files.INDEX, run_files.SIZES)
SMALL = (run_files.PID, run_files.BACKGROUND, run_files.FOREIGN_ORDERS, run_files.EXIT)
"""The small files, in the order in which they are sent. They are replaced as a whole."""


class FilePart:
    """Bytes of a file that are still to be sent."""

    def __init__(self, fd: int, position: int, length: int) -> None:
        """`fd`: the open file, which this closes."""
        self._fd, self._position, self._length = fd, position, length

    def __len__(self) -> int:
        return self._length

    def send(self, target: int) -> int:
        """Send what the target takes now, and return how much that was. Raises `OSError`."""
        try:
            count = os.sendfile(target, self._fd, self._position, self._length)
        except OSError as error:
            if error.errno not in _NO_SENDFILE:
                raise
            count = os.write(target, os.pread(self._fd, min(self._length, SHORT), self._position))
        if not count:
            # The frame has promised these bytes. The next connection is told how many there are now.
            raise OSError(errno.ESTALE, "the file was cut off")
        self._position, self._length = self._position + count, self._length - count
        return count

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


_NO_SENDFILE = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSOCK, errno.EOPNOTSUPP})
Parts = tuple[bytes, bytes | FilePart]
"""A frame: its beginning and its payload, which are not put together, since that would copy every byte."""


class Outbox:
    """The parts of frames that wait for the connection to take them."""

    def __init__(self) -> None:
        self.waiting = 0
        """Bytes that wait."""
        self._parts: deque[memoryview | FilePart] = deque()

    def add(self, *parts: bytes | FilePart) -> None:
        """Add a frame."""
        self._parts.extend(part if isinstance(part, FilePart) else memoryview(part) for part in parts if len(part))
        self.waiting += sum(map(len, parts))

    def send(self, target: int) -> None:
        """Send as much as the target takes at once. Raises `BlockingIOError` if that is nothing, and `OSError`."""
        first = self._parts[0]
        if isinstance(first, FilePart):
            self.waiting -= first.send(target)
            if not len(first):
                first.close()
                self._parts.popleft()
            return
        texts = list[memoryview]()
        for part in itertools.islice(self._parts, MOST_PARTS):
            if isinstance(part, FilePart):
                break
            texts.append(part)
        count = os.writev(target, texts)
        self.waiting -= count
        for text in texts:
            if len(text) > count:
                self._parts[0] = text[count:]
                return
            self._parts.popleft()
            count -= len(text)

    def clear(self) -> None:
        """Drop what waits."""
        for part in self._parts:
            if isinstance(part, FilePart):
                part.close()
        self._parts.clear()
        self.waiting = 0


def ring_state(path: str) -> RingState | None:
    """Return the state of the ring of a stream. None: it has none."""
    data = _read(path + run_files.RING_SUFFIX, 0, run_files.RING.size)
    return RingState(*run_files.RING.unpack(data)) if len(data) == run_files.RING.size else None


class NewsOfRun:
    """The files of one attempt, compared with those of the mirror."""

    def __init__(self, name: str, directory: str, has: dict[str, Any]) -> None:
        """`has`: the size of each growing file in the mirror, and the state of its rings by the name of the stream."""
        self.name = name
        self._directory = directory
        self._sent = {each: int(has.get(each, 0)) for each in (*STREAMS, *ROWS)}
        rings = has.get("rings", {})
        self._rings = {each: RingState(*rings[each]) for each in STREAMS if each in rings}
        self._stamps: dict[str, str] = {}
        self.over = False
        """True once the last file was sent."""
        self.floods = False
        """True if the last look found much output."""

    def frames(self) -> Iterator[Parts]:
        """Yield frames with everything that is new now. Files that change meanwhile are new the next time."""
        # The keeper writes DONE last, and it is looked for first: if it exists, all other files are complete.
        done, claim = self._exists(run_files.DONE), run_files.claimed(self._directory)
        if claim is not None and self._stamps.get(run_files.CLAIM) != claim:
            self._stamps[run_files.CLAIM] = claim
            yield self._frame({"file": run_files.CLAIM}, claim.encode())
        changed = [name for name in SMALL if self._has_changed(name)]
        # The ending follows the output that was complete before it, and a row of the index the bytes that it is about.
        ends = {name: self._size(name) for name in ROWS}
        if run_files.PID in changed:
            yield from self._whole(run_files.PID)
        sizes = {name: self._size(name) for name in STREAMS}
        self.floods = any(size - self._sent[name] >= PIECE // 4 for name, size in sizes.items())
        for name in STREAMS:
            yield from self._growth(name, sizes[name])
            yield from self._ring(name)
        for name in ROWS:
            yield from self._growth(name, ends[name])
        for name in changed[run_files.PID in changed :]:
            yield from self._whole(name)
        if done:
            self.over = True
            yield self._frame({"file": run_files.DONE}, _read(self._path(run_files.DONE), 0, PIECE))

    def _growth(self, name: str, end: int) -> Iterator[Parts]:
        path = self._path(name)
        while self._sent[name] < end:
            at = self._sent[name]
            data = _piece(path, at, min(PIECE, end - at))
            if not len(data):
                return
            self._sent[name] += len(data)
            yield self._frame({"file": name, "at": at}, data)

    def _ring(self, name: str) -> Iterator[Parts]:
        """Yield what the ring of a stream has gained. The mirror's ring may begin later: bytes it missed are gone."""
        path, found = self._path(name), ring_state(self._path(name))
        if found is None:
            return
        end, step = found.total, run_files.ring_step(found.size)
        mirrored = self._rings.get(name)
        if mirrored is None or mirrored.total < found.oldest:
            mirrored = RingState(found.head, found.oldest, found.size, found.oldest)
        elif (mirrored.head, mirrored.size) != (found.head, found.size):
            mirrored = mirrored._replace(head=found.head, size=found.size)
        if mirrored != self._rings.get(name):
            self._rings[name] = mirrored
            yield self._frame({"ring": name, "state": mirrored})
        while mirrored.total < end:
            position = (mirrored.total - found.start) % found.size
            data = _read(path + run_files.TAIL_SUFFIX, position, min(step, end - mirrored.total, found.size - position))
            after = ring_state(path) or found
            if not after.same_layout(found) or not data:
                return
            if mirrored.total < after.oldest:
                # Overwritten while it was read.
                mirrored = RingState(after.head, after.oldest, after.size, after.oldest)
                data = b""
            else:
                mirrored = mirrored._replace(total=mirrored.total + len(data))
            self._rings[name] = mirrored
            yield self._frame({"ring": name, "state": mirrored}, data)

    def _whole(self, name: str) -> Iterator[Parts]:
        with suppress(OSError):
            stamp = run_files.stamp(self._path(name))
            fd = os.open(self._path(name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = b"".join(iter(lambda: os.read(fd, PIECE), b""))
            finally:
                os.close(fd)
            self._stamps[name] = stamp or ""
            yield self._frame({"file": name}, data)

    def _has_changed(self, name: str) -> bool:
        stamp = run_files.stamp(self._path(name))
        return stamp is not None and stamp != self._stamps.get(name)

    def _exists(self, name: str) -> bool:
        return os.path.lexists(self._path(name))

    def _size(self, name: str) -> int:
        found = run_files.status(self._path(name))
        return found.st_size if found is not None else 0

    def _frame(self, header: dict[str, Any], data: bytes | FilePart = b"") -> Parts:
        return beginning({"of": self.name, **header}, len(data)), data

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"


def _piece(path: str, position: int, count: int) -> bytes | FilePart:
    """Return bytes of a growing file, or where they are if they are many. Empty: there are none, or no file."""
    if count <= SHORT or not LINUX:
        return _read(path, position, count)
    fd = _opened(path)
    return FilePart(fd, position, count) if fd is not None else b""


def _opened(path: str) -> int | None:
    with suppress(OSError):
        # A command can write to the directory of its run. A link there must not lead to another file.
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    return None


def _read(path: str, position: int, count: int) -> bytes:
    """Return bytes of a file. Empty: there are none, or no file."""
    fd = _opened(path)
    if fd is None:
        return b""
    try:
        return os.pread(fd, count, position)
    except OSError:
        return b""
    finally:
        os.close(fd)


_EVENT = struct.Struct("iIII")
_MODIFY, _MOVED_TO, _CREATE, _OVERFLOW = 0x2, 0x80, 0x100, 0x4000
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
POLL_S = 0.02
"""Seconds between two looks at the files of runs where the kernel does not report changes."""


class FileWatch:
    """Reports changes in the directories of runs, by inotify where there is one."""

    def __init__(self) -> None:
        self.fd = -1
        """Readable when something has changed. -1: the system has no inotify."""
        self._names: dict[int, str] = {}
        self._unwatched: set[str] = set()
        self._watches: dict[str, int] = {}
        self._libc: Any = None
        if LINUX:
            with suppress(OSError, AttributeError):
                self._libc = ctypes.CDLL(None, use_errno=True)
                self.fd = self._libc.inotify_init1(_FLAGS)

    @property
    def polls(self) -> bool:
        """True while runs are watched whose changes nobody reports."""
        return bool(self._unwatched)

    def add(self, name: str, directory: str) -> None:
        """Watch the directory of a run."""
        watch = -1
        if self.fd >= 0:
            watch = self._libc.inotify_add_watch(self.fd, os.fsencode(directory), _MODIFY | _MOVED_TO | _CREATE)
        if watch < 0:
            self._unwatched.add(name)
            return
        self._names[watch], self._watches[name] = name, watch

    def remove(self, name: str) -> None:
        """Watch it no more."""
        self._unwatched.discard(name)
        watch = self._watches.pop(name, None)
        if watch is not None and self._names.pop(watch, None) is not None:
            self._libc.inotify_rm_watch(self.fd, watch)

    def changed(self) -> set[str]:
        """Return the names of the runs with changes since the last call, as far as they are known."""
        found = set(self._unwatched)
        while self.fd >= 0:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                break
            at = 0
            while at < len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                found |= set(self._names.values()) if mask & _OVERFLOW else {self._names.get(watch, "")}
        return found - {""}
