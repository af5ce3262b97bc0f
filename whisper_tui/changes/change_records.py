"""The records of changes in the store of a preview: the plan, its state, and what was made.

The plan has every single change of the real files, with the stamps that must be found there, and names every path that
a transition may touch. `overlay_diff`, `confined` and `pre_images` write it, once. Its state, and what differs since an
undo, lie in files of their own. There may be many thousands of changes, so the plan has the fields that most of them
have as columns, and all stamps are packed: to write and to read them as numbers in JSON takes most of the time.
"""

import json
import os
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from whisper_tui.changes.file_trees import Stamp, differs, stamp, stamp_from, stamps_inside
from whisper_tui.system import run_files

ADD, DELETE, REPLACE, WRITE, ATTRIBUTES, LINK = "add", "delete", "replace", "write", "attributes", "link"
MOVE = "move"
PREVIEWED, APPLYING, APPLIED, UNDOING, UNDONE = "previewed", "applying", "applied", "undoing", "undone"

PLAN, RENEWED, STATE = "plan.json", "renewed.json", "state.json"
RESULTS = "results.json"
"""The stamps of everything that was made real, by the number of the change: what `undo` must find."""

Attributes = dict[str, str]
"""Extended attributes with their values in hexadecimal digits."""
Inside = dict[str, Stamp]
"""The stamps of everything below a directory, by relative path."""


class FileChange(NamedTuple):
    """One change of the real files. A new, removed or replaced directory is one change with all that is in it.

    `op`: `write` changes the content of the same file, `replace` exchanges the file, `link` adds a name of a real file,
    `move` gives a real file another name: `path` is the old one, and nothing else about the file changes.
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
    unmarked_inside: bool = False
    """True if that is known of all in a new directory that are no directories themselves."""
    moved_to: str = ""
    """The new name of the file, for `move`."""

    @property
    def new_path(self) -> str:
        """Where its file is afterwards."""
        return self.moved_to or self.path

    @property
    def paths(self) -> tuple[str, ...]:
        """The names that it adds, changes or removes."""
        return (self.path, self.moved_to) if self.moved_to else (self.path,)


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
    undone alone.
    """

    changes: tuple[FileChange, ...]
    directories: tuple[DirectoryState, ...]
    meanwhile: tuple[str, ...] = ()
    state: str = PREVIEWED
    undone: frozenset[int] = frozenset()

    @property
    def is_empty(self) -> bool:
        """True if nothing changed: then there is nothing to be made real, undone, or kept from a power failure."""
        return not (self.changes or self.directories or self.meanwhile)


def text_of(extended: dict[str, bytes]) -> Attributes:
    """Return extended attributes in a form for JSON."""
    return {name: value.hex() for name, value in extended.items()}


class Result(NamedTuple):
    """A changed file after the change was made real, and everything in it if it is a new directory."""

    found: Stamp | None
    inside: Inside | None = None

    def shared(self) -> set[int]:
        """Return the inodes of its files that have several names."""
        found = [self.found, *(self.inside or {}).values()]
        return {each.inode for each in found if each is not None and has_names(each)}


def has_names(found: Stamp) -> bool:
    """True if a file has several names."""
    return found.links > 1 and not found.is_directory


def result_of(change: FileChange) -> Result:
    """Return the file of a change that is real."""
    found = stamp(change.new_path) if change.op != DELETE else None
    return Result(found, stamps_inside(change.path) if change.new_inside is not None else None)


# The files of the store

_STAMP = struct.Struct("<IIIqqqQI")
_NUMBERED = struct.Struct("<IIIIqqqQI")
"""The number of a change beside each stamp, as earlier versions have written it."""
_COLUMNS = ("op", "path", "content", "unmarked", "moved_to", "old_attributes", "new_attributes")
_STAMPS = ("before", "after")
_RARE = {name: each for name, each in FileChange._field_defaults.items() if name not in (*_COLUMNS, *_STAMPS)}
"""The fields that few changes have, with their defaults."""
_rare_of, _USUAL = attrgetter(*_RARE), tuple(_RARE.values())
_INSIDE = ("old_inside", "new_inside", "targets")
_change_from: Callable[[tuple[Any, ...]], FileChange] = partial(tuple.__new__, FileChange)
_result_from: Callable[[tuple[Stamp | None, Inside | None]], Result] = partial(tuple.__new__, Result)
Key = TypeVar("Key", int, str)


# The plan


def load_plan(store: str) -> Plan:
    """Return the plan of a preview. Raises `FileNotFoundError` if the changes were not read yet."""
    path = os.path.join(store, PLAN)
    if not os.path.getsize(path):
        # An empty plan is not flushed: a power failure may leave nothing of it but its name.
        return Plan((), ())
    found = run_files.read_json(path)
    progress = load_state(store)
    befores, others = _load_renewed(store)
    if "columns" in found:
        changes = _from_columns(found, befores)
        others = _merged(dict(found["others"]), others)
    else:
        changes = _from_rows(found, befores)
    for number, fields in others.items():
        changes[number] = changes[number]._replace(**_values(fields))
    inodes = _renewed_inodes(store)
    directories = (DirectoryState(*each) for each in found["directories"])
    return Plan(
        tuple(changes),
        tuple(each._replace(inode=inodes.get(each.path, each.inode)) for each in directories),
        tuple(found["meanwhile"]),
        progress["state"],
        frozenset(progress["undone"]),
    )


def save_plan(store: str, plan: Plan) -> None:
    """Write the plan, durably unless it is empty and the first. Its state is not part of it."""
    path = os.path.join(store, PLAN)
    found = {
        "columns": {name: list(map(attrgetter(name), plan.changes)) for name in _COLUMNS},
        "others": [(number, fields) for number, change in enumerate(plan.changes) if (fields := _rare(change))],
        **{name: packed_stamps(_stamps(plan.changes, name)) for name in _STAMPS},
        "directories": plan.directories,
        "meanwhile": plan.meanwhile,
    }
    run_files.write_whole(path, _json(found), durable=not plan.is_empty or os.path.exists(path))


def drop_changes(store: str, plan: Plan, is_dropped: Callable[[str], bool]) -> Plan | None:
    """Take the changes out of the plan of a store all of whose paths are such: they are never made real.

    Returns the plan that is left. None: it is as it was.
    """
    kept = tuple(change for change in plan.changes if not all(map(is_dropped, change.paths)))
    if len(kept) == len(plan.changes):
        return None
    changed = {os.path.dirname(path) for change in kept for path in change.paths}
    directories = tuple(each for each in plan.directories if each.path in changed)
    meanwhile = tuple(path for path in plan.meanwhile if not is_dropped(path))
    left = plan._replace(changes=kept, directories=directories, meanwhile=meanwhile)
    save_plan(store, left)
    return left


def _stamps(changes: Iterable[FileChange], name: str) -> dict[int, Stamp]:
    found = enumerate(map(attrgetter(name), changes))
    return {number: each for number, each in found if each is not None}


def _rare(change: FileChange) -> dict[str, Any]:
    """Return the fields of a change that most do not have."""
    found = _rare_of(change)
    if found == _USUAL:
        return {}
    return _json_values({name: each for (name, old), each in zip(_RARE.items(), found, strict=True) if each != old})


def _from_columns(found: dict[str, Any], befores: dict[int, Stamp]) -> list[FileChange]:
    columns: dict[str, Iterable[Any]] = {name: repeat(value) for name, value in FileChange._field_defaults.items()}
    columns |= found["columns"]
    numbers = range(len(found["columns"]["path"]))
    for name in _STAMPS:
        stamps = unpacked_stamps(found[name])
        if name == "before":
            stamps |= befores
        columns[name] = map(stamps.get, numbers)
    return list(map(_change_from, zip(*(columns[name] for name in FileChange._fields), strict=False)))


def _from_rows(found: dict[str, Any], befores: Mapping[int, Stamp]) -> list[FileChange]:
    """Return the changes of a plan that an earlier version has written; some also had stamps beside the changes."""
    rows = found["changes"]
    for name in _STAMPS:
        for number, each in unpacked_stamps(found.get(name, "")).items():
            rows[number][name] = each
    for number, each in befores.items():
        rows[number]["before"] = each
    return [FileChange(**_values(each)) for each in rows]


def _merged(old: Mapping[int, dict[str, Any]], new: Mapping[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {number: old.get(number, {}) | new.get(number, {}) for number in old.keys() | new.keys()}


# What an undo has changed


def save_renewed(
    store: str,
    befores: dict[int, Stamp],
    others: Mapping[int, dict[str, Any]],
    inodes: Mapping[str, int] | None = None,
) -> None:
    """Write the fields of changes that are others since an undo, or since somebody has touched files.

    That is a fraction of the plan. `inodes`: of directories that were made anew.
    """
    old_befores, old_others = _load_renewed(store)
    others = _merged(old_others, {number: _json_values(fields) for number, fields in others.items()})
    found = {
        "before": packed_stamps(old_befores | befores),
        "others": list(others.items()),
        "inodes": {**_renewed_inodes(store), **(inodes or {})},
    }
    run_files.write_whole(os.path.join(store, RENEWED), _json(found))


def _renewed_inodes(store: str) -> dict[str, int]:
    """Return the inodes of directories that were made anew, by path."""
    try:
        found = run_files.read_json(os.path.join(store, RENEWED))
    except FileNotFoundError:
        return {}
    inodes: dict[str, int] = found.get("inodes", {}) if isinstance(found, dict) else {}
    return inodes


def _load_renewed(store: str) -> tuple[dict[int, Stamp], dict[int, dict[str, Any]]]:
    """Return the new stamps of what was there before, and other fields of changes, by the number of the change."""
    try:
        found = run_files.read_json(os.path.join(store, RENEWED))
    except FileNotFoundError:
        return {}, {}
    if isinstance(found, list):
        # So earlier versions have written it.
        found = {"before": "", "others": found}
    befores, others = unpacked_stamps(found["before"]), dict(found["others"])
    for number, fields in others.items():
        if "before" in fields:
            befores[number] = Stamp(*fields.pop("before"))
    return befores, others


def restored_stamps(
    changes: Sequence[FileChange], restored: Mapping[int, Stamp | None]
) -> tuple[dict[int, Stamp], dict[int, dict[str, Any]]]:
    """Return the new stamps of what was there before, and other new fields, after all changes were undone.

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


# The state


def load_state(store: str) -> dict[str, Any]:
    """Return the state of the transition, and what it needs to resume."""
    try:
        found: dict[str, Any] = run_files.read_json(os.path.join(store, STATE))
    except FileNotFoundError:
        return {"state": PREVIEWED, "undone": []}
    return found


def save_state(store: str, state: str, *, durable: bool = False, **more: Any) -> None:
    """Write the state of the transition, with what it needs to resume. `durable`: it survives a power failure."""
    run_files.write_whole(os.path.join(store, STATE), _json({"state": state, "undone": [], **more}), durable=durable)


# What was made real


def save_results(store: str, results: Mapping[int, Result]) -> None:
    """Write what an undo must find."""
    alone: dict[int, Stamp] = {}
    absent, others = [], []
    for number, (found, inside) in results.items():
        if inside is not None:
            others.append((number, found, packed_stamps(inside)))
        elif found is not None:
            alone[number] = found
        else:
            absent.append(number)
    rows = {"alone": packed_stamps(alone), "absent": absent, "others": others}
    run_files.write_whole(os.path.join(store, RESULTS), _json(rows))


def load_results(store: str) -> dict[int, Result]:
    """Return what an undo must find. Raises `OSError`."""
    rows = run_files.read_json(os.path.join(store, RESULTS))
    alone = unpacked_stamps(rows["alone"])
    found = dict(zip(alone, map(_result_from, zip(alone.values(), repeat(None))), strict=True))
    # Earlier versions have written those that are not there among the others.
    for number, present, inside in chain(rows["others"], ((number, None, None) for number in rows.get("absent", ()))):
        stamps = unpacked_stamps(inside) if inside is not None else None
        found[number] = Result(Stamp(*present) if present is not None else None, stamps)
    return found


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


# Stamps as text


def _json(found: dict[str, Any]) -> bytes:
    return json.dumps(found, separators=(",", ":")).encode()


def packed_stamps(stamps: Mapping[Key, Stamp]) -> tuple[list[Key], str]:
    """Return stamps, each with its path or the number of its change, in a form for JSON."""
    data = b"".join([_STAMP.pack(*each) for each in stamps.values()])
    return list(stamps), b2a_base64(data, newline=False).decode()


def unpacked_stamps(found: Any) -> dict[Any, Stamp]:
    """Return stamps from their form for JSON."""
    if isinstance(found, list):
        keys, text = found
        return dict(zip(keys, map(stamp_from, _STAMP.iter_unpack(a2b_base64(text))), strict=True))
    # So earlier versions have written it.
    if isinstance(found, dict):
        return {path: Stamp(*each) for path, each in found.items()}
    return {row[0]: stamp_from(row[1:]) for row in _NUMBERED.iter_unpack(a2b_base64(found))}


def _json_values(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a change in a form for JSON."""
    return {
        name: packed_stamps(value) if name in _INSIDE and value is not None else value for name, value in fields.items()
    }


def _values(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a change from their form for JSON."""
    found = dict(fields)
    for name in _STAMPS:
        if isinstance(found.get(name), list):
            found[name] = stamp_from(found[name])
    for name in _INSIDE:
        if found.get(name) is not None:
            found[name] = unpacked_stamps(found[name])
    if "relinks" in found:
        found["relinks"] = tuple((name, target) for name, target in found["relinks"])
    return found
