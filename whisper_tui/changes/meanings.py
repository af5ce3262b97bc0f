"""Files that are the same in meaning although somebody has touched them: their content, mode and owner are the same.

A stamp differs as soon as anything about a file does: `touch`, a further name, a copy in its place, an undo that has
put it back. Then digests tell if it still has the content that the plan knows. They are made once, when the changes are
read, of as many files as can be read in a moment; of others, size and time have to be the same. Of git's index the
digest leaves out what git only caches there, because each `git status` writes that anew.

A file that is the same in meaning is given its present stamp in the plan, or in the results, before the first step: the
steps recognize files by their inodes.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from whisper_tui.changes.change_records import (
    ATTRIBUTES,
    DELETE,
    LINK,
    MOVE,
    WRITE,
    FileChange,
    Inside,
    Plan,
    Result,
    text_of,
)
from whisper_tui.changes.file_trees import FACTS, Stamp, attributes, stamp, stamps_inside
from whisper_tui.system import run_files
from whisper_tui.system.syscalls import open_directory

MEANINGS = "meanings.json"
"""The digests: of files before the changes, and after them, by the number of the change and the path below it."""
MOST_FILES, MOST_BYTES = 500, 32 << 20
"""Files of one plan of which digests are made, and bytes of all of them."""
_AT_ONCE = 1 << 16
"""Bytes of a file that is read in one call."""

_CACHED = (b"TREE", b"UNTR", b"FSMN", b"EOIE", b"IEOT")
"""Extensions of an index that git derives from its entries or from the work tree."""

_IN_PLACE = (WRITE, ATTRIBUTES)
"""The changes after which a file is the same one as before."""
Digests = dict[tuple[int, str], str]
Side = Literal["old", "new"]
"""Before the changes, or after them."""


def save_meanings(store: str, plan: Plan, *, is_real: bool = False) -> None:
    """Note what the files of a plan mean, before it is written. `is_real`: its changes were made already."""
    old, new = dict[str, Any](), dict[str, Any]()
    files, left = MOST_FILES, MOST_BYTES
    for number, side, path, name, wanted in _files(plan, is_real=is_real):
        files, left = files - 1, left - wanted.size
        if files < 0 or left < 0:
            break
        change = plan.changes[number]
        named = os.path.join(change.new_path, name) if name else change.new_path
        if digest := _digest(path, named, change.op, wanted):
            (old if side == "old" else new)[f"{number}/{name}"] = digest
    run_files.write_json(os.path.join(store, MEANINGS), {"old": old, "new": new})


def _files(plan: Plan, *, is_real: bool) -> Iterator[tuple[int, str, str, str, Stamp]]:
    """Yield the number, the side, the path, the path below its change, and the stamp of each file of a plan."""
    for number, change in enumerate(plan.changes):
        if change.op == LINK:
            continue
        new = change.path if change.op in (MOVE, ATTRIBUTES) or not change.content else change.content
        sides = [("new", change.new_path if is_real else new, change.after, change.new_inside)]
        if not is_real:
            sides.append(("old", change.path, change.before, change.old_inside))
        for side, top, own, inside in sides:
            for name, each in {"": own, **(inside or {})}.items():
                if each is not None and (each.is_file or stat.S_ISLNK(each.mode)):
                    yield number, side, os.path.join(top, name) if name else top, name, each


def load_digests(store: str, side: Side) -> Digests:
    """Return the digests of the files of one side, by the number of the change and the path below it."""
    try:
        found: dict[str, str] = run_files.read_json(os.path.join(store, MEANINGS))[side]
    except (FileNotFoundError, ValueError, KeyError):
        # Earlier versions have noted none.
        return {}
    return {(int(number), name): digest for key, digest in found.items() for number, _, name in [key.partition("/")]}


def _digest(path: str, named: str, op: str, wanted: Stamp) -> str:
    """Return what the content of a file means. Empty: it cannot be read, or is not as `wanted`. `named`: its real path.

    It is looked at after it was read: somebody may have changed it since.
    """
    try:
        if not wanted.is_file:
            return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest() if _is_as(os.lstat(path), wanted) else ""
        # Not by granting that to itself: a look changes nothing.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            # What is written in place has to have exactly the bytes that are written again.
            is_index = op != WRITE and os.path.basename(named) == "index"
            if wanted.size <= (MOST_BYTES if is_index else _AT_ONCE):
                content = os.read(fd, wanted.size + 1)
                meant = index_without_cache(content) if is_index else None
                digest = hashlib.sha256(meant or content).hexdigest()
            else:
                with open(fd, "rb", closefd=False) as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            return digest if _is_as(os.fstat(fd), wanted) else ""
        finally:
            os.close(fd)
    except OSError:
        return ""


def digest_of(content: bytes, named: str, op: str) -> str:
    """Return what a content means that a file would have under its real path, after a change of this kind."""
    meant = index_without_cache(content) if op != WRITE and os.path.basename(named) == "index" else None
    return hashlib.sha256(meant or content).hexdigest()


def _is_as(found: os.stat_result, wanted: Stamp) -> bool:
    """True if a file is as it was, but for its names and its own times."""
    return FACTS(found)[:5] == wanted[:5]


def index_without_cache(content: bytes) -> bytes | None:
    """Return what git's index says about files, without what git only caches there. None: it cannot be read.

    That are the times, sizes and inodes of the files, and the extensions that are derived from others.
    """
    if content[:4] != b"DIRC" or content[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
        return None
    # Of a repository with other digests, or in a broken file, nothing is where it is looked for.
    if hashlib.sha1(content[:-20], usedforsecurity=False).digest() != content[-20:]:
        return None
    parts, at = [content[8:12]], 12
    for _ in range(int.from_bytes(content[8:12], "big")):
        start = at + (64 if content[at + 60] & 0x40 else 62)
        end = content.find(b"\0", start)
        if end < 0:
            return None
        # Its mode; its object, flags and name.
        parts += [content[at + 24 : at + 28], content[at + 40 : end + 1]]
        at += (end - at) // 8 * 8 + 8
    while at + 8 <= len(content) - 20:
        size = int.from_bytes(content[at + 4 : at + 8], "big")
        if content[at : at + 4] not in _CACHED:
            parts.append(content[at : at + 8 + size])
        at += 8 + size
    return b"".join(parts)


class _Same:
    """Decides if files of one side of a plan, `old` or `new`, are the same in meaning."""

    def __init__(self, store: str, side: Side) -> None:
        self._digests = load_digests(store, side)
        self._side = side

    def file(self, number: int, change: FileChange, name: str, path: str, wanted: Stamp) -> Stamp | None:
        """Return the present stamp of a file that is the same as ever in meaning; else None."""
        found = stamp(path)
        if found is None or found == wanted:
            return found
        if found[:3] != wanted[:3]:
            return None
        if found.is_directory:
            return found
        if change.op in _IN_PLACE and found.links > wanted.links:
            # What is changed in place is changed under the name that somebody has given it since, too.
            return None
        extended = change.old_attributes if self._side == "old" else change.new_attributes
        if not name and extended is not None and text_of(attributes(path)) != extended:
            return None
        if (digest := self._digests.get((number, name))) is not None and found.is_file:
            return found if _digest(path, path, change.op, found) == digest else None
        return found if found[3:5] == wanted[3:5] else None

    def tree(self, number: int, change: FileChange, wanted: Inside | None) -> Inside | None:
        """Return the present stamps below a directory in which nothing has another meaning; else None."""
        if wanted is None:
            return None
        try:
            found = stamps_inside(change.path)
        except OSError:
            return None
        if found.keys() != wanted.keys():
            return None
        for name, each in wanted.items():
            path = os.path.join(change.path, name)
            if found[name] != each and self.file(number, change, name, path, each) != found[name]:
                return None
        return found


Renewed = tuple[dict[int, Stamp], dict[int, dict[str, Any]]]
"""New stamps of what was there before, and other new fields, by the number of the change."""


def renewed_before(store: str, plan: Plan, numbers: Iterable[int]) -> Renewed:
    """Return the present stamps of files that are, in meaning, as they were before the changes of these numbers."""
    same, befores, others = _Same(store, "old"), dict[int, Stamp](), dict[int, dict[str, Any]]()
    for number in numbers:
        change = plan.changes[number]
        if change.before is not None and change.op != LINK:
            found = same.file(number, change, "", change.path, change.before)
            if found is not None and found != change.before:
                befores[number] = found
        fields: dict[str, Any] = {}
        if (inside := same.tree(number, change, change.old_inside)) is not None and inside != change.old_inside:
            fields["old_inside"] = inside
        if change.targets:
            present = {path: stamp(path) for path in change.targets}
            if all(each is not None and each[:5] == change.targets[path][:5] for path, each in present.items()):
                fields["targets"] = present
        if fields:
            others[number] = fields
    return befores, others


def renewed_results(
    store: str, plan: Plan, results: Mapping[int, Result], numbers: Iterable[int]
) -> tuple[dict[int, Result], dict[int, dict[str, Any]]]:
    """Return results with the present stamps of files that are, in meaning, as the changes have left them.

    Beside them the stamps of the new files in the plan, which are put aside and made real again.
    """
    same, found, others = _Same(store, "new"), dict(results), dict[int, dict[str, Any]]()
    for number in numbers:
        change, result = plan.changes[number], results[number]
        if change.op == DELETE or result.found is None:
            continue
        present = same.file(number, change, "", change.new_path, result.found)
        inside = same.tree(number, change, result.inside)
        if present is None or (result.inside is not None and inside is None):
            continue
        found[number] = Result(present, inside)
        if present != result.found and change.after is not None and not present.is_directory:
            others[number] = {"after": present}
    return found, others


def renewed_directories(plan: Plan, parents: Iterable[str]) -> dict[str, int]:
    """Return the inodes of directories that were made anew under their names: an undo of another call does that."""
    found = {}
    wanted = set(parents)
    for directory in plan.directories:
        present = stamp(directory.path)
        if present is None or not present.is_directory or directory.path not in wanted:
            continue
        if present.inode != directory.inode and present.mode in (directory.old_mode, directory.new_mode):
            try:
                os.close(open_directory(directory.path))
            except OSError:
                continue
            found[directory.path] = present.inode
    return found
