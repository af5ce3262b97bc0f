"""The plan of a preview: every single change of the real files, with the stamps that must be found, and its state.

`overlay_diff`, `confined` and `pre_images` make it, `transition` makes it real or takes it back. It names every path
that a transition may touch. It is written once; its state, and what differs since an undo, lie in files of their own.
"""

import json
import os
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import run_files
from whisper_tui.supervisor.preview.file_trees import Stamp

PLAN, RENEWED, STATE = "plan.json", "renewed.json", "state.json"

ADD, DELETE, REPLACE, WRITE, ATTRIBUTES, LINK = "add", "delete", "replace", "write", "attributes", "link"
MOVE = "move"
PREVIEWED, APPLYING, APPLIED, UNDOING, UNDONE = "previewed", "applying", "applied", "undoing", "undone"


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
