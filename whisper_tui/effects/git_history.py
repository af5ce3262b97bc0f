"""The effect of changed files of a repository on its history: branches and tags may only grow (decision 36)."""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from whisper_tui.effects.changes import printable

_COMMIT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_PACKED = re.compile(rb"([0-9a-f]{40,64}) (refs/\S+)\Z")
_OBJECT = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38,62})\Z")
_LARGEST_COMMIT = 1 << 20
"""Bytes of a commit that are read; its parents stand in its first lines."""
MOST_COMMITS = 1000
"""New commits through which the way to the old one is looked for."""
_UNREADABLE = b"?"
"""The value of a reference whose file cannot be read: no commit."""
_OF_WORK = re.compile(
    r"HEAD|ORIG_HEAD|MERGE_(?:HEAD|MSG|MODE|RR)|CHERRY_PICK_HEAD|REVERT_HEAD|AUTO_MERGE|SQUASH_MSG|COMMIT_EDITMSG|"
    r"index|sequencer(?:/.*)?|logs(?:/.*)?|objects(?:/.*)?|refs(?:/.*)?|packed-refs|"
    r"BISECT_\w+|gc\.log|rr-cache(?:/.*)?",
    re.DOTALL,
)
"""Files that git writes while one works; each other one in its directory is a setting or a program.

Those of a rebase are such: `git rebase --continue` runs the commands that stand in its list.
"""
_HEAD = re.compile(rb"(?:ref: refs/heads/[^\s]+|[0-9a-f]{40}(?:[0-9a-f]{24})?)\n?\Z")
_NEEDED = frozenset({"refs", "objects"})
"""Directories without which git takes a directory for no repository, and looks for another one."""


class ChangedGitFile(NamedTuple):
    """A changed file in the directory of a repository. The contents are None where there is no such file."""

    name: str
    """Its path from the directory of the repository on."""
    is_directory: bool
    old: Callable[[], bytes | None]
    new: Callable[[], bytes | None]
    is_new: bool
    is_gone: bool
    is_plain: bool = True
    """False if a directory, a link or another special file takes the place of a file, or a file that of a directory."""


def rewritten_history(
    files: Mapping[str, ChangedGitFile], packed: bytes, is_ancestor: Callable[[str, str], bool]
) -> Iterator[str]:
    """Yield what changed files of a repository do beside adding commits, branches and tags, as clauses.

    `files`: by their names. `packed`: its `packed-refs` as the repository has it. `is_ancestor`: tells it of two
    commits that the repository already has.
    """
    for file in files.values():
        if file.is_directory:
            if file.is_gone and file.name in _NEEDED:
                yield f"it deletes {file.name} of git"
            continue
        if not file.is_plain:
            yield f"{printable(file.name)} of git would be no file any more"
        elif file.name == "HEAD" and not _HEAD.match(file.new() or b""):
            yield "HEAD would name no branch or commit"
        elif not _OF_WORK.fullmatch(file.name):
            yield f"it changes {printable(file.name)} of git"
        elif file.name.startswith("objects/") and (not file.is_new or not _OBJECT.match(file.name)):
            yield "it packs or removes objects of git"
        elif file.name.startswith("logs/") and not file.is_new and not _grew(file):
            yield "it rewrites the log of a branch, by which lost commits are found"
    listed = files.get("packed-refs")
    if listed is not None and ((listed.old() is None and not listed.is_new) or listed.new() is None):
        yield "it changes a list of branches and tags that cannot be read"
    elif listed is not None and not _is_sound(listed.new() or b""):
        yield "git would read another list of branches and tags than it seems"
    for name, old, new in _moved(files, packed):
        if problem := _problem(name, old, new, files, is_ancestor):
            yield problem


def _grew(file: ChangedGitFile) -> bool:
    old, new = file.old(), file.new()
    return old is not None and new is not None and new.startswith(old)


def _moved(files: Mapping[str, ChangedGitFile], packed: bytes) -> Iterator[tuple[str, bytes | None, bytes | None]]:
    """Yield each branch, tag and other reference that is not as it was, with its old and its new value."""
    listed = files.get("packed-refs")
    before = _packed_refs((listed.old() or b"") if listed is not None else packed)
    after = _packed_refs((listed.new() or b"") if listed is not None else packed)
    loose = {name: file for name, file in files.items() if name.startswith("refs/") and not file.is_directory}
    for name in sorted({*loose, *(each for each in {*before, *after} if before.get(each) != after.get(each))}):
        old, new = before.get(name), after.get(name)
        if (file := loose.get(name)) is not None:
            old = old if file.is_new else (file.old() or _UNREADABLE).strip()
            new = new if file.is_gone else (file.new() or _UNREADABLE).strip()
        if old != new:
            yield name, old, new


def _is_sound(packed: bytes) -> bool:
    """True if a list of references is as git writes it: each once, in order. In any other git may find others."""
    lines = packed.removesuffix(b"\n").split(b"\n")
    lines = [line for line in lines if not re.match(rb"# pack-refs with:|\^[0-9a-f]{40,64}\Z", line)]
    found = [_PACKED.match(line) for line in lines]
    names = [match[2] for match in found if match is not None]
    in_order = all(one < other for one, other in pairwise(names))
    return packed.endswith(b"\n") and len(names) == len(lines) and in_order


def _packed_refs(content: bytes) -> dict[str, bytes]:
    found = (_PACKED.match(line) for line in content.splitlines())
    return {match[2].decode(errors="replace"): match[1] for match in found if match is not None}


def _problem(
    name: str,
    old: bytes | None,
    new: bytes | None,
    files: Mapping[str, ChangedGitFile],
    is_ancestor: Callable[[str, str], bool],
) -> str:
    shown = printable(name.removeprefix("refs/heads/").removeprefix("refs/"))
    if not name.startswith(("refs/heads/", "refs/tags/")) and name != "refs/stash":
        return f"it changes {shown}, which is no branch or tag of this repository alone"
    if new is None:
        return f"it deletes {shown}"
    if not _COMMIT.match(new):
        return f"{shown} would name no commit"
    if old is None or name == "refs/stash":
        return ""
    if name.startswith("refs/tags/"):
        return f"it moves {shown}"
    if _COMMIT.match(old) and _descends(new.decode(), old.decode(), files, is_ancestor):
        return ""
    return f"{shown} would lose commits that it has"


def _descends(new: str, old: str, files: Mapping[str, ChangedGitFile], is_ancestor: Callable[[str, str], bool]) -> bool:
    """True if one commit is reached from another: through the new commits, and through those that were there."""
    pending, seen = [new], set[str]()
    while pending and len(seen) < MOST_COMMITS:
        commit = pending.pop()
        if commit == old:
            return True
        if commit in seen:
            continue
        seen.add(commit)
        made = files.get(f"objects/{commit[:2]}/{commit[2:]}")
        if made is not None and made.is_new:
            pending += _parents(commit, made.new())
        elif is_ancestor(old, commit):
            return True
    return False


def _parents(commit: str, content: bytes | None) -> list[str]:
    """Return the parents of a commit, from the file of its object. An object of another kind has none."""
    if content is None:
        return []
    try:
        text = zlib.decompressobj().decompress(content, _LARGEST_COMMIT)
    except zlib.error:
        return []
    # What does not have its own name is no object for git either.
    if hashlib.new("sha1" if len(commit) == 40 else "sha256", text, usedforsecurity=False).hexdigest() != commit:
        return []
    head, _, body = text.partition(b"\0")
    if not head.startswith(b"commit "):
        return []
    lines = body.partition(b"\n\n")[0].splitlines()
    return [line[7:].decode() for line in lines if line.startswith(b"parent ") and _COMMIT.match(line[7:])]
