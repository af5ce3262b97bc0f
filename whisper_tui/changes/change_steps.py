"""Make one change of a plan real, or undo it: each step knows by inodes if it is still due, after any crash.

Real files are reached through parents that were opened without following symbolic links. The kernel renames and
exchanges within a file system; between two of them a copy takes the place, and the original stays in the store.
"""

import os
import stat
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from whisper_tui.changes.change_records import (
    ADD,
    ATTRIBUTES,
    DELETE,
    LINK,
    MOVE,
    REPLACE,
    WRITE,
    FileChange,
    Inside,
    Result,
)
from whisper_tui.changes.file_trees import (
    Links,
    Stamp,
    TreeWalker,
    change_mode,
    copy_node,
    copy_tree,
    differs,
    open_file,
    remove_marks,
    remove_tree,
    stamp,
    stamps_inside,
)
from whisper_tui.changes.real_paths import (
    KEPT,
    MOST_OPEN,
    SMALL_BYTES,
    Conflict,
    KeptContents,
    RealPaths,
    WrittenFile,
    exchange,
    finish,
    leased,
    may_exchange,
    move,
    path_to,
    pour,
    remove_at,
    restore_mode,
)
from whisper_tui.changes.step_notes import StepNotes
from whisper_tui.system.syscalls import AT_FDCWD, RENAME_EXCHANGE, RENAME_NOREPLACE, Place, rename

_OVERWRITING = (WRITE, REPLACE, DELETE)
"""Before the first step, that which these changes take away is kept, unless the step moves it to the store."""


def is_alike(found: Stamp, wanted: Stamp) -> bool:
    """True if one may be a copy of the other: the same kind, size and time."""
    same_size = found.is_directory or found.size == wanted.size
    return stat.S_IFMT(found.mode) == stat.S_IFMT(wanted.mode) and same_size and found.mtime == wanted.mtime


def is_ours(found: Stamp, change: FileChange) -> bool:
    """True if a file may be what a step has put in its place: the new file itself, or a copy of it."""
    return change.after is not None and (found.inode == change.after.inode or is_alike(found, change.after))


_COMPARED = 1 << 16
"""Bytes of a file that are compared at once."""


class _HalfWritten(NamedTuple):
    """The content of a file that a kill may have left half written."""

    ours: bool
    """It is the old content, the new one, or parts of both. Else somebody has worked on it since, and it stays."""
    unwritten: bool
    """It begins with the old content: if somebody has changed it, a kill came before the first byte."""


class _ChangedSince(Exception):
    """A file is not the one that its step has made: if that was made, somebody has changed it since, and it stays."""


def _is_changed(found: Stamp, known: Stamp) -> bool:
    """True if the content of a file is not the one that is known."""
    if found.is_directory or known.is_directory:
        return found.is_directory != known.is_directory
    return (found.size, found.mtime) != (known.size, known.mtime)


class _NewFiles:
    """The new files and directories in the store, which are moved or copied to their places."""

    def __init__(self, store: str, real: RealPaths, *, resumed: bool) -> None:
        self._store = store
        self._real = real
        self.resumed = resumed
        self._links: dict[int, str] = {}
        """Real paths of files that had several names in an upper directory, by their inode there."""
        self._device = os.stat(store).st_dev

    def prepare(self, change: FileChange, *, joined: bool = True) -> None:
        """Remove the records of overlayfs from new files, and restore the recorded modes and times of directories.

        `joined`: names of real files in a new directory become hard links to these; else files of their own.
        """
        if change.new_inside is None or change.after is None:
            if not change.unmarked:
                self._unmark(change.content, change.after)
            return
        targets, is_marked = dict(change.relinks), not change.unmarked_inside
        # A step that failed may have left a name of a real file here.
        remove_tree(self._spare())
        with TreeWalker(change.content, 0o700) as walker:
            pending = [walker.entries()]
            while pending:
                if not pending[-1]:
                    pending.pop()
                    if pending:
                        inside = walker.inside[:-1]
                        _restore_directory(walker.path(walker.up()), change.new_inside[inside])
                    continue
                name, is_directory = pending[-1].pop()
                if is_directory:
                    walker.down(name)
                    pending.append(walker.entries())
                    continue
                inside = walker.inside + name
                if is_marked:
                    self._unmark(walker.path(name), change.new_inside.get(inside))
                target = targets.get(inside)
                if target is not None:
                    self._set_joined(walker.path(name), self._real.at(target), joined=joined)
        _restore_directory(change.content, change.after)

    def _unmark(self, path: str, wanted: Stamp | None) -> None:
        remove_marks(path)
        if self.resumed and wanted is not None and not stat.S_ISLNK(wanted.mode):
            # Killed while it was made readable for that.
            found = stamp(path)
            if found is not None and found.mode != wanted.mode and found.inode == wanted.inode:
                change_mode(path, stat.S_IMODE(wanted.mode))

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

    def copy_in(self, change: FileChange, part: str) -> None:
        """Copy new files to another file system. Names of files that are there already become hard links."""
        inside = change.new_inside or {}
        own = [(change.content, change.after), *((os.path.join(change.content, name), inside[name]) for name in inside)]
        relinks = {os.path.join(change.content, name): target for name, target in change.relinks}
        links: Links = {}
        for path, found in own:
            if found is None or found.links < 2 or found.is_directory:
                continue
            existing = relinks.get(path) or self._links.get(found.inode)
            if existing and len(links) < MOST_OPEN // 2:
                links[self._device, found.inode] = self._real.at(existing)
        copy_tree(change.content, part, links)

    def note_links(self, change: FileChange) -> None:
        """Note where the names of a new file are now, for further ones."""
        if change.after is None or change.op not in (ADD, REPLACE):
            return
        if change.after.links > 1 and not change.after.is_directory:
            self._links.setdefault(change.after.inode, change.path)
        for name, found in (change.new_inside or {}).items():
            if found.links > 1 and not found.is_directory:
                self._links.setdefault(found.inode, os.path.join(change.path, name))


class ChangeSteps:
    """The steps of one transition. The same step may be done again after a crash, with the same result."""

    def __init__(self, store: str, real: RealPaths, *, resumed: bool = False) -> None:
        self._real = real
        self._new = _NewFiles(store, real, resumed=resumed)
        self.contents = KeptContents(store)
        """The contents that are kept, or were."""
        self.left: set[int] = set()
        """The changes that could not be taken back: somebody has changed their files since."""
        self._mark = f".whisper-tui-{os.stat(store).st_ino:x}"
        self._store = store

    @cached_property
    def _notes(self) -> StepNotes:
        return StepNotes(self._store)

    # Before anything changes

    def keep(self, number: int, change: FileChange) -> None:
        """Copy what a change takes away if a rename does not keep it. Raises `OSError`."""
        if change.before is None or change.op not in _OVERWRITING:
            return
        at = self._real.find(change.path)
        if change.op == WRITE and change.before.size <= SMALL_BYTES:
            self.contents.add_content(number, at, change.before.size)
        elif self._real.is_elsewhere(at) or (
            change.op == WRITE and not may_exchange(at, self._real.at(change.path), change)
        ):
            self.contents.add_tree(number, self._real.at(change.path))

    # Making real

    def make_real(self, number: int, change: FileChange) -> Stamp | None:
        """Make one change real, unless it is. Raises `OSError`, or `Conflict` if there is something else.

        Returns the file as it is then, if no later step changes it; else None.
        """
        at = self._real.find(change.path)
        begun = self._new.resumed and self._notes.may_be_begun(number)
        if self._new.resumed and not begun:
            self._require_as_before(change, at)
        try:
            if change.op == WRITE:
                return self._write(number, change, at, begun=begun)
            self._notes.add(number)
            return self._make_real(number, change, at)
        except Conflict:
            if not begun:
                self._notes.remove(number)
            raise

    def _make_real(self, number: int, change: FileChange, at: Place) -> Stamp | None:
        after = change.after
        if change.op == ADD:
            self._add(number, change, at)
        elif change.op == DELETE:
            self._delete(number, change, at)
            return None
        elif change.op == REPLACE:
            self._replace(number, change, at)
        elif change.op == MOVE:
            return self._rename(change.before, (at, change.path), self._new_place(change))
        elif change.op == ATTRIBUTES and after is not None:
            if self._is_other_version(change, at):
                raise Conflict([change.path])
            finish(self._real.at(change.path), after, change.new_attributes)
        elif change.op == LINK:
            _link(change, self._real.at(change.path), self._real.at(change.target))
        if _is_alone(change):
            return stamp(at[1], at[0]) if after is not None else None
        self._new.note_links(change)
        return None

    def _add(self, number: int, change: FileChange, at: Place) -> None:
        if self._real.is_elsewhere(at):
            found = stamp(at[1], at[0])
            if found is not None:
                _require_ours(found, change)
            else:
                rename(self._copied(number, change), at, RENAME_NOREPLACE)
        elif change.new_inside is None or (found := stamp(at[1], at[0])) is None:
            self._move_in(change, at)
        else:
            _require_ours(found, change)
        if change.new_inside is not None and change.after is not None:
            restore_mode(at, change.after)

    def _move_in(self, change: FileChange, at: Place) -> None:
        """Move a new file or directory to its free name, unless that is done."""
        if not change.unmarked or change.new_inside is not None:
            self._new.prepare(change)
        try:
            move((AT_FDCWD, change.content), at)
        except (FileExistsError, FileNotFoundError):
            found = stamp(at[1], at[0])
            if found is None:
                raise
            _require_ours(found, change)

    def _copied(self, number: int, change: FileChange) -> Place:
        """Copy new files beside the place that they get on another file system."""
        part = self._part(number, change.path)
        remove_at(part)
        self._new.prepare(change, joined=False)
        self._new.copy_in(change, path_to(part))
        return part

    def _delete(self, number: int, change: FileChange, at: Place) -> None:
        found, kept, elsewhere = stamp(at[1], at[0]), self.contents.path(number), self._real.is_elsewhere(at)
        if found is None or change.before is None or found.inode != change.before.inode:
            if stamp(kept) is None:
                raise Conflict([change.path])
        else:
            self._require_due(change, at)
            if elsewhere:
                rename(at, self._part(number, change.path), RENAME_NOREPLACE)
            else:
                self.contents.make_directory()
                move(at, (AT_FDCWD, kept))
        if elsewhere:
            self._clear(number, change, at)

    def _replace(self, number: int, change: FileChange, at: Place) -> None:
        found, elsewhere = stamp(at[1], at[0]), self._real.is_elsewhere(at)
        if found is None:
            raise Conflict([change.path])
        if change.before is None or found.inode != change.before.inode:
            _require_ours(found, change)
        else:
            if not elsewhere:
                self._new.prepare(change)
            self._exchange(change, at, self._copied(number, change) if elsewhere else (AT_FDCWD, change.content))
        if change.after is not None:
            restore_mode(at, change.after)
        if elsewhere:
            self._clear(number, change, at)

    def _exchange(self, change: FileChange, at: Place, new: Place) -> None:
        """Put a new file in the place of one that nobody has changed, or is about to change under its old name."""
        with leased(at) as lease:
            self._require_due(change, at)
            exchange(at, new)
            if lease is not None and lease.is_wanted():
                exchange(at, new)
                raise Conflict([change.path])

    def _require_due(self, change: FileChange, at: Place) -> None:
        """Raise `Conflict` if somebody has changed what a step is about to take away.

        All of a directory is looked at only in a resumption: in a first try that has just been done.
        """
        self._require_unchanged(stamp(at[1], at[0]), change)
        if self._new.resumed:
            self._require_as_before(change, at)

    def _require_as_before(self, change: FileChange, at: Place) -> None:
        """Raise `Conflict` if somebody has changed the file of a change that was not begun, or anything in it."""
        found, before = stamp(at[1], at[0]), change.before
        if before is None or found is None:
            changed = found is not None or before is not None
        elif found.is_directory and change.old_inside is not None:
            changed = found.inode != before.inode or self._has_changed_inside(change, change.old_inside)
        else:
            changed = found.inode != before.inode or _is_changed(found, before)
        if changed:
            raise Conflict([change.path])

    def _is_other_version(self, change: FileChange, at: Place) -> bool:
        """True if a file is neither as it was before a change of its attributes nor as it was after it."""
        found, before, after = stamp(at[1], at[0]), change.before, change.after
        if found is None or before is None or after is None or found.inode != before.inode:
            return True
        return _is_changed(found, before) and _is_changed(found, after)

    def _has_changed_inside(self, change: FileChange, known: Inside) -> bool:
        """True if somebody has added or changed anything in a directory. Other steps change further names of files."""
        found, others = stamps_inside(self._real.at(change.path)), {name for name, _ in change.relinks}
        return any(
            (name not in others or each.links == 1) and (name not in known or _is_changed(each, known[name]))
            for name, each in found.items()
        )

    def _require_unchanged(self, found: Stamp | None, change: FileChange) -> None:
        """Raise `Conflict` if somebody has changed a file since the last look.

        Other steps change the number of its names, and with it its time of change; those of other names its content.
        """
        before = change.before
        if found is None or before is None or not found.is_file or before.links > 1:
            return
        if (found.inode, found.size, found.mtime) != (before.inode, before.size, before.mtime):
            raise Conflict([change.path])

    def _held(self, number: int, change: FileChange, fd: int) -> _HalfWritten:
        """Compare a file with its old content and its new one."""
        parts = begins_old = begins_new = True
        size = 0
        with self.contents.opened(number) as old, open(open_file(change.content, os.O_RDONLY), "rb") as new:
            for one, other in iter(lambda: (old.read(_COMPARED), new.read(_COMPARED)), (b"", b"")):
                found = os.pread(fd, _COMPARED, size)
                size += max(len(one), len(other))
                begins_old, begins_new = begins_old and found.startswith(one), begins_new and found.startswith(other)
                both = zip(found, one.ljust(len(found), b"\0"), other.ljust(len(found), b"\0"), strict=False)
                parts = parts and min(len(one), len(other)) <= len(found) <= max(len(one), len(other))
                parts = parts and (
                    found in (one, other) or all(byte in (first, second) for byte, first, second in both)
                )
                if not (parts or begins_old):
                    break
        # Of a file that begins with both, one being a part of the other, the longer one tells.
        is_longer = change.before is not None and change.after is not None and change.before.size > change.after.size
        return _HalfWritten(parts and not os.pread(fd, 1, size), begins_old and (is_longer or not begins_new))

    def _require_unwritten(self, number: int, change: FileChange) -> None:
        """Raise `_ChangedSince` unless a file that has taken the place of another one begins as that did."""
        at = self._real.find(change.path)
        try:
            with open(open_file(at[1], os.O_RDONLY, at[0]), "rb") as file:
                is_unwritten = self._held(number, change, file.fileno()).unwritten
        except OSError as error:
            # It is gone, or of another kind.
            raise _ChangedSince from error
        if not is_unwritten:
            raise _ChangedSince

    def _write(self, number: int, change: FileChange, at: Place, *, begun: bool) -> Stamp | None:
        before, after = change.before, change.after
        if before is None or after is None:
            raise Conflict([change.path])
        if self.contents.has(number):
            with WrittenFile(at, change.path, before.inode) as file:
                if begun and not (held := self._held(number, change, file.fd)).ours:
                    if held.unwritten:
                        raise Conflict([change.path])
                    return None
                if not begun:
                    self._require_unchanged(file.found, change)
                self._notes.add(number)
                if not is_alike(file.found, after) or is_alike(before, after):
                    pour(change.content, file.fd)
                found = file.finish(after, has_attributes=bool(change.old_attributes or change.new_attributes))
            if found is not None and _is_alone(change):
                return found
        else:
            found = stamp(at[1], at[0])
            if found is None:
                raise Conflict([change.path])
            if found.inode == before.inode:
                remove_marks(change.content)
                self._notes.add(number)
                self._exchange(change, at, (AT_FDCWD, change.content))
            elif found.inode != after.inode or _is_changed(found, after):
                raise Conflict([change.path])
        finish(self._real.at(change.path), after, change.new_attributes)
        return None

    def _new_place(self, change: FileChange) -> tuple[Place, str]:
        return self._real.find(change.moved_to), change.moved_to

    def _rename(self, known: Stamp | None, source: tuple[Place, str], target: tuple[Place, str]) -> Stamp:
        """Rename a real file to a free name, unless that is done. Returns it as it is then."""
        (at, path), (to, new_path) = source, target
        if known is None:
            raise Conflict([path])
        if differs(stamp(at[1], at[0]), known):
            moved = stamp(to[1], to[0])
            if moved is not None and moved.inode == known.inode:
                return moved
            raise Conflict([path])
        try:
            rename(at, to, RENAME_NOREPLACE)
        except FileExistsError as error:
            raise Conflict([new_path]) from error
        moved = stamp(to[1], to[0])
        if moved is None or moved.inode != known.inode:
            # Somebody put another file there between the look and the rename: it gets its name back.
            with suppress(OSError):
                rename(to, at, RENAME_NOREPLACE)
            raise Conflict([path])
        return moved

    # Taking back

    def take_back(self, number: int, change: FileChange, result: Result) -> Stamp | None:
        """Take one change back, unless it is. `result`: its file after it was made real, and what was in it.

        What somebody has changed since stays as it is, and `left` names it. Raises `OSError`, or `Conflict`. Returns
        the file as it is then, if no further step changes it; else None.
        """
        try:
            found = self._take_back(number, change, result)
        except _ChangedSince:
            if self._notes.may_be_begun(number):
                self.left.add(number)
            return None
        self._notes.remove(number)
        return found

    def _take_back(self, number: int, change: FileChange, made: Result) -> Stamp | None:
        if change.op == DELETE:
            return self._restore(number, change)
        if (result := made.found) is None:
            self._tidy(number, change)
            return None
        at, before = self._real.find(change.path), change.before
        if change.op == ATTRIBUTES and before is not None:
            if self._is_other_version(change, at):
                raise _ChangedSince
            finish(self._real.at(change.path), before, change.old_attributes)
        elif change.op == WRITE and before is not None:
            return self._unwrite(number, change, at, result)
        elif change.op == MOVE:
            try:
                return self._rename(result, self._new_place(change), (at, change.path))
            except Conflict:
                self._require_nothing_else(change)
                return None
        else:
            is_result = self._is_as_made(change, at, result, made.inside or change.new_inside)
            if change.op == LINK and is_result:
                os.unlink(at[1], dir_fd=at[0])
            elif change.op == REPLACE:
                self._unreplace(number, change, at, is_result)
            elif change.op == ADD:
                self._unadd(number, change, at, is_result)
            if not is_result:
                self._clear(number, change, at)
                self._require_nothing_else(change)
        self._clear(number, change, at)
        return stamp(at[1], at[0]) if before is not None and _is_alone(change) else None

    def _is_as_made(self, change: FileChange, at: Place, result: Stamp, inside: Inside | None) -> bool:
        """True if a file is the one that a step has made, and nobody has changed it or anything in it since."""
        found = stamp(at[1], at[0])
        if found is None or found.inode != result.inode:
            return False
        if found.is_directory and inside is not None:
            return not self._has_changed_inside(change, inside)
        return not _is_changed(found, result)

    def _require_nothing_else(self, change: FileChange) -> None:
        """Raise `_ChangedSince` if neither the file that a step has made is in its place nor the one before."""
        found = self._real.stamp(change.new_path)
        if found is not None and (change.before is None or change.moved_to or not is_alike(found, change.before)):
            raise _ChangedSince

    def make_again(self, number: int, change: FileChange, result: Stamp | None) -> Stamp | None:
        """Make a change real again whose undoing was begun, and remove what that had put beside its file.

        `result`: its file before that. Raises `OSError`, or `Conflict`. Returns what `make_real` does.
        """
        at = self._real.find(change.path)
        present = stamp(at[1], at[0])
        if change.op == MOVE:
            # The renames have given it another time of change.
            is_same = present is not None and change.before is not None and present.inode == change.before.inode
            return self._rename(present if is_same else change.before, (at, change.path), self._new_place(change))
        if change.op not in (DELETE, REPLACE) or not self._real.is_elsewhere(at):
            found = self.make_real(number, change)
            self._clear(number, change, at)
            return found
        self._clear(number, change, at)
        if change.op == DELETE:
            # A copy, so that its inode says nothing.
            if present is not None and change.before is not None and is_alike(present, change.before):
                self._delete_copy(number, change, at)
        elif present is not None and (result is None or present.inode != result.inode):
            exchange(at, self._copied(number, change))
            if change.after is not None:
                restore_mode(at, change.after)
        self._clear(number, change, at)
        return stamp(at[1], at[0]) if change.op == REPLACE and _is_alone(change) else None

    def _delete_copy(self, number: int, change: FileChange, at: Place) -> None:
        """Remove a restored file or directory, of which the original is still kept."""
        if not self.contents.has(number):
            raise Conflict([change.path])
        rename(at, self._part(number, change.path), RENAME_NOREPLACE)

    def _tidy(self, number: int, change: FileChange) -> None:
        """Remove what a step has prepared that was never done, as far as its directory can still be reached.

        Raises `_ChangedSince` if something is there now that neither the step has made nor was there before.
        """
        with suppress(OSError, Conflict):
            self._clear(number, change, self._real.find(change.path))
        if change.relinks and stamp(change.content) is not None:
            with suppress(OSError, Conflict):
                self._new.prepare(change, joined=False)
        if change.op == WRITE and self.contents.has(number):
            self._require_unwritten(number, change)
        else:
            self._require_nothing_else(change)

    def _unadd(self, number: int, change: FileChange, at: Place, is_result: bool) -> None:
        if self._real.is_elsewhere(at):
            if is_result:
                rename(at, self._part(number, change.path), RENAME_NOREPLACE)
            return
        if is_result:
            move(at, (AT_FDCWD, change.content))
        if change.new_inside is not None and stamp(change.content) is not None:
            self._new.prepare(change, joined=False)

    def _unreplace(self, number: int, change: FileChange, at: Place, is_result: bool) -> None:
        if self._real.is_elsewhere(at):
            if is_result:
                exchange(at, self._kept_copy(number, change))
        else:
            if is_result:
                exchange(at, (AT_FDCWD, change.content))
            if change.new_inside is not None:
                self._new.prepare(change, joined=False)
        if change.before is not None:
            restore_mode(at, change.before)

    def _unwrite(self, number: int, change: FileChange, at: Place, result: Stamp) -> Stamp | None:
        if change.before is None:
            return None
        if self.contents.has(number):
            try:
                writing = WrittenFile(at, change.path, result.inode)
            except Conflict:
                self._require_unwritten(number, change)
                return None
            with writing as file:
                is_as_made = change.after is not None and is_alike(file.found, change.after)
                if not is_as_made and not (held := self._held(number, change, file.fd)).ours:
                    if held.unwritten:
                        return None
                    raise _ChangedSince
                self.contents.restore(number, file.fd)
                has_attributes = bool(change.old_attributes or change.new_attributes)
                found = file.finish(change.before, has_attributes=has_attributes)
                self._notes.remove(number)
            if found is None:
                finish(self._real.at(change.path), change.before, change.old_attributes)
            return found if _is_alone(change) else None
        present = stamp(at[1], at[0])
        if present is not None and change.after is not None and present.inode == change.after.inode:
            if _is_changed(present, change.after):
                raise _ChangedSince
            rename(at, (AT_FDCWD, change.content), RENAME_EXCHANGE)
        elif present is None or change.before is None or present.inode != change.before.inode:
            self._require_nothing_else(change)
        return None

    def _restore(self, number: int, change: FileChange) -> Stamp | None:
        """Move a deleted file or directory back, unless that is done or it was never deleted.

        Raises `_ChangedSince` if its name is taken. Returns the file as it is then, if no further step changes it.
        """
        try:
            at = self._real.find(change.path)
        except (OSError, Conflict):
            if self.contents.has(number):
                raise
            return None
        if self._real.is_elsewhere(at):
            self._copy_back(number, change, at)
            self._clear(number, change, at)
        else:
            try:
                move((AT_FDCWD, self.contents.path(number)), at)
            except FileExistsError as error:
                if self.contents.has(number):
                    raise _ChangedSince from error
            except FileNotFoundError:
                pass  # It was never deleted, or an earlier try has moved it.
        found = _with_its_mode(at, change.before)
        return found if _is_alone(change) else None

    def _copy_back(self, number: int, change: FileChange, at: Place) -> None:
        """Restore a deleted file or directory on another file system, unless that is done."""
        if not self.contents.has(number):
            return
        found, before = stamp(at[1], at[0]), change.before
        if found is None:
            rename(self._kept_copy(number, change), at, RENAME_NOREPLACE)
        elif before is not None and found.is_file and found.inode != before.inode and not is_alike(found, before):
            raise _ChangedSince

    def _kept_copy(self, number: int, change: FileChange) -> Place:
        """Copy what was kept beside the place that it gets on another file system."""
        part = self._part(number, change.path)
        remove_at(part)
        copy_tree(self.contents.path(number), path_to(part))
        return part

    # Names beside real files, for the time of one rename

    def _part(self, number: int, path: str) -> Place:
        return self._real.find(path)[0], f"{self._mark}-{number}"

    def _clear(self, number: int, change: FileChange, at: Place) -> None:
        """Remove what a rename has put aside, on another file system."""
        if change.op in (ADD, DELETE, REPLACE) and self._real.is_elsewhere(at):
            remove_at(self._part(number, change.path))


def _is_alone(change: FileChange) -> bool:
    """True if no other step changes its file: it is no directory, and none makes or removes another name of it."""
    before, after = change.before, change.after
    return (before is None or (before.links == 1 and not stat.S_ISDIR(before.mode))) and (
        after is None or (after.links == 1 and not stat.S_ISDIR(after.mode))
    )


def _with_its_mode(at: Place, before: Stamp | None) -> Stamp | None:
    """Return a restored file. A directory that was opened for a move, perhaps by a killed try, gets its mode again."""
    found = stamp(at[1], at[0])
    # Another mode is one that somebody else gave it. The inode says nothing: a pre-image is a directory of its own.
    if found is not None and before is not None and found.mode == before.mode | 0o700:
        restore_mode(at, before)
    return found


def _require_ours(found: Stamp, change: FileChange) -> None:
    if not is_ours(found, change):
        raise Conflict([change.path])


def _restore_directory(path: str, wanted: Stamp) -> None:
    """Give a directory in the store what it had when the changes were read, without the records of overlayfs."""
    remove_marks(path)
    restore_mode((AT_FDCWD, path), wanted)
    found = os.lstat(path)
    if found.st_mtime_ns != wanted.mtime:
        os.utime(path, ns=(found.st_atime_ns, wanted.mtime), follow_symlinks=False)


def _link(change: FileChange, path: str, target: str) -> None:
    found, existing = stamp(path), stamp(target)
    if found is None:
        os.link(target, path, follow_symlinks=False)
    elif existing is None or found.inode != existing.inode:
        raise Conflict([change.path])
