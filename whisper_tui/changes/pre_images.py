"""Pre-images: what a command is about to delete or overwrite, kept before it starts.

The files are those that its effects name, and all of them must be certain. Deleted files are kept as further hard
links, others as copies. After the end the differences become a plan that `transition` undoes and makes again.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from whisper_tui.changes.change_records import (
    ADD,
    APPLIED,
    ATTRIBUTES,
    DELETE,
    PLAN,
    REPLACE,
    WRITE,
    Attributes,
    DirectoryState,
    FileChange,
    Inside,
    Plan,
    Result,
    load_plan,
    result_of,
    save_plan,
    save_results,
    save_state,
    text_of,
)
from whisper_tui.changes.file_trees import (
    Links,
    PreviewTooLarge,
    Stamp,
    attributes,
    copy_node,
    copy_tree,
    differs,
    make_alike,
    remove_tree,
    stamp,
    stamps_inside,
)
from whisper_tui.changes.meanings import save_meanings
from whisper_tui.changes.real_paths import KEPT, move
from whisper_tui.system import run_files
from whisper_tui.system.syscalls import AT_FDCWD, flush_file_system

MOST_ENTRIES = 100_000
"""Files and directories that are kept of one command."""
MOST_COPIED = 64 << 20
"""Bytes that are copied of one command, where a hard link does not do."""
LEAST_FREE = 1 << 30
"""Free bytes of the disk below which nothing is kept."""
PATIENCE_S = 20.0
"""Seconds after which keeping is given up, and the command starts."""
LATE_NS = 1_000_000_000
"""A file that changed so long after the end of its command was changed by somebody else."""

_CHUNK = 1 << 20
BASE, BEFORE, NEW, MOVES = "base.json", "before", "new", "moves.json"

Keeping = Literal["links", "copies", "attributes"]
"""`links`: it only goes away. `copies`: its content may change. `attributes`: only its mode, owner or times do."""


class NotKept(Exception):
    """The changes of a command cannot be kept. The text is the reason, as a clause."""


class Root(NamedTuple):
    """A file or a tree that a command changes."""

    path: str
    keeping: Keeping
    deep: bool
    """True if anything below it may change."""


@dataclass(frozen=True)
class _Before:
    """A root as it was before the start."""

    root: Root
    found: Stamp | None
    inside: Inside
    extended: dict[str, Attributes]
    """Extended attributes by relative path; the root itself is the empty one. None are noted of links."""
    copy: str
    """The path of its pre-image."""


def keep(store: str, found: Iterable[Root]) -> None:
    """Keep everything that a command changes, into a new directory. Raises `NotKept`; then nothing is kept."""
    roots = _merged(found)
    try:
        os.makedirs(os.path.join(store, BEFORE), 0o700)
        # Deleting files to make room must make room.
        if (disk := os.statvfs(store)).f_bavail * disk.f_frsize < LEAST_FREE:
            raise NotKept("the disk is almost full")
        os.mkdir(os.path.join(store, NEW), 0o700)
        keeper = _Keeper(store)
        rows = [keeper.keep(number, root) for number, root in enumerate(roots)]
        parents = {path: _parent(path) for path in {os.path.dirname(root.path) for root in roots}}
        data = {"roots": rows, "parents": parents, "copied": keeper.copied}
        run_files.write_json(os.path.join(store, BASE), data)
        # A power failure must not take the pre-images of files whose deletion it leaves in force. One call for all of
        # them: flushing each file and directory takes fifty times as long, and only ext4 orders links by itself.
        flush_file_system(store)
    except (NotKept, PreviewTooLarge, OSError) as error:
        remove_tree(store)
        raise NotKept(_clause(error)) from error


def _clause(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'} cannot be kept: {error.strerror}"
    return str(error)


def _merged(roots: Iterable[Root]) -> list[Root]:
    """Join what is kept twice; what lies in a tree that is kept, or in a new directory, goes with it."""
    merged: list[Root] = []
    for root in sorted(roots):
        last = next((each for each in reversed(merged) if _is_within(root.path, each.path)), None)
        if last is None or (last.path != root.path and not last.deep and stamp(last.path) is not None):
            merged.append(root)
            continue
        keeping = last.keeping if last.keeping == root.keeping else "copies"
        merged[merged.index(last)] = Root(last.path, keeping, last.deep or (root.deep and last.path == root.path))
    return merged


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _parent(path: str) -> Stamp:
    found = stamp(path)
    if found is None or not found.is_directory or os.path.realpath(path) != path:
        raise NotKept(f"{path} is no directory")
    return found


class _Keeper:
    """Makes the pre-images of one command, within its bounds."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._until = time.monotonic() + PATIENCE_S
        self._entries = 0
        self._links: Links = {}
        self.copied = 0
        """Bytes that were copied."""

    def keep(self, number: int, root: Root) -> dict[str, Any]:
        """Keep one root. Returns what was there."""
        if _is_within(self._store, root.path):
            raise NotKept(f"{root.path} contains the files of whisper_tui")
        found = stamp(root.path)
        row: dict[str, Any] = {"root": root, "found": found, "inside": {}, "extended": {}}
        if found is None:
            return row
        inside = stamps_inside(root.path) if root.deep and found.is_directory else {}
        every = {"": found, **inside}
        self._entries += len(every)
        if self._entries > MOST_ENTRIES:
            raise NotKept(f"it changes more than {MOST_ENTRIES:,} files")
        if root.keeping != "links":
            row["extended"] = {name: text_of(attributes(_joined(root.path, name))) for name in every}
        if root.keeping == "copies":
            self._check_copy(root.path, every)
        if root.keeping != "attributes" and (root.deep or not found.is_directory):
            self._image(root, os.path.join(self._store, BEFORE, str(number)))
        return {**row, "found": found, "inside": inside}

    def _check_copy(self, path: str, every: Inside) -> None:
        self.copied += sum(each.size for each in every.values() if each.is_file)
        if self.copied > MOST_COPIED:
            raise NotKept(f"it overwrites more than {MOST_COPIED >> 20} MB")
        for name, each in every.items():
            if (each.is_file or each.is_directory) and not os.access(_joined(path, name), os.R_OK):
                raise NotKept(f"{_joined(path, name)} cannot be read")

    def _image(self, root: Root, target: str) -> None:
        if root.keeping == "copies":
            copy_tree(root.path, target)
        elif not os.path.isdir(root.path) or os.path.islink(root.path):
            self._link(root.path, target, target)
        else:
            make_alike(
                root.path,
                target,
                lambda entry: self._link(entry.source, entry.target, os.path.join(target, entry.name)),
            )

    def _link(self, source: str, target: str, lasting: str) -> None:
        """Keep a file by a further name, or a copy. `lasting`: the path of the target that stays valid."""
        if time.monotonic() > self._until:
            raise NotKept(f"keeping its files takes more than {PATIENCE_S:g} seconds")
        try:
            os.link(source, target, follow_symlinks=False)
            return
        except OSError:
            # Another file system, or a file of somebody else.
            self.copied += os.lstat(source).st_size
        if self.copied > MOST_COPIED:
            raise NotKept(f"it deletes more than {MOST_COPIED >> 20} MB on another file system")
        copy_node(source, target, self._links, lasting)


def _joined(path: str, name: str) -> str:
    return os.path.join(path, name) if name else path


# After the end


def seal(store: str, ended_ns: int) -> Plan:
    """Return what the command has changed, as a plan whose changes are real. The second time it is only loaded.

    `ended_ns`: when the command ended. Raises `NotKept`; then nothing is kept any more.
    """
    try:
        if not os.path.exists(os.path.join(store, PLAN)):
            _write_plan(store, ended_ns)
        # After a crash in the middle the rest of this is done: each move happens once.
        for source, target in run_files.read_json(os.path.join(store, MOVES)):
            with suppress(FileNotFoundError):
                move((AT_FDCWD, source), (AT_FDCWD, target))
        remove_tree(os.path.join(store, BEFORE))
        plan = load_plan(store)
        # Only now: renaming a hard link changes the time of the file itself, which may have moved elsewhere.
        save_results(store, dict(enumerate(map(_checked_result, plan.changes))))
        save_state(store, APPLIED, untimed=[])
        # Once the end of the command is recorded, nobody comes back to finish this.
        flush_file_system(store)
        return plan._replace(state=APPLIED)
    except (NotKept, PreviewTooLarge, OSError, ValueError) as error:
        remove_tree(store)
        raise NotKept(_clause(error)) from error


def _write_plan(store: str, ended_ns: int) -> None:
    base = run_files.read_json(os.path.join(store, BASE))
    parents = {path: Stamp(*found) for path, found in base["parents"].items()}
    reader = _ChangeReader(store, parents, int(base["copied"]), ended_ns)
    for number, row in enumerate(base["roots"]):
        found = Stamp(*row["found"]) if row["found"] is not None else None
        inside = {name: Stamp(*each) for name, each in row["inside"].items()}
        copy = os.path.join(store, BEFORE, str(number))
        reader.read(_Before(Root(*row["root"]), found, inside, row["extended"], copy))
    plan = reader.plan()
    os.makedirs(os.path.join(store, KEPT), 0o700, exist_ok=True)
    run_files.write_json(os.path.join(store, MOVES), reader.moves(plan))
    # The plan says that all of this is there.
    save_meanings(store, plan, is_real=True)
    flush_file_system(store)
    save_plan(store, plan)


def _checked_result(change: FileChange) -> Result:
    result = result_of(change)
    if change.after is not None and differs(result.found, change.after, copied=True):
        raise NotKept(f"{change.path} was changed after its end")
    return result


class _ChangeReader:
    """Compares files with their pre-images."""

    def __init__(self, store: str, parents: dict[str, Stamp], copied: int, ended_ns: int) -> None:
        self._store = store
        self._device = os.stat(store).st_dev
        self._old_directories = parents
        self._copied = copied
        self._ended_ns = ended_ns
        self._found: list[FileChange] = []
        self._images: dict[str, str] = {}
        """The pre-images of changed files, by path."""

    def read(self, before: _Before) -> None:
        """Find what became of a root."""
        if before.found is not None and before.found.is_directory:
            self._old_directories.setdefault(before.root.path, before.found)
        for name, found in before.inside.items():
            if found.is_directory:
                self._old_directories[_joined(before.root.path, name)] = found
        pending = [""]
        while pending:
            name = pending.pop()
            pending += self._compare(before, name)

    def _compare(self, before: _Before, name: str) -> list[str]:
        """Note the change of one file. Returns the names in a directory that is still the same."""
        path = _joined(before.root.path, name)
        old, new = before.inside.get(name) if name else before.found, stamp(path)
        if old is None and new is None:
            return []
        if old is None or new is None or (old.inode, old.mode >> 12) != (new.inode, new.mode >> 12):
            self._exchanged(before, name, old, new)
            return []
        if new.is_directory:
            self._attributes(before, name, old, new)
            deep = before.root.deep
            inside = _names_in(before.inside, name) | (set(os.listdir(path)) if deep else set())
            return sorted(_joined(name, each) for each in inside)
        if old[:6] == new[:6]:
            return []
        if before.root.keeping == "copies" and new.is_file:
            self._written(before, name, old, new)
        elif old.size != new.size or (before.root.keeping == "links" and old.mtime != new.mtime):
            raise NotKept(f"{path} was written, although nothing has said so before")
        else:
            self._attributes(before, name, old, new)
        return []

    def _exchanged(self, before: _Before, name: str, old: Stamp | None, new: Stamp | None) -> None:
        """Note a file that was created, deleted or replaced."""
        path, image = _joined(before.root.path, name), _joined(before.copy, name)
        number = len(self._found)
        content = os.path.join(self._store, NEW, str(number)) if new is not None else ""
        old_inside = _below(before.inside, name) if old is not None and old.is_directory else None
        new_inside = stamps_inside(path) if new is not None and new.is_directory else None
        change = FileChange(
            ADD if old is None else DELETE if new is None else REPLACE,
            path,
            old,
            new,
            content,
            old_inside=old_inside,
            new_inside=new_inside,
        )
        if old is not None:
            if not os.path.lexists(image) or _differs(image, old):
                raise NotKept(f"{path} was deleted or replaced, although nothing has said so before")
            self._images[path] = image
        for each in (new, *(new_inside or {}).values()):
            self._check_time(path, each)
        if new is not None and self._is_elsewhere(path):
            self._copy(path, content, (new, *(new_inside or {}).values()))
        self._add(change)

    def _written(self, before: _Before, name: str, old: Stamp, new: Stamp) -> None:
        """Note a file that was written in place, or only got other attributes."""
        path, image = _joined(before.root.path, name), _joined(before.copy, name)
        self._check_time(path, new)
        if old.size == new.size and _is_equal(image, path):
            self._attributes(before, name, old, new)
            return
        content = os.path.join(self._store, NEW, str(len(self._found)))
        self._copy(path, content, (new,))
        self._images[path] = image
        extended = before.extended[name], text_of(attributes(path))
        self._add(FileChange(WRITE, path, old, new, content, *extended))

    def _attributes(self, before: _Before, name: str, old: Stamp, new: Stamp) -> None:
        path = _joined(before.root.path, name)
        now = text_of(attributes(path))
        was = before.extended.get(name, now)
        same_time = new.is_directory or old.mtime == new.mtime
        if old[:3] != new[:3] or was != now or not same_time:
            self._check_time(path, new)
            self._add(FileChange(ATTRIBUTES, path, old, new, old_attributes=was, new_attributes=now))

    def _add(self, change: FileChange) -> None:
        self._found.append(change)

    def _check_time(self, path: str, found: Stamp | None) -> None:
        if found is not None and found.ctime > self._ended_ns + LATE_NS:
            raise NotKept(f"{path} was changed after its end")

    def _is_elsewhere(self, path: str) -> bool:
        return os.lstat(os.path.dirname(path)).st_dev != self._device

    def _copy(self, path: str, content: str, found: Iterable[Stamp | None]) -> None:
        """Keep new content, so that it can be made again."""
        self._copied += sum(each.size for each in found if each is not None and each.is_file)
        if self._copied > 2 * MOST_COPIED:
            raise NotKept(f"it wrote more than {MOST_COPIED >> 20} MB")
        # A crash may have left a part of it.
        remove_tree(content)
        copy_tree(path, content)

    def plan(self) -> Plan:
        """Return all changes. Those that make room come first, so that an undo restores them last."""
        changes = sorted(self._found, key=lambda change: change.op != DELETE)
        directories = []
        touched = {os.path.dirname(change.path) for change in changes}
        touched |= {above for path in touched for above in self._changed_above(path)}
        touched |= {change.path for change in changes if change.op == ATTRIBUTES and _is_directory(change)}
        for path in sorted(touched):
            old, new = self._old_directories.get(path), stamp(path)
            if old is None or new is None or old.inode != new.inode:
                raise NotKept(f"{path} was replaced by another directory")
            directories.append(DirectoryState(path, new.inode, old.mode, old.mtime, new.mode, new.mtime))
        return Plan(tuple(map(_with_links, changes)), tuple(directories), state=APPLIED)

    def _changed_above(self, path: str) -> Iterator[str]:
        """Yield the directories above that have another time: one of them may have been made anew, with its inode."""
        while (path := os.path.dirname(path)) in self._old_directories:
            new = stamp(path)
            if new is None or new.mtime != self._old_directories[path].mtime:
                yield path

    def moves(self, plan: Plan) -> list[tuple[str, str]]:
        """Return where the pre-images must lie for a plan, as pairs of paths."""
        found = []
        for number, change in enumerate(plan.changes):
            if (image := self._images.get(change.path)) is None:
                continue
            # Within one file system the two versions of a replaced file exchange their names.
            exchanged = change.op == REPLACE and not self._is_elsewhere(change.path)
            found.append((image, change.content if exchanged else os.path.join(self._store, KEPT, str(number))))
        return found


def _with_links(change: FileChange) -> FileChange:
    before = change.before
    several = before is not None and not before.is_directory and before.links > 1
    return change._replace(links=before.links) if several and before is not None else change


def _is_directory(change: FileChange) -> bool:
    return change.after is not None and change.after.is_directory


def _differs(image: str, old: Stamp) -> bool:
    """True if a pre-image is not what was kept: somebody has written the file by another of its names."""
    found = stamp(image)
    if found is None or stat.S_IFMT(found.mode) != stat.S_IFMT(old.mode):
        return True
    return not old.is_directory and (found.size, found.mtime, found.mode) != (old.size, old.mtime, old.mode)


def _is_equal(one: str, other: str) -> bool:
    """True if two files have the same bytes."""
    with open(one, "rb") as first, open(other, "rb") as second:
        while True:
            piece = first.read(_CHUNK)
            if piece != second.read(_CHUNK):
                return False
            if not piece:
                return True


def _names_in(inside: Inside, directory: str) -> set[str]:
    """Return the names of what lay directly in a directory."""
    start = f"{directory}/" if directory else ""
    return {name[len(start) :] for name in inside if name.startswith(start) and "/" not in name[len(start) :]}


def _below(inside: Inside, directory: str) -> Inside:
    """Return the stamps of everything below a directory, by their paths from it on."""
    start = f"{directory}/" if directory else ""
    return {name[len(start) :]: found for name, found in inside.items() if name.startswith(start)}
