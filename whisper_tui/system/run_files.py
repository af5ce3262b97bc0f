"""The files of one attempt: their names and formats, and atomic writes, so that no reader sees a partial file.

A directory `<call>.<attempt>` below the runs directory holds one attempt. The files are authoritative; a line in the
`notify` FIFO beside the directories only wakes the supervisor to read them again.
"""

import json
import os
import stat
import struct
from typing import Any, NamedTuple

SPEC = "spec"
"""The order to start, as JSON."""
ENVIRONMENT = "env"
"""The environment, as JSON, if it is too long for a message. The keeper removes the file after reading it."""
LOCK = "lock"
"""Locked for the keeper's whole life. The kernel releases the lock however the keeper dies."""
CLAIM = "claim"
"""A symbolic link to `run` or `revoked`. Its creator decides whether the attempt ever runs."""
UNCLAIMED_S = 30.0
"""Seconds after which an attempt that no keeper has made a claim on is revoked."""
UNCLAIMED_AFTER_LOSS_S = 3.0
"""The same after the guardian was lost, perhaps with jobs."""
PID = "pid"
"""The leader and the keeper, as JSON."""
OUT, ERR = "out", "err"
"""The bytes of the two streams."""
INDEX = "idx"
"""The time index of the output: rows of `INDEX_ROW`."""
SIZES = "size"
"""The sizes of the terminal: rows of `SIZE_ROW`. Missing: it kept its first size."""
EXIT = "exit"
"""The ending of the leader, as JSON."""
BACKGROUND = "bg"
"""The background processes of the command, as JSON."""
DONE = "done"
"""Exists once no process is alive and the output is complete. Contains the stream sizes if bytes were lost."""
CONTROL = "ctl"
"""A FIFO for orders to the keeper: one JSON object a line with the key from the spec, at most `LONGEST_ORDER` bytes."""
FOREIGN_ORDERS = "strange"
"""Foreign lines in the control FIFO, as JSON: their number, the newest, and its time."""
INPUT = "in"
"""A FIFO for the command's input. Missing: it accepts no input."""
NOTIFY = "notify"
"""The FIFO for wakeups, beside the attempts: `<call>.<attempt> <file>` a line."""
PREVIEW = "preview"
"""The directory with the view of a previewed command, and with what it changed."""
WARM_UP = "rehearsal"
"""Directory beside the attempts for the warm-up runs of keepers."""
WARM_UP_TIMEOUT_S = 2.0
"""Seconds after which a warm-up is aborted."""
NOBODY = "-"
"""Replaces the attempt in a wakeup: an idle keeper has died, perhaps with a job that it had just received."""
TAIL_SUFFIX = ".tail"
"""Added to a stream's name: the ring of its last bytes."""
RING_SUFFIX = ".ring"
"""Added to a stream's name: a `RING` that describes which bytes the ring contains."""

RUN, REVOKED = "run", "revoked"

CHUNK = 65_536
"""Bytes per read: the default capacity of a pipe."""
LONGEST_ORDER = 512
"""Bytes that every system writes to a FIFO atomically (POSIX: PIPE_BUF is at least 512)."""
RESERVED = 4096
"""Bytes reserved at the start for the record of the ending, so that it can be written on a full disk."""

INDEX_ROW = struct.Struct("<dII")
"""Seconds since the epoch, stream (0: out, 1: err), bytes."""
SIZE_ROW = struct.Struct("<dQHH")
"""Seconds since the epoch, bytes of `out` before, rows, columns."""
RING = struct.Struct("<QQQQ")
"""Offsets and sizes in bytes: end of the head, start of the ring's bytes, size of the ring, end of the stream."""


def ring_step(ring: int) -> int:
    """The largest single write to a ring of that size. So many of its oldest bytes are unreliable."""
    return max(1, min(CHUNK, ring // 4))


class RingState(NamedTuple):
    """The part of a stream that is in its ring: offsets into the stream and a size, in bytes, as `RING` has them."""

    head: int
    start: int
    size: int
    total: int

    @property
    def oldest(self) -> int:
        """The offset of the first byte that the keeper cannot be overwriting now."""
        if self.total - self.start <= self.size - ring_step(self.size):
            return self.start
        return self.total - self.size + ring_step(self.size)

    def same_layout(self, other: "RingState") -> bool:
        """True if the bytes are at the same positions in both."""
        return (self.start, self.size) == (other.start, other.size)


def claim(directory: str, decision: str) -> str:
    """Claim or revoke an attempt, unless that is already decided. Return the valid decision."""
    # A symlink is created with its content in one atomic step. A file would be empty for a moment.
    path = os.path.join(directory, CLAIM)
    try:
        os.symlink(decision, path)
    except FileExistsError:
        return os.readlink(path)
    return decision


def claimed(directory: str) -> str | None:
    """Return the decision about an attempt. None: it is neither claimed nor revoked."""
    try:
        return os.readlink(os.path.join(directory, CLAIM))
    except FileNotFoundError:
        return None


def make_directory(directory: str) -> None:
    """Make the directory of an attempt, for its owner only. Raises `FileExistsError`."""
    os.mkdir(directory, 0o700)


def remove_tree(top: str) -> None:
    """Remove a directory tree as far as possible. Links are removed, not followed."""
    if os.path.islink(top):
        _remove_entry(top)
        return
    _remove_tree(top)
    if os.path.lexists(top):
        # A command may have left directories into which its own user may not look, or in which nothing can be removed.
        _open_up(top)
        for directory, names, _ in os.walk(top):
            for name in names:
                _open_up(os.path.join(directory, name))
        _remove_tree(top)


def _remove_tree(top: str) -> None:
    for directory, names, files in os.walk(top, topdown=False):
        for name in (*files, *names):
            _remove_entry(os.path.join(directory, name))
    _remove_empty(top)


def _remove_entry(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        _remove_empty(path)


def _open_up(path: str) -> None:
    """Give the owner of a directory all permissions on it, if that is this user. Links are not followed."""
    found = status(path, follow_links=False)
    if found is None or not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    if found.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        try:
            os.chmod(path, stat.S_IMODE(found.st_mode) | stat.S_IRWXU)
        except OSError:
            return


def _remove_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        return


def status(path: str, *, follow_links: bool = True) -> os.stat_result | None:
    """Return the status of a file. None: it does not exist."""
    try:
        return os.stat(path, follow_symlinks=follow_links)
    except (OSError, ValueError):
        return None


def write_whole(path: str, data: bytes, *, durable: bool = False) -> None:
    """Write a file atomically, for its owner only. `durable`: it survives a power failure."""
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
            # The name is in the directory, which has to be flushed as well.
            _sync_directory(os.path.dirname(path))
    except OSError:
        remove(temporary)
        raise


def write_new(path: str, data: bytes) -> None:
    """Write a new file that has no readers yet, for its owner only. Raises `FileExistsError`."""
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


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of the data, with several writes if necessary."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def write_json(path: str, value: Any) -> None:
    """Write a JSON file atomically."""
    write_whole(path, json.dumps(value, separators=(",", ":")).encode())


def read_json(path: str) -> Any:
    """Return the value in a JSON file. Raises `FileNotFoundError`, or `ValueError` for a broken one."""
    # A command can put a named pipe in its place, whose writer nobody may wait for.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(fd, 1 << 20):
            pieces.append(piece)
    except BlockingIOError:
        raise ValueError(f"{path} is a pipe") from None
    finally:
        os.close(fd)
    return json.loads(b"".join(pieces))


def remove(path: str) -> None:
    """Remove a file, if it exists."""
    try:
        os.unlink(path)
    except OSError:
        return


def stamp(path: str, *, follow_links: bool = True) -> str | None:
    """Identify a file and its version: device, inode, size and times. None: there is no file."""
    found = status(path, follow_links=follow_links)
    return None if found is None else stamp_of(found)


def stamp_of(found: os.stat_result) -> str:
    """Return the identity and the version of a file by its status."""
    # With ctime: a command can set mtime back to hide a change, but not ctime.
    return f"{found.st_dev:x}.{found.st_ino:x}.{found.st_size:x}.{found.st_mtime_ns:x}.{found.st_ctime_ns:x}"
