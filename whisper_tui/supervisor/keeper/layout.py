"""The files of one attempt: their names, their formats, and how they are written so that no reader sees half of one.

A directory `<call>.<attempt>` below the runs directory holds one attempt. The files are the truth; a line in the
`notify` FIFO beside the directories is only a hint to look at them again.
"""

import json
import os
import struct
from typing import Any

SPEC = "spec"
"""What to start, as JSON."""
ENVIRONMENT = "env"
"""The environment, as JSON, if it is too long to be told; removed as soon as the keeper has read it."""
LOCK = "lock"
"""Locked for the keeper's whole life: the kernel lets go of it on any death."""
CLAIM = "claim"
"""A symbolic link to `run` or `revoked`; whoever makes it decides whether the attempt ever runs."""
PID = "pid"
"""The leader and the keeper, as JSON."""
OUT, ERR = "out", "err"
"""The bytes of the two streams."""
INDEX = "idx"
"""When bytes arrived: rows of `INDEX_ROW`."""
SIZES = "size"
"""Which sizes the terminal was given: rows of `SIZE_ROW`. Missing: it kept the one that it began with."""
EXIT = "exit"
"""How the leader ended, as JSON."""
BACKGROUND = "bg"
"""What the command left behind, as JSON."""
DONE = "done"
"""Nothing is alive and the output is complete. Holds the sizes of the streams if bytes were lost for good."""
CONTROL = "ctl"
"""A FIFO for orders to the keeper: one JSON object a line, each at most `LONGEST_ORDER` bytes."""
INPUT = "in"
"""A FIFO for the command's input. Missing: it takes none."""
NOTIFY = "notify"
"""The FIFO for hints, beside the attempts: `<call>.<attempt> <what>` a line."""
NOBODY = "-"
"""In place of an attempt in a hint: a waiting keeper is gone, and perhaps the job that it was just taking."""
TAIL_SUFFIX = ".tail"
"""Added to a stream's name: the ring of its last bytes."""
RING_SUFFIX = ".ring"
"""Added to a stream's name: a `RING` that says which bytes the ring holds."""

RUN, REVOKED = "run", "revoked"

CHUNK = 65_536
"""Bytes moved at once: what a pipe of default size holds."""
LONGEST_ORDER = 512
"""What every system writes to a FIFO in one piece."""
RESERVED = 4096
"""Bytes set aside for the ending when a run starts, so that a full disk cannot swallow it."""

INDEX_ROW = struct.Struct("<dII")
"""Seconds since the epoch, stream (0: out, 1: err), bytes."""
SIZE_ROW = struct.Struct("<dQHH")
"""Seconds since the epoch, bytes of `out` before, rows, columns."""
RING = struct.Struct("<QQQQ")
"""Offsets and sizes in bytes: end of the head, start of the ring's bytes, size of the ring, end of the stream."""


def ring_step(ring: int) -> int:
    """The most bytes that are written to a ring of that size at once; so many of its oldest may be overwritten."""
    return max(1, min(CHUNK, ring // 4))


def claim(directory: str, decision: str) -> str:
    """Decide about an attempt, if nobody has: existence and content in one step. Returns what holds."""
    path = os.path.join(directory, CLAIM)
    try:
        os.symlink(decision, path)
    except FileExistsError:
        return os.readlink(path)
    return decision


def claimed(directory: str) -> str | None:
    """What was decided about an attempt. None: nothing yet."""
    try:
        return os.readlink(os.path.join(directory, CLAIM))
    except FileNotFoundError:
        return None


def make_directory(directory: str) -> None:
    """Make the directory of an attempt, for its owner only. Raises `FileExistsError`."""
    os.mkdir(directory, 0o700)


def remove_directory(directory: str) -> None:
    """Remove the directory of an attempt with all that is in it, as far as it can be removed."""
    remove_tree(directory)


def remove_tree(top: str) -> None:
    """Remove a directory and everything below it, as far as it can be removed. Links are removed, not followed."""
    for directory, names, files in os.walk(top, topdown=False):
        for name in (*files, *names):
            path = os.path.join(directory, name)
            try:
                os.unlink(path)
            except OSError:
                _remove_empty(path)
    _remove_empty(top)


def _remove_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        return


def version_of(path: str) -> tuple[int, int, int] | None:
    """What changes whenever a file is replaced: its inode, time and size in bytes. None: there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def write_whole(path: str, data: bytes, *, durable: bool = False) -> None:
    """Put a file in its place, whole or not at all, for its owner only; `durable`: a power cut cannot undo it."""
    temporary = path + ".tmp"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, data)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
        if durable:
            _sync_directory(os.path.dirname(path))
    except OSError:
        remove(temporary)
        raise


def write_new(path: str, data: bytes) -> None:
    """Make a file that nobody reads before it is spoken of; readable by its owner only. Raises `FileExistsError`."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def _sync_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write to the end of the data, however many writes that takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def write_json(path: str, value: Any) -> None:
    """Put a JSON file in its place."""
    write_whole(path, json.dumps(value, separators=(",", ":")).encode())


def read_json(path: str) -> Any:
    """The value in a JSON file. Raises `FileNotFoundError`, or `ValueError` for a broken one."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(fd, 1 << 20):
            pieces.append(piece)
    finally:
        os.close(fd)
    return json.loads(b"".join(pieces))


def remove(path: str) -> None:
    """Remove a file that may be gone already."""
    try:
        os.unlink(path)
    except OSError:
        return
