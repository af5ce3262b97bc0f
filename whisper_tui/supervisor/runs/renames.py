"""Files that a command has created and that are deleted ones under another name, as `git diff -M` finds them."""

import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

LEAST_ALIKE = 50
"""Percentage from which on two files count as one, as for git."""
MOST_BYTES = 2 << 20
"""Bytes of files that are read to tell what was renamed."""
MOST_PAIRS = 10_000
"""Pairs of files that are compared."""
_LONGEST_CHUNK = 64


class KnownFile(NamedTuple):
    """A regular file or a symbolic link that was created or deleted."""

    number: int
    path: str
    size: int
    likeness: tuple[int, ...]
    """All that stays the same when a file is moved without another change: the mode, and more."""
    read: Callable[[], bytes | None]
    """Returns its content, or where the link leads. None: it cannot be read."""

    @property
    def name(self) -> str:
        """Its last part, which a file keeps that goes to another directory."""
        return self.path.rpartition("/")[2]

    @property
    def may_be_edited(self) -> bool:
        """True if it may be known again by a part of its content."""
        return self.size > 0 and stat.S_ISREG(self.likeness[0])


class Rename(NamedTuple):
    """A file with another name than before."""

    old: int
    """The number of the deleted one."""
    alike: int
    """Percentage of the content that is the same."""


def renames(gone: Sequence[KnownFile], new: Sequence[KnownFile]) -> dict[int, Rename]:
    """Return which created files were renamed, by their numbers. Each deleted file is at most one of them."""
    contents = _Contents()
    found: dict[int, Rename] = {}
    left = {each.number: each for each in gone}
    same: defaultdict[tuple[int, ...], list[KnownFile]] = defaultdict(list)
    for each in left.values():
        same[each.likeness].append(each)
    unpaired = list[KnownFile]()
    for each in new:
        # A command can set the time of any file, so only the content says that it is the same one.
        alike = [old for old in same[each.likeness] if old.number in left and contents.are_same(old, each)]
        if not alike:
            unpaired.append(each)
            continue
        # Of several copies the one that kept its name is meant.
        old = next((old for old in alike if old.name == each.name), alike[0])
        found[each.number] = Rename(left.pop(old.number).number, 100)
    may_be_old, may_be_new = ([each for each in files if each.may_be_edited] for files in (left.values(), unpaired))
    return found | _similar(may_be_old, may_be_new, contents)


def _similar(gone: Sequence[KnownFile], new: Sequence[KnownFile], contents: "_Contents") -> dict[int, Rename]:
    if not gone or not new or len(gone) * len(new) > MOST_PAIRS:
        return {}
    scores = list[tuple[int, bool, int, int]]()
    for each in new:
        for old in gone:
            if 100 * min(old.size, each.size) < LEAST_ALIKE * max(old.size, each.size):
                continue
            alike = contents.alike(old, each)
            if alike >= LEAST_ALIKE:
                has_name = old.name == each.name
                scores.append((alike, has_name, old.number, each.number))
    found: dict[int, Rename] = {}
    taken = set[int]()
    for alike, _, old_number, number in sorted(scores, key=lambda score: (-score[0], not score[1], score[2:])):
        if old_number not in taken and number not in found:
            taken.add(old_number)
            found[number] = Rename(old_number, alike)
    return found


class _Contents:
    """The contents of the compared files, as far as they are read."""

    def __init__(self) -> None:
        self._left = MOST_BYTES
        self._read: dict[int, bytes | None] = {}
        self._chunks: dict[int, Mapping[bytes, int]] = {}

    def are_same(self, one: KnownFile, other: KnownFile) -> bool:
        """True if two files have the same content."""
        first = self._of(one)
        return first is not None and first == self._of(other)

    def alike(self, old: KnownFile, new: KnownFile) -> int:
        """Return the percentage of the larger file that is in both."""
        if self._of(old) is None or self._of(new) is None:
            return 0
        if self.are_same(old, new):
            return 100
        before, after = self._chunks_of(old), self._chunks_of(new)
        common = sum(len(chunk) * min(times, before.get(chunk, 0)) for chunk, times in after.items())
        # Lines in another order are all there, and yet it is another content.
        return min(99, 100 * common // max(old.size, new.size))

    def _of(self, file: KnownFile) -> bytes | None:
        if file.number not in self._read:
            self._left -= file.size
            self._read[file.number] = file.read() if self._left >= 0 else None
        return self._read[file.number]

    def _chunks_of(self, file: KnownFile) -> Mapping[bytes, int]:
        if file.number not in self._chunks:
            lines = (self._of(file) or b"").splitlines(keepends=True)
            self._chunks[file.number] = Counter(
                line[at : at + _LONGEST_CHUNK] for line in lines for at in range(0, len(line), _LONGEST_CHUNK)
            )
        return self._chunks[file.number]
