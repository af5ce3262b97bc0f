"""The disk as a command would find it: what is there now, changed by what the commands before it have made or deleted.

Nothing is opened but regular files outside of /proc, /sys and /dev, and no walk outlives its deadline.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from whisper_tui.model.effects import FileKind
from whisper_tui.policy.shell.word_expansion import paths_matching
from whisper_tui.system import host_files, process_names
from whisper_tui.system.host_files import MOST_KEPT_LINKS, Tree

LARGEST_COMPARED = 1 << 20
"""Bytes of a file of which the content is compared."""


class Deadline:
    """The moment until which everything has to be computed."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds
        self.was_missed = False
        """True if something was left out for lack of time."""

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._at - time.monotonic())

    @property
    def is_over(self) -> bool:
        """True if no time is left; from then on the result counts as incomplete."""
        if time.monotonic() > self._at:
            self.was_missed = True
        return self.was_missed


class Found(NamedTuple):
    """One path as it is at some point of the command."""

    path: str
    """Absolute and without `.` and `..`, as it was named."""
    real: str
    """The same with links resolved."""
    kind: FileKind
    size: int | None = None
    mode: int | None = None
    through_link: bool = False
    made: bool = False
    """True if a command before it makes or replaces it."""
    as_directory: bool = False
    """True if it is named with a slash at its end, which no file is."""
    is_link: bool = False
    """True if it is a symbolic link, which was not followed."""
    of_process: bool = False
    """True if the name means something else for each process, as `/dev/stdout` does."""


def resolved_path(path: str) -> str:
    """Return a path with its links resolved, or as it is if no system takes it."""
    return path if "\0" in path else host_files.realpath(path)


class FileView:
    """The disk with the changes of the commands before."""

    def __init__(self, roots: Sequence[str], deadline: Deadline) -> None:
        """`roots`: the directories of the workspace."""
        self._roots = tuple(resolved_path(root) for root in roots if root)
        self._deadline = deadline
        self._changed: dict[str, tuple[FileKind, bytes | None]] = {}
        """Real paths that a command before has changed: their kind then, and their content if it is known."""
        self._links: set[str] = set()
        """Links, also hard ones, that a command before has made. The disk lacks them, so nothing leads through them."""
        self._unsure: list[str] = []
        """Directories below which anything may have changed."""
        self._unlinked: set[str] = set()
        """Those of them in which no links were made."""
        self._closed: set[str] = set()
        """Directories that their owner may not enter, as far as is known, since a command before."""

    def find(self, path: str, directory: str | None, *, follow: bool = True) -> Found | None:
        """Look at a path. None: it is relative to a directory that is not known, no system takes it, or a command
        before makes or replaces a link on its way.
        """
        if "\0" in path or len(path) > 4096 or (directory is None and not path.startswith("/")):
            return None
        named = os.path.join(directory or "/", path)
        plain = os.path.normpath(named)
        try:
            if self._changed and any(map(self._may_be_other_link, self._ways(named, follow=follow))):
                return None
            real = host_files.realpath(named, directory) if follow else self._parent_resolved(named, directory)
        except (OSError, ValueError):
            return Found(plain, plain, "unknown")
        if process_names.is_of_process(real if follow else os.path.dirname(real)):
            return Found(plain, real, "special", of_process=True)
        found = self._at(plain, real, through=self._is_linked(real, path, directory))
        return found._replace(as_directory=path.endswith("/"))

    def _ways(self, named: str, *, follow: bool) -> Iterator[str]:
        """The places on the way along a path, and with `follow` the path itself, each with its parent resolved."""
        parts = [part for part in named.split("/") if part not in {"", "."}]
        for length in range(1, len(parts) + follow):
            above = host_files.realpath("/" + "/".join(parts[: length - 1]))
            yield os.path.normpath(os.path.join(above, parts[length - 1]))

    def _may_be_other_link(self, place: str) -> bool:
        """True if a symbolic link may be at a place that the disk does not show as it will be."""
        # A tree that was copied, moved or unpacked there may contain links.
        if place in self._links or any(place.startswith(each) for each in self._unsure):
            return True
        with suppress(OSError):
            return place in self._changed and stat.S_ISLNK(host_files.lstat(place).st_mode)
        return False

    @staticmethod
    def _is_linked(real: str, path: str, directory: str | None) -> bool:
        return real != os.path.normpath(os.path.join(resolved_path(directory or "/"), path))

    def _at(self, plain: str, real: str, *, through: bool) -> Found:
        if real in self._changed:
            kind, content = self._changed[real]
            return Found(plain, real, kind, None if content is None else len(content), None, through, made=True)
        if self._below_removed(real):
            return Found(plain, real, "absent", through_link=through, made=True)
        try:
            status = host_files.lstat(real)
        except FileNotFoundError:
            return Found(plain, real, "absent", through_link=through)
        except (OSError, ValueError):
            return Found(plain, real, "unknown", through_link=through)
        kind = kind_of(status.st_mode)
        made = any(real.startswith(each) for each in self._unsure)
        size = status.st_size if kind == "file" else None
        is_link = stat.S_ISLNK(status.st_mode)
        return Found(plain, real, kind, size, status.st_mode & 0o7777, through, made, is_link=is_link)

    @staticmethod
    def _parent_resolved(named: str, directory: str | None) -> str:
        """The path with links resolved everywhere but in its last part."""
        bare = named.rstrip("/") or "/"
        parent, name = os.path.split(bare)
        if name in {"", ".", ".."}:
            return host_files.realpath(bare, directory)
        return os.path.join(host_files.realpath(parent, directory), name)

    def _below_removed(self, real: str) -> bool:
        parent = os.path.dirname(real)
        while parent != "/" and parent:
            changed = self._changed.get(parent)
            if changed is not None:
                return changed[0] == "absent"
            parent = os.path.dirname(parent)
        return False

    def is_outside(self, real: str) -> bool:
        """True if a real path is in no directory of the workspace."""
        return not any(real == root or real.startswith(root.rstrip("/") + "/") for root in self._roots)

    def root_of(self, real: str) -> str:
        """The directory of the workspace that a real path is in, or the path itself outside of it."""
        inside = (root for root in self._roots if real == root or real.startswith(root.rstrip("/") + "/"))
        return next(inside, real)

    def note(self, real: str, kind: FileKind, content: bytes | None = None) -> None:
        """Remember that a command changes a path."""
        if kind == "absent":
            # What the commands before made below it is gone as well.
            for path in [path for path in self._changed if path.startswith(real + "/")]:
                del self._changed[path]
        self._links.discard(real)
        self._changed[real] = (kind, content)

    def note_link(self, real: str) -> None:
        """Remember that a command makes a symbolic link."""
        self.note(real, "file")
        self._links.add(real)

    def note_unsure(self, real: str, *, links: bool = True) -> None:
        """Remember that files below a directory have changed, without knowing which. `links`: some may be links."""
        inside = real.rstrip("/") + "/"
        if links:
            self._unlinked.discard(inside)
        elif inside not in self._unsure:
            self._unlinked.add(inside)
        self.note(real, "directory")
        self._unsure.append(inside)

    def note_entering(self, real: str, *, is_certain: bool) -> None:
        """Remember that a command sets the mode of a directory. `is_certain`: its owner can enter it then."""
        (self._closed.discard if is_certain else self._closed.add)(real)

    def leads_out(self, real: str, names: Iterable[str]) -> bool:
        """True if a link may lead from below a directory out of it, at or on the way to one of these names."""
        plain: set[str] = set()
        for name in names:
            at = real
            for part in name.split("/"):
                at = f"{at.rstrip('/')}/{part}"
                if at in plain:
                    continue
                if self._deadline.is_over or self._may_be_made_link(at) or self._is_way_out(at, real):
                    return True
                plain.add(at)
        return False

    def has_way_out(self, real: str, *, for_directories: bool = False) -> bool:
        """True if any link may lead from below a directory out of it. `for_directories`: to a directory."""
        inside = real.rstrip("/") + "/"
        linked = [each for each in self._unsure if each not in self._unlinked]
        if any(each.startswith(inside) for each in (*self._links, *linked)) or inside.startswith(tuple(linked)):
            return True
        tree = self.tree(real, 0.05)
        out = (link for link in tree.links if self._is_way_out(link, real))
        is_whole = tree.complete and len(tree.links) < MOST_KEPT_LINKS
        return not is_whole or any(not for_directories or self.is_directory(link) for link in out)

    def _may_be_made_link(self, place: str) -> bool:
        """True if a command before may have made a link at a place."""
        return place in self._links or any(
            place.startswith(each) for each in self._unsure if each not in self._unlinked
        )

    @staticmethod
    def _is_way_out(link: str, real: str) -> bool:
        """True if a link on the disk leads out of a directory."""
        inside = real.rstrip("/") + "/"
        return host_files.is_link(link) and not f"{host_files.realpath(link)}/".startswith(inside)

    def is_directory(self, path: str) -> bool:
        """True if there is a directory at that point."""
        found = self.find(path, None)
        return found is not None and found.kind == "directory"

    def directory(self, path: str) -> str | None:
        """Where a path leads if there is a directory at that point that can be entered. None: perhaps there is none."""
        found = self.find(path, None)
        if found is None or found.kind != "directory":
            return None
        is_closed = any(found.real == each or found.real.startswith(f"{each}/") for each in self._closed)
        return None if is_closed else found.real

    def exists(self, path: str) -> bool:
        """True if there is anything of that name at that point."""
        found = self.find(path, None, follow=False)
        return found is not None and found.kind != "absent"

    def names_in(self, path: str, most: int) -> list[str] | None:
        """The names in a directory at that point. None: more than `most`, or the time is over."""
        if "\0" in path:
            return None
        real = host_files.realpath(path)
        names: dict[str, None] = {}
        with suppress(OSError):
            names = dict.fromkeys(host_files.names(real, most + 1))
        if len(names) > most or self._deadline.is_over:
            return None
        for changed, (kind, _) in self._changed.items():
            parent, name = os.path.split(changed)
            if parent == real:
                if kind == "absent":
                    names.pop(name, None)
                else:
                    names[name] = None
        return list(names)

    def matching(self, directory: str, pattern: str, most: int) -> list[str] | None:
        """The paths that match a pattern of the shell at that point. None: more than `most`, or unreadable."""

        listed: list[list[str] | None] = []

        def names(prefix: str) -> list[str]:
            listed.append(self.names_in(os.path.join(directory, prefix), most * 10))
            return listed[-1] or []

        paths = paths_matching(pattern, names, lambda path: self.exists(os.path.join(directory, path)))
        found = list(islice(paths, most + 1))
        return found if len(found) <= most and None not in listed else None

    def content(self, found: Found) -> tuple[bytes | None, str]:
        """The content of a file at that point, or None and the reason why it is not known."""
        if found.kind == "absent" or found.real == "/dev/null":
            return b"", ""
        if found.made:
            content = self._changed.get(found.real, (found.kind, None))[1]
            return content, "" if content is not None else "an earlier command changes the file"
        if found.kind != "file":
            return None, "it is not a regular file"
        if (found.size or 0) > LARGEST_COMPARED:
            return None, "the file is larger than 1 MiB"
        if self._deadline.is_over:
            return None, "there was no time to read it"
        return host_files.read_regular(found.real, LARGEST_COMPARED)

    def tree(self, real: str, most_s: float = 0.2) -> Tree:
        """Count the files below a real path, links not followed, for `most_s` or a third of the time that is left."""
        left = self._deadline.left
        found = host_files.tree(real, min(left, max(most_s, left / 3)))
        if not found.complete:
            self._deadline.was_missed = self._deadline.was_missed or self._deadline.is_over
        return found


def kind_of(mode: int) -> FileKind:
    """The kind of a file; a link that leads nowhere counts as a file."""
    if stat.S_ISDIR(mode):
        return "directory"
    return "file" if stat.S_ISREG(mode) or stat.S_ISLNK(mode) else "special"
