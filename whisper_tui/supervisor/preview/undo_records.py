"""The records of a transition for undo: the contents of the files that it overwrites, and the stamps of what it made.

A small file costs far more to create and to remove than to write, so the contents of small ones lie one after the other
in a single file of the store. Others are files of their own there, under the number of their change.
"""

import errno
import fcntl
import json
import os
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import run_files
from whisper_tui.supervisor.keeper.syscalls import Place
from whisper_tui.supervisor.preview.change_plan import DELETE, RENEWED, Attributes, FileChange, Inside, load_renewed
from whisper_tui.supervisor.preview.file_trees import (
    Stamp,
    attributes,
    copy_content,
    copy_tree,
    dress,
    open_file,
    set_attributes,
    stamp,
    stamps_inside,
)

RESULTS = "results.json"
"""The stamps of everything that was made real, by the number of the change: what `undo` must find."""
KEPT = "kept"
"""The directory of the store with what was there before, by the number of the change."""
SMALL_BYTES = 1 << 20
"""Larger files are kept as files of their own, which share blocks with the original where the file system can."""
LARGE_BYTES = 1 << 20
"""Larger files are exchanged instead of written in place, if nobody has them open."""

_ROW = struct.Struct("<IIIIqqqQI")
"""The number of a change, and the fields of a stamp."""
_CONTENTS, _SPANS = "contents", "contents.json"
_CHUNK = 4 << 20


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

    def path(self, number: int) -> str:
        """Return the place for what a change replaces, if it is a file or a tree of its own."""
        return os.path.join(self._directory, str(number))

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


def save_results(store: str, results: Mapping[int, Result]) -> None:
    """Write what an undo must find."""
    alone = [_ROW.pack(number, *each.found) for number, each in results.items() if each.found and each.inside is None]
    others = [(number, *each) for number, each in results.items() if not each.found or each.inside is not None]
    # Numbers in JSON take most of the time of writing and reading them.
    found = {"alone": b2a_base64(b"".join(alone), newline=False).decode(), "others": others}
    run_files.write_whole(os.path.join(store, RESULTS), json.dumps(found, separators=(",", ":")).encode())


def load_results(store: str) -> dict[int, Result]:
    """Return what an undo must find. Raises `OSError`."""
    rows = run_files.read_json(os.path.join(store, RESULTS))
    found = {row[0]: Result(Stamp._make(row[1:])) for row in _ROW.iter_unpack(a2b_base64(rows["alone"]))}
    for number, present, inside in rows["others"]:
        stamps = {name: Stamp(*each) for name, each in inside.items()} if inside is not None else None
        found[number] = Result(Stamp(*present) if present is not None else None, stamps)
    return found


def save_renewed(store: str, changed: Mapping[int, dict[str, Any]]) -> None:
    """Write the fields of changes that are others since an undo: a fraction of the plan."""
    renewed = load_renewed(store)
    for number, fields in changed.items():
        if fields:
            renewed[number] = renewed.get(number, {}) | fields
    data = json.dumps(list(renewed.items()), separators=(",", ":")).encode()
    run_files.write_whole(os.path.join(store, RENEWED), data)
