"""The records of changes: the plan of a preview, what it overwrites, and what was made.

The plan has every single change of the real files, with the stamps that must be found there, and names every path that
a transition may touch. `plan_files` writes it, and all that is noted about its changes.

A small file costs far more to create and to remove than to write, so the old contents of small ones lie one after the
other in a single file of the store. Others are files of their own there, under the number of their change.
"""

import errno
import fcntl
import os
from contextlib import suppress
from typing import NamedTuple

from whisper_tui.supervisor.keeper import run_files
from whisper_tui.supervisor.keeper.syscalls import Place
from whisper_tui.supervisor.preview.file_trees import (
    attributes,
    copy_content,
    copy_tree,
    dress,
    open_file,
    set_attributes,
    stamps_inside,
)
from whisper_tui.supervisor.preview.stamps import Stamp, stamp

ADD, DELETE, REPLACE, WRITE, ATTRIBUTES, LINK = "add", "delete", "replace", "write", "attributes", "link"
MOVE = "move"
PREVIEWED, APPLYING, APPLIED, UNDOING, UNDONE = "previewed", "applying", "applied", "undoing", "undone"

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

Attributes = dict[str, str]
"""Extended attributes with their values in hexadecimal digits."""
Inside = dict[str, Stamp]
"""The stamps of everything below a directory, by relative path."""


class FileChange(NamedTuple):
    """One change of the real files. A new, removed or replaced directory is one change with all that is in it.

    `op`: `write` changes the content of the same file, `replace` exchanges the file, `link` adds a name of a real file,
    `move` gives a real file another name: `path` is the old one, and nothing else about the file changes.
    `before` and `after` are None where there is no file. `content` is the path of the new file or directory, below the
    store.
    """

    op: str
    path: str
    before: Stamp | None = None
    after: Stamp | None = None
    content: str = ""
    old_attributes: Attributes | None = None
    new_attributes: Attributes | None = None
    target: str = ""
    """The existing name of the file, for `link`."""
    targets: Inside | None = None
    """The real files that get further names, by path."""
    old_inside: Inside | None = None
    new_inside: Inside | None = None
    relinks: tuple[tuple[str, str], ...] = ()
    """Names in a new directory that are further names of real files, with those."""
    links: int = 0
    """The names that the file had before, if there was more than one: the others keep their content.

    Of a directory: those of a file in it that has names outside of it.
    """
    acl: bool = False
    """True if the file loses an access control list."""
    unmarked: bool = False
    """True if a new file is known to bear no records of overlayfs."""
    unmarked_inside: bool = False
    """True if that is known of all in a new directory that are no directories themselves."""
    moved_to: str = ""
    """The new name of the file, for `move`."""

    @property
    def new_path(self) -> str:
        """Where its file is afterwards."""
        return self.moved_to or self.path

    @property
    def paths(self) -> tuple[str, ...]:
        """The names that it adds, changes or removes."""
        return (self.path, self.moved_to) if self.moved_to else (self.path,)


class DirectoryState(NamedTuple):
    """A directory in which entries change: its identity, and its mode and modification time before and after."""

    path: str
    inode: int
    old_mode: int
    old_mtime: int
    new_mode: int
    new_mtime: int


class Plan(NamedTuple):
    """All changes of a preview, parents first and links last, and the state of the transition.

    `meanwhile`: paths that somebody else changed while the command ran. `undone`: the indices of changes that were
    taken back alone.
    """

    changes: tuple[FileChange, ...]
    directories: tuple[DirectoryState, ...]
    meanwhile: tuple[str, ...] = ()
    state: str = PREVIEWED
    undone: frozenset[int] = frozenset()


def text_of(extended: dict[str, bytes]) -> Attributes:
    """Return extended attributes in a form for JSON."""
    return {name: value.hex() for name, value in extended.items()}


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
        """Keep the content of a regular file of this size. Raises `OSError`. It is in the store once `save` returns.

        The size is at most `SMALL_BYTES`.
        """
        directory, name = at
        reading = open_file(name, os.O_RDONLY, directory)
        try:
            content = os.read(reading, size + 1)
        finally:
            os.close(reading)
        if len(content) != size:
            # Nothing is overwritten of which only a part would be kept.
            raise OSError(errno.ESTALE, "it changes just now", name)
        self._loaded()[number] = (self._end, len(content))
        self._end += len(content)
        self._pending.append(content)
        self._pending_bytes += len(content)
        if self._pending_bytes > _CHUNK:
            self._write()

    def save(self) -> None:
        """Write what was added."""
        if self._spans:
            self._write()
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

    def _write(self) -> None:
        self.make_directory()
        path = os.path.join(self._directory, _CONTENTS)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            run_files.write_all(fd, b"".join(self._pending))
        finally:
            os.close(fd)
        self._pending.clear()
        self._pending_bytes = 0

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


class Result(NamedTuple):
    """A changed file after the change was made real, and everything in it if it is a new directory."""

    found: Stamp | None
    inside: Inside | None = None

    def shared(self) -> set[int]:
        """Return the inodes of its files that have several names."""
        found = [self.found, *(self.inside or {}).values()]
        return {each.inode for each in found if each is not None and has_names(each)}


def has_names(found: Stamp) -> bool:
    """True if a file has several names."""
    return found.links > 1 and not found.is_directory


def result_of(change: FileChange) -> Result:
    """Return the file of a change that is real."""
    found = stamp(change.new_path) if change.op != DELETE else None
    return Result(found, stamps_inside(change.path) if change.new_inside is not None else None)
