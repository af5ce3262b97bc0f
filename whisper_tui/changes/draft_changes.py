"""The changes of a draft, which many commands make on the same overlays (decision 44).

After each command it is noted which paths in the upper directories that has touched, and how the real file of each path
was when a command touched it first. A real file that is another one since then is a conflict: it is left alone.
"""

import os
import stat
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from whisper_tui.changes.change_records import (
    ATTRIBUTES,
    FileChange,
    Plan,
    Result,
    load_plan,
    load_results,
    save_plan,
)
from whisper_tui.changes.file_trees import Stamp, change_mode, copy_tree, overlay_mark, remove_tree, stamp
from whisper_tui.changes.meanings import save_meanings
from whisper_tui.changes.overlay_diff import LAYERS, ChangeReader, entries_of
from whisper_tui.system import run_files

BEGUN = "begun"
"""The directory with a file for each command that has begun and whose changes are not noted yet."""
NOTES = "notes.json"
_GIT = "/.git/"
_OPEN = 0o700
_MODE = 3
"""The place of the mode in what is seen of an entry."""


class TouchedBase(NamedTuple):
    """The real file of a path as it was when a command of the draft touched the path first."""

    found: Stamp | None
    """None: there was none."""
    began: int
    """When that command began, as the file system stamps it."""
    raced: bool = False
    """True if somebody else may have changed it while the command ran."""


class _Notes(NamedTuple):
    """All that is noted of a draft."""

    seen: dict[str, list[int]]
    """The entries of the upper directories, by the real path."""
    base: dict[str, TouchedBase]
    calls: dict[str, list[str]]
    """The commands that have touched a path, by their names, oldest first."""
    number: int
    """How often something was noted."""
    first: int
    """When the first command began."""


class DraftChanges:
    """The changes of one draft, in its directory. Its methods may be called by any thread."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._turn = threading.RLock()
        self._known: _Notes | None = None
        """All that is noted, once it was read: nobody else writes it."""
        self._paths: list[str] = []
        """The paths that commands have touched, sorted."""

    @property
    def version(self) -> int:
        """A number that grows with each command that has ended."""
        # Without the turn: it is asked for where nothing may wait.
        return (self._known or self._notes()).number

    def note(self, name: str) -> None:
        """Note what a command has touched that has ended, by the name of its attempt. Raises `OSError`."""
        with self._turn:
            begun = self._begun()
            if name not in begun:
                return  # It never came so far, or is noted already.
            self._note(name, min(begun.values()))
            run_files.remove(os.path.join(self.directory, BEGUN, name))

    def _note(self, name: str, began: int) -> None:
        notes, seen = self._notes(), dict[str, list[int]]()
        uppers = dict[str, str]()
        with _OpenedForReading() as opened:
            for layer in self._layers():
                for real, upper, found in _entries(layer, opened):
                    seen[real] = [found.st_ino, found.st_mtime_ns, found.st_size, *_who(found)]
                    uppers[real] = upper
            touched = [path for path in {**seen, **notes.seen} if seen.get(path) != notes.seen.get(path)]
            for path in touched:
                if path in uppers and path not in notes.base:
                    notes.base[path] = _base_of(path, uppers[path], began)
        for path in touched:
            known = notes.calls.setdefault(path, [])
            if name not in known:
                known.append(name)
        self._save(_Notes(seen, notes.base, notes.calls, notes.number + 1, notes.first or began))

    def plan(self) -> Plan:
        """Return what all commands have changed, as it would be applied now: `meanwhile` are the conflicts."""
        with self._turn:
            try:
                return self._read({layer["path"]: layer["upper"] for layer in self._layers()})
            finally:
                self._close_again()

    def copy(self, store: str, chosen: Callable[[Plan], Iterable[int]]) -> Plan:
        """Copy the draft into a store that does not exist yet. Returns the plan of the changes that are `chosen` of it.

        The draft stays as it is, so that nothing of it is lost whatever becomes of the store.
        """
        with self._turn:
            os.mkdir(store, 0o700)
            uppers, links = dict[str, str](), dict[tuple[int, int], str]()
            for layer in self._layers():
                uppers[layer["path"]] = os.path.join(store, os.path.basename(layer["upper"]))
                copy_tree(layer["upper"], uppers[layer["path"]], links, marks=True)
            plan = self._read(uppers)
            return self.part(plan, chosen(plan))

    def part(self, plan: Plan, chosen: Iterable[int]) -> Plan:
        """Return the plan of some of the changes of a plan, with their conflicts."""
        numbers = sorted(set(chosen))
        changes = tuple(plan.changes[number] for number in numbers)
        if len(changes) == len(plan.changes):
            return plan
        changed = {os.path.dirname(path) for change in changes for path in change.paths}
        own = {change.path for change in changes}
        directories = tuple(each for each in plan.directories if each.path in changed or each.path in own)
        notes = self._notes()
        conflicts = tuple(path for change in changes for path in self._conflicts_of(change, notes))
        gone = tuple(path for path in plan.meanwhile if any(f"{each}/".startswith(f"{path}/") for each in changed))
        return plan._replace(
            changes=changes, directories=directories, meanwhile=tuple(dict.fromkeys((*conflicts, *gone)))
        )

    def applied(self, store: str) -> None:
        """Take out of the draft what is real now, as a store says, so that its commands find what others make of it.

        No command may be on the overlays. A second time nothing happens.
        """
        with self._turn:
            notes, plan, results = self._notes(), load_plan(store), load_results(store)
            began, uppers = self._now(), self._layers()
            for number, change in enumerate(plan.changes):
                result = results.get(number, Result(None))
                for path in change.paths:
                    if self._taken_out(change, path, uppers):
                        for each in self._at(path):
                            for known in (notes.base, notes.seen, notes.calls):
                                known.pop(each, None)
                    else:
                        found = result.found if path == change.new_path else None
                        notes.base[path] = TouchedBase(found, began)
                for name, found in (result.inside or {}).items():
                    if (path := f"{change.path}/{name}") in notes.base:
                        notes.base[path] = TouchedBase(found, began)
            self._save(notes._replace(number=notes.number + 1))

    def _taken_out(self, change: FileChange, path: str, layers: Sequence[Mapping[str, Any]]) -> bool:
        """Remove a path from its upper directory, where the real file then shows. False: it has to stay."""
        above = [each for each in layers if path.startswith(f"{each['path'].rstrip('/')}/")]
        if not above:
            return False
        layer = max(above, key=lambda each: len(each["path"]))
        top, upper = layer["upper"], layer["upper"] + path[len(layer["path"].rstrip("/")) :]
        found = stamp(upper)
        if layer["kind"] != "overlay" or (found is not None and found.is_directory and change.new_inside is None):
            return False  # What else has changed in a directory is below it.
        directory = upper
        while len(directory := os.path.dirname(directory)) > len(top):
            if overlay_mark(directory, "opaque") == b"y":
                return False  # In a directory that was replaced, nothing of the real one shows.
        remove_tree(upper)
        return True

    def calls_of(self, paths: Iterable[str]) -> list[str]:
        """Return the names of the commands that have touched any of these paths, or what is below, oldest first."""
        with self._turn:
            calls = self._notes().calls
            found = {name for path in paths for each in self._at(path) for name in calls.get(each, ())}
        return sorted(found, key=_number)

    def _at(self, path: str) -> list[str]:
        """Return a path, and those below it that commands have touched."""
        # Behind the slash comes the nought.
        first, last = bisect_left(self._paths, f"{path}/"), bisect_left(self._paths, f"{path}0")
        return [path, *self._paths[first:last]]

    def changes_of(self, plan: Plan, names: Iterable[str]) -> set[int]:
        """Return the changes of some commands, with those of all others that have made one of these as well.

        What several commands have made cannot be told apart.
        """
        by = [set(self.calls_of(change.paths)) for change in plan.changes]
        wanted, chosen = set(names), set[int]()
        while more := {number for number, each in enumerate(by) if each & wanted} - chosen:
            chosen |= more
            wanted.update(*(by[number] for number in more))
        return chosen

    def _read(self, uppers: Mapping[str, str]) -> Plan:
        """Return the plan of the changes in these upper directories, by the directories that they cover."""
        reader = ChangeReader()
        for layer in self._layers():
            upper = uppers[layer["path"]]
            if layer["kind"] == "overlay":
                reader.read_overlay(upper, layer["path"])
            else:
                reader.read_split(upper, layer["path"], _renewed(layer, upper))
        # Conflicts are told by how each file was before, not by the time of one start.
        plan = reader.plan(2**62)
        notes = self._notes()
        conflicts = (path for change in plan.changes for path in self._conflicts_of(change, notes))
        return plan._replace(meanwhile=tuple(dict.fromkeys((*plan.meanwhile, *conflicts))))

    def _conflicts_of(self, change: FileChange, notes: _Notes) -> Iterator[str]:
        """Yield the paths of a change that somebody else has changed since a command of the draft touched them."""
        base = notes.base.get(change.path)
        began = base.began if base is not None else _began_above(change.path, notes)
        before = change.before
        if base is None:
            # It lies in a directory that was replaced, and no command has seen it.
            if before is not None and before.ctime >= began:
                yield change.path
        elif base.raced or _is_another(base.found, before):
            yield change.path
        if change.moved_to:
            target = notes.base.get(change.moved_to)
            if target is not None and (target.raced or _is_another(target.found, stamp(change.moved_to))):
                yield change.moved_to
        for name, old in (change.old_inside or {}).items():
            path = f"{change.path}/{name}"
            inner = notes.base.get(path)
            if (inner is not None and inner.found == old) or old.ctime < began:
                continue
            yield path
        for path, old in (change.targets or {}).items():
            known = notes.base.get(path)
            if _is_another(known.found, old) if known is not None else old.ctime >= began:
                yield path

    def _close_again(self) -> None:
        """Give directories their modes again that a command has closed to its own user, and the reader has opened."""
        seen = self._notes().seen
        closed = [real for real, each in seen.items() if stat.S_ISDIR(each[_MODE]) and each[_MODE] & _OPEN != _OPEN]
        for layer in self._layers() if closed else ():
            for real in sorted(closed, reverse=True):
                if real.startswith(f"{layer['path'].rstrip('/')}/"):
                    upper = layer["upper"] + real[len(layer["path"].rstrip("/")) :]
                    found = stamp(upper)
                    if found is not None and found.inode == seen[real][0] and found.mode != seen[real][_MODE]:
                        change_mode(upper, stat.S_IMODE(seen[real][_MODE]))

    def _layers(self) -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = run_files.read_json(os.path.join(self.directory, LAYERS))["layers"]
        except FileNotFoundError:
            return []  # No command has run yet.
        return found

    def _begun(self) -> dict[str, int]:
        found = dict[str, int]()
        with suppress(FileNotFoundError):
            for entry in os.scandir(os.path.join(self.directory, BEGUN)):
                with suppress(FileNotFoundError, ValueError), open(entry.path, encoding="ascii") as file:
                    found[entry.name] = int(file.read())
        return found

    def _now(self) -> int:
        path = os.path.join(self.directory, ".now")
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.utime(path)
        return os.stat(path).st_ctime_ns

    def _notes(self) -> _Notes:
        if self._known is None:
            self._known = self._read_notes()
            self._paths = sorted(self._known.calls)
        return self._known

    def _read_notes(self) -> _Notes:
        try:
            found = run_files.read_json(os.path.join(self.directory, NOTES))
        except FileNotFoundError:
            return _Notes({}, {}, {}, 0, 0)
        base = {
            path: TouchedBase(None if each[0] is None else Stamp(*each[0]), each[1], each[2])
            for path, each in found["base"].items()
        }
        return _Notes(found["seen"], base, found["calls"], found["number"], found["first"])

    def _save(self, notes: _Notes) -> None:
        # Until it is written, it is read again.
        self._known = None
        run_files.write_json(os.path.join(self.directory, NOTES), notes._asdict())
        self._known, self._paths = notes, sorted(notes.calls)


def save(store: str, plan: Plan) -> None:
    """Write a plan of a draft into a store, with what its files mean."""
    save_meanings(store, plan)
    save_plan(store, plan)


def moved(plan: Plan, old: str, new: str) -> Plan:
    """Return a plan whose contents are below another directory."""
    changes = (
        change._replace(content=new + change.content[len(old) :]) if change.content else change
        for change in plan.changes
    )
    return plan._replace(changes=tuple(changes))


def at_paths(plan: Plan, paths: Sequence[str], *, linked: bool = False) -> set[int]:
    """Return the numbers of the changes at these absolute paths and below; `linked`: and of further names of them.

    A tree that came or went as a whole is one change: all of it is meant by each path in it.
    """
    return {
        number
        for number, change in enumerate(plan.changes)
        for named in [(*change.paths, *(_linked(change) if linked else ()))]
        if any(_touches(each, path) for each in named for path in paths)
    }


def with_belonging(plan: Plan, chosen: Iterable[int]) -> set[int]:
    """Return these changes, with those without which they would not be what they are.

    Of a repository of git all is applied or nothing: its files are only right together. A further name of a file goes
    with the change of that file.
    """
    found = set(chosen)
    while True:
        repositories = {top for number in found for top in _repositories(plan.changes[number])}
        names = {path for number in found for path in _linked(plan.changes[number])}
        more = {
            number
            for number, change in enumerate(plan.changes)
            if not repositories.isdisjoint(_repositories(change)) or not names.isdisjoint(change.paths)
        }
        if more <= found:
            return found
        found |= more


def is_only_time(change: FileChange) -> bool:
    """True if nothing but the time of a file differs."""
    before, after = change.before, change.after
    if change.op != ATTRIBUTES or before is None or after is None:
        return False
    return before[:3] == after[:3] and change.old_attributes == change.new_attributes


def _touches(path: str, wanted: str) -> bool:
    return path == wanted or path.startswith(f"{wanted.rstrip('/')}/") or wanted.startswith(f"{path}/")


def _repositories(change: FileChange) -> set[str]:
    """Return the directories of git in which a change is."""
    # A new tree with a repository in it comes as one change.
    return {f"{path}/".partition(_GIT)[0] for path in change.paths if _GIT in f"{path}/"}


def _linked(change: FileChange) -> set[str]:
    """Return the real files of which a change makes further names."""
    return {path for path in (change.target, *(change.targets or {}), *(to for _, to in change.relinks)) if path}


def _began_above(path: str, notes: _Notes) -> int:
    """Return when the nearest directory above a path was touched first."""
    while (path := os.path.dirname(path)) not in ("", "/"):
        if (base := notes.base.get(path)) is not None:
            return base.began
    return notes.first


def _is_another(was: Stamp | None, now: Stamp | None) -> bool:
    """True if a real file is not as it was. Of a directory the entries do not count: each has a change of its own."""
    if was is None or now is None:
        return was is not now
    if was.is_directory and now.is_directory:
        return (*was[:3], was.inode) != (*now[:3], now.inode)
    return was != now


def _base_of(path: str, upper: str, began: int) -> TouchedBase:
    found = stamp(path)
    if found is not None:
        return TouchedBase(found, began, not found.is_directory and found.ctime >= began)
    if overlay_mark(upper, "origin") is None:
        return TouchedBase(None, began)
    # It was copied up from a real file, which is gone: the command may have renamed it, or somebody has removed it.
    if stat.S_ISDIR(os.lstat(upper).st_mode):
        return TouchedBase(None, began, raced=True)  # A real directory cannot be renamed in an overlay.
    above = stamp(os.path.dirname(path))
    return TouchedBase(None, began, above is not None and above.ctime >= began)


def _number(name: str) -> tuple[int, int]:
    """Return the call and the attempt that the name of an attempt is made of."""
    call_id, _, attempt = name.partition(".")
    return int(call_id), int(attempt)


def _who(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_mode, found.st_uid, found.st_gid


def _entries(layer: Mapping[str, Any], opened: "_OpenedForReading") -> Iterator[tuple[str, str, os.stat_result]]:
    """Yield what is in an upper directory: the real path, that in it, and its status."""
    pending = [(layer["upper"], layer["path"])]
    while pending:
        directory, real = pending.pop()
        opened.open(directory)
        for entry in entries_of(directory):
            found = entry.stat(follow_symlinks=False)
            path = f"{real.rstrip('/')}/{entry.name}"
            yield path, entry.path, found
            if stat.S_ISDIR(found.st_mode):
                pending.append((entry.path, path))


def _renewed(layer: Mapping[str, Any], upper: str) -> dict[str, int | None]:
    """Return the change times of the copies in a directory with mount points, as `read_split` takes them."""
    if upper == layer["upper"]:
        return dict(layer["base"])
    renewed = dict[str, int | None]()
    for name, ctime in layer["base"].items():
        original, copy = stamp(os.path.join(layer["upper"], name)), stamp(os.path.join(upper, name))
        known = ctime is not None and ctime > 0 and original is not None and copy is not None
        renewed[name] = (
            ctime if not known or copy is None or original is None else (copy.ctime if original.ctime == ctime else 1)
        )
    return renewed


class _OpenedForReading:
    """Directories that a command has closed to its own user: opened to be read, and closed again in the end."""

    def __init__(self) -> None:
        self._modes: list[tuple[str, int]] = []

    def __enter__(self) -> "_OpenedForReading":
        return self

    def __exit__(self, *_: object) -> None:
        for path, mode in reversed(self._modes):
            with suppress(OSError):
                change_mode(path, mode)

    def open(self, path: str) -> None:
        """Open a directory."""
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        if mode & _OPEN != _OPEN:
            self._modes.append((path, mode))
            change_mode(path, mode | _OPEN)
