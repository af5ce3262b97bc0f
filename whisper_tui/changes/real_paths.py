"""Real files, reached through parents that no symbolic link redirects, and what is kept of those that are changed.

Calls begin in an opened directory where they can: a path through `/proc` takes longer than most of them. A small file
costs far more to create and to remove than to write, so the old contents of small ones lie one after the other in a
single file of the store. Others are files of their own there, under the number of their change.
"""

import errno
import fcntl
import os
import signal
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from types import TracebackType
from typing import BinaryIO, Self

from whisper_tui.changes.change_records import Attributes, DirectoryState, FileChange
from whisper_tui.changes.file_trees import (
    FACTS,
    Stamp,
    attributes,
    change_mode,
    copy_content,
    copy_tree,
    dress,
    open_file,
    remove_tree,
    set_attributes,
    stamp,
    stamp_from,
)
from whisper_tui.system import run_files
from whisper_tui.system.syscalls import (
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    Place,
    mount_of,
    open_directory,
    rename,
)

KEPT = "kept"
"""The directory of the store with what was there before, by the number of the change."""
SMALL_BYTES = 1 << 20
"""Larger files are kept as files of their own, which share blocks with the original where the file system can."""
LARGE_BYTES = 1 << 20
"""Larger files are exchanged instead of written in place, if nobody has them open."""
_CONTENTS, _SPANS = "contents", "contents.json"
_CHUNK = 4 << 20
_GROUPS, _GROUP = "groups", 256
"""The directory of those for so many kept files each: to move a file to a directory of thousands takes far longer."""

OTHERS_CLOSE_S = 0.1
"""Seconds for which somebody else who has a file open is waited for before a step takes it away or writes it."""
MOST_OPEN = 128
"""Directories that are open at once."""
OUT_OF_REACH = (errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.EACCES)
"""Errors of opening a directory that is no more, or is reached by a symbolic link."""
_KNOWS_ACCESS = os.access("/", os.F_OK, effective_ids=True, follow_symlinks=False)
"""False where faccessat2(2) is denied: it would seem that no file exists."""
_OTHER_KIND = (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENOENT)
"""Errors of opening what is no regular file any more."""


class Conflict(Exception):
    """Somebody else changed these paths: none of the changes is real, but for those of `left`."""

    def __init__(self, paths: Iterable[str], left: Iterable[str] = ()) -> None:
        self.paths = list(dict.fromkeys(paths))
        self.left = list(left)
        """Paths that keep what the changes did to them, because somebody has changed them since."""
        named = ", ".join(self.paths[:3]) + (", …" if len(self.paths) > 3 else "")
        done = "Nothing was done; run the preview again."
        if self.left:
            done = f"What was done to {', '.join(self.left)} stays; everything else is as it was."
        super().__init__(f"changed by someone else meanwhile: {named}. {done}")


class RealPaths:
    """Opened parents of real files, the last used of them; a symbolic link on the way is an error."""

    def __init__(self, store: str, directories: Iterable[DirectoryState]) -> None:
        self._inodes = {each.path: each.inode for each in directories}
        self._open: dict[str, int] = {}
        self._newest: tuple[str | None, int] = (None, -1)
        self._elsewhere: dict[int, bool] = {}
        """True for descriptors between whose directories and the store the kernel does not rename files."""
        self._store = store
        self._mount: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the parents that are open."""
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()
        self._elsewhere.clear()
        self._newest = (None, -1)

    def find(self, path: str) -> Place:
        """Return the opened parent of a file, and its name there: valid for the next hundred parents.

        Raises `OSError` if the parent is out of reach, or `Conflict` if it is another directory than expected.
        """
        directory, _, name = path.rpartition("/")
        newest, fd = self._newest
        return fd if directory == newest else self._parent(directory or "/"), name

    def at(self, path: str) -> str:
        """Return such a place as a path, for calls that know no directory descriptors; they take longer."""
        fd, name = self.find(path)
        return f"/proc/self/fd/{fd}/{name}"

    def stamp(self, path: str) -> Stamp | None:
        """Return the stamp of a file. None: it is not there, or its parent is out of reach or another one."""
        try:
            fd, name = self.find(path)
        except Conflict:
            return None
        except OSError as error:
            if error.errno not in OUT_OF_REACH:
                raise
            return None
        return stamp(name, fd)

    def is_free(self, path: str) -> bool:
        """True if there is no such file, or its parent is out of reach or another one."""
        if not _KNOWS_ACCESS:
            return self.stamp(path) is None
        try:
            fd, name = self.find(path)
        except Conflict:
            return True
        except OSError as error:
            if error.errno not in OUT_OF_REACH:
                raise
            return True
        # An exception for each free name takes longer than to look for it.
        return not os.access(name, os.F_OK, dir_fd=fd, effective_ids=True, follow_symlinks=False)

    def is_elsewhere(self, at: Place) -> bool:
        """True if the kernel does not rename files between the store and this place."""
        found = self._elsewhere.get(at[0])
        if found is None:
            self._mount = self._mount or self._mount_of_store()
            found = self._elsewhere[at[0]] = _mount_of(at[0]) != self._mount
        return found

    def _parent(self, directory: str) -> int:
        fd = self._open.pop(directory, None)
        if fd is None:
            if len(self._open) >= MOST_OPEN:
                oldest = self._open.pop(next(iter(self._open)))
                self._elsewhere.pop(oldest, None)
                os.close(oldest)
            fd = open_directory(directory)
            if self._inodes.get(directory) not in (None, os.fstat(fd).st_ino):
                os.close(fd)
                raise Conflict([directory])
        self._open[directory] = fd
        self._newest = (directory, fd)
        return fd

    def _mount_of_store(self) -> tuple[int, ...]:
        fd = os.open(self._store, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return _mount_of(fd)
        finally:
            os.close(fd)


def _mount_of(fd: int) -> tuple[int, ...]:
    """Identify the file system and the mount: a rename between two mounts fails even on the same file system."""
    try:
        return mount_of(fd)
    except OSError as error:
        # Kernels before 5.8, and places that deny the call. Both ways never mix: their answers differ.
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
        with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
            mount = next(line for line in file if line.startswith(b"mnt_id:"))
        return os.fstat(fd).st_dev, int(mount.split()[1])


class Lease:
    """Has others wait a moment who open a file (`fcntl(2)`). Without effect where it stays open, or leases are unknown.

    Somebody who has it open may be about to write it: that is waited for, since most programs close it soon.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._held = False
        last = time.monotonic() + OTHERS_CLOSE_S
        with suppress(OSError):
            # What tells that somebody waits would end this process if it were SIGIO.
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            while not self._held and time.monotonic() < last:
                try:
                    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
                    self._held = True
                except BlockingIOError:
                    time.sleep(0.002)

    def is_wanted(self) -> bool:
        """True if somebody waits to open the file."""
        return self._held and fcntl.fcntl(self._fd, fcntl.F_GETLEASE) != fcntl.F_WRLCK

    def end(self) -> None:
        """Let others open it."""
        if self._held:
            self._held = False
            fcntl.fcntl(self._fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


@contextmanager
def leased(at: Place) -> Iterator[Lease | None]:
    """Take a lease on a regular file while it gets another name. None: it is none, or cannot be opened."""
    try:
        fd = open_file(at[1], os.O_RDONLY, at[0])
    except OSError:
        yield None
        return
    try:
        lease = Lease(fd) if stat.S_ISREG(os.fstat(fd).st_mode) else None
        try:
            yield lease
        finally:
            if lease is not None:
                lease.end()
    finally:
        os.close(fd)


class WrittenFile:
    """A regular file that is written in place: the same file as before, or it is a conflict."""

    def __init__(self, at: Place, path: str, inode: int) -> None:
        try:
            self.fd = open_file(at[1], os.O_RDWR, at[0])
        except OSError as error:
            if error.errno in _OTHER_KIND:
                raise Conflict([path]) from error
            raise
        self._lease = Lease(self.fd)
        status = os.fstat(self.fd)
        self.found = stamp_from(FACTS(status))
        """The file as it was when it was opened."""
        self._atime = status.st_atime_ns
        if self.found.inode != inode or not self.found.is_file:
            os.close(self.fd)
            raise Conflict([path])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lease.end()
        os.close(self.fd)

    def finish(self, wanted: Stamp, *, has_attributes: bool) -> Stamp | None:
        """Give it its size and time. Returns the file as it is then. None: mode, owner or attributes may differ."""
        if self.found.size > wanted.size:
            # Only now: ext4 writes a file to the disk at once that is emptied and written again.
            os.ftruncate(self.fd, wanted.size)
        os.utime(self.fd, ns=(self._atime, wanted.mtime))
        found = stamp_from(FACTS(os.fstat(self.fd)))
        return found if found[:5] == wanted[:5] and not has_attributes else None


def path_to(at: Place) -> str:
    """Return such a place as a path, for calls that know no directory descriptors."""
    return f"/proc/self/fd/{at[0]}/{at[1]}"


def remove_at(at: Place) -> None:
    """Remove a file or a whole tree, if it exists."""
    remove_tree(path_to(at))


def move(source: Place, target: Place) -> None:
    """Rename to a free name. A directory that its owner may not write is opened for the move."""
    try:
        rename(source, target, RENAME_NOREPLACE)
    except PermissionError:
        # Its own entry `..` changes.
        if not _open_directories(source):
            raise
        rename(source, target, RENAME_NOREPLACE)


def exchange(one: Place, other: Place) -> None:
    """Exchange two files or directories, also directories that their owner may not write."""
    try:
        rename(one, other, RENAME_EXCHANGE)
    except PermissionError:
        if not _open_directories(one, other):
            raise
        rename(one, other, RENAME_EXCHANGE)


def _open_directories(*places: Place) -> bool:
    """Let the owner write in those of these that are directories. False: that was so before."""
    changed = False
    for directory, name in places:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
            change_mode(name, stat.S_IMODE(mode) | 0o700, directory)
            changed = True
    return changed


def restore_mode(at: Place, wanted: Stamp) -> None:
    """Give a directory that was opened for a move its mode again, also after a crash."""
    if not wanted.is_directory:
        return
    found = stamp(at[1], at[0])
    if found is not None and found.is_directory and found.mode != wanted.mode:
        change_mode(at[1], stat.S_IMODE(wanted.mode), at[0])


# What is kept


class KeptContents:
    """The kept contents of one store."""

    def __init__(self, store: str) -> None:
        self._directory = os.path.join(store, KEPT)
        self._spans: dict[int, tuple[int, int]] | None = None
        """Offsets and sizes in the common file, by the number of the change. None: they were not loaded yet."""
        self._pending: list[bytes] = []
        self._pending_bytes = self._end = 0
        self._read, self._read_from = b"", 0
        """A part of the common file that was read, and where it begins there."""
        self._made = False
        self._grouped: bool | None = None
        """None: that was not looked for yet."""

    def path(self, number: int) -> str:
        """Return the place for what a change replaces, if it is a file or a tree of its own."""
        if self._grouped is None:
            self._grouped = os.path.isdir(f"{self._directory}/{_GROUPS}")
        if self._grouped:
            return f"{self._directory}/{_GROUPS}/{number // _GROUP}/{number}"
        return f"{self._directory}/{number}"

    def make_groups(self, count: int) -> None:
        """Make directories for what this many changes replace, before anything is kept. Raises `OSError`."""
        self._grouped = count > _GROUP
        if self._grouped:
            for group in range((count - 1) // _GROUP + 1):
                os.makedirs(f"{self._directory}/{_GROUPS}/{group}", exist_ok=True)

    def has(self, number: int) -> bool:
        """True if something is kept for a change."""
        return number in self._loaded() or stamp(self.path(number)) is not None

    def make_directory(self) -> None:
        """Make the directory for whatever is kept, unless it is there. Raises `OSError`."""
        if not self._made:
            os.makedirs(self._directory, exist_ok=True)
            self._made = True

    def add_tree(self, number: int, path: str) -> None:
        """Keep a copy of a file or a tree. Raises `OSError`."""
        self.make_directory()
        copy_tree(path, self.path(number))

    def add_content(self, number: int, at: Place, size: int) -> None:
        """Keep the content of a regular file of this size in the common file. Raises `OSError`. `save` writes it."""
        directory, name = at
        reading = open_file(name, os.O_RDONLY, directory)
        try:
            content = os.read(reading, size + 1)
        finally:
            os.close(reading)
        if len(content) != size:
            # Nothing is overwritten of which only a part would be kept.
            raise OSError(errno.ESTALE, "it changes just now", name)
        self._loaded()[number] = (self._end, size)
        self._end += size
        self._pending.append(content)
        self._pending_bytes += size
        if self._pending_bytes > _CHUNK:
            self._flush()

    def _flush(self) -> None:
        """Write what was added. Raises `OSError`."""
        self.make_directory()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        fd = os.open(os.path.join(self._directory, _CONTENTS), flags, 0o600)
        try:
            run_files.write_all(fd, b"".join(self._pending))
        finally:
            os.close(fd)
        self._pending.clear()
        self._pending_bytes = 0

    def save(self) -> None:
        """Write the contents that were added, and where they are. Raises `OSError`."""
        if self._pending:
            self._flush()
        if self._spans:
            rows = [(number, *span) for number, span in self._spans.items()]
            run_files.write_json(os.path.join(self._directory, _SPANS), rows)

    def content(self, number: int) -> bytes | None:
        """Return a content in the common file. None: it is not there. Raises `OSError`."""
        span = self._loaded().get(number)
        if span is None:
            return None
        begin, size = span
        if not self._read_from <= begin <= begin + size <= self._read_from + len(self._read):
            self._read_until(begin + size)
        content = self._read[begin - self._read_from : begin - self._read_from + size]
        if len(content) != size:
            raise OSError(errno.EIO, "it is shorter than when it was written", os.path.join(self._directory, _CONTENTS))
        return content

    def opened(self, number: int) -> BinaryIO:
        """Open the content that is kept of a file. Raises `OSError`."""
        content = self.content(number)
        return open(open_file(self.path(number), os.O_RDONLY), "rb") if content is None else BytesIO(content)

    def restore(self, number: int, target: int) -> None:
        """Replace the beginning of an open file by what is kept. Raises `OSError`."""
        content = self.content(number)
        if content is None:
            pour(self.path(number), target)
        else:
            run_files.write_all(target, content)

    def _read_until(self, end: int) -> None:
        """Read the part of the common file before an offset: undo goes from its end to its beginning."""
        fd = os.open(os.path.join(self._directory, _CONTENTS), os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._read_from = max(0, end - _CHUNK)
            self._read = os.pread(fd, end - self._read_from, self._read_from)
        finally:
            os.close(fd)

    def _loaded(self) -> dict[int, tuple[int, int]]:
        if self._spans is None:
            self._spans = {}
            # A broken file: the machine failed before the first step, so nothing has been overwritten.
            with suppress(FileNotFoundError, ValueError):
                rows = run_files.read_json(os.path.join(self._directory, _SPANS))
                self._spans = {number: (offset, size) for number, offset, size in rows}
        return self._spans


def pour(source: str, target: int) -> None:
    """Replace the beginning of an open file by the content of another. Raises `OSError`."""
    reading = open_file(source, os.O_RDONLY)
    try:
        copy_content(reading, target)
    finally:
        os.close(reading)


def finish(path: str, wanted: Stamp, extended: Attributes | None) -> None:
    """Give a file its owner, mode, extended attributes and time; those of a directory but its mode and time."""
    values = {name: bytes.fromhex(value) for name, value in (extended or {}).items()}
    if not wanted.is_directory:
        dress(path, wanted, values)
        return
    found = os.lstat(path)
    if (found.st_uid, found.st_gid) != (wanted.uid, wanted.gid):
        os.chown(path, wanted.uid, wanted.gid, follow_symlinks=False)
    set_attributes(path, values)


def may_exchange(at: Place, path: str, change: FileChange) -> bool:
    """True if a large file may be replaced instead of written: nobody has it open, and no access list is lost.

    `path` leads to the same file, for calls that know no directory descriptors.
    """
    old, new = change.before, change.after
    if old is None or new is None or old.size <= LARGE_BYTES or (old.uid, old.gid) != (new.uid, new.gid):
        return False
    if attributes(path).keys() - (change.new_attributes or {}).keys():
        return False
    with suppress(OSError):
        fd = os.open(at[1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=at[0])
        try:
            # The kernel gives a write lease only on a file that is open nowhere else.
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            return True
        finally:
            os.close(fd)
    return False
