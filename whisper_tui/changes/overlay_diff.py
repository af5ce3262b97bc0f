"""Read from the upper directories of its overlays what a previewed command changed, as a plan of single changes.

`read_changes` compares the upper directories with the real files and writes `plan.json` into the store of the preview.
The plan names every path that `transition` may touch, with the stamps that must be found there.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from whisper_tui.changes import file_trees
from whisper_tui.changes.change_checks import parents_of
from whisper_tui.changes.change_records import (
    ADD,
    ATTRIBUTES,
    DELETE,
    LINK,
    MOVE,
    PLAN,
    REPLACE,
    WRITE,
    DirectoryState,
    FileChange,
    Inside,
    Plan,
    load_plan,
    save_plan,
    text_of,
)
from whisper_tui.changes.file_trees import (
    PreviewTooLarge,
    Stamp,
    attributes,
    change_mode,
    open_file,
    overlay_mark,
    stamp,
    stamps_inside,
)
from whisper_tui.changes.meanings import save_meanings
from whisper_tui.system import run_files, syscalls

LAYERS = "layers.json"
_CHUNK = 1 << 20
_ORIGIN, _ORIGIN_HEAD, _OF_UPPER = b"\x00\xfb", 21, 4
"""`struct ovl_fb`: version and magic number, the bytes before the handle, and the flag of one in an upper directory."""
_ACCESS_LIST = "system.posix_acl_access"


class Records(NamedTuple):
    """The notes of overlayfs in an upper directory that was copied elsewhere, by paths in it."""

    whiteouts: dict[str, list[str]]
    """Names of deleted files, by their directory."""
    opaque: frozenset[str]
    copied_up: frozenset[str]

    @classmethod
    def from_json(cls, found: Mapping[str, Sequence[str]] | None) -> "Records | None":
        """Return what `overlay_mounts.save_outside` has written. None: the upper directory bears its records itself."""
        if found is None:
            return None
        whiteouts: dict[str, list[str]] = {}
        for path in found["whiteouts"]:
            directory, _, name = path.rpartition("/")
            whiteouts.setdefault(directory, []).append(name)
        return cls(whiteouts, frozenset(found["opaque"]), frozenset(found["copied_up"]))


def read_changes(store: str) -> Plan:
    """Return what the command changed, and write it into the store. The second time it is only loaded.

    Raises `PreviewTooLarge`, or `OSError` if the store cannot be read or written.
    """
    if os.path.exists(os.path.join(store, PLAN)):
        return load_plan(store)
    found = run_files.read_json(os.path.join(store, LAYERS))
    reader = ChangeReader()
    for layer in found["layers"]:
        if layer["kind"] == "overlay":
            reader.read_overlay(layer["upper"], layer["path"], Records.from_json(layer.get("records")))
        else:
            reader.read_split(layer["upper"], layer["path"], layer["base"])
    plan = reader.plan(int(found["began_ns"]))
    save_meanings(store, plan)
    save_plan(store, plan)
    return plan


class ChangeReader:
    """Collects the changes of a preview."""

    def __init__(self) -> None:
        self._found: list[FileChange] = []
        self._directories: dict[str, DirectoryState] = {}
        self._names: dict[int, str] = {}
        """Real files that have further names in an upper directory, by the inode there."""
        self._entries = 0
        self._gone: list[str] = []

    def read_overlay(self, upper: str, lower: str, records: Records | None = None) -> None:
        """Read one overlay. `records`: those of an upper directory that does not bear them."""
        first = len(self._found)
        self._read_overlay(upper, lower, records)
        self._found[first:] = _with_moves(self._found[first:])

    def _read_overlay(self, upper: str, lower: str, records: Records | None) -> None:
        pending = [("", False)]
        while pending:
            inside, opaque = pending.pop()
            above, below = _joined(upper, inside), _joined(lower, inside)
            if not self._read_state(above, below, is_top=not inside):
                continue
            names = set()
            for name in records.whiteouts.get(inside, ()) if records is not None else ():
                names.add(name)
                self._delete_if_there(os.path.join(below, name))
            for entry in entries_of(above):
                names.add(entry.name)
                new, real, name = entry.path, f"{below}/{entry.name}", _joined(inside, entry.name)
                after, before = present_stamp(new), stamp(real)
                if stat.S_ISCHR(after.mode) and os.lstat(new).st_rdev == 0:
                    self._delete_if_there(real)
                elif before is not None and before.is_directory and after.is_directory:
                    is_opaque = name in records.opaque if records else overlay_mark(new, "opaque") == b"y"
                    pending.append((name, opaque or is_opaque))
                else:
                    self._file(new, real, before, after, copied_up=name in records.copied_up if records else None)
            if opaque:
                self._delete_all_but(below, names)

    def read_split(self, upper: str, lower: str, base: dict[str, int | None]) -> None:
        """Read a directory that no overlay could cover, because something is mounted below it.

        `base`: the change times of the copies that lie in it. None: a layer of its own; 0 or less: read-only.
        """
        parent, found_before = stamp(lower), len(self._found)
        copies = {name for name, ctime in base.items() if ctime is not None and ctime > 0}
        entries = {entry.name: present_stamp(entry.path) for entry in entries_of(upper)}
        changed = {
            name: after
            for name, after in entries.items()
            if name not in base or (name in copies and base[name] != after.ctime)
        }
        deleted = sorted(copies - entries.keys())
        if parent is None:
            self._gone += [lower] if changed or deleted else []
            return
        for name, after in changed.items():
            real = os.path.join(lower, name)
            self._file(os.path.join(upper, name), real, stamp(real), after)
        for name in deleted:
            self._delete_if_there(os.path.join(lower, name))
        if len(self._found) > found_before:
            self._directories[lower] = _unchanged(lower, parent)._replace(new_mtime=present_stamp(upper).mtime)

    def _read_state(self, upper: str, lower: str, *, is_top: bool) -> bool:
        """Note how a directory itself changed. False: the real one is gone, or is no directory any more."""
        after, before = present_stamp(upper), stamp(lower)
        if before is None or not before.is_directory:
            # A directory beside a mount point has a layer of its own, and may be none of the command's.
            self._gone += [lower] if not is_top or os.listdir(upper) else []
            return False
        if is_top and after.uid != before.uid:
            # The upper directory of somebody else's directory, such as /tmp, could not be made alike.
            self._directories[lower] = _unchanged(lower, before)
            return True
        if is_top and after.gid != before.gid and os.geteuid() != 0:
            # Nor can that of a directory whose group is none of this user's. A command in the view cannot change it.
            after = after._replace(gid=before.gid)
        self._directories[lower] = DirectoryState(
            lower, before.inode, before.mode, before.mtime, after.mode, after.mtime
        )
        new = attributes(upper, forced=True)
        old = _old_attributes(lower, new)
        if before[:3] != after[:3] or old != new:
            self._add(
                FileChange(ATTRIBUTES, lower, before, after, old_attributes=text_of(old), new_attributes=text_of(new))
            )
        return True

    def _file(self, new: str, real: str, before: Stamp | None, after: Stamp, *, copied_up: bool | None = None) -> None:
        """Note anything that is neither a whiteout nor a directory over a directory. `copied_up`: it is no new file."""
        if before is None:
            self._add(FileChange(ADD, real, None, after, new, unmarked=_is_unmarked(new)))
            return
        if stat.S_IFMT(before.mode) != stat.S_IFMT(after.mode):
            self._add(FileChange(REPLACE, real, before, after, new))
            return
        unmarked = _is_unmarked(new)
        if copied_up is None:
            copied_up = not unmarked and overlay_mark(new, "origin") is not None
        equal = _equal(new, real, after, before, copied_up=copied_up)
        # A file that was moved over another one bears the mark as well. Hard links of the real file are not written.
        written = after.is_file and copied_up and not equal and before.links == 1
        if after.links > 1 and (equal or written):
            known = stamp(self._names.setdefault(after.inode, real))
            if known is None or known.inode != before.inode:
                # Two real files have become one: this name gives way to a further name of the other.
                self._add(FileChange(REPLACE, real, before, after, new))
                return
        extended = attributes(new, forced=True)
        old = _old_attributes(real, extended)
        if not equal and not written:
            acl = _ACCESS_LIST in old and _ACCESS_LIST not in extended
            self._add(FileChange(REPLACE, real, before, after, new, acl=acl, unmarked=unmarked))
        elif written or before[:3] != after[:3] or before.mtime != after.mtime or old != extended:
            change = FileChange(WRITE if written else ATTRIBUTES, real, before, after, new)
            self._add(change._replace(old_attributes=text_of(old), new_attributes=text_of(extended)))

    def _delete_if_there(self, path: str) -> None:
        before = stamp(path)
        if before is not None:
            self._delete(path, before)

    def _delete(self, path: str, before: Stamp) -> None:
        self._add(FileChange(DELETE, path, before))

    def _delete_all_but(self, directory: str, names: set[str]) -> None:
        """Note that a directory was replaced by another one: only these names are in it."""
        for name in sorted(set(os.listdir(directory)) - names):
            self._delete_if_there(os.path.join(directory, name))

    def _add(self, change: FileChange) -> None:
        self._found.append(change)
        self._count(1)

    def _count(self, entries: int) -> None:
        self._entries += entries
        if self._entries > file_trees.MOST_ENTRIES:
            raise PreviewTooLarge(f"the command changed more than {file_trees.MOST_ENTRIES:,} files and directories")

    def plan(self, began: int) -> Plan:
        """Return everything found, with all that depends on several changes."""
        changes, links = [], []
        for change in self._found:
            target = self._target(change)
            if not target:
                changes.append(self._with_trees(change))
                continue
            if change.before is not None:
                changes.append(self._with_trees(FileChange(DELETE, change.path, change.before)))
            link = FileChange(LINK, change.path, after=change.after, content=change.content)
            links.append(link._replace(target=target, targets={target: present_stamp(target)}))
        touched = parents_of(changes + links)
        for path in touched - self._directories.keys():
            parent = stamp(path)
            if parent is not None:
                self._directories[path] = _unchanged(path, parent)
        kept = (
            state
            for path, state in sorted(self._directories.items())
            if path in touched or (state.old_mode, state.old_mtime) != (state.new_mode, state.new_mtime)
        )
        return Plan(tuple(changes + links), tuple(kept), (*self._gone, *_changed_since(changes, began)))

    def _target(self, change: FileChange) -> str:
        """Return the real file of which this change adds a further name, or nothing."""
        if change.op not in (ADD, REPLACE, WRITE) or change.after is None or change.after.is_directory:
            return ""
        target = self._names.get(change.after.inode, "")
        return target if target != change.path else ""

    def _with_trees(self, change: FileChange) -> FileChange:
        """Return a change with the stamps in its directories, and the number of names that the file had."""
        if change.op in (DELETE, REPLACE) and change.before is not None and change.before.is_directory:
            change = change._replace(old_inside=self._inside(change.path))
        if change.op in (ADD, REPLACE) and change.after is not None and change.after.is_directory:
            inside = self._inside(change.content, forced=True)
            relinks = self._relinks(inside)
            targets = {target: present_stamp(target) for _, target in relinks}
            files = (f"{change.content}/{name}" for name, found in inside.items() if not found.is_directory)
            change = change._replace(new_inside=inside, relinks=relinks, targets=targets or None)
            change = change._replace(unmarked_inside=all(map(_is_unmarked, files)))
        links = _outside_links(change)
        return change._replace(links=links) if links else change

    def _inside(self, path: str, *, forced: bool = False) -> Inside:
        found = stamps_inside(path, forced=forced)
        self._count(len(found))
        return found

    def _relinks(self, inside: Inside) -> tuple[tuple[str, str], ...]:
        return tuple(
            (name, self._names[found.inode])
            for name, found in inside.items()
            if found.links > 1 and not found.is_directory and found.inode in self._names
        )


def _with_moves(found: Sequence[FileChange]) -> list[FileChange]:
    """Return the changes of one overlay; a deleted name whose file is a new one, and unchanged, becomes one change.

    Renaming the real file gives it the new name as a real run would, and leaves its further names alone. Overlayfs
    notes in a file that it copies up from which one it comes, by its handle. In the overlay of an ordinary user, who
    may open no handles, it only notes that it was copied up; there the file is known by its owner, mode, size and time.
    """
    deleted: dict[bytes | Alike, list[int]] = {}
    changed = Counter(change.before.inode for change in found if change.before is not None)
    trees_go = any(change.op in (DELETE, REPLACE) and _was_directory(change) for change in found)
    for number, change in enumerate(found):
        before = change.before
        if change.op != DELETE or before is None or not before.is_file:
            continue
        # A step on a further name would find that the rename has changed the file.
        if before.links == 1 or (changed[before.inode] == 1 and not trees_go):
            for key in (syscalls.file_handle(change.path), before[:_ALIKE]):
                deleted.setdefault(key, []).append(number)
    if not deleted:
        return list(found)
    made: list[FileChange | None] = list(found)
    for number, new in enumerate(found):
        source = _source(new, deleted, made)
        if source is not None and (old := found[source]):
            made[source] = None
            made[number] = FileChange(MOVE, old.path, old.before, new.after, new.content, moved_to=new.path)
    return [change for change in made if change is not None]


def _was_directory(change: FileChange) -> bool:
    return change.before is not None and change.before.is_directory


Alike = tuple[int, ...]
"""The first fields of a stamp, which a file keeps when it is renamed."""
_ALIKE = 5


def _source(
    new: FileChange, deleted: Mapping[bytes | Alike, Sequence[int]], changes: Sequence[FileChange | None]
) -> int | None:
    """Return the number of the deletion of which an added file is the other half. None: of none."""
    after = new.after
    if new.op != ADD or new.unmarked or after is None or not after.is_file:
        return None
    mark = overlay_mark(new.content, "origin")
    key = None if mark is None else _origin(mark) if mark else after[:_ALIKE]
    numbers = deleted.get(key, ()) if key else ()
    return next((each for each in numbers if (old := changes[each]) is not None and _is_moved(old, new)), None)


def _origin(mark: bytes) -> bytes:
    """Return the handle of the file from which overlayfs has copied one up. Empty: it is of another kind."""
    if len(mark) <= _ORIGIN_HEAD or mark[:2] != _ORIGIN or mark[3] & _OF_UPPER:
        return b""
    return mark[4:5] + mark[_ORIGIN_HEAD:]


def _is_moved(old: FileChange, new: FileChange) -> bool:
    """True if a deleted and a new file are alike in all that a rename keeps."""
    before, after = old.before, new.after
    if before is None or after is None or before[:_ALIKE] != after[:_ALIKE]:
        return False
    # Of a file with several names overlayfs keeps its copy under one of its own. The command has linked it anew if it
    # has more than one besides.
    if after.links != (2 if before.links > 1 else 1):
        return False
    extended = attributes(new.content, forced=True)
    # A command can set the time of any file, so only the content says that it is the same.
    return _old_attributes(old.path, extended) == extended and _equal(
        new.content, old.path, after, before, copied_up=False
    )


def _outside_links(change: FileChange) -> int:
    """Return the number of names of a file that has further ones, which this change leaves as they are. 0: none has."""
    before = change.before
    if before is not None and not before.is_directory:
        return before.links if before.links > 1 else 0
    if not change.old_inside:
        return 0
    several = [found for found in change.old_inside.values() if found.links > 1 and not found.is_directory]
    inside = Counter(found.inode for found in several)
    return max((found.links for found in several if inside[found.inode] < found.links), default=0)


def _joined(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory and name else directory or name


def entries_of(directory: str) -> list[os.DirEntry[str]]:
    """Return the entries of an upper directory, sorted. It may be one that the command made unreadable."""
    mode = stat.S_IMODE(os.lstat(directory).st_mode)
    if mode & 0o700 != 0o700:
        # What lies in it will be moved out. Its own mode has been noted and is never taken from here again.
        change_mode(directory, mode | 0o700)
    with os.scandir(directory) as found:
        return sorted(found, key=lambda entry: entry.name)


def present_stamp(path: str) -> Stamp:
    """Return the stamp of a file that must exist. Raises `FileNotFoundError`."""
    found = stamp(path)
    if found is None:
        raise FileNotFoundError(2, "it is missing", path)
    return found


def _unchanged(path: str, found: Stamp) -> DirectoryState:
    return DirectoryState(path, found.inode, found.mode, found.mtime, found.mode, found.mtime)


def _is_unmarked(path: str) -> bool:
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError:
        return False
    return not any(name.startswith(file_trees.OVERLAY_MARKS) for name in names)


def _old_attributes(real: str, new: dict[str, bytes]) -> dict[str, bytes]:
    """Return the extended attributes of a real file; those that must not be read have the value of its copy."""
    found = attributes(real)
    with suppress(OSError):
        for name in os.listxattr(real, follow_symlinks=False):
            if name not in found and name in new:
                found[name] = new[name]
    return found


def _equal(new: str, real: str, after: Stamp, before: Stamp, *, copied_up: bool) -> bool:
    """True if two files of the same kind have the same content."""
    if stat.S_ISLNK(after.mode):
        return os.readlink(new) == os.readlink(real)
    if not after.is_file:
        return os.lstat(new).st_rdev == os.lstat(real).st_rdev
    if after.size != before.size:
        return False
    try:
        reading = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        # It must not be read: copied up for its mode or owner alone, unless a time says otherwise.
        return copied_up and after.mtime == before.mtime
    try:
        return _same_content(open_file(new, os.O_RDONLY), reading)
    finally:
        os.close(reading)


def _same_content(new: int, real: int) -> bool:
    """True if two open files have the same bytes. Closes the first."""
    try:
        while True:
            piece = os.read(new, _CHUNK)
            if piece != os.read(real, _CHUNK):
                return False
            if not piece:
                return True
    finally:
        os.close(new)


def _changed_since(changes: Iterable[FileChange], began: int) -> list[str]:
    """Return the paths that somebody else changed while the command ran: the command may have seen either version."""
    found = []
    for change in changes:
        if change.before is not None and change.before.ctime > began:
            found.append(change.path)
        for name, old in (change.old_inside or {}).items():
            if old.ctime > began:
                found.append(os.path.join(change.path, name))
    return found
