"""Check before a transition that no file has changed since its preview, or since it was applied. Nothing is written."""

import os
from collections.abc import Iterable, Mapping, Sequence

from whisper_tui.changes.change_records import ADD, DELETE, LINK, FileChange, Inside, Plan, Result
from whisper_tui.changes.file_trees import differs, stamp, stamps_inside
from whisper_tui.changes.real_paths import OUT_OF_REACH, RealPaths
from whisper_tui.system.syscalls import open_directory


def changed_before_apply(plan: Plan, numbers: Iterable[int], real: RealPaths) -> list[str]:
    """Return the paths that are not as they were when the changes of these numbers were read."""
    found: list[str] = []
    deleted: set[str] | None = None
    for number in numbers:
        change = plan.changes[number]
        if change.op == LINK:
            if deleted is None:
                deleted = {each.path for each in plan.changes if each.op == DELETE}
            if change.path not in deleted and not real.is_free(change.path):
                found.append(change.path)
        elif change.before is None:
            if not real.is_free(change.path):
                found.append(change.path)
        elif differs(real.stamp(change.path), change.before):
            found.append(change.path)
        elif change.moved_to:
            if not real.is_free(change.moved_to):
                found.append(change.moved_to)
        elif change.old_inside is not None:
            found += _differences(change.path, change.old_inside)
        if change.targets:
            found += [path for path, old in change.targets.items() if differs(stamp(path), old)]
    return found


def changed_before_undo(
    plan: Plan, numbers: Iterable[int], real: RealPaths, results: Mapping[int, Result]
) -> list[str]:
    """Return the paths that are not as they were when the changes of these numbers had been made real."""
    found: list[str] = []
    renewed: set[str] | None = None
    for number in numbers:
        change, result = plan.changes[number], results[number]
        if change.op == DELETE:
            if renewed is None:
                renewed = {each.path for each in plan.changes if each.op in (ADD, LINK)}
            if change.path not in renewed and not real.is_free(change.path):
                found.append(change.path)
        elif differs(real.stamp(change.new_path), result.found):
            found.append(change.new_path)
        elif change.moved_to:
            if not real.is_free(change.path):
                found.append(change.path)
        elif result.inside is not None:
            found += _differences(change.path, result.inside)
    return found


def changed_directories(plan: Plan) -> list[str]:
    """Return the directories with changed entries that are not those that they were when the changes were read."""
    found = []
    for directory in plan.directories:
        present = stamp(directory.path)
        identity = (directory.inode, directory.old_mode)
        if present is None or (present.inode, present.mode) != identity or not _is_plain(directory.path):
            found.append(directory.path)
    return found


def replaced_directories(plan: Plan, numbers: Iterable[int]) -> list[str]:
    """Return the directories with entries of these changes that are others than when the changes were read."""
    found, parents = [], parents_of([plan.changes[number] for number in numbers])
    for directory in plan.directories:
        present = stamp(directory.path)
        if directory.path in parents and (
            present is None or present.inode != directory.inode or not _is_plain(directory.path)
        ):
            found.append(directory.path)
    return found


def parents_of(changes: Sequence[FileChange]) -> set[str]:
    """Return the directories with the names that these changes add, change or remove."""
    found = {change.path.rpartition("/")[0] or "/" for change in changes}
    return found.union(change.moved_to.rpartition("/")[0] or "/" for change in changes if change.moved_to)


def _differences(top: str, wanted: Inside) -> list[str]:
    """Return the paths below a directory that are not as these stamps say."""
    try:
        found = stamps_inside(top)
    except OSError:
        return [top]
    if found == wanted:
        return []
    return [
        os.path.join(top, name) for name in found.keys() | wanted.keys() if differs(found.get(name), wanted.get(name))
    ]


def _is_plain(directory: str) -> bool:
    """True if no part of the path is a symbolic link."""
    try:
        os.close(open_directory(directory))
    except OSError as error:
        if error.errno not in OUT_OF_REACH:
            raise
        return False
    return True
