"""Read from the upper directories of its overlays what a previewed command changed, as a plan of single changes.

`read_changes` compares the upper directories with the real files and writes `plan.json` into the store of the preview.
The plan names every path that `transition` may touch, with the stamps that must be found there.
"""

import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import run_files
from whisper_tui.supervisor.preview import file_trees
from whisper_tui.supervisor.preview.file_trees import (
    PreviewTooLarge,
    Stamp,
    attributes,
    change_mode,
    open_file,
    overlay_mark,
    stamp,
    stamps_inside,
)

LAYERS, PLAN, RENEWED, STATE = "layers.json", "plan.json", "renewed.json", "state.json"
MEMORY = "t"
"""The directory of a store on which a tmpfs is mounted, if upper directories are in memory."""

ADD, DELETE, REPLACE, WRITE, ATTRIBUTES, LINK = "add", "delete", "replace", "write", "attributes", "link"
PREVIEWED, APPLYING, APPLIED, UNDOING, UNDONE = "previewed", "applying", "applied", "undoing", "undone"

_CHUNK = 1 << 20
_ACCESS_LIST = "system.posix_acl_access"

Attributes = dict[str, str]
"""Extended attributes with their values in hexadecimal digits."""
Inside = dict[str, Stamp]
"""The stamps of everything below a directory, by relative path."""


class FileChange(NamedTuple):
    """One change of the real files. A new, removed or replaced directory is one change with all that is in it.

    `op`: `write` changes the content of the same file, `replace` exchanges the file, `link` adds a name of a real file.
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

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are not at their defaults."""
        return {name: value for name, value in zip(self._fields, self, strict=True) if value or value == {}}


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

    def as_json(self) -> dict[str, Any]:
        """Return the plan without its state, which has a file of its own."""
        changes = [change.as_json() for change in self.changes]
        return {"changes": changes, "directories": self.directories, "meanwhile": self.meanwhile}


def load_plan(store: str) -> Plan:
    """Return the plan of a preview. Raises `FileNotFoundError` if the changes were not read yet."""
    found = run_files.read_json(os.path.join(store, PLAN))
    progress = load_state(store)
    for number, fields in load_renewed(store).items():
        found["changes"][number].update(fields)
    return Plan(
        tuple([_change(each) for each in found["changes"]]),
        tuple(DirectoryState(*each) for each in found["directories"]),
        tuple(found["meanwhile"]),
        progress["state"],
        frozenset(progress["undone"]),
    )


def save_plan(store: str, plan: Plan) -> None:
    """Write the plan, durably. Its state is not part of it."""
    data = json.dumps(plan.as_json(), separators=(",", ":")).encode()
    run_files.write_whole(os.path.join(store, PLAN), data, durable=True)


def load_renewed(store: str) -> dict[int, dict[str, Any]]:
    """Return the fields of changes that are others since an undo, by the number of the change."""
    try:
        return dict(run_files.read_json(os.path.join(store, RENEWED)))
    except FileNotFoundError:
        return {}


def load_state(store: str) -> dict[str, Any]:
    """Return the state of the transition, and what it needs to resume."""
    try:
        found: dict[str, Any] = run_files.read_json(os.path.join(store, STATE))
    except FileNotFoundError:
        return {"state": PREVIEWED, "undone": []}
    return found


def save_state(store: str, state: str, *, durable: bool = False, **more: Any) -> None:
    """Write the state of the transition, with what it needs to resume. `durable`: it survives a power failure."""
    data = json.dumps({"state": state, "undone": [], **more}).encode()
    run_files.write_whole(os.path.join(store, STATE), data, durable=durable)


def _change(found: dict[str, Any]) -> FileChange:
    for name in ("before", "after"):
        if row := found.get(name):
            found[name] = Stamp._make(row)
    for name in ("old_inside", "new_inside", "targets"):
        if name in found:
            found[name] = {path: Stamp(*each) for path, each in found[name].items()}
    if "relinks" in found:
        found["relinks"] = tuple((name, target) for name, target in found["relinks"])
    return FileChange(**found)


def text_of(extended: dict[str, bytes]) -> Attributes:
    """Return extended attributes in a form for JSON."""
    return {name: value.hex() for name, value in extended.items()}


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
                new, real, name = entry.path, os.path.join(below, entry.name), _joined(inside, entry.name)
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
        parent, found_before, present = stamp(lower), len(self._found), set()
        if parent is None:
            self._gone.append(lower)
            return
        for entry in entries_of(upper):
            present.add(entry.name)
            real, after = os.path.join(lower, entry.name), present_stamp(entry.path)
            ctime = base.get(entry.name, 1)
            if ctime is not None and ctime > 0 and ctime != after.ctime:
                self._file(entry.path, real, stamp(real), after)
        for name in sorted(base.keys() - present):
            ctime, real = base[name], os.path.join(lower, name)
            before = stamp(real)
            if ctime is not None and ctime > 0 and before is not None:
                self._delete(real, before)
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
        touched = {os.path.dirname(change.path) for change in changes + links}
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
            change = change._replace(new_inside=inside, relinks=relinks, targets=targets or None)
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


def _outside_links(change: FileChange) -> int:
    """Return the number of names of a file that has further ones, which this change leaves as they are. 0: none has."""
    before = change.before
    if before is not None and not before.is_directory:
        return before.links if before.links > 1 else 0
    several = [found for found in (change.old_inside or {}).values() if found.links > 1 and not found.is_directory]
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
