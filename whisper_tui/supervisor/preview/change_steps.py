"""Make one change of a plan real, or take it back: each step knows by inodes if it is still due, after any crash.

Real files are reached through parents that were opened without following symbolic links. The kernel renames and
exchanges within a file system; between two of them a copy takes the place, and the original stays in the store.
"""

import fcntl
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self

from whisper_tui.supervisor.keeper.syscalls import RENAME_EXCHANGE, RENAME_NOREPLACE, open_directory, rename
from whisper_tui.supervisor.preview.file_trees import (
    Links,
    Stamp,
    TreeWalker,
    attributes,
    change_mode,
    copy_node,
    copy_tree,
    dress,
    remove_marks,
    remove_tree,
    set_attributes,
    stamp,
)
from whisper_tui.supervisor.preview.overlay_diff import (
    ADD,
    ATTRIBUTES,
    DELETE,
    LINK,
    REPLACE,
    WRITE,
    Attributes,
    DirectoryState,
    FileChange,
)
from whisper_tui.supervisor.preview.undo_records import KEPT, KeptContents, pour

LARGE_BYTES = 1 << 20
"""Larger files are exchanged instead of written in place, if nobody has them open."""

_MOST_OPEN = 128


class Conflict(Exception):
    """Somebody else changed these paths: nothing was done."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = list(dict.fromkeys(paths))
        named = ", ".join(self.paths[:3]) + (", …" if len(self.paths) > 3 else "")
        super().__init__(f"changed by someone else meanwhile: {named}. Nothing was done; run the preview again.")


class RealPaths:
    """Opened parents of real files, the last used of them; a symbolic link on the way is an error."""

    def __init__(self, store: str, directories: Iterable[DirectoryState]) -> None:
        self._inodes = {each.path: each.inode for each in directories}
        self._open: dict[str, int] = {}
        self._elsewhere: dict[str, bool] = {}
        self._mount = self._mount_of(store)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()

    def at(self, path: str) -> str:
        """Return a path to a file through its opened parent: valid for the next hundred parents. Raises `OSError`."""
        directory, _, name = path.rpartition("/")
        return f"/proc/self/fd/{self._parent(directory or '/')}/{name}"

    def stamp(self, path: str) -> Stamp | None:
        """Return the stamp of a file. None: it is not there. Raises `OSError` if its parent is out of reach."""
        directory, _, name = path.rpartition("/")
        return stamp(name, self._parent(directory or "/"))

    def is_elsewhere(self, path: str) -> bool:
        """True if the kernel does not rename files between the store and this place."""
        directory = path.rpartition("/")[0] or "/"
        if directory not in self._elsewhere:
            self._elsewhere[directory] = self._mount_of(f"/proc/self/fd/{self._parent(directory)}/.") != self._mount
        return self._elsewhere[directory]

    def _parent(self, directory: str) -> int:
        fd = self._open.pop(directory, None)
        if fd is None:
            if len(self._open) >= _MOST_OPEN:
                os.close(self._open.pop(next(iter(self._open))))
            fd = open_directory(directory)
            if self._inodes.get(directory) not in (None, os.fstat(fd).st_ino):
                os.close(fd)
                raise Conflict([directory])
        self._open[directory] = fd
        return fd

    @staticmethod
    def _mount_of(directory: str) -> tuple[int, bytes]:
        """Identify the file system and the mount: a rename between two mounts fails even on the same file system."""
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
                mount = next(line for line in file if line.startswith(b"mnt_id:"))
            return os.fstat(fd).st_dev, mount
        finally:
            os.close(fd)


def is_alike(found: Stamp, wanted: Stamp) -> bool:
    """True if one may be a copy of the other: the same kind, size and time."""
    same_size = found.is_directory or found.size == wanted.size
    return stat.S_IFMT(found.mode) == stat.S_IFMT(wanted.mode) and same_size and found.mtime == wanted.mtime


class ChangeSteps:
    """The steps of one transition. The same step may be done again after a crash, with the same result."""

    def __init__(self, store: str, real: RealPaths) -> None:
        self._store = store
        self._real = real
        self._links: dict[int, str] = {}
        """Real paths of files that had several names in an upper directory, by their inode there."""
        self._contents = KeptContents(store)
        self._device = os.stat(store).st_dev
        self._mark = f".whisper-tui-{os.stat(store).st_ino:x}"

    # Before anything changes

    def keep_all(self, changes: Iterable[FileChange]) -> None:
        """Copy whatever of these changes cannot be kept by a rename. Raises `OSError`."""
        for number, change in enumerate(changes):
            self._keep(number, change)
        self._contents.save()

    def _keep(self, number: int, change: FileChange) -> None:
        """Copy files to write in place, and files on another file system."""
        if change.before is None or change.op not in (WRITE, REPLACE, DELETE):
            return
        elsewhere = self._real.is_elsewhere(change.path)
        if change.op != WRITE and not elsewhere:
            return
        path = self._real.at(change.path)
        if not elsewhere and _may_exchange(path, change):
            return
        if change.op == WRITE:
            self._contents.add_content(number, path, change.before.size)
        else:
            self._contents.add_tree(number, path)

    # Making real

    def make_real(self, number: int, change: FileChange) -> None:
        """Make one change real, unless it is. Raises `OSError`, or `Conflict` if there is something else."""
        path = self._real.at(change.path)
        if change.op == ADD:
            self._add(number, change, path)
        elif change.op == DELETE:
            self._delete(number, change, path)
        elif change.op == REPLACE:
            self._replace(number, change, path)
        elif change.op == WRITE:
            self._write(number, change, path)
        elif change.op == ATTRIBUTES and change.after is not None:
            finish(path, change.after, change.new_attributes)
        elif change.op == LINK:
            self._link(change, path)
        self._note_links(change)

    def _add(self, number: int, change: FileChange, path: str) -> None:
        found = self._real.stamp(change.path)
        if found is not None:
            _require_ours(found, change)
        elif self._real.is_elsewhere(change.path):
            part = self._part(number, change.path)
            remove_tree(part)
            self._prepare(change, joined=False)
            self._copy_in(change, part)
            rename(part, path, RENAME_NOREPLACE)
        else:
            self._prepare(change)
            _move(change.content, path)
        if change.after is not None:
            _restore_mode(path, change.after)

    def _delete(self, number: int, change: FileChange, path: str) -> None:
        found, kept = self._real.stamp(change.path), self._contents.path(number)
        if found is None or change.before is None or found.inode != change.before.inode:
            if stamp(kept) is None:
                raise Conflict([change.path])
        elif self._real.is_elsewhere(change.path):
            rename(path, self._part(number, change.path), RENAME_NOREPLACE)
        else:
            self._contents.make_directory()
            _move(path, kept)
        self._clear(number, change)

    def _replace(self, number: int, change: FileChange, path: str) -> None:
        found = self._real.stamp(change.path)
        if found is None:
            raise Conflict([change.path])
        if change.before is None or found.inode != change.before.inode:
            _require_ours(found, change)
        elif self._real.is_elsewhere(change.path):
            part = self._part(number, change.path)
            remove_tree(part)
            self._prepare(change, joined=False)
            self._copy_in(change, part)
            _exchange(path, part)
        else:
            self._prepare(change)
            _exchange(path, change.content)
        if change.after is not None:
            _restore_mode(path, change.after)
        self._clear(number, change)

    def _write(self, number: int, change: FileChange, path: str) -> None:
        found = self._real.stamp(change.path)
        if found is None or change.before is None or change.after is None:
            raise Conflict([change.path])
        if not self._contents.has(number):
            if found.inode == change.before.inode:
                remove_marks(change.content)
                rename(path, change.content, RENAME_EXCHANGE)
        elif found.inode != change.before.inode:
            raise Conflict([change.path])
        elif not is_alike(found, change.after) or is_alike(change.before, change.after):
            pour(change.content, path)
        finish(path, change.after, change.new_attributes)

    def _link(self, change: FileChange, path: str) -> None:
        target = self._real.at(change.target)
        found, existing = stamp(path), stamp(target)
        if found is None:
            os.link(target, path, follow_symlinks=False)
        elif existing is None or found.inode != existing.inode:
            raise Conflict([change.path])

    def _prepare(self, change: FileChange, *, joined: bool = True) -> None:
        """Remove the records of overlayfs from new files, and restore the recorded modes and times of directories.

        `joined`: names of real files in a new directory become hard links to these; else files of their own.
        """
        if change.new_inside is None or change.after is None:
            remove_marks(change.content)
            return
        targets = dict(change.relinks)
        # A step that failed may have left a name of a real file here.
        remove_tree(self._spare())
        with TreeWalker(change.content, 0o700) as walker:
            pending = [walker.entries()]
            while pending:
                if not pending[-1]:
                    pending.pop()
                    if pending:
                        inside = "/".join(walker.names)
                        _restore_directory(walker.path(walker.up()), change.new_inside[inside])
                    continue
                name, is_directory = pending[-1].pop()
                if is_directory:
                    walker.down(name)
                    pending.append(walker.entries())
                    continue
                remove_marks(walker.path(name))
                target = targets.get("/".join((*walker.names, name)))
                if target is not None:
                    self._set_joined(walker.path(name), self._real.at(target), joined=joined)
        _restore_directory(change.content, change.after)

    def _spare(self) -> str:
        return os.path.join(self._store, KEPT, "spare")

    def _set_joined(self, path: str, target: str, *, joined: bool) -> None:
        """Make a file in the store a further name of a real one, or a file of its own."""
        found, existing = stamp(path), stamp(target)
        if existing is None or (found is not None and found.inode == existing.inode) == joined:
            return
        part = self._spare()
        os.makedirs(os.path.dirname(part), exist_ok=True)
        if joined:
            os.link(target, part, follow_symlinks=False)
        else:
            copy_node(target, part)
        os.rename(part, path)

    def _copy_in(self, change: FileChange, part: str) -> None:
        """Copy new files to another file system. Names of files that are there already become hard links."""
        inside = change.new_inside or {}
        own = [(change.content, change.after), *((os.path.join(change.content, name), inside[name]) for name in inside)]
        relinks = {os.path.join(change.content, name): target for name, target in change.relinks}
        links: Links = {}
        for path, found in own:
            if found is None or found.links < 2 or found.is_directory:
                continue
            existing = relinks.get(path) or self._links.get(found.inode)
            if existing and len(links) < _MOST_OPEN // 2:
                links[self._device, found.inode] = self._real.at(existing)
        copy_tree(change.content, part, links)

    def _note_links(self, change: FileChange) -> None:
        if change.after is None or change.op not in (ADD, REPLACE):
            return
        if change.after.links > 1 and not change.after.is_directory:
            self._links.setdefault(change.after.inode, change.path)
        for name, found in (change.new_inside or {}).items():
            if found.links > 1 and not found.is_directory:
                self._links.setdefault(found.inode, os.path.join(change.path, name))

    # Taking back

    def take_back(self, number: int, change: FileChange, result: Stamp | None) -> None:
        """Take one change back, unless it is. `result`: its file after it was made real; None: it never was.

        Raises `OSError`.
        """
        if result is None and (change.op != DELETE or not self._contents.has(number)):
            self._tidy(number, change)
            return
        path = self._real.at(change.path)
        found = self._real.stamp(change.path)
        is_result = found is not None and result is not None and found.inode == result.inode
        if change.op == DELETE:
            self._restore(number, change, path, is_free=found is None)
        elif change.op == ATTRIBUTES and change.before is not None:
            finish(path, change.before, change.old_attributes)
        elif change.op == LINK and is_result:
            os.unlink(path)
        elif change.op == WRITE:
            self._unwrite(number, change, path, is_result)
        elif change.op == REPLACE:
            self._unreplace(number, change, path, is_result)
        elif change.op == ADD:
            self._unadd(number, change, path, is_result)
        self._clear(number, change)

    def _tidy(self, number: int, change: FileChange) -> None:
        """Remove what a step has prepared that was never done, as far as its directory can still be reached."""
        with suppress(OSError, Conflict):
            self._clear(number, change)
        if change.relinks and stamp(change.content) is not None:
            with suppress(OSError, Conflict):
                self._prepare(change, joined=False)

    def _unadd(self, number: int, change: FileChange, path: str, is_result: bool) -> None:
        if self._real.is_elsewhere(change.path):
            if is_result:
                rename(path, self._part(number, change.path), RENAME_NOREPLACE)
            return
        if is_result:
            _move(path, change.content)
        if change.new_inside is not None:
            self._prepare(change, joined=False)

    def _unreplace(self, number: int, change: FileChange, path: str, is_result: bool) -> None:
        kept = self._contents.path(number)
        if self._real.is_elsewhere(change.path):
            if is_result:
                part = self._part(number, change.path)
                remove_tree(part)
                copy_tree(kept, part)
                _exchange(path, part)
        else:
            if is_result:
                _exchange(path, change.content)
            if change.new_inside is not None:
                self._prepare(change, joined=False)
        if change.before is not None:
            _restore_mode(path, change.before)

    def _unwrite(self, number: int, change: FileChange, path: str, is_result: bool) -> None:
        if change.before is not None and self._contents.has(number):
            self._contents.restore(number, path)
            finish(path, change.before, change.old_attributes)
        elif is_result:
            rename(path, change.content, RENAME_EXCHANGE)

    def _restore(self, number: int, change: FileChange, path: str, *, is_free: bool) -> None:
        kept = self._contents.path(number)
        if not is_free or stamp(kept) is None:
            return
        if self._real.is_elsewhere(change.path):
            part = self._part(number, change.path)
            remove_tree(part)
            copy_tree(kept, part)
            rename(part, path, RENAME_NOREPLACE)
        else:
            _move(kept, path)
        if change.before is not None:
            _restore_mode(path, change.before)

    # Names beside real files, for the time of one rename

    def _part(self, number: int, path: str) -> str:
        return self._real.at(os.path.join(os.path.dirname(path), f"{self._mark}-{number}"))

    def _clear(self, number: int, change: FileChange) -> None:
        """Remove what a rename has put aside, on another file system."""
        if change.op in (ADD, DELETE, REPLACE) and self._real.is_elsewhere(change.path):
            remove_tree(self._part(number, change.path))


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


def _require_ours(found: Stamp, change: FileChange) -> None:
    if change.after is None or (found.inode != change.after.inode and not is_alike(found, change.after)):
        raise Conflict([change.path])


def _move(source: str, target: str) -> None:
    """Rename to a free name. A directory that its owner may not write is opened for the move."""
    try:
        rename(source, target, RENAME_NOREPLACE)
    except PermissionError:
        # Its own entry `..` changes.
        if not _open_directories(source):
            raise
        rename(source, target, RENAME_NOREPLACE)


def _exchange(one: str, other: str) -> None:
    """Exchange two files or directories, also directories that their owner may not write."""
    try:
        rename(one, other, RENAME_EXCHANGE)
    except PermissionError:
        if not _open_directories(one, other):
            raise
        rename(one, other, RENAME_EXCHANGE)


def _open_directories(*paths: str) -> bool:
    """Let the owner write in those of these that are directories. False: that was so before."""
    changed = False
    for path in paths:
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
            change_mode(path, stat.S_IMODE(mode) | 0o700)
            changed = True
    return changed


def _restore_directory(path: str, wanted: Stamp) -> None:
    """Give a directory in the store what it had when the changes were read, without the records of overlayfs."""
    remove_marks(path)
    _restore_mode(path, wanted)
    found = os.lstat(path)
    if found.st_mtime_ns != wanted.mtime:
        os.utime(path, ns=(found.st_atime_ns, wanted.mtime), follow_symlinks=False)


def _restore_mode(path: str, wanted: Stamp) -> None:
    """Give a directory that was opened for a move its mode again, also after a crash."""
    if not wanted.is_directory:
        return
    found = stamp(path)
    if found is not None and found.mode != wanted.mode:
        change_mode(path, stat.S_IMODE(wanted.mode))


def _may_exchange(path: str, change: FileChange) -> bool:
    """True if a large file may be replaced instead of written: nobody has it open, and no access list is lost."""
    old, new = change.before, change.after
    if old is None or new is None or old.size <= LARGE_BYTES or (old.uid, old.gid) != (new.uid, new.gid):
        return False
    if attributes(path).keys() - (change.new_attributes or {}).keys():
        return False
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            # The kernel gives a write lease only on a file that is open nowhere else.
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            return True
        finally:
            os.close(fd)
    return False
