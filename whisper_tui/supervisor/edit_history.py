"""The contents of edited files, as they were before and after each edit: for diffs, and to undo an edit."""

import hashlib
import json
import logging
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from whisper_tui.changes.partial_undo import is_at
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
from whisper_tui.model.preview import UndoDirection
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.system import run_files
from whisper_tui.system.host_files import read_regular

MOST_KEPT_BYTES = 1 << 30
"""Bytes of all contents together; beyond it the oldest edits lose theirs."""

_DIRECTORIES = "directories.json"
"""The directories that were not there before."""
_MADE = "made.json"
"""The digests of what an edit has made, as its undo has found it: a redo makes that again."""
_RESULTS = "results.json"
"""The digests of further contents that a program may have made of files that are not in UTF-8."""

NOT_KEPT = "its content was not kept"
_BY_HAND = "Compare it with the diff of the edit, and change it by hand"

_log = logging.getLogger(__name__)


class _CallContents(NamedTuple):
    """The contents of one call on the disk."""

    written_at: int
    bytes: int
    path: str


class EditStep(NamedTuple):
    """An undo, or a redo, of what an edit did to one file."""

    file: EditedFile
    expected: tuple[str | None, ...]
    """The digests of the contents that it may have. None among them: there is no file."""
    becomes: Content
    """The content that it gets. No data: the file goes."""
    mode: int
    """Its permission bits if it is not there."""
    mtime: int | None = None
    """Its time of modification. None: it is not known."""

    @property
    def beside(self) -> str:
        """The name of the new file until it takes its place."""
        return f"{self.file.real}.whisper-tui-new"


class _MadeFile(NamedTuple):
    """A file as an edit has left it."""

    digest: str | None
    """None: there was none."""
    mode: int | None
    mtime: int | None


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
            self._write_directories(record)
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

    def _write_directories(self, record: CallRecord) -> None:
        """Note the directories that are not there: programs make those of a new file."""
        missing = dict[str, None]()
        for file in record.resolved.edits if record.resolved is not None else ():
            above = os.path.dirname(file.real)
            while not os.path.lexists(above):
                missing[above] = None
                above = os.path.dirname(above)
        if missing:
            path = os.path.join(self._directory, record.id, _DIRECTORIES)
            run_files.write_whole(path, json.dumps(list(missing)).encode())

    def made_directories(self, call_id: str) -> list[str]:
        """Return the directories that were not there before an edit, the deepest first."""
        try:
            found: list[str] = run_files.read_json(os.path.join(self._directory, call_id, _DIRECTORIES))
        except (OSError, ValueError):
            return []
        return sorted(found, key=len, reverse=True)

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
        # All files are looked at before one is written: an edit is taken back whole, or not at all.
        # What is noted of an edit that is not undone was noted by an undo, or a redo, that was killed.
        steps, resumed = self.steps(record, "undo"), bool(self._made(record.id))
        _check(steps, "is not as the edit left it", resumed=resumed)
        if not resumed:
            try:
                self._keep_made(record.id, steps)
            except OSError as error:
                _log.warning("edit %s cannot be redone: %s", record.id, error.strerror)
        _put_back(steps)
        for directory in self.made_directories(record.id):
            # Somebody else may have put something there.
            with suppress(OSError):
                os.rmdir(directory)

    def redo(self, record: CallRecord) -> None:
        """Make an edit again that was undone. Raises `Refused`, and then changes nothing."""
        if record.reverted_by is None:
            raise Refused(f"edit {record.id} was not redone: it is not undone", hint=f"whisper-tui undo {record.id}")
        steps = self.steps(record, "redo")
        _check(steps, "is not as the undo left it", resumed=True)
        _put_back(steps)

    def redone(self, record: CallRecord) -> None:
        """Forget the undo of an edit, once it is recorded that the edit was made again."""
        with suppress(OSError):
            os.unlink(self._made_path(record.id))

    def steps(self, record: CallRecord, direction: UndoDirection) -> list[EditStep]:
        """Return what an undo, or a redo, of an edit does to each of its files."""
        files = record.resolved.edits if record.resolved is not None else ()
        made = self._made(record.id) if direction == "redo" else {}
        return [self._step(record.id, file, direction, made.get(file.real)) for file in files]

    def _step(self, call_id: str, file: EditedFile, direction: UndoDirection, made: _MadeFile | None) -> EditStep:
        usual = file.mode if file.mode is not None else 0o644
        if file.unread or (direction == "undo" and not (results := self._results(call_id, file))):
            return EditStep(file, (), Content(None, file.problem or file.unread), usual)
        if direction == "undo":
            return EditStep(file, results, self._content(call_id, file.before), usual)
        if made is None:
            return EditStep(file, (file.before,), Content(None, NOT_KEPT), usual)
        return EditStep(file, (file.before,), self._content(call_id, made.digest), made.mode or usual, made.mtime)

    def _keep_made(self, call_id: str, steps: Sequence[EditStep]) -> None:
        """Keep what the edit has made, which is not always what it was expected to."""
        made, contents = dict[str, _MadeFile](), list[bytes]()
        for step in steps:
            data, _ = read_regular(step.file.real, LARGEST_EDITED)
            if data is None:
                made[step.file.real] = _MadeFile(None, None, None)
                continue
            found = os.lstat(step.file.real)
            made[step.file.real] = _MadeFile(
                content_digest(Content(data)), stat.S_IMODE(found.st_mode), found.st_mtime_ns
            )
            contents.append(data)
        self._write(call_id, contents)
        run_files.write_whole(self._made_path(call_id), json.dumps(made).encode())

    def _made_path(self, call_id: str) -> str:
        return os.path.join(self._directory, call_id, _MADE)

    def _made(self, call_id: str) -> dict[str, _MadeFile]:
        """Return what an edit has made of its files, by real path, as its undo has found them."""
        try:
            found = run_files.read_json(self._made_path(call_id))
        except (OSError, ValueError):
            return {}
        return {real: _MadeFile(*each) for real, each in found.items()}


def state_of(file: EditedFile, results: Sequence[str | None] | None = None) -> FileState:
    """Return how a file is now, after an edit of it was left to its agent.

    `results`: digests of what the edit may have left in it. None: only what was shown.
    """
    # The agent's tool reports nothing, so the disk alone can tell whether it made the edit.
    if results is None:
        results = () if file.problem or file.unread else (file.after,)
    if not results or file.unread:
        return ""
    digest = digest_on_disk(file.real)
    if digest in results:
        return "as_approved"
    return "as_before" if digest == file.before else "differs"


def files_that_stay(record: CallRecord, paths: Sequence[str]) -> Sequence[str] | None:
    """Return the files that stay of an edit that is not undone, since not all of it is wanted. None: all is."""
    files = record.resolved.edits if record.resolved is not None else ()
    wanted = [file.real for file in files if any(is_at(file.real, path) for path in paths)]
    return None if len(wanted) == len(files) else wanted


def changed_since(
    steps: Sequence[EditStep], digest: Callable[[str], str | None], *, resumed: bool = False
) -> list[EditedFile]:
    """Return the files that are not as the steps expect them. Raises `Refused` if a content was not kept.

    `digest`: of the file at a real path, as `digest_on_disk` returns it. `resumed`: some steps may be done already.
    """
    found = list[EditedFile]()
    for step in steps:
        if step.becomes.unknown:
            raise Refused(f"{step.file.path} cannot be undone: {step.becomes.unknown}", hint=_BY_HAND)
        now = digest(step.file.real)
        if now not in step.expected and not (resumed and now == content_digest(step.becomes)):
            found.append(step.file)
    return found


def _check(steps: Sequence[EditStep], otherwise: str, *, resumed: bool) -> None:
    if changed := changed_since(steps, digest_on_disk, resumed=resumed):
        raise Refused(f"{changed[0].path} {otherwise}", hint=_BY_HAND)


def content_digest(content: Content) -> str | None:
    """Return the digest of a content. None: there is none."""
    return None if content.data is None else hashlib.sha256(content.data).hexdigest()


def digest_on_disk(real: str) -> str | None:
    """Return the digest of a file. None: there is none. Empty: it is something else."""
    if not os.path.lexists(real):
        return None
    data, _ = read_regular(real, LARGEST_EDITED)
    return "" if data is None or os.path.realpath(real) != real else hashlib.sha256(data).hexdigest()


def _put_back(steps: Sequence[EditStep]) -> None:
    """Give files the contents that steps have for them. Raises `Refused`; then none has changed."""
    made = list[str]()
    at = ""
    try:
        # The disk may be full: everything is written before the first file takes its place.
        for each in steps:
            at = each.file.path
            if each.becomes.data is not None:
                made += _make_directories(os.path.dirname(each.file.real))
                made.append(each.beside)
                _write_beside(each, each.becomes.data)
        for each in steps:
            at = each.file.path
            if each.becomes.data is not None:
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


def _write_beside(step: EditStep, content: bytes) -> None:
    try:
        # Somebody may have given it another one since.
        mode = stat.S_IMODE(os.lstat(step.file.real).st_mode)
    except FileNotFoundError:
        mode = step.mode
    # An undo that was killed may have left one.
    with suppress(FileNotFoundError):
        os.unlink(step.beside)
    descriptor = os.open(step.beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as new:
        new.write(content)
        new.flush()
        os.fchmod(descriptor, mode)
        if step.mtime is not None:
            os.utime(descriptor, ns=(step.mtime, step.mtime))


def current_versions(
    spec: CommandSpec, roots: Sequence[str], home: str, own: Sequence[str]
) -> tuple[FileVersions, ...]:
    """Return the contents of the files of an edit that was not made, as they are now and as it would leave them."""
    if not isinstance(spec.command, FileEdits):
        return ()
    changes = spec.command.changes
    return versions(changes, examine(changes, roots, home, own))
