"""The files of a store with the plan of its preview, the state of that, and the stamps that an undo must find.

`overlay_diff`, `confined` and `pre_images` write the plan, once. Its state, and what differs since an undo, lie in
files of their own. There may be many thousands of changes, so the plan has the fields that most of them have as
columns, and all stamps are packed: to write and to read them as numbers in JSON takes most of the time.
"""

import json
import os
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, repeat
from typing import Any, TypeVar

from whisper_tui.supervisor.keeper import run_files
from whisper_tui.supervisor.preview.change_records import (
    PREVIEWED,
    DirectoryState,
    FileChange,
    Inside,
    Plan,
    Result,
)
from whisper_tui.supervisor.preview.stamps import Stamp, stamp_from

PLAN, RENEWED, STATE = "plan.json", "renewed.json", "state.json"
RESULTS = "results.json"
"""The stamps of everything that was made real, by the number of the change: what `undo` must find."""

_STAMP = struct.Struct("<IIIqqqQI")
_NUMBERED = struct.Struct("<IIIIqqqQI")
"""The number of a change beside each stamp, as earlier versions have written it."""
_COLUMNS = ("op", "path", "content", "unmarked", "moved_to", "old_attributes", "new_attributes")
_STAMPS = ("before", "after")
_RARE = {name: each for name, each in FileChange._field_defaults.items() if name not in (*_COLUMNS, *_STAMPS)}
"""The fields that few changes have, with their defaults."""
_INSIDE = ("old_inside", "new_inside", "targets")
_change_from: Callable[[tuple[Any, ...]], FileChange] = partial(tuple.__new__, FileChange)
_result_from: Callable[[tuple[Stamp | None, Inside | None]], Result] = partial(tuple.__new__, Result)
Key = TypeVar("Key", int, str)


# The plan


def load_plan(store: str) -> Plan:
    """Return the plan of a preview. Raises `FileNotFoundError` if the changes were not read yet."""
    found = run_files.read_json(os.path.join(store, PLAN))
    progress = load_state(store)
    befores, others = _load_renewed(store)
    if "columns" in found:
        changes = _from_columns(found, befores)
        others = _merged(dict(found["others"]), others)
    else:
        changes = _from_rows(found, befores)
    for number, fields in others.items():
        changes[number] = changes[number]._replace(**_values(fields))
    return Plan(
        tuple(changes),
        tuple(DirectoryState(*each) for each in found["directories"]),
        tuple(found["meanwhile"]),
        progress["state"],
        frozenset(progress["undone"]),
    )


def save_plan(store: str, plan: Plan) -> None:
    """Write the plan, durably. Its state is not part of it."""
    found = {
        "columns": {name: [getattr(change, name) for change in plan.changes] for name in _COLUMNS},
        "others": [(number, fields) for number, change in enumerate(plan.changes) if (fields := _rare(change))],
        **{name: _packed(_stamps(plan.changes, name)) for name in _STAMPS},
        "directories": plan.directories,
        "meanwhile": plan.meanwhile,
    }
    run_files.write_whole(os.path.join(store, PLAN), _json(found), durable=True)


def _stamps(changes: Iterable[FileChange], name: str) -> dict[int, Stamp]:
    return {number: each for number, change in enumerate(changes) if (each := getattr(change, name)) is not None}


def _rare(change: FileChange) -> dict[str, Any]:
    """Return the fields of a change that most do not have."""
    return _json_values({name: each for name, old in _RARE.items() if (each := getattr(change, name)) != old})


def _from_columns(found: dict[str, Any], befores: dict[int, Stamp]) -> list[FileChange]:
    columns: dict[str, Iterable[Any]] = {name: repeat(value) for name, value in FileChange._field_defaults.items()}
    columns |= found["columns"]
    numbers = range(len(found["columns"]["path"]))
    for name in _STAMPS:
        stamps = _unpacked(found[name])
        if name == "before":
            stamps |= befores
        columns[name] = map(stamps.get, numbers)
    return list(map(_change_from, zip(*(columns[name] for name in FileChange._fields), strict=False)))


def _from_rows(found: dict[str, Any], befores: Mapping[int, Stamp]) -> list[FileChange]:
    """Return the changes of a plan that an earlier version has written; some also had stamps beside the changes."""
    rows = found["changes"]
    for name in _STAMPS:
        for number, each in _unpacked(found.get(name, "")).items():
            rows[number][name] = each
    for number, each in befores.items():
        rows[number]["before"] = each
    return [FileChange(**_values(each)) for each in rows]


def _merged(old: Mapping[int, dict[str, Any]], new: Mapping[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {number: old.get(number, {}) | new.get(number, {}) for number in old.keys() | new.keys()}


# What an undo has changed


def save_renewed(store: str, befores: dict[int, Stamp], others: Mapping[int, dict[str, Any]]) -> None:
    """Write the fields of changes that are others since an undo: a fraction of the plan."""
    old_befores, old_others = _load_renewed(store)
    others = _merged(old_others, {number: _json_values(fields) for number, fields in others.items()})
    found = {"before": _packed(old_befores | befores), "others": list(others.items())}
    run_files.write_whole(os.path.join(store, RENEWED), _json(found))


def _load_renewed(store: str) -> tuple[dict[int, Stamp], dict[int, dict[str, Any]]]:
    """Return the new stamps of what was there before, and other fields of changes, by the number of the change."""
    try:
        found = run_files.read_json(os.path.join(store, RENEWED))
    except FileNotFoundError:
        return {}, {}
    if isinstance(found, list):
        # So earlier versions have written it.
        found = {"before": "", "others": found}
    befores, others = _unpacked(found["before"]), dict(found["others"])
    for number, fields in others.items():
        if "before" in fields:
            befores[number] = Stamp(*fields.pop("before"))
    return befores, others


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
            others.append((number, found, _packed(inside)))
        elif found is not None:
            alone[number] = found
        else:
            absent.append(number)
    rows = {"alone": _packed(alone), "absent": absent, "others": others}
    run_files.write_whole(os.path.join(store, RESULTS), _json(rows))


def load_results(store: str) -> dict[int, Result]:
    """Return what an undo must find. Raises `OSError`."""
    rows = run_files.read_json(os.path.join(store, RESULTS))
    alone = _unpacked(rows["alone"])
    found = dict(zip(alone, map(_result_from, zip(alone.values(), repeat(None))), strict=True))
    # Earlier versions have written those that are not there among the others.
    for number, present, inside in chain(rows["others"], ((number, None, None) for number in rows.get("absent", ()))):
        stamps = _unpacked(inside) if inside is not None else None
        found[number] = Result(Stamp(*present) if present is not None else None, stamps)
    return found


# Stamps as text


def _json(found: dict[str, Any]) -> bytes:
    return json.dumps(found, separators=(",", ":")).encode()


def _packed(stamps: Mapping[Key, Stamp]) -> tuple[list[Key], str]:
    """Return stamps, each with its path or the number of its change, in a form for JSON."""
    data = b"".join([_STAMP.pack(*each) for each in stamps.values()])
    return list(stamps), b2a_base64(data, newline=False).decode()


def _unpacked(found: Any) -> dict[Any, Stamp]:
    if isinstance(found, list):
        keys, text = found
        return dict(zip(keys, map(stamp_from, _STAMP.iter_unpack(a2b_base64(text))), strict=True))
    # So earlier versions have written it.
    if isinstance(found, dict):
        return {path: Stamp(*each) for path, each in found.items()}
    return {row[0]: stamp_from(row[1:]) for row in _NUMBERED.iter_unpack(a2b_base64(found))}


def _json_values(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a change in a form for JSON."""
    return {name: _packed(value) if name in _INSIDE and value is not None else value for name, value in fields.items()}


def _values(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a change from their form for JSON."""
    found = dict(fields)
    for name in _STAMPS:
        if isinstance(found.get(name), list):
            found[name] = stamp_from(found[name])
    for name in _INSIDE:
        if found.get(name) is not None:
            found[name] = _unpacked(found[name])
    if "relinks" in found:
        found["relinks"] = tuple((name, target) for name, target in found["relinks"])
    return found
