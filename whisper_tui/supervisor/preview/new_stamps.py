"""The stamps that files have after an undo: for applying the same changes again, and for undoing the rest."""

from collections.abc import Mapping, Sequence
from typing import Any

from whisper_tui.supervisor.preview.change_records import FileChange, Inside, Plan, Result, has_names
from whisper_tui.supervisor.preview.file_trees import stamps_inside
from whisper_tui.supervisor.preview.stamps import Stamp, differs, stamp


def restored_stamps(
    changes: Sequence[FileChange], restored: Mapping[int, Stamp | None]
) -> tuple[dict[int, Stamp], dict[int, dict[str, Any]]]:
    """Return the new stamps of what was there before, and other new fields, after all changes were taken back.

    Both by the number of the change. `restored`: files of changes, as far as they are known.
    """
    befores: dict[int, Stamp] = {}
    others: dict[int, dict[str, Any]] = {}
    for number, change in enumerate(changes):
        before, present = change.before, None
        if before is not None:
            present = restored.get(number) or stamp(change.path)
            befores[number] = present if present and present[:5] == before[:5] else _newer(present, before)
        if change.targets or change.relinks or change.old_inside is not None:
            others[number] = _new_inside(change, present)
    return befores, others


def _new_inside(change: FileChange, present: Stamp | None) -> dict[str, Any]:
    """Return the stamps of other files than that of a change itself. `present`: that file, restored."""
    found: dict[str, Any] = {}
    if change.targets:
        found["targets"] = _all_newer({path: stamp(path) for path in change.targets}, change.targets)
    if change.old_inside is not None and not differs(present, change.before, copied=True):
        found["old_inside"] = _all_newer(stamps_inside(change.path), change.old_inside)
    if change.new_inside is not None and change.relinks:
        # Further names of real files have become files of their own. The rest is as the command left it, as before.
        inside, old = stamps_inside(change.content, forced=True), change.new_inside
        found["new_inside"] = {name: inside.get(name, each)._replace(mode=each.mode) for name, each in old.items()}
    return found


def _all_newer(found: Mapping[str, Stamp | None], old: Inside) -> Inside:
    return {name: _newer(found.get(name), each) for name, each in old.items()}


def _newer(found: Stamp | None, old: Stamp) -> Stamp:
    """Return the new stamp of a file that was restored; the old one if somebody else has changed it since."""
    return old if found is None or differs(found, old, copied=True) else found


def stamps_of_rest(plan: Plan, results: dict[int, Result], undone: frozenset[int]) -> dict[int, Result]:
    """Return the results with new stamps for files that lost a further name: their change times differ."""
    for number, change in enumerate(plan.changes):
        result = results[number]
        if number in undone or result.found is None:
            continue
        inside = result.inside
        if inside is not None and any(has_names(each) for each in inside.values()):
            found = stamps_inside(change.path)
            inside = {name: _but_for_names(found.get(name), old) for name, old in inside.items()}
        results[number] = Result(_but_for_names(stamp(change.path), result.found), inside)
    return results


def _but_for_names(found: Stamp | None, old: Stamp) -> Stamp:
    """Return the new stamp of a file with several names, if nothing differs but those; else the old one."""
    if found is None or not has_names(old) or (*found[:5], found.inode) != (*old[:5], old.inode):
        return old
    return found
