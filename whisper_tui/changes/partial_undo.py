"""The changes of a plan that can be undone although somebody has changed files of others since."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from whisper_tui.changes.change_records import ATTRIBUTES, WRITE, FileChange, Plan, Result


class Separated(NamedTuple):
    """The changes that are still real, by their numbers."""

    chosen: list[int]
    """Those that can be undone."""
    left: list[int]
    """Those that cannot, because of what others have changed, or because they hang together with such ones."""


def separate(
    plan: Plan, results: Mapping[int, Result], changed: Iterable[str], wanted: Sequence[str] = ()
) -> Separated:
    """Tell changes that can be undone from others. `changed`: the paths that are no longer as the changes left them.

    `wanted`: only changes of these paths, and of what is below them. None: of all.
    """
    hit = set(changed)
    still = [number for number in range(len(plan.changes)) if number not in plan.undone]
    chosen = {number for number in still if _is_wanted(plan.changes[number], wanted)}
    left = {number for number in chosen if _is_hit(plan.changes[number], hit) or _is_part(plan.changes[number], wanted)}
    while True:
        chosen -= left
        # To undo a path undoes everything below it.
        kept = [path for number in still if number not in chosen for path in plan.changes[number].paths]
        bound = {*kept, *(above for path in kept for above in _above(path))}
        inodes = {inode for number in still if number not in chosen for inode in results[number].shared()}
        more = {
            number
            for number in chosen
            if plan.changes[number].path in bound
            or (plan.changes[number].op in (WRITE, ATTRIBUTES) and results[number].shared() & inodes)
        }
        if not more:
            return Separated(sorted(chosen), sorted(left))
        left |= more


def _is_wanted(change: FileChange, wanted: Sequence[str]) -> bool:
    return not wanted or any(is_at(path, each) for path in change.paths for each in wanted) or _is_part(change, wanted)


def _is_part(change: FileChange, wanted: Sequence[str]) -> bool:
    """True if only a part of what a change has added or removed is wanted."""
    if change.old_inside is None and change.new_inside is None:
        return False
    return (
        bool(wanted)
        and not any(is_at(change.path, each) for each in wanted)
        and any(is_at(each, change.path) for each in wanted)
    )


def _is_hit(change: FileChange, hit: set[str]) -> bool:
    """True if a file of a change, anything in it, or its directory is another."""
    tree = change.old_inside is not None or change.new_inside is not None
    return any(
        path in hit or os.path.dirname(path) in hit or (tree and any(is_at(each, path) for each in hit))
        for path in change.paths
    )


def is_at(path: str, top: str) -> bool:
    """True if a path is a directory or in it."""
    return path == top or path.startswith(f"{top.rstrip('/')}/")


def _above(path: str) -> Iterator[str]:
    while (path := os.path.dirname(path)) not in ("", "/"):
        yield path
