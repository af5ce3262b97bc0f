"""The contents of edited files, as they were before and after each edit: for diffs, and to undo an edit."""

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from whisper_tui.effects.edit_results import (
    Content,
    edited_paths,
    examine,
    other_results,
    shown_versions,
    versions,
)
from whisper_tui.model.call import LARGEST_EDITED, CommandSpec, EditedFile, FileEdits, FileState, FileVersions
from whisper_tui.model.ending import HandedOver
from whisper_tui.model.errors import Refused
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.system import run_files
from whisper_tui.system.host_files import read_regular

MOST_KEPT_BYTES = 1 << 30
"""Bytes of all contents together; beyond it the oldest edits lose theirs."""

_RESULTS = "results.json"
"""The digests of further contents that a program may have made of files that are not in UTF-8."""

NOT_KEPT = "its content was not kept"

_log = logging.getLogger(__name__)


class _CallContents(NamedTuple):
    """The contents of one call on the disk."""

    written_at: int
    bytes: int
    path: str


class EditHistory:
    """Keeps the contents of edited files in a directory of the user's alone: one directory a call, named by digest."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._bytes: int | None = None
        """The size of all contents. None: not measured yet."""

    def keep(self, record: CallRecord) -> None:
        """Keep both contents of each file of an edit that is about to be made.

        A disk that takes no more keeps no edit from being made: it can then not be undone here.
        """
        command = record.spec.command
        if not isinstance(command, FileEdits):
            return
        paths = edited_paths(command.changes)
        contents = [facts.content.data for facts in paths.before.values()]
        contents += [content.data for content in paths.now.values()]
        try:
            self._write(record.id, [data for data in contents if data is not None])
            self._write_results(record.id, other_results(command.changes, paths))
        except OSError as error:
            _log.warning("the contents of the files of edit %s were not kept: %s", record.id, error.strerror)

    def _write(self, call_id: str, contents: Sequence[bytes]) -> None:
        directory = os.path.join(self._directory, call_id)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        written = 0
        for data in contents:
            path = os.path.join(directory, hashlib.sha256(data).hexdigest())
            if os.path.exists(path):
                continue
            descriptor = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(f"{path}.new", path)
            written += len(data)
        if self._bytes is None:
            self._bytes = sum(each.bytes for each in self._all())
        else:
            self._bytes += written
        if self._bytes > MOST_KEPT_BYTES:
            self._make_room(call_id)

    def _write_results(self, call_id: str, results: dict[str, list[str]]) -> None:
        if any(results.values()):
            run_files.write_whole(os.path.join(self._directory, call_id, _RESULTS), json.dumps(results).encode())

    def _results(self, call_id: str, file: EditedFile) -> tuple[str | None, ...]:
        """Return the digests of all contents that the edit may have left in a file."""
        likely = () if file.problem or file.unread else (file.after,)
        try:
            others = run_files.read_json(os.path.join(self._directory, call_id, _RESULTS))
        except (OSError, ValueError):
            return likely
        return (*likely, *others.get(file.real, ()))

    def _all(self) -> Iterator[_CallContents]:
        with suppress(FileNotFoundError), os.scandir(self._directory) as entries:
            for entry in entries:
                with os.scandir(entry.path) as files:
                    sizes = [file.stat(follow_symlinks=False).st_size for file in files]
                yield _CallContents(entry.stat(follow_symlinks=False).st_mtime_ns, sum(sizes), entry.path)

    def _make_room(self, newest: str) -> None:
        kept = sorted(each for each in self._all() if os.path.basename(each.path) != newest)
        left = sum(each.bytes for each in self._all())
        for each in kept:
            # Room for a tenth is made at once: looking through all of them takes time.
            if left <= MOST_KEPT_BYTES * 9 // 10:
                break
            for name in os.listdir(each.path):
                os.unlink(os.path.join(each.path, name))
            os.rmdir(each.path)
            left -= each.bytes
        self._bytes = left

    def _content(self, call_id: str, digest: str | None) -> Content:
        if digest is None:
            return Content(None)
        data, _ = read_regular(os.path.join(self._directory, call_id, digest), LARGEST_EDITED)
        return Content(None, NOT_KEPT) if data is None else Content(data)

    def versions(self, record: CallRecord) -> tuple[FileVersions, ...]:
        """Return the contents that the files of an ended edit had before and after it."""
        files = record.resolved.edits if record.resolved is not None else ()
        return tuple(self._versions_of(record.id, file, files) for file in files)

    def _versions_of(self, call_id: str, file: EditedFile, files: Sequence[EditedFile]) -> FileVersions:
        if file.problem or file.unread:
            return FileVersions(file=file, not_shown=file.problem or file.unread)
        source = next((each for each in files if each.real == file.moved_from), file)
        found = shown_versions(file, self._content(call_id, source.before), self._content(call_id, file.after))
        return found.model_copy(update={"now": state_of(file, self._results(call_id, file))})

    def revert(self, record: CallRecord) -> None:
        """Put back the contents that the files of an edit had before it. Raises `Refused`, and then changes nothing."""
        if not isinstance(record.spec.command, FileEdits):
            raise Refused(f"call {record.id} is not an edit of files", hint="Only edits can be undone")
        if not isinstance(record.state, Ended) or not isinstance(record.state.ending, HandedOver):
            raise Refused(f"edit {record.id} was not made", hint=f"whisper-tui show {record.id} prints its outcome")
        if record.reverted_by is not None:
            raise Refused(f"edit {record.id} was undone before", hint="Nothing is left to be undone")
        files = record.resolved.edits if record.resolved is not None else ()
        # All files are looked at before one is written: an edit is taken back whole, or not at all.
        _put_back([_Restored(file, self._before(record.id, file)) for file in files])

    def _before(self, call_id: str, file: EditedFile) -> bytes | None:
        """Return the content to put back. None: there was no file. Raises `Refused`."""
        hint = "Compare it with the diff of the edit, and change it by hand"
        results = self._results(call_id, file)
        if not results or file.unread:
            raise Refused(f"{file.path} cannot be undone: {file.problem or file.unread}", hint=hint)
        if _digest_on_disk(file.real) not in results:
            raise Refused(f"{file.path} is not as the edit left it", hint=hint)
        content = self._content(call_id, file.before)
        if content.unknown:
            raise Refused(f"{file.path} cannot be undone: {content.unknown}", hint=hint)
        return content.data


def state_of(file: EditedFile, results: Sequence[str | None] | None = None) -> FileState:
    """Return how a file is now, after an edit of it was left to its agent.

    `results`: digests of what the edit may have left in it. None: only what was shown.
    """
    # The agent's tool reports nothing, so the disk alone can tell whether it made the edit.
    if results is None:
        results = () if file.problem or file.unread else (file.after,)
    if not results or file.unread:
        return ""
    digest = _digest_on_disk(file.real)
    if digest in results:
        return "as_approved"
    return "as_before" if digest == file.before else "differs"


def _digest_on_disk(real: str) -> str | None:
    """Return the digest of a file. None: there is none. Empty: it is something else."""
    if not os.path.lexists(real):
        return None
    data, _ = read_regular(real, LARGEST_EDITED)
    return "" if data is None or os.path.realpath(real) != real else hashlib.sha256(data).hexdigest()


class _Restored(NamedTuple):
    """A file that gets its old content back."""

    file: EditedFile
    content: bytes | None
    """None: there was no file."""

    @property
    def beside(self) -> str:
        """The name of the new file until it takes its place."""
        return f"{self.file.real}.whisper-tui-new"


def _put_back(restored: Sequence[_Restored]) -> None:
    """Give files their contents and modes as they were. Raises `Refused`; then none has changed."""
    made = list[str]()
    at = ""
    try:
        # The disk may be full: everything is written before the first file takes its place.
        for each in restored:
            at = each.file.path
            if each.content is not None:
                made += _make_directories(os.path.dirname(each.file.real))
                made.append(each.beside)
                _write_beside(each, each.content)
        for each in restored:
            at = each.file.path
            if each.content is not None:
                os.replace(each.beside, each.file.real)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(each.file.real)
    except OSError as error:
        for path in reversed(made):
            with suppress(OSError):
                (os.rmdir if os.path.isdir(path) else os.unlink)(path)
        why = f"the edit was not undone: {at} could not be written: {error.strerror}"
        raise Refused(why, hint="Mend that, for example make room on the disk, then undo the edit again") from error


def _make_directories(path: str) -> list[str]:
    """Make a directory and those above it. Returns the ones that are new, the topmost first."""
    new = list[str]()
    while not os.path.isdir(path):
        new.insert(0, path)
        path = os.path.dirname(path)
    for each in new:
        os.mkdir(each)
    return new


def _write_beside(restored: _Restored, content: bytes) -> None:
    mode = restored.file.mode if restored.file.mode is not None else 0o644
    # An undo that was killed may have left one.
    with suppress(FileNotFoundError):
        os.unlink(restored.beside)
    descriptor = os.open(restored.beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as new:
        new.write(content)
        os.fchmod(descriptor, mode)


def current_versions(
    spec: CommandSpec, roots: Sequence[str], home: str, own: Sequence[str]
) -> tuple[FileVersions, ...]:
    """Return the contents of the files of an edit that was not made, as they are now and as it would leave them."""
    if not isinstance(spec.command, FileEdits):
        return ()
    changes = spec.command.changes
    return versions(changes, examine(changes, roots, home, own))
