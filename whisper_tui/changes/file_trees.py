"""Files and trees exactly as they are: stamps, copies with hard links and extended attributes, removal.

Linux only. Trees are walked with one open directory at a time. No symbolic link inside them is followed, not even one
that replaces a directory meanwhile, and no path inside them grows too long for the kernel.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from operator import attrgetter
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

OVERLAY_MARKS = ("user.overlay.", "trusted.overlay.")
"""Prefixes of the extended attributes in which overlayfs keeps its own records."""
MOST_ENTRIES = 200_000
"""Files and directories that a preview may add, change or remove."""

T = TypeVar("T")
_FICLONE = 0x40049409
_LEAST, _CHUNK = 1 << 12, 1 << 20
_SMALL = 1 << 16
"""Bytes up to which a file is read and written faster than it shares blocks."""


class PreviewTooLarge(Exception):
    """The command changed more files than a preview lists. The text names the number and the directory."""


FACTS = attrgetter("st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_nlink")
"""The fields of a status that a stamp has, in its order."""


class Stamp(NamedTuple):
    """The facts of a file, one of which changes whenever anything about it does."""

    mode: int
    uid: int
    gid: int
    size: int
    mtime: int
    ctime: int
    inode: int
    links: int

    @property
    def is_directory(self) -> bool:
        """True if it is a directory, and no symbolic link to one."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """True if it is a regular file."""
        return stat.S_ISREG(self.mode)


stamp_from: Callable[[tuple[int, ...]], Stamp] = partial(tuple.__new__, Stamp)
"""Makes a stamp of its fields, without the check of their number: there is one for each look at a file."""


def stamp(path: str, directory: int | None = None) -> Stamp | None:
    """Return the stamp of a file, not of what a symbolic link points to. None: it is not there, or out of reach.

    `directory`: the opened directory in which the path begins.
    """
    try:
        return stamp_from(FACTS(os.stat(path, dir_fd=directory, follow_symlinks=False)))
    except OSError:
        return None


def differs(found: Stamp | None, wanted: Stamp | None, *, copied: bool = False) -> bool:
    """True if these are different files or versions of one. `copied`: a copy with the same time counts as the same."""
    if found == wanted:
        return False
    if found is None or wanted is None:
        return True
    if found.is_directory and wanted.is_directory:
        # Its size and times change with its entries.
        return found[:3] != wanted[:3] or (not copied and found.inode != wanted.inode)
    compared = 5 if copied else 7
    return found[:compared] != wanted[:compared]


class TreeWalker:
    """A position in a directory tree, moved by one name at a time. Holds one descriptor, however deep it is.

    `needed`: permissions that its owner needs on each directory. Where they are missing, they are granted while the
    walker is inside, and `up` restores the mode.
    """

    def __init__(self, top: str, needed: int = 0) -> None:
        self._needed = needed
        self._above: list[tuple[str, tuple[int, int], int | None]] = []
        self.inside = ""
        """The path from the top to the current directory, with a slash at its end unless that is the top."""
        self._top = top
        self._top_mode = self._grant(top)
        self.fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory, and restore the mode of the top if it is still there."""
        os.close(self.fd)
        if self._top_mode is not None:
            with suppress(FileNotFoundError):
                change_mode(self._top, self._top_mode)

    def path(self, name: str) -> str:
        """Return a path to an entry of the current directory, for calls that know no directory descriptors."""
        return f"/proc/self/fd/{self.fd}/{name}"

    def entries(self) -> list[tuple[str, bool]]:
        """Return the names in the current directory; True beside a name: it is a directory."""
        with os.scandir(self.fd) as found:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]

    def down(self, name: str) -> None:
        """Enter a directory. Raises `OSError` if the name is anything else, such as a symbolic link."""
        mode = self._grant(self.path(name))
        here = os.fstat(self.fd)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)
        os.close(self.fd)
        self.fd = below
        self._above.append((name, (here.st_dev, here.st_ino), mode))
        self.inside += f"{name}/"

    def up(self) -> str:
        """Return to the directory above. Returns the name of the directory that was left."""
        above = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        os.close(self.fd)
        self.fd = above
        name, expected, mode = self._above.pop()
        self.inside = self.inside[: -len(name) - 1]
        found = os.fstat(above)
        if (found.st_dev, found.st_ino) != expected:
            # Somebody moved the directory that was left: whatever is above it now is none of this tree.
            raise OSError(errno.ESTALE, f"{name} was moved to another directory meanwhile")
        if mode is not None:
            with suppress(FileNotFoundError):
                change_mode(self.path(name), mode)
        return name

    def _grant(self, path: str) -> int | None:
        """Grant the needed permissions. Returns the mode to restore. None: nothing was changed."""
        mode = stat.S_IMODE(os.lstat(path).st_mode) if self._needed else 0
        if mode & self._needed == self._needed:
            return None
        try:
            change_mode(path, mode | self._needed)
        except PermissionError:
            # Another user owns it. The group or all others may still have what is needed.
            return None
        return mode


def stamps_inside(top: str, *, forced: bool = False) -> dict[str, Stamp]:
    """Return the stamps of everything below a directory, by relative path.

    A directory that may not be read counts as empty, unless `forced`: for files of our own. Raises `PreviewTooLarge`,
    or `OSError` if the top is out of reach.
    """
    found: dict[str, Stamp] = {}
    with TreeWalker(top, 0o500 if forced else 0) as walker:
        pending = [sorted(walker.entries(), reverse=True)]
        while pending:
            below = _look(walker, pending[-1], found)
            if len(found) > MOST_ENTRIES:
                raise PreviewTooLarge(f"more than {MOST_ENTRIES:,} files and directories are below {top}")
            if not below:
                pending.pop()
                if pending:
                    walker.up()
                continue
            with suppress(PermissionError):
                walker.down(below)
                pending.append(sorted(walker.entries(), reverse=True))
    return found


def _look(walker: TreeWalker, entries: list[tuple[str, bool]], found: dict[str, Stamp]) -> str:
    """Note the stamps of entries of the current directory, up to the next directory. Returns its name, if any."""
    while entries and len(found) <= MOST_ENTRIES:
        name, is_directory = entries.pop()
        try:
            found[walker.inside + name] = stamp_from(FACTS(os.stat(name, dir_fd=walker.fd, follow_symlinks=False)))
        except (FileNotFoundError, PermissionError):
            continue
        if is_directory:
            return name
    return ""


def attributes(path: str, *, marks: bool = False, forced: bool = False) -> dict[str, bytes]:
    """Return the extended attributes of a file. `marks`: also those of overlayfs.

    `forced`: also of a file that its owner may not read, by granting that for a moment: not for files that must not
    change at all.
    """
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError:
        return {}
    found: dict[str, bytes] = {}
    for name in sorted(names):
        if marks or not name.startswith(OVERLAY_MARKS):
            with suppress(OSError):
                found[name] = _attribute(path, name, forced=forced)
    return found


def overlay_mark(path: str, name: str) -> bytes | None:
    """Return a record of overlayfs, such as `opaque` or `origin`. None: the file does not bear it."""
    for prefix in OVERLAY_MARKS:
        with suppress(OSError):
            return _attribute(path, prefix + name, forced=True)
    return None


def _attribute(path: str, name: str, *, forced: bool) -> bytes:
    try:
        return os.getxattr(path, name, follow_symlinks=False)
    except PermissionError:
        if not forced:
            raise
    return with_permission(path, lambda: os.getxattr(path, name, follow_symlinks=False))


def set_attributes(path: str, wanted: dict[str, bytes], *, marks: bool = False) -> None:
    """Give a file these extended attributes and no others, as far as this user may."""
    present = attributes(path, marks=marks, forced=True)
    for name in sorted(present.keys() | wanted.keys()):
        if present.get(name) != wanted.get(name):
            try:
                with_permission(path, lambda name=name: _set_attribute(path, name, wanted.get(name)))  # type: ignore[misc]
            except OSError as error:
                # Refused: `security.*`, and access control lists that name users of another namespace.
                if error.errno not in (errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOTSUP, errno.ENODATA):
                    raise


def _set_attribute(path: str, name: str, value: bytes | None) -> None:
    if value is None:
        os.removexattr(path, name, follow_symlinks=False)
    else:
        os.setxattr(path, name, value, follow_symlinks=False)


def remove_marks(path: str) -> None:
    """Remove the records of overlayfs from a file."""
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except FileNotFoundError:
        return
    for name in names:
        if name.startswith(OVERLAY_MARKS):
            with_permission(path, lambda name=name: _set_attribute(path, name, None))  # type: ignore[misc]


def with_permission(path: str, work: Callable[[], T]) -> T:
    """Do something that needs to read and write a file, also if its owner may not. Its mode stays the same."""
    try:
        return work()
    except PermissionError:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode) or mode & 0o600 == 0o600:
            raise
        change_mode(path, stat.S_IMODE(mode) | 0o600)
        try:
            return work()
        finally:
            change_mode(path, stat.S_IMODE(mode))


def change_mode(path: str, mode: int, directory: int | None = None) -> None:
    """Set the permissions of a file. Raises `OSError` for a symbolic link instead of following it."""
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        # chmod(2) always follows links, and fchmod(2) takes no such descriptor; the link in /proc leads to the file.
        os.chmod(f"/proc/self/fd/{fd}", mode)
    finally:
        os.close(fd)


def open_file(path: str, flags: int, directory: int | None = None) -> int:
    """Open a file, also if its owner has no permission to. Its mode stays the same. Follows no symbolic link."""
    # A fifo in its place must not keep us waiting.
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(path, flags, dir_fd=directory)
    except PermissionError:
        mode = stat.S_IMODE(os.stat(path, dir_fd=directory, follow_symlinks=False).st_mode)
        change_mode(path, mode | 0o600, directory)
        try:
            return os.open(path, flags, dir_fd=directory)
        finally:
            change_mode(path, mode, directory)


def dress(path: str, wanted: Stamp, extended: dict[str, bytes], *, marks: bool = False) -> None:
    """Give a file the owner, mode, extended attributes and modification time of another, as far as this user may."""
    present = os.lstat(path)
    mode = present.st_mode
    if (present.st_uid, present.st_gid) != (wanted.uid, wanted.gid):
        _change_owner(path, wanted.uid, wanted.gid)
        # That may have taken the setuid bit from it.
        mode = os.lstat(path).st_mode
    if not stat.S_ISLNK(wanted.mode) and stat.S_IMODE(mode) != stat.S_IMODE(wanted.mode):
        change_mode(path, stat.S_IMODE(wanted.mode))
    set_attributes(path, extended, marks=marks)
    os.utime(path, ns=(present.st_atime_ns, wanted.mtime), follow_symlinks=False)


def _change_owner(path: str, uid: int, gid: int) -> None:
    """Change owner and group; only the group where the owner may not be changed."""
    try:
        os.chown(path, uid, gid, follow_symlinks=False)
    except OSError:
        with suppress(OSError):
            os.chown(path, -1, gid, follow_symlinks=False)


def copy_content(source: int, target: int) -> None:
    """Copy an open file to the beginning of another one, with shared blocks where the file system can."""
    rest = os.fstat(source).st_size
    if rest > _SMALL:
        with suppress(OSError):
            fcntl.ioctl(target, _FICLONE, source)
            return
        try:
            while rest > 0 and (copied := os.copy_file_range(source, target, rest)):
                rest -= copied
            return
        except OSError:
            # Older kernels do not copy between file systems.
            os.lseek(source, 0, os.SEEK_SET)
            os.lseek(target, 0, os.SEEK_SET)
    # A large buffer is mapped and unmapped for every read, which costs more than to read a small file.
    chunk = min(max(rest, _LEAST), _CHUNK) + 1
    while piece := os.read(source, chunk):
        rest -= len(piece)
        view = memoryview(piece)
        while view:
            view = view[os.write(target, view) :]
        if rest <= 0 and len(piece) < chunk:
            return


Links = dict[tuple[int, int], str]
"""Copies of files with several names, by device and inode of the original: further names become hard links."""


def copy_node(source: str, target: str, links: Links | None = None, lasting: str = "", *, marks: bool = False) -> None:
    """Copy anything but a directory to a new name. Raises `OSError`.

    `links` joins the names of one file; `lasting` is a path of the target that stays valid for them.
    """
    status = os.lstat(source)
    key = (status.st_dev, status.st_ino) if links is not None and status.st_nlink > 1 else None
    if links is not None and key is not None and _linked(links.get(key), target):
        return
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFLNK:
        os.symlink(os.readlink(source), target)
    elif kind == stat.S_IFREG:
        _copy_file(source, target)
    else:
        # No access for others before the owner is right: fifos, sockets and devices.
        os.mknod(target, kind | 0o600, status.st_rdev)
    dress(target, stamp_from(FACTS(status)), attributes(source, marks=marks, forced=True), marks=marks)
    if links is not None and key is not None:
        links.setdefault(key, lasting or target)


def _linked(existing: str | None, target: str) -> bool:
    """True if the target is now one more name of the existing file."""
    if existing is None:
        return False
    try:
        os.link(existing, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def _copy_file(source: str, target: str) -> None:
    reading = open_file(source, os.O_RDONLY)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            copy_content(reading, writing)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def copy_tree(source: str, target: str, links: Links | None = None, *, marks: bool = False) -> None:
    """Copy a file or a whole tree to a new name. Raises `OSError`.

    `links` joins hard links over several calls. `marks`: with the records of overlayfs.
    """
    links = {} if links is None else links

    def copy(entry: TreeEntry) -> None:
        copy_node(entry.source, entry.target, links, os.path.join(target, entry.name), marks=marks)

    if stat.S_ISDIR(os.lstat(source).st_mode):
        make_alike(source, target, copy, forced=True, marks=marks)
    else:
        copy_node(source, target, links, marks=marks)


class TreeEntry(NamedTuple):
    """An entry of a tree that is made like another one. Its two paths are valid until the next entry."""

    source: str
    target: str
    name: str
    """Its path below the top of either tree."""


def make_alike(
    source: str,
    target: str,
    make: Callable[[TreeEntry], object],
    *,
    is_wanted: Callable[[TreeEntry], bool] = lambda _: True,
    forced: bool = False,
    marks: bool = False,
) -> None:
    """Make a tree with the directories of another one, in which `make` makes everything else. Raises `OSError`.

    `is_wanted`: false for what is left out. `forced`: also directories that their owner may not read, by granting that
    for a moment; without it nothing about the source changes. `marks`: with the records of overlayfs.
    """
    os.mkdir(target, 0o700)
    with TreeWalker(source, 0o500 if forced else 0) as old, TreeWalker(target) as new:
        pending = [old.entries()]
        while pending:
            if not pending[-1]:
                pending.pop()
                if pending:
                    name = old.up()
                    new.up()
                    _dress_as(old.path(name), new.path(name), forced=forced, marks=marks)
                continue
            name, is_directory = pending[-1].pop()
            entry = TreeEntry(old.path(name), new.path(name), old.inside + name)
            if not is_wanted(entry):
                continue
            if is_directory:
                os.mkdir(name, 0o700, dir_fd=new.fd)
                old.down(name)
                new.down(name)
                pending.append(old.entries())
            else:
                make(entry)
    _dress_as(source, target, forced=forced, marks=marks)


def _dress_as(source: str, target: str, *, forced: bool, marks: bool) -> None:
    dress(target, stamp_from(FACTS(os.lstat(source))), attributes(source, marks=marks, forced=forced), marks=marks)


def remove_tree(path: str) -> None:
    """Remove a file or a whole tree, if it exists. Directories without permissions, as overlayfs leaves them, too."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(path)
        return
    with TreeWalker(path, 0o700) as walker:
        pending = [walker.entries()]
        while pending:
            if not pending[-1]:
                pending.pop()
                if pending:
                    os.rmdir(walker.up(), dir_fd=walker.fd)
                continue
            name, is_directory = pending[-1].pop()
            if is_directory:
                walker.down(name)
                pending.append(walker.entries())
            else:
                os.unlink(name, dir_fd=walker.fd)
    os.rmdir(path)
