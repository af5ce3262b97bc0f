"""A forecast of the undo of several calls: each finds the files as the undo of the later ones leaves them.

Nothing is written. The undo itself looks at the files of each call again.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from whisper_tui.changes import change_records
from whisper_tui.changes.change_records import load_results
from whisper_tui.changes.file_trees import Stamp, stamp
from whisper_tui.changes.meanings import digest_of, load_digests
from whisper_tui.changes.partial_undo import separate
from whisper_tui.effects.changes import diff_of, printable
from whisper_tui.effects.edit_results import Content, shown_versions
from whisper_tui.model.call import LARGEST_EDITED, EditAction, EditedFile, FileEdits
from whisper_tui.model.ending import HandedOver
from whisper_tui.model.errors import Refused
from whisper_tui.model.preview import CallsUndone, ChangeAction, ChangedKind, LeftOut, UndoDirection, UndoneFile
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.supervisor.edit_history import (
    EditHistory,
    changed_since,
    content_digest,
    digest_on_disk,
    files_that_stay,
)
from whisper_tui.supervisor.runs.kept_changes import KeptChanges
from whisper_tui.supervisor.runs.preview_changes import ChangedPath, PreviewStore
from whisper_tui.system.host_files import read_regular

MOST_FILES = 1000
"""Files that a forecast lists; what is beyond is counted."""
MOST_COMPARED, COMPARING_S = 32 << 20, 2.0
"""Bytes of files that are compared, and seconds after which no more lines are counted."""
CHANGED_SINCE = "changed since"


class _FileState(NamedTuple):
    """A file as it is, or as a step leaves it."""

    kind: ChangedKind | None
    """None: there is none."""
    mode: int | None = None
    """None: it is not known."""
    size: int | None = None
    mtime: int | None = None
    """None: only the content tells if it is the same."""
    read: Callable[[], Content] = lambda: Content(None)
    digests: tuple[str | None, ...] = ()
    """Digests of the meanings that the content may have, if they are known without reading it."""


_ABSENT = _FileState(None)
_DIRECTORY = _FileState("directory")


class _Step(NamedTuple):
    """An undo, or a redo, of what one call did to one path."""

    path: str
    op: str
    expected: _FileState
    becomes: _FileState


class UndoForecast:
    """The effects of an undo, or a redo, of several calls, as far as they can be told before."""

    def __init__(self, kept: KeptChanges, edits: EditHistory, direction: UndoDirection, paths: Sequence[str]) -> None:
        self._kept = kept
        self._edits = edits
        self._direction: UndoDirection = direction
        self._paths = paths
        self._files: dict[str, _FileState] = {}
        """The files as the steps so far leave them."""
        self._calls: dict[str, list[str]] = {}
        """The calls whose steps change a file."""
        self._left_out = list[LeftOut]()

    def of(self, records: Iterable[CallRecord], *, with_versions: bool) -> CallsUndone:
        """Return it."""
        done = list[str]()
        for record in records:
            try:
                is_edit = isinstance(record.spec.command, FileEdits)
                if self._add_edit(record) if is_edit else self._add_kept(record):
                    done.append(record.id)
            except Refused as refused:
                self._left_out.append(LeftOut(call_id=record.id, why=refused.message))
        files = [each for path in sorted(self._files) if (each := self._changed(path)) is not None]
        late_at, left = time.monotonic() + COMPARING_S, MOST_COMPARED
        shown = list[UndoneFile]()
        for file in files[:MOST_FILES]:
            left -= sum(each or 0 for each in (file.now.size, file.becomes.size))
            shown.append(self._shown(file, late_at if left > 0 else 0.0, with_versions=with_versions))
        return CallsUndone(calls=tuple(done), files=tuple(shown), total=len(files), left_out=tuple(self._left_out))

    def _add_edit(self, record: CallRecord) -> bool:
        if (record.reverted_by is None) != (self._direction == "undo"):
            return False
        ending = record.state.ending if isinstance(record.state, Ended) else None
        if not isinstance(ending, HandedOver):
            raise Refused(f"edit {record.id} was not made")
        if self._paths and (outside := files_that_stay(record, self._paths)) is not None:
            if outside:
                why = "an edit is undone whole, and not all of its files are named"
                self._leave_out(record, outside, why)
            return False
        steps = self._edits.steps(record, self._direction)
        if changed := changed_since(steps, self._digest):
            self._leave_out(record, [file.real for file in changed])
            return False
        for step in steps:
            state, data = _ABSENT, step.becomes.data
            if data is not None:
                now = self._files.get(step.file.real) or _on_disk(step.file.real)
                mode = now.mode if now.mode is not None else step.mode
                state = _FileState("file", mode, len(data), step.mtime, _reader_of(step.becomes))
            self._move(record, step.file.real, state)
        for directory in self._edits.made_directories(record.id) if self._direction == "undo" else ():
            if self._is_emptied(directory):
                self._move(record, directory, _ABSENT)
        return bool(steps)

    def _digest(self, real: str) -> str | None:
        """Return the digest of a file as the steps so far leave it, as `digest_on_disk` does."""
        if (now := self._files.get(real)) is None:
            return digest_on_disk(real)
        if now.kind is None:
            return None
        return (content_digest(now.read()) or "") if now.kind == "file" else ""

    def _is_emptied(self, directory: str) -> bool:
        """True if a directory has nothing in it any more once the steps so far are made."""
        with suppress(OSError):
            found = os.scandir(directory) if os.path.lexists(directory) else ()
            inside = {entry.path for entry in found}
            inside |= {path for path in self._files if path.rpartition("/")[0] == directory}
            return all(self._files.get(path, _DIRECTORY).kind is None for path in inside)
        return False

    def _add_kept(self, record: CallRecord) -> bool:
        store = self._kept.store_of(record)
        if self._direction == "redo":
            if not store.is_redoable:
                return False
        elif store.plan.state != change_records.APPLIED:
            return False
        steps = self._steps(store)
        changed = self._changed_since(store, steps)
        if self._direction == "redo":
            if changed:
                self._leave_out(record, changed)
                return False
            chosen = set(range(len(store.plan.changes)))
        else:
            separated = separate(store.plan, load_results(store.directory), changed, self._paths)
            left = [path for number in separated.left for path in store.plan.changes[number].paths]
            if left:
                self._leave_out(record, left)
            chosen = set(separated.chosen)
        taken = [step for number, step in steps if number in chosen]
        for step in taken:
            self._move(record, step.path, step.becomes)
        return bool(taken)

    def _changed_since(self, store: PreviewStore, steps: Sequence[tuple[int, _Step]]) -> list[str]:
        """Return the paths that are not as a call expects them, once the steps so far are made."""
        by_path = {step.path: step for _, step in steps}
        directories = {each.path for each in store.plan.directories}
        found = []
        for path in store.conflicts():
            if path in self._files:
                step = by_path.get(path)
                expected = step.expected if step else (_DIRECTORY if path in directories else _ABSENT)
                if _is_same(self._files[path], expected, path, step.op if step else ""):
                    continue
            found.append(path)
        found += [
            path
            for path, step in by_path.items()
            if (
                not _is_same(self._files[path], step.expected, path, step.op)
                if path in self._files
                else step.expected.kind is None and os.path.lexists(path)
            )
        ]
        parents = {path.rpartition("/")[0] for path in by_path}
        found += [
            path
            for path in directories & parents
            if path not in by_path and path in self._files and self._files[path].kind != "directory"
        ]
        tops = [f"{step.path}/" for step in by_path.values() if step.expected.kind == "directory"]
        found += [
            path
            for path, state in self._files.items()
            if tops and path not in by_path and state.kind is not None and path.startswith(tuple(tops))
        ]
        return list(dict.fromkeys(found))

    def _steps(self, store: PreviewStore) -> list[tuple[int, _Step]]:
        """Return what an undo, or a redo, does to each path of a call, with the numbers of the changes."""
        undo, plan = self._direction == "undo", store.plan
        known = load_digests(store.directory, "new" if undo else "old")
        found: dict[str, tuple[int, _Step]] = {}
        for row in store.rows:
            if (row.change in plan.undone) == undo and plan.state == change_records.APPLIED:
                continue
            change = plan.changes[row.change]
            expected, becomes = (row.after, row.before) if undo else (row.before, row.after)
            step = _Step(
                row.path,
                change.op,
                _known(expected, known.get((row.change, row.below))),
                _with_content(becomes, self._reader(store, row, becomes)),
            )
            if row.path in found:
                # A file went, and a directory came in its place.
                _, other = found[row.path]
                step = step._replace(
                    expected=step.expected if other.expected.kind is None else other.expected,
                    becomes=step.becomes if other.becomes.kind is None else other.becomes,
                )
            found[row.path] = (row.change, step)
        return list(found.values())

    def _reader(self, store: PreviewStore, row: ChangedPath, becomes: Stamp | None) -> Callable[[], Content]:
        """Return what reads the content that a path gets."""
        undo, change = self._direction == "undo", store.plan.changes[row.change]
        if change.op in (change_records.MOVE, change_records.ATTRIBUTES, change_records.LINK):
            # Only its name or its attributes differ.
            path = change.new_path if undo else (change.target or change.path)
            now = self._files.get(path) or _on_disk(path)
            return now.read
        return lambda: store.content(row, becomes, is_new=not undo)

    def _move(self, record: CallRecord, path: str, becomes: _FileState) -> None:
        self._files[path] = becomes
        self._calls.setdefault(path, []).append(record.id)

    def _leave_out(self, record: CallRecord, paths: Iterable[str], why: str = CHANGED_SINCE) -> None:
        named = tuple(dict.fromkeys(printable(path) for path in paths))[:MOST_FILES]
        self._left_out.append(LeftOut(call_id=record.id, paths=named, why=why))

    def _changed(self, path: str) -> "_Net | None":
        """Return what the whole plan does to a file. None: nothing."""
        now, becomes = _on_disk(path), self._files[path]
        action: ChangeAction = "changes"
        if now.kind is None and becomes.kind is None:
            return None
        if now.kind is None or becomes.kind is None:
            action = "creates" if now.kind is None else "deletes"
        elif _is_same(now, becomes, path, change_records.WRITE, modes=False):
            if now.mode == becomes.mode or becomes.mode is None:
                return None
            action = "attributes"
        return _Net(path, action, now, becomes)

    def _shown(self, net: "_Net", late_at: float, *, with_versions: bool) -> UndoneFile:
        kind = net.becomes.kind or net.now.kind or "file"
        added = removed = versions = None
        if kind in ("file", "link") and net.action != "attributes" and time.monotonic() < late_at:
            old, new = net.now.read(), net.becomes.read()
            if not (old.unknown or new.unknown):
                diff, _ = diff_of(old.data or b"", new.data or b"", lambda: time.monotonic() > late_at)
                if diff is not None:
                    added, removed = diff.added, diff.removed
            if with_versions:
                edit: EditAction = "changes"
                if net.action in ("creates", "deletes"):
                    edit = "creates" if net.action == "creates" else "deletes"
                path = printable(net.path)
                file = EditedFile(action=edit, path=path, real=path, size=net.now.size, mode=net.now.mode)
                versions = shown_versions(file, old, new)
        return UndoneFile(
            path=printable(net.path),
            action=net.action,
            kind=kind,
            calls=tuple(self._calls[net.path]),
            added=added,
            removed=removed,
            versions=versions,
        )


class _Net(NamedTuple):
    """The effect of a whole plan on one file."""

    path: str
    action: ChangeAction
    now: _FileState
    becomes: _FileState


def _reader_of(content: Content) -> Callable[[], Content]:
    return lambda: content


def _with_content(found: Stamp | None, read: Callable[[], Content]) -> _FileState:
    return _known(found, None)._replace(read=read)


def _known(found: Stamp | None, digest: str | None) -> _FileState:
    if found is None:
        return _ABSENT
    mode, digests = stat.S_IMODE(found.mode), () if digest is None else (digest,)
    return _FileState(_kind_of(found), mode, found.size, found.mtime, digests=digests)


def _kind_of(found: Stamp) -> ChangedKind:
    if found.is_directory:
        return "directory"
    if stat.S_ISLNK(found.mode):
        return "link"
    return "file" if found.is_file else "special"


def _on_disk(path: str) -> _FileState:
    """Return a file as it is now."""
    found = stamp(path)
    if found is None:
        return _ABSENT
    return _with_content(found, lambda: _content_on_disk(path, found))


def _content_on_disk(path: str, found: Stamp) -> Content:
    if stat.S_ISLNK(found.mode):
        with suppress(OSError):
            return Content(f"{Path(path).readlink()}\n".encode(errors="surrogateescape"))
    if not found.is_file:
        return Content(None, "it is not a regular file")
    return Content(*read_regular(path, LARGEST_EDITED))


def _is_same(found: _FileState, expected: _FileState, path: str, op: str, *, modes: bool = True) -> bool:
    """True if a file is, in meaning, as it is expected to be."""
    if found.kind != expected.kind:
        return False
    if modes and None not in (found.mode, expected.mode) and found.mode != expected.mode and found.kind != "link":
        return False
    if found.kind not in ("file", "link"):
        return True
    if found.mtime is not None and (found.size, found.mtime) == (expected.size, expected.mtime):
        return True
    content = found.read()
    if content.unknown or content.data is None:
        return False
    known = expected.digests
    if not known:
        wanted = expected.read()
        return wanted.data is not None and wanted.data == content.data
    data = content.data[:-1] if found.kind == "link" else content.data
    return digest_of(data, path, op) in known
