"""Make the changes of a preview real, all or none, and undo them; resumable after a crash at any point.

The plan and a small state file lie in the store. A state is written before the first step that it announces. Each step
recognizes by inodes if it is still due, so that `resume` repeats all steps of the current direction. A step that fails
undoes the steps before it: decision 16.
"""

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from types import TracebackType
from typing import Any, NoReturn, Self

from whisper_tui.changes.change_checks import (
    changed_before_apply,
    changed_before_undo,
    changed_directories,
    parents_of,
    replaced_directories,
)
from whisper_tui.changes.change_records import (
    ADD,
    APPLIED,
    APPLYING,
    ATTRIBUTES,
    DELETE,
    LINK,
    MOVE,
    PREVIEWED,
    REPLACE,
    UNDOING,
    UNDONE,
    WRITE,
    DirectoryState,
    FileChange,
    Plan,
    Result,
    has_names,
    load_plan,
    load_results,
    load_state,
    restored_stamps,
    result_of,
    save_renewed,
    save_results,
    save_state,
    stamps_of_rest,
)
from whisper_tui.changes.change_steps import ChangeSteps, is_alike, is_ours
from whisper_tui.changes.file_trees import Stamp, change_mode, remove_tree, stamp
from whisper_tui.changes.meanings import renewed_before, renewed_directories, renewed_results
from whisper_tui.changes.real_paths import KEPT, Conflict, RealPaths
from whisper_tui.changes.step_notes import make_notes
from whisper_tui.system.syscalls import flush_file_system


class TransitionFailed(Exception):
    """A step failed or is not possible. The text says which, and what became of the others."""


class DependentChanges(TransitionFailed):
    """The chosen changes cannot be moved without others, or are none. Nothing was tried."""


def conflicts(store: str, plan: Plan) -> list[str]:
    """Return the paths that are not as they were when the changes were read: each prevents `apply`."""
    numbers = _to_apply(store, plan)
    found = _conflicts(plan, numbers)
    if not found:
        return found
    befores, others, inodes = _renewed(store, plan, numbers)
    if not befores and not others and not inodes:
        return found
    return _conflicts(_with_inodes(_with_renewed(plan, befores, others), inodes), numbers)


def undo_conflicts(store: str, plan: Plan) -> list[str]:
    """Return the paths that are not as they were when the changes were made real: each prevents `undo`."""
    results, chosen = load_results(store), _still_applied(plan)
    found = _undo_conflicts(plan, results, chosen)
    if not found:
        return found
    renewed, _ = renewed_results(store, plan, results, chosen)
    inodes = renewed_directories(plan, parents_of([plan.changes[number] for number in chosen]))
    return _undo_conflicts(_with_inodes(plan, inodes), renewed, chosen)


def _renewed(
    store: str, plan: Plan, numbers: Sequence[int]
) -> tuple[dict[int, Stamp], dict[int, dict[str, Any]], dict[str, int]]:
    """Return what is, in meaning, as it was before these changes: files, as `renewed_before` does, and directories."""
    parents = parents_of([plan.changes[number] for number in numbers])
    inodes = renewed_directories(plan, parents) if plan.state != PREVIEWED else {}
    return (*renewed_before(store, plan, numbers), inodes)


def _with_inodes(plan: Plan, inodes: Mapping[str, int]) -> Plan:
    directories = tuple(each._replace(inode=inodes.get(each.path, each.inode)) for each in plan.directories)
    return plan._replace(directories=directories)


def _undo_conflicts(plan: Plan, results: dict[int, Result], chosen: Sequence[int]) -> list[str]:
    with RealPaths("", plan.directories) as real:
        found = changed_before_undo(plan, chosen, real, results)
    return _unique(found, replaced_directories(plan, chosen))


def _conflicts(plan: Plan, numbers: Sequence[int]) -> list[str]:
    with RealPaths("", plan.directories) as real:
        found = changed_before_apply(plan, numbers, real)
    changed = replaced_directories(plan, numbers) if plan.undone else changed_directories(plan)
    return _unique(plan.meanwhile, changed, found)


def _with_renewed(plan: Plan, befores: Mapping[int, Stamp], others: Mapping[int, dict[str, Any]]) -> Plan:
    changes = list(plan.changes)
    for number, before in befores.items():
        changes[number] = changes[number]._replace(before=before)
    for number, fields in others.items():
        changes[number] = changes[number]._replace(**fields)
    return plan._replace(changes=tuple(changes))


class _Touched(Conflict):
    """Files have other stamps than the plan says. Nothing was begun."""


def apply(store: str) -> Plan:
    """Make all changes real, or those that are undone. Returns the plan as it is then; again, nothing happens.

    Raises `Conflict` if somebody else changed any of the files: nothing was done. Raises `TransitionFailed` if a step
    fails: what had been done was undone.
    """
    with _locked(store):
        plan = load_plan(store)
        if plan.state == UNDOING:
            _resume(store, plan)
            # What was undone has new stamps.
            plan = load_plan(store)
        if plan.state == APPLIED and plan.undone and any(map(_has_other_names, plan.changes)):
            # Which names are those of one file depends on the order of all changes.
            plan = _undo(store, plan, load_results(store), _still_applied(plan))
            plan = load_plan(store)
        return plan if (plan.state == APPLIED and not plan.undone) or plan.is_empty else _apply(store, plan)


def _still_applied(plan: Plan) -> list[int]:
    return [number for number in range(len(plan.changes)) if number not in plan.undone]


def _has_other_names(change: FileChange) -> bool:
    """True if a file of a change has several names, or gets further ones."""
    known = (change.before, change.after, *(change.old_inside or {}).values(), *(change.new_inside or {}).values())
    return bool(change.op == LINK or change.targets or change.relinks) or any(
        each and has_names(each) for each in known
    )


def undo(store: str) -> Plan:
    """Take all changes back that were made real. Returns the plan in its new state; the second time nothing happens.

    Raises `Conflict` if any of the files changed since: nothing was done.
    """
    with _locked(store):
        plan = load_plan(store)
        if plan.state == APPLYING:
            plan = _apply(store, plan)
        if plan.state in (PREVIEWED, UNDONE):
            return plan
        results = load_results(store)
        if plan.state == UNDOING:
            return _resume_undo(store, plan, results)
        return _undo(store, plan, results, _still_applied(plan))


def undo_only(store: str, paths: Iterable[str]) -> Plan:
    """Undo only the changes of these paths, and of everything below them. The rest stays as applied.

    Raises `TransitionFailed` if they cannot be undone on their own, or `Conflict`: nothing was done.
    """
    with _locked(store):
        plan = load_plan(store)
        if plan.state in (APPLYING, UNDOING):
            plan = _resume(store, plan)
        if plan.state != APPLIED and not plan.is_empty:
            raise TransitionFailed("the changes of this preview are not applied. Apply them before undoing any.")
        results = {} if plan.is_empty else load_results(store)
        return _undo(store, plan, results, _chosen(plan, results, list(paths)))


def resume(store: str) -> Plan:
    """Finish what a crash interrupted. Returns the plan as it is then; without a crash nothing happens."""
    with _locked(store):
        return _resume(store, load_plan(store))


def _resume(store: str, plan: Plan) -> Plan:
    if plan.state == APPLYING:
        return _apply(store, plan)
    return _resume_undo(store, plan, load_results(store)) if plan.state == UNDOING else plan


@contextmanager
def _locked(store: str) -> Iterator[None]:
    """Hold the store: two transitions of the same preview follow each other. Errors become sentences."""
    try:
        fd = os.open(store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
    except OSError as error:
        raise TransitionFailed(f"{_sentence(error)} It can be tried again when that is repaired.") from error


_Made = dict[int, Stamp | None]
"""Files after their steps, by the number of the change. None: a later step may change it, or there is none."""


class _Transition:
    """The work of a transition. `numbers`: the changes, in the order of their steps.

    `results`: what an undo must find; None: the changes are made real.
    """

    def __init__(
        self,
        store: str,
        plan: Plan,
        numbers: Sequence[int],
        results: Mapping[int, Result] | None = None,
        *,
        resumed: bool = False,
    ) -> None:
        self.begun: set[int] = set()
        """The changes whose steps may have been done, or begun."""
        self.left: set[int] = set()
        """The changes that could not be taken back, since somebody has changed their files."""
        self.real = RealPaths(store, plan.directories)
        """The opened parents of the steps. Checks open their own: a parent is looked at again before the first step."""
        self._store = store
        self._plan = plan
        self._numbers = numbers
        self._results = results
        self._resumed = resumed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.real.close()

    def keep(self) -> None:
        """Keep what the steps overwrite. Raises `OSError`."""
        changes = self._plan.changes
        with RealPaths(self._store, self._plan.directories) as checked:
            steps = ChangeSteps(self._store, checked)
            if any(change.op == DELETE for change in changes):
                steps.contents.make_groups(len(changes))
            for number in self._numbers:
                steps.keep(number, changes[number])
            steps.contents.save()

    def make(self) -> _Made:
        """Make all steps. Raises `OSError` and `Conflict`: then those that `begun` names may be done."""
        made: _Made = {}
        steps = ChangeSteps(self._store, self.real, resumed=self._resumed)
        for number in self._numbers:
            self.begun.add(number)
            change = self._plan.changes[number]
            if self._results is None:
                made[number] = steps.make_real(number, change)
            else:
                made[number] = steps.take_back(number, change, self._results[number])
        self.left = steps.left
        return made

    def make_again(self) -> _Made:
        """Make the changes real again whose undoing was begun, in their order. Raises `OSError` and `Conflict`."""
        steps = ChangeSteps(self._store, self.real, resumed=True)
        found = self._results or {}
        return {
            number: steps.make_again(number, self._plan.changes[number], found[number].found)
            for number in sorted(self.begun)
        }


# Applying


def _apply(store: str, plan: Plan) -> Plan:
    try:
        return _apply_checked(store, plan)
    except _Touched:
        befores, others, inodes = _renewed(store, plan, _to_apply(store, plan))
        if not befores and not others and not inodes:
            raise
        save_renewed(store, befores, others, inodes)
        return _apply_checked(store, load_plan(store))


def _to_apply(store: str, plan: Plan) -> Sequence[int]:
    """Return the changes to make real: all, or those that were undone while others stayed applied."""
    if plan.state == APPLYING:
        chosen: Sequence[int] = load_state(store).get("chosen", range(len(plan.changes)))
        return chosen
    return sorted(plan.undone) if plan.state == APPLIED else range(len(plan.changes))


def _apply_checked(store: str, plan: Plan) -> Plan:
    resumed, numbers = plan.state == APPLYING, _to_apply(store, plan)
    with _Transition(store, plan, numbers, resumed=resumed) as work:
        if not resumed:
            if found := _conflicts(plan, numbers):
                raise _Touched(found, load_state(store).get("left", ()))
            _begin_apply(store, plan, work, numbers)
        untimed = set(load_state(store).get("untimed", ()))
        try:
            _open_for_writing(plan.directories, work.real)
            made = work.make()
            _settle(plan.directories, work.real, untimed, applied=True)
        except (OSError, Conflict) as error:
            # Before a crash, later steps may have been done as well.
            begun = set(numbers) if resumed else work.begun
            _roll_back(store, plan, _announce_rollback(store, plan, numbers, begun, untimed), error)
    results = load_results(store) if plan.undone else {}
    for number in numbers:
        results[number] = Result(known) if (known := made[number]) else result_of(plan.changes[number])
    save_results(store, results)
    _flush(store, plan)
    # Without the disk's word for it, steps would be repeated after a power failure, over what others wrote since.
    save_state(store, APPLIED, durable=True, untimed=sorted(untimed))
    return plan._replace(state=APPLIED, undone=frozenset())


def _begin_apply(store: str, plan: Plan, work: _Transition, numbers: Sequence[int]) -> None:
    """Keep what the steps overwrite, and announce them: all of it is on the disk before the first step."""
    if plan.undone:
        # What they overwrite is kept since they were made real first, beside that of the changes that stayed applied.
        untimed = _untimed(_partly(plan, plan.undone), applied=False)
        save_state(store, APPLYING, untimed=untimed, chosen=list(numbers), undone=sorted(plan.undone))
    else:
        remove_tree(os.path.join(store, KEPT))
        try:
            work.keep()
            make_notes(store, len(plan.changes))
        except OSError as error:
            remove_tree(os.path.join(store, KEPT))
            raise TransitionFailed(f"{_sentence(error)} Nothing was changed.") from error
        save_state(store, APPLYING, untimed=_untimed(plan.directories, applied=False))
    flush_file_system(store)


def _announce_rollback(
    store: str, plan: Plan, numbers: Sequence[int], begun: set[int], untimed: set[str]
) -> dict[int, Result]:
    """Note what a rollback finds, and that it begins. `begun`: the changes whose steps may have been done."""
    results = load_results(store) if plan.undone else {}
    for number in numbers:
        # What differs in the files of other steps is somebody else's work.
        results[number] = _result_of_part(plan.changes[number]) if number in begun else Result(None)
    save_results(store, results)
    undone = sorted(plan.undone.difference(numbers))
    save_state(store, UNDOING, untimed=sorted(untimed), chosen=list(numbers), rolls_back=True, undone=undone)
    return results


def _roll_back(store: str, plan: Plan, results: dict[int, Result], error: OSError | Conflict) -> NoReturn:
    """Undo the steps that were done before one failed. Raises the reason in any case."""
    try:
        _resume_undo(store, plan, results)
        left: list[str] = load_state(store).get("left", [])
    except (OSError, TransitionFailed) as second:
        raise TransitionFailed(
            f"{_sentence(error)} Taking back what had been done failed as well: {_sentence(second)} "
            "It will be tried again with the next resumption."
        ) from error
    if left or isinstance(error, Conflict):
        raise Conflict(error.paths if isinstance(error, Conflict) else left, left) from error
    raise TransitionFailed(f"{_sentence(error)} Nothing was changed: all steps before were undone.") from error


def _result_of_part(change: FileChange) -> Result:
    """Return the file of a change if its step has been done or begun."""
    found = stamp(change.new_path)
    if found is None or found == change.before or change.op == DELETE:
        return Result(None)
    if change.op == MOVE:
        return Result(found if found.inode in _inodes(change)[:1] else None)
    if change.op == REPLACE and found.inode in _inodes(change)[:1]:
        return Result(None)
    if change.op in (ADD, REPLACE):
        is_as_made = found.is_directory or (change.after is not None and is_alike(found, change.after))
        return Result(found if is_ours(found, change) and is_as_made else None)
    if change.op == LINK:
        target = stamp(change.target)
        return Result(found if target is not None and target.inode == found.inode else None)
    if change.op == WRITE:
        return Result(found if found.is_file and found.inode in _inodes(change) else None)
    return Result(found)


def _inodes(change: FileChange) -> list[int]:
    return [each.inode for each in (change.before, change.after) if each is not None]


# Taking back


def _undo(store: str, plan: Plan, results: dict[int, Result], chosen: Sequence[int]) -> Plan:
    """Take some changes back, from the last to the first, if nobody has changed their files since."""
    try:
        return _undo_checked(store, plan, results, chosen)
    except _Touched:
        renewed, others = renewed_results(store, plan, results, chosen)
        inodes = renewed_directories(plan, parents_of([plan.changes[number] for number in chosen]))
        if renewed == results and not inodes:
            raise
        save_results(store, renewed)
        save_renewed(store, {}, others, inodes)
        return _undo_checked(store, load_plan(store), renewed, chosen)


def _undo_checked(store: str, plan: Plan, results: dict[int, Result], chosen: Sequence[int]) -> Plan:
    with _Transition(store, plan, chosen[::-1], results) as work:
        if found := _undo_conflicts(plan, results, chosen):
            raise _Touched(found)
        _begin_undo(store, plan, chosen)
        try:
            return _take_back(store, plan, results, work)
        except OSError as error:
            if load_state(store)["state"] != UNDOING:
                raise
            _make_again(store, plan, results, work, error)


def _begin_undo(store: str, plan: Plan, chosen: Sequence[int]) -> None:
    """Announce what is undone: that is on the disk before the first step."""
    untimed = _untimed(plan.directories, applied=True)
    save_state(store, UNDOING, untimed=untimed, chosen=list(chosen), undone=sorted(plan.undone))
    flush_file_system(store)


def _make_again(store: str, plan: Plan, results: dict[int, Result], work: _Transition, error: OSError) -> NoReturn:
    """Make real again what was undone before a step failed. Raises the reason in any case."""
    untimed = set(load_state(store)["untimed"])
    try:
        _open_for_writing(plan.directories, work.real)
        made = work.make_again()
        directories = tuple(_partly(plan, plan.undone)) if plan.undone else plan.directories
        _settle(directories, work.real, untimed, applied=not plan.undone)
        found = {number: Result(known) if known else result_of(plan.changes[number]) for number, known in made.items()}
        save_results(store, {**results, **found})
        _flush(store, plan)
        save_state(store, APPLIED, durable=True, untimed=sorted(untimed), undone=sorted(plan.undone))
    except (OSError, Conflict) as second:
        raise TransitionFailed(
            f"{_sentence(error)} Some changes were undone and some were not: {_sentence(second)} "
            "The next undo goes on with the others."
        ) from error
    raise TransitionFailed(f"{_sentence(error)} Nothing was changed: what had been undone is as before.") from error


def _resume_undo(store: str, plan: Plan, results: dict[int, Result]) -> Plan:
    with _Transition(store, plan, load_state(store)["chosen"][::-1], results) as work:
        return _take_back(store, plan, results, work)


def _take_back(store: str, plan: Plan, results: dict[int, Result], work: _Transition) -> Plan:
    """Undo the changes that the state names.

    Raises `Conflict` if somebody has changed files since that was begun: these stay applied. A rollback leaves them as
    well, and notes it: what is not applied as a whole counts as not applied.
    """
    state = load_state(store)
    _open_for_writing(plan.directories, work.real)
    try:
        restored = work.make()
    except Conflict as error:
        raise TransitionFailed(f"{error.paths[0]}: replaced meanwhile. Some changes are still applied.") from error
    left = [plan.changes[number].new_path for number in sorted(work.left)]
    undone = plan.undone | set(state["chosen"])
    if not state.get("rolls_back"):
        undone -= work.left
    is_all = len(undone) == len(plan.changes)
    directories = plan.directories if is_all else tuple(_partly(plan, undone))
    _settle(directories, work.real, set(state["untimed"]), applied=False)
    if is_all:
        save_renewed(store, *restored_stamps(plan.changes, restored))
        _flush(store, plan)
        save_state(store, UNDONE, durable=True, left=left)
        if not left:
            remove_tree(os.path.join(store, KEPT))
        # The new stamps are on the disk, for `load_plan`. To have them here as well would take a tenth of the time.
        return plan._replace(state=UNDONE, undone=frozenset())
    save_results(store, stamps_of_rest(plan, results, undone))
    _flush(store, plan)
    save_state(store, APPLIED, durable=True, undone=sorted(undone))
    if left:
        raise Conflict(left, left)
    return plan._replace(state=APPLIED, undone=undone)


def _chosen(plan: Plan, results: dict[int, Result], paths: list[str]) -> list[int]:
    """Return the numbers of the changes of these paths. Raises `DependentChanges` if others depend on them."""
    found: set[int] = set()
    for path in paths:
        below = [
            number
            for number, change in enumerate(plan.changes)
            if any(each == path or _is_below(each, path) for each in change.paths)
        ]
        if not below:
            raise DependentChanges(_not_alone(plan, path))
        found.update(below)
    chosen = [number for number in sorted(found) if number not in plan.undone]
    restored = [number for number in chosen if plan.changes[number].op in (WRITE, ATTRIBUTES)]
    names = {inode: plan.changes[number].path for number in restored for inode in results[number].shared()}
    for number, change in enumerate(plan.changes):
        shared = results[number].shared() & names.keys()
        if number not in found and number not in plan.undone and shared:
            raise DependentChanges(
                f"{names[min(shared)]} cannot be undone alone: {change.path} is a further name of the same file. "
                "Undo both, or neither."
            )
    return chosen


def _not_alone(plan: Plan, path: str) -> str:
    for change in plan.changes:
        if _is_below(path, change.path) and (change.new_inside is not None or change.old_inside is not None):
            return f"{path} cannot be undone alone: {change.path} was added or removed as a whole. Undo that instead."
    return f"{path} is not among the changes of this preview. Choose paths from the list of its changes."


def _is_below(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")


def _partly(plan: Plan, undone: frozenset[int]) -> Iterator[DirectoryState]:
    """Return the directories with the modes and times that they have while some changes stay applied."""
    applied = [change for number, change in enumerate(plan.changes) if number not in undone]
    parents = parents_of(applied)
    own = {change.path for change in applied if change.op == ATTRIBUTES}
    for each in plan.directories:
        mode = each.new_mode if each.path in own else each.old_mode
        mtime = each.new_mtime if each.path in parents else each.old_mtime
        yield each._replace(old_mode=mode, old_mtime=mtime)


# Directories


def _untimed(directories: Iterable[DirectoryState], *, applied: bool) -> list[str]:
    """Return the directories in which somebody else has changed other entries: their times are left alone."""
    found = []
    for directory in directories:
        present = stamp(directory.path)
        expected = directory.new_mtime if applied else directory.old_mtime
        if present is None or present.mtime != expected:
            found.append(directory.path)
    return found


def _open_for_writing(directories: Iterable[DirectoryState], real: RealPaths) -> None:
    """Let directories be written until the end in which their owner may not, parents first."""
    for directory in directories:
        path = _reached(real, directory.path)
        mode = stat.S_IMODE(os.lstat(path).st_mode) if path else 0o700
        if mode & 0o700 != 0o700:
            with suppress(PermissionError):
                change_mode(path, mode | 0o700)


def _settle(directories: Sequence[DirectoryState], real: RealPaths, untimed: set[str], *, applied: bool) -> None:
    """Give directories their modes and times, when nothing in them changes any more; the deepest first."""
    for directory in reversed(directories):
        mode = directory.new_mode if applied else directory.old_mode
        mtime = directory.new_mtime if applied else directory.old_mtime
        path = _reached(real, directory.path)
        if not path:
            continue
        # Directories of somebody else, in which this user may write, keep their own times.
        with suppress(PermissionError):
            found = os.lstat(path)
            if directory.path not in untimed and found.st_mtime_ns != mtime:
                os.utime(path, ns=(found.st_atime_ns, mtime), follow_symlinks=False)
            if found.st_mode != mode:
                change_mode(path, stat.S_IMODE(mode))


def _reached(real: RealPaths, directory: str) -> str:
    """Return a path to a directory that cannot be redirected. Nothing: it was removed or replaced meanwhile."""
    try:
        return real.at(os.path.join(directory, "."))
    except (OSError, Conflict):
        return ""


# Files of the store


def _flush(store: str, plan: Plan) -> None:
    """Write everything that was changed to the disks, before a state says that it is done."""
    devices = {os.lstat(store).st_dev}
    flush_file_system(store)
    for directory in plan.directories:
        with suppress(FileNotFoundError, PermissionError):
            device = os.lstat(directory.path).st_dev
            if device not in devices:
                devices.add(device)
                flush_file_system(directory.path)


def _unique(*lists: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(chain(*lists)))


def _sentence(error: Exception) -> str:
    """Return what went wrong, with its path, as a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error)
