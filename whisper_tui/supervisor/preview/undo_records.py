"""The records of a transition for undo: the contents of the files that it overwrites, and the stamps of what it made.

A small file costs far more to create and to remove than to write, so the contents of small ones lie one after the other
in a single file of the store. Others are files of their own there, under the number of their change.
"""

import errno
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from whisper_tui.supervisor.keeper import run_files
from whisper_tui.supervisor.preview.file_trees import (
    Stamp,
    copy_content,
    copy_tree,
    open_file,
    stamp,
    stamps_inside,
)
from whisper_tui.supervisor.preview.overlay_diff import DELETE, FileChange, Inside

RESULTS = "results.json"
"""The stamps of everything that was made real, by the number of the change: what `undo` must find."""
KEPT = "kept"
"""The directory of the store with what was there before, by the number of the change."""
SMALL_BYTES = 1 << 20
"""Larger files are kept as files of their own, which share blocks with the original where the file system can."""

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

    def add_content(self, number: int, path: str, size: int) -> None:
        """Keep the content of a regular file of this size. Raises `OSError`. It is in the store once `save` returns."""
        if size > SMALL_BYTES:
            self.add_tree(number, path)
            return
        reading = open_file(path, os.O_RDONLY)
        try:
            content = os.read(reading, size + 1)
        finally:
            os.close(reading)
        if len(content) != size:
            # Nothing is overwritten of which only a part would be kept.
            raise OSError(errno.ESTALE, "it changes just now", path)
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

    def restore(self, number: int, target: str) -> None:
        """Replace the content of a file, which stays the same file, by what is kept. Raises `OSError`."""
        content = self.content(number)
        if content is None:
            pour(self.path(number), target)
            return
        writing = open_file(target, os.O_WRONLY)
        try:
            run_files.write_all(writing, content)
            os.ftruncate(writing, len(content))
        finally:
            os.close(writing)

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


def pour(source: str, target: str) -> None:
    """Replace the content of a file, which stays the same file, by that of another. Raises `OSError`."""
    reading = open_file(source, os.O_RDONLY)
    try:
        writing = open_file(target, os.O_WRONLY)
        try:
            copy_content(reading, writing)
            # Not emptied before: ext4 would write it to the disk at once.
            os.ftruncate(writing, os.fstat(reading).st_size)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


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
    found = stamp(change.path) if change.op != DELETE else None
    return Result(found, stamps_inside(change.path) if change.new_inside is not None else None)


def save_results(store: str, results: Mapping[int, Result]) -> None:
    """Write what an undo must find."""
    rows = [(number, result.found, result.inside) for number, result in results.items()]
    run_files.write_whole(os.path.join(store, RESULTS), json.dumps(rows, separators=(",", ":")).encode())


def load_results(store: str) -> dict[int, Result]:
    """Return what an undo must find. Raises `OSError`."""
    found = {}
    for number, present, inside in run_files.read_json(os.path.join(store, RESULTS)):
        stamps = {name: Stamp(*each) for name, each in inside.items()} if inside is not None else None
        found[number] = Result(Stamp(*present) if present is not None else None, stamps)
    return found
