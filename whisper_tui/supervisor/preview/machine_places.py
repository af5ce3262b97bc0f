"""The machine around the layers of a view: all of it can be read, and nothing in it answers.

Sockets and FIFOs belong to their inodes. Through an overlay they have other inodes, which nobody listens to; a
read-only bind mount has the same ones, and stops neither connect(2) nor a write to a FIFO. So a view has a root of its
own. Each directory in it is an overlay without an upper directory, or is made anew, and what cannot be shown in either
way is empty: nothing is visible that was not put there.

An ordinary user's overlay cannot cover a directory below which something is mounted, and the root is always such a
directory. It is made anew, with an overlay for each directory in it.
"""

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Literal, NamedTuple

APART = ("/dev", "/proc", "/sys")
"""Directories of the kernel, which a view has in other ways. Nobody can make a socket or a FIFO in the last two."""
MOST_SHOWN = 1000
"""Entries of one directory that is made anew; further ones are not in the view, unless one leads to what it needs."""


class ShownPlace(NamedTuple):
    """A path outside of the layers, and how a view shows it."""

    path: str
    kind: Literal["overlay", "directory", "file", "link", "dead"]
    """`dead`: a socket or a FIFO, made anew."""
    mode: int = 0
    is_mount: bool = False
    """True if something is mounted there. It may be a file system that no overlay can show."""


def mounted_places(mounts: Collection[str], layers: Collection[str]) -> Iterator[ShownPlace]:
    """Yield what is mounted outside of the layers: an overlay of the root does not show it."""
    for path in sorted(mounts):
        if path == "/" or _is_in(path, (*layers, *APART)):
            continue
        with suppress(OSError):
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                yield ShownPlace(path, "overlay", is_mount=True)
            elif stat.S_ISREG(mode):
                yield ShownPlace(path, "file", is_mount=True)


def places_made_anew(mounts: Collection[str], layers: Collection[str], store: str) -> Iterator[ShownPlace]:
    """Yield the entries of a root that is made anew, each directory before what is in it."""
    pending, needed = ["/"], (*layers, store, *mounts)
    while pending:
        top = pending.pop()
        with suppress(OSError):
            entries = sorted(os.scandir(top), key=lambda entry: (not _leads_to(entry.path, needed), entry.name))
            for entry in entries[:MOST_SHOWN]:
                with suppress(FileNotFoundError):
                    place = _made_anew(entry, mounts, layers)
                    yield place
                    if place.kind == "directory" and not _is_in(place.path, (*layers, *APART)):
                        pending.append(place.path)


def _made_anew(entry: "os.DirEntry[str]", mounts: Collection[str], layers: Collection[str]) -> ShownPlace:
    path, mode = entry.path, entry.stat(follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        return ShownPlace(path, "link")
    if not stat.S_ISDIR(mode):
        return ShownPlace(path, "file" if stat.S_ISREG(mode) else "dead", mode)
    is_above = any(mount.startswith(f"{path}/") for mount in mounts)
    if not os.access(path, os.X_OK) and not any(layer.startswith(f"{path}/") for layer in layers):
        return ShownPlace(path, "directory", 0)  # This user cannot look anything up in it, and nor can an overlay.
    if is_above or _is_in(path, (*layers, *APART)):
        return ShownPlace(path, "directory", stat.S_IMODE(mode))
    return ShownPlace(path, "overlay", is_mount=path in mounts)


def _leads_to(path: str, places: Collection[str]) -> bool:
    return any(f"{place}/".startswith(f"{path}/") for place in places)


def _is_in(path: str, directories: Collection[str]) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in directories)
