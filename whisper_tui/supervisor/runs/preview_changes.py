"""The changes of a preview for people: one row for each file, with its kind, its flags and its content."""

import hashlib
import os
import stat
import threading
import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

from whisper_tui.changes import change_records, transition
from whisper_tui.changes.change_records import FileChange, Plan, load_plan
from whisper_tui.changes.file_trees import Stamp, stamp
from whisper_tui.changes.partial_undo import Separated, is_at, separate
from whisper_tui.changes.real_paths import KeptContents
from whisper_tui.effects.changes import diff_of, printable
from whisper_tui.effects.edit_results import Content, shown_versions
from whisper_tui.model.call import LARGEST_EDITED, EditAction, EditedFile, FileVersions
from whisper_tui.model.errors import Refused
from whisper_tui.model.preview import (
    MOST_LISTED,
    ChangeAction,
    ChangeCounts,
    ChangedFiles,
    ChangedKind,
    PreviewChange,
    PreviewPage,
    UndoDirection,
)
from whisper_tui.policy.risks.later_files import flagged_kind
from whisper_tui.supervisor.runs.renames import KnownFile, Rename, renames
from whisper_tui.system.host_files import read_regular

_CAPABILITIES = "security.capability"
_ACCESS_LISTS = ("system.posix_acl_access", "system.posix_acl_default")
EXECUTABLE = "it is executable"
"""The property of a changed file that a rule on effects permits: programs are what a build makes."""
MOST_NAMED = 3
"""Paths that are named as an example of many."""
MOST_COMPARED = 2 << 20
"""Bytes of files whose changed lines are counted."""
MOST_CHOSEN = 1000
"""Paths that one undo names."""
MOST_COUNTED, COUNTING_S = 100, 0.2
"""Files of which the changed lines are counted, and seconds after which they are counted in blocks only."""
LONGEST_NAMED = 300
"""Characters of something that a preview has named."""

_ACTIONS: dict[str, ChangeAction] = {
    change_records.ADD: "creates",
    change_records.DELETE: "deletes",
    change_records.REPLACE: "replaces",
    change_records.WRITE: "changes",
    change_records.ATTRIBUTES: "attributes",
    change_records.LINK: "links",
}
_NO_FILE = Stamp(0, 0, 0, 0, 0, 0, 0, 0)
_EDITS: dict[ChangeAction, EditAction] = {"creates": "creates", "links": "creates", "deletes": "deletes"}


class ChangedPath(NamedTuple):
    """One changed file: a change, or something below the directory that a change creates or deletes."""

    change: int
    """The index of its change in the plan."""
    below: str
    """Its path from the directory of the change on. Empty: it is the change itself."""
    action: ChangeAction
    path: str
    before: Stamp | None
    after: Stamp | None


@dataclass(frozen=True)
class PreviewStore:
    """The directory with the changes of one preview, or of one run in a view of the files."""

    directory: str
    home: str
    own: tuple[str, ...]
    """The directories of whisper_tui."""
    _reading: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    """Two threads may show files of it at once, and what is kept of them is read in parts."""

    @property
    def exists(self) -> bool:
        """True if its changes are there."""
        return os.path.exists(os.path.join(self.directory, change_records.PLAN))

    def version(self) -> tuple[Stamp | None, ...]:
        """Return the stamps of the files with its changes: they differ once it was applied or undone."""
        names = (change_records.PLAN, change_records.RENEWED, change_records.STATE)
        return tuple(stamp(os.path.join(self.directory, name)) for name in names)

    @cached_property
    def plan(self) -> Plan:
        """Its changes, as they are now."""
        return load_plan(self.directory)

    @cached_property
    def _kept(self) -> KeptContents:
        return KeptContents(self.directory)

    @cached_property
    def rows(self) -> list[ChangedPath]:
        """Every changed file, in the order of their paths. A directory comes before what is in it."""
        rows: list[ChangedPath] = []
        for index, change in enumerate(self.plan.changes):
            if change.op == change_records.MOVE or change.old_inside or change.new_inside:
                rows += _rows_of(index, change)
            else:
                rows.append(_row_of(index, change))
        # As their components sort: no path has the lowest character in it.
        return sorted(rows, key=lambda row: row.path.replace("/", "\0"))

    @cached_property
    def _renames(self) -> dict[int, Rename]:
        """The renames, by the number of the row of its new name."""
        by_path = {row.path: number for number, row in enumerate(self.rows) if row.action == "deletes"}
        if not by_path:
            return {}
        found = {
            number: Rename(by_path[self.plan.changes[row.change].path], 100)
            for number, row in enumerate(self.rows)
            if row.action == "creates" and self.plan.changes[row.change].op == change_records.MOVE
        }
        taken = found.keys() | {each.old for each in found.values()}
        gone, new = (
            [
                KnownFile(number, row.path, at.size, _likeness(at), partial(self._data, row, at, is_new=is_new))
                for number, row in enumerate(self.rows)
                if row.action == action and number not in taken
                if (at := row.after if is_new else row.before) is not None and _kind(at) in {"file", "link"}
            ]
            for action, is_new in (("deletes", False), ("creates", True))
        )
        return self._with_directories(found | renames(gone, new))

    def _data(self, row: ChangedPath, found: Stamp, *, is_new: bool) -> bytes | None:
        return self.content(row, found, is_new=is_new).data

    def _with_directories(self, files: dict[int, Rename]) -> dict[int, Rename]:
        """Add the directories of which everything was renamed alike."""
        old_trees, new_trees = self._trees("deletes"), self._trees("creates")
        found = dict(files)
        for new in new_trees.values():
            inside = next((inside for inside, number in new.items() if number in files), None)
            if inside is None or new[""] in found:
                continue
            old_path = self.rows[files[new[inside]].old].path
            old = old_trees.get(old_path.removesuffix(inside), {}) if old_path.endswith(inside) else {}
            if old.keys() != new.keys():
                continue
            directories = [each for each in new if self._is_directory(new[each]) and self._is_directory(old[each])]
            others = [files.get(new[each]) for each in new if each not in directories]
            if [each.old for each in others if each] == [old[each] for each in new if each not in directories]:
                alike = min(each.alike for each in others if each)
                found.update({new[each]: Rename(old[each], alike) for each in directories})
        return found

    def _trees(self, action: ChangeAction) -> dict[str, dict[str, int]]:
        """Return the numbers of all rows in created or deleted directories, by their paths from there on."""
        trees: dict[str, dict[str, int]] = {}
        # A directory comes before what is in it.
        for number, row in enumerate(self.rows):
            if row.action != action:
                continue
            if self._is_directory(number):
                trees[row.path] = {"": number}
            for above in _above(row.path, trees):
                trees[above][row.path[len(above) :]] = number
        return trees

    def _is_directory(self, number: int) -> bool:
        row = self.rows[number]
        return (row.after or row.before or _NO_FILE).is_directory

    @cached_property
    def _renamed_to(self) -> dict[int, int]:
        """The numbers of the rows of new names, by those of the old ones."""
        return {rename.old: number for number, rename in self._renames.items()}

    def digest(self) -> str:
        """Return the SHA-256 of all changes."""
        with open(os.path.join(self.directory, change_records.PLAN), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def page(self, workspace: str, after: int, limit: int) -> PreviewPage:
        """Return rows from a number on, and what stands in the way of applying or undoing them."""
        rows = self.rows[after : after + limit]
        shown = (self._shown(number, row, workspace) for number, row in enumerate(rows, after))
        conflicts = () if after else tuple(printable(path) for path in self.conflicts()[:MOST_LISTED])
        return PreviewPage(
            changes=tuple(shown), total=len(self.rows), counts=self.counts(workspace), conflicts=conflicts
        )

    def conflicts(self) -> list[str]:
        """Return the paths that prevent applying the changes, or taking them back."""
        if self.plan.state == change_records.PREVIEWED:
            return transition.conflicts(self.directory, self.plan)
        if self.plan.state == change_records.APPLIED:
            return transition.undo_conflicts(self.directory, self.plan)
        return []

    def counts(self, workspace: str) -> ChangeCounts:
        """Return how many rows there are of each kind."""
        if workspace not in self._counts:
            self._counts[workspace] = self._counted(workspace)
        return self._counts[workspace]

    @cached_property
    def _counts(self) -> dict[str, ChangeCounts]:
        return {}

    def _counted(self, workspace: str) -> ChangeCounts:
        numbers = dict.fromkeys(("creates", "changes", "deletes", "renames", "attributes"), 0)
        below = workspace.rstrip("/") + "/"
        outside = flagged = 0
        for number, (row, flags) in enumerate(zip(self.rows, self.flags, strict=True)):
            if number in self._renames:
                numbers["renames"] += 1
            elif number not in self._renamed_to:
                numbers[_COUNTED.get(row.action, row.action)] += 1
            outside += not row.path.startswith(below) and row.path != workspace
            flagged += bool(flags)
        return ChangeCounts(
            created=numbers["creates"],
            changed=numbers["changes"],
            deleted=numbers["deletes"],
            renamed=numbers["renames"],
            attributes=numbers["attributes"],
            outside=outside,
            flagged=flagged,
        )

    def summary(self, workspace: str, counts: ChangeCounts | None) -> ChangedFiles:
        """Return its changes in short. `counts`: None if they are not known from its preview."""
        files = [number for number in range(len(self.rows)) if not self._is_directory(number)]
        lines = self._lines(files)
        return ChangedFiles(
            counts=self.counts(workspace) if counts is None else counts,
            added=None if lines is None else lines[0],
            removed=None if lines is None else lines[1],
            paths=tuple(printable(self.rows[number].path) for number in (files or range(len(self.rows)))[:MOST_NAMED]),
        )

    def _lines(self, files: Sequence[int]) -> tuple[int, int] | None:
        """Return how many lines were added and removed. None: that takes too long, or not all are text."""
        changed = {
            number: row
            for number in files
            if (row := self.rows[number]).action not in {"attributes", "links"} and number not in self._renamed_to
        }
        sizes = [each.size for row in changed.values() for each in (row.before, row.after) if each is not None]
        if len(changed) > MOST_COUNTED or sum(sizes) > MOST_COMPARED:
            return None
        late_at, added, removed = time.monotonic() + COUNTING_S, 0, 0
        for number, row in changed.items():
            old, new = self._old(number), self.content(row, row.after, is_new=True)
            if old.unknown or new.unknown:
                return None
            diff, _ = diff_of(old.data or b"", new.data or b"", lambda: time.monotonic() > late_at)
            if diff is None:
                return None
            added, removed = added + diff.added, removed + diff.removed
        return added, removed

    def _old(self, number: int) -> Content:
        """Return the content that a file had before, perhaps under another name."""
        rename = self._renames.get(number)
        row = self.rows[number if rename is None else rename.old]
        return self.content(row, row.before, is_new=False)

    def _shown(self, number: int, row: ChangedPath, workspace: str) -> PreviewChange:
        rename, moved_to = self._renames.get(number), self._renamed_to.get(number)
        source = row if rename is None else self.rows[rename.old]
        change = self.plan.changes[row.change]
        inside = change.new_inside or change.old_inside or {}
        return PreviewChange(
            number=number,
            action=row.action,
            path=printable(row.path),
            kind=_kind(row.after or row.before),
            size_before=_size(source.before),
            size_after=_size(row.after),
            mode_before=None if source.before is None else stat.S_IMODE(source.before.mode),
            mode_after=None if row.after is None else stat.S_IMODE(row.after.mode),
            below=0 if row.below else len(inside),
            outside=not is_at(row.path, workspace),
            moved_from="" if rename is None else printable(source.path),
            moved_to="" if moved_to is None else printable(self.rows[moved_to].path),
            alike=None if rename is None else rename.alike,
            flags=self.flags[number],
            taken_back=self.plan.state == change_records.UNDONE or row.change in self.plan.undone,
        )

    @cached_property
    def flags(self) -> list[tuple[str, ...]]:
        """Clauses about each row that say what is special about it."""
        return [tuple(self._flags_of(number, row)) for number, row in enumerate(self.rows)]

    def _flags_of(self, number: int, row: ChangedPath) -> Iterator[str]:
        """Yield what is special about a changed file, as clauses."""
        change, after = self.plan.changes[row.change], row.after
        if kind := flagged_kind(row.path, self.home, self.own):
            yield f"it is {kind}"
        if after is not None and stat.S_ISREG(after.mode):
            before = row.before.mode if row.before is not None else 0
            if after.mode & 0o6000 & ~before:
                yield "it runs with the rights of its owner or group"
            elif self._gets_capabilities(row):
                yield "it runs with rights of root"
            elif after.mode & 0o111 and not before & 0o111:
                yield EXECUTABLE
        elif after is not None and (stat.S_ISFIFO(after.mode) or stat.S_ISSOCK(after.mode)):
            yield "other programs can wait for it, or answer through it"
        same = change.op in {change_records.MOVE, change_records.LINK}
        if after is not None and not same and not stat.S_ISLNK(after.mode):
            yield from self._opened_to_others(number, row, after)
        if not row.below and change.links > 1:
            yield f"the file has {change.links} names, and only this one changes"
        if not row.below and change.acl:
            yield "it loses its access control list"

    def _opened_to_others(self, number: int, row: ChangedPath, after: Stamp) -> Iterator[str]:
        """Yield how other users get at a changed file who did not before, as clauses."""
        rename = self._renames.get(number)
        before = row.before if rename is None else self.rows[rename.old].before
        if before is not None and stat.S_IFMT(before.mode) != stat.S_IFMT(after.mode):
            before = None  # The mode of a link says nothing.
        in_place = row.action in {"changes", "attributes"}
        if before is None or not in_place:
            # A new file is that of whoever makes it, or goes by its directory or by the file that it replaces.
            usual = [(os.geteuid(), os.getegid()), *([] if before is None else [before[1:3]])]
            if not _belongs_to(after, usual) and (above := self._directory_of(row)) is not None:
                usual.append(above[1:3])
            changes_hands = not _belongs_to(after, usual)
        else:
            changes_hands = before[1:3] != after[1:3]
        if changes_hands:
            yield "its owner or group is another one"
        if before is None:
            if after.mode & stat.S_IWOTH:
                yield "anybody may write to it"
        elif after.mode & ~before.mode & (0o077 if after.is_directory else 0o066):
            # A file that others may start is told by itself, and programs are what a build makes.
            yield "more users may read it or write to it"
        elif any(self._gets(row, name) for name in _ACCESS_LISTS):
            yield "it gets another access control list"

    def _directory_of(self, row: ChangedPath) -> Stamp | None:
        """Return the stamp of the directory in which a changed file lies afterwards."""
        change, above = self.plan.changes[row.change], os.path.dirname(row.below)
        if not row.below:
            return stamp(os.path.dirname(row.path))
        return (change.new_inside or {}).get(above) if above else change.after

    def _gets_capabilities(self, row: ChangedPath) -> bool:
        """True if a file gets capabilities, which only root can give: whoever starts it has them."""
        return os.geteuid() == 0 and self._gets(row, _CAPABILITIES)

    def _gets(self, row: ChangedPath, name: str) -> bool:
        """True if a file gets an extended attribute, or another value of it."""
        change = self.plan.changes[row.change]
        if change.new_attributes is not None:
            old = change.old_attributes or {}
            return change.new_attributes.get(name, "") not in {"", old.get(name)}
        if not change.content:
            return False
        place = self.content_path(row.change, new=True)
        try:
            return bool(os.getxattr(os.path.join(place, row.below) if row.below else place, name))
        except OSError:
            return False

    def versions(self, workspace: str, number: int) -> FileVersions:
        """Return the content of a changed file before and after. Raises `Refused` if there is no such row."""
        if not 0 <= number < len(self.rows):
            raise Refused(f"there is no change {number}", hint=f"There are {len(self.rows):,}, from 0")
        row, rename = self.rows[number], self._renames.get(number)
        prefix = workspace.rstrip("/") + "/"
        source = row if rename is None else self.rows[rename.old]
        file = EditedFile(
            action=_EDITS.get(row.action, "changes") if rename is None else "moves",
            path=printable(row.path),
            real=printable(row.path),
            size=_size(source.before),
            mode=None if source.before is None else stat.S_IMODE(source.before.mode),
            moved_from="" if rename is None else printable(source.path),
            inside=printable(row.path.removeprefix(prefix)) if is_at(row.path, workspace) else "",
        )
        return shown_versions(file, self._old(number), self.content(row, row.after, is_new=True))

    def content(self, row: ChangedPath, found: Stamp | None, *, is_new: bool) -> Content:
        """Return the content of a changed file, or why it is not shown."""
        if found is None:
            return Content(None)
        if found.is_directory:
            return Content(None, "it is a directory")
        place = self.content_path(row.change, new=is_new)
        path = os.path.join(place, row.below) if row.below else place
        try:
            if not is_new and self._is_applied(row.change) and (kept := self._old_content(row.change)) is not None:
                return Content(kept)
            if stat.S_ISLNK(found.mode):
                return Content(f"{os.readlink(path)}\n".encode(errors="surrogateescape"))
        except OSError as error:
            return Content(None, f"it cannot be read: {error.strerror}")
        if not found.is_file:
            return Content(None, "it is not a regular file")
        data, why = read_regular(path, LARGEST_EDITED)
        return Content(data, why)

    def _old_content(self, number: int) -> bytes | None:
        with self._reading:
            return self._kept.content(number)

    def content_path(self, number: int, *, new: bool) -> str:
        """Return where the content of a change is, as it was before or as it is after it."""
        change = self.plan.changes[number]
        if not self._is_applied(number):
            return change.content if new else change.path
        if new:
            return change.new_path
        kept = self._kept.path(number)
        # Within one file system the two files have exchanged their names.
        return kept if os.path.lexists(kept) else change.content

    def _is_applied(self, number: int) -> bool:
        return self.plan.state == change_records.APPLIED and number not in self.plan.undone

    @property
    def is_redoable(self) -> bool:
        """True if all of its changes are undone, or some."""
        return self.plan.state == change_records.UNDONE or bool(self.plan.undone)

    def why_not_moved(self, direction: UndoDirection) -> str:
        """Return why the changes cannot be undone, or redone, as they are now. Empty: they can be tried."""
        if direction == "undo":
            return "its changes are undone already" if self.plan.state == change_records.UNDONE else ""
        if self.plan.state != change_records.APPLIED or self.plan.undone:
            return ""
        return "its changes are not undone"

    def all_but(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return the paths of all changes that are still real, but for these. Raises `Refused`."""
        left, named = [], set[str]()
        for number, change in enumerate(self.plan.changes):
            hit = [path for path in paths if any(f"{each}/".startswith(f"{path}/") for each in change.paths)]
            named.update(hit)
            if not hit and number not in self.plan.undone:
                left.append(change.path)
        if unknown := [path for path in paths if path not in named]:
            # A part of a tree that came or went as a whole cannot stay alone.
            hint = "whisper-tui undo ID --dry-run lists the changes; a tree is undone as a whole"
            raise Refused(f"{unknown[0]} is not among its changes", hint=hint)
        if not left or len(left) > MOST_CHOSEN:
            why = "no other change is left" if not left else f"more than {MOST_CHOSEN:,} changes are left"
            raise Refused(f"nothing was undone: {why}", hint="Name the paths that are to be undone")
        return tuple(left)

    def separated(self, wanted: Sequence[str]) -> Separated:
        """Tell the changes that can be undone as the files are now from the others that are still real."""
        if self.plan.state in (change_records.UNDONE, change_records.PREVIEWED) or self.plan.is_empty:
            return Separated([], [])
        found = transition.undo_conflicts(self.directory, self.plan)
        return separate(self.plan, change_records.load_results(self.directory), found, wanted)

    def move(self, direction: UndoDirection, paths: Sequence[str]) -> None:
        """Take the changes back, or make them again. Raises `Conflict`, `TransitionFailed`; then nothing was done."""
        if direction == "redo":
            transition.apply(self.directory)
        elif paths:
            transition.undo_only(self.directory, paths)
        else:
            transition.undo(self.directory)


def _likeness(found: Stamp) -> tuple[int, ...]:
    """Return what of a file stays the same when it is moved."""
    return found.mode, found.size, found.mtime


def _belongs_to(found: Stamp, owners: Sequence[Sequence[int]]) -> bool:
    """True if a file has the owner of one of these, and the group of one of these."""
    return found.uid in {each[0] for each in owners} and found.gid in {each[1] for each in owners}


_COUNTED: dict[ChangeAction, str] = {"replaces": "changes", "links": "creates"}


def _rows_of(index: int, change: FileChange) -> Iterator[ChangedPath]:
    if change.op == change_records.MOVE:
        yield ChangedPath(index, "", "deletes", change.path, change.before, None)
        yield ChangedPath(index, "", "creates", change.moved_to, None, change.after)
        return
    yield _row_of(index, change)
    for names, below_action in ((change.old_inside, "deletes"), (change.new_inside, "creates")):
        for name, found in sorted((names or {}).items()):
            gone: ChangeAction = "deletes" if below_action == "deletes" else "creates"
            before, after = (found, None) if gone == "deletes" else (None, found)
            yield ChangedPath(index, name, gone, os.path.join(change.path, name), before, after)


def _row_of(index: int, change: FileChange) -> ChangedPath:
    return ChangedPath(index, "", _ACTIONS[change.op], change.path, change.before, change.after)


def _above(path: str, directories: Container[str]) -> Iterator[str]:
    """Yield the directories above a path that are among these."""
    while (path := os.path.dirname(path)) in directories:
        yield path


def _kind(found: Stamp | None) -> ChangedKind:
    mode = 0 if found is None else found.mode
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "link"
    return "file" if stat.S_ISREG(mode) else "special"


def _size(found: Stamp | None) -> int | None:
    return None if found is None or not found.is_file else found.size


def named(text: str) -> str:
    """Return something that a preview names, for a sentence."""
    return printable(text)[:LONGEST_NAMED]
