"""Random trees and random work in them, the same for the same seed."""

import errno
import os
import random
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from whisper_tui.changes.file_trees import attributes, copy_node, dress, remove_tree, stamp

LARGE = 1_200_000
"""More bytes than a file that is written in place may have if nobody has it open."""


def has_twin(seed: int) -> bool:
    """True if a file of the tree has two names. Overlays separate them; so nothing else joins or copies names then."""
    return seed % 3 == 0


def make_tree(seed: int, top: Path) -> None:
    """Make a tree with all kinds of files. Its times lie in the past."""
    chance = random.Random(seed)
    top.mkdir()
    directories = [top]
    for number in range(chance.randint(2, 7)):
        directories.append(chance.choice(directories) / f"d{number}")
        directories[-1].mkdir()
    files: list[Path] = []
    for number in range(chance.randint(5, 20)):
        path = chance.choice(directories) / f"f{number}"
        path.write_bytes(chance.randbytes(chance.choice((0, 10, 1000, 5000))))
        path.chmod(chance.choice((0o644, 0o644, 0o600, 0o755, 0o400, 0o444)))
        if chance.random() < 0.15:
            with suppress(PermissionError):
                os.setxattr(path, "user.note", chance.randbytes(5))
        files.append(path)
    if chance.random() < 0.3:
        (top / "large").write_bytes(chance.randbytes(LARGE))
    if has_twin(seed):
        original = chance.choice(files)
        os.link(original, chance.choice(directories) / "twin")
    (chance.choice(directories) / "soft").symlink_to(chance.choice(("f1", "d0", "nowhere", "/etc")))
    if chance.random() < 0.3:
        os.mkfifo(chance.choice(directories) / "fifo")
    for number, path in enumerate(sorted(top.rglob("*"), reverse=True)):
        os.utime(path, ns=(0, (1_600_000_000 + number) * 10**9 + 123), follow_symlinks=False)
    for path in directories[1:]:
        if chance.random() < 0.15:
            path.chmod(chance.choice((0o700, 0o775, 0o555, 0o1777)))
    os.utime(top, ns=(0, 1_500_000_000 * 10**9))


def copy_apart(source: str, target: str) -> None:
    """Copy a tree without its hard links."""
    for directory, directories, files in os.walk(source):
        below = os.path.join(target, os.path.relpath(directory, source))
        os.makedirs(below)
        for name in files + [name for name in directories if os.path.islink(os.path.join(directory, name))]:
            copy_node(os.path.join(directory, name), os.path.join(below, name))
    for directory, _, _ in os.walk(source, topdown=False):
        found = stamp(directory)
        assert found is not None
        dress(os.path.join(target, os.path.relpath(directory, source)), found, attributes(directory))


def remove_sorted(top: str) -> None:
    """Remove a tree in the order of its names, up to the first error."""
    for name in sorted(os.listdir(top)):
        path = os.path.join(top, name)
        if os.path.isdir(path) and not os.path.islink(path):
            remove_sorted(path)
        else:
            os.unlink(path)
    os.rmdir(top)


class RandomWork:
    """Work in the current directory. What fails for lack of permission is left out, as in a script."""

    def __init__(self, seed: int, steps: int) -> None:
        self._seed = seed
        self._chance = random.Random(seed)
        self._steps = steps
        self._has_twin = has_twin(seed)
        self._names = 0
        self.log: list[str] = []

    def __call__(self) -> None:
        for step in range(self._steps):
            # The numbers that one act draws are no others after an error in the one before.
            self._chance = random.Random(f"{self._seed} {step}")
            act = self._chance.choice(self._acts())
            self.log.append(act.__name__)
            try:
                act()
            except OSError as error:
                self.log.append(f"  {error}")
        if os.environ.get("RANDOM_LOG"):
            print(*self.log, sep="\n", flush=True)

    def _acts(self) -> tuple[Callable[[], None], ...]:
        joining = (self.rename_directory, self.hard_link, self.hard_link, self.link_over, self.link_in_new)
        twice = (
            self.make_file, self.append, self.overwrite, self.replace, self.remove, self.change_mode, self.rename,
            self.rename_to_new, self.exchange_names,
        )  # fmt: skip
        once = (
            self.remove_directory, self.make_directory, self.make_in_new, self.soft_link, self.set_time, self.truncate,
            self.set_attribute, self.make_fifo, self.make_anew, self.file_to_directory, self.directory_to_file,
            self.rewrite_same, self.change_directory_mode, self.pass_names_on, self.rename_to_removed, self.rename_back,
            self.rename_and_change,
        )  # fmt: skip
        if not self._has_twin:
            return (*joining, *twice, *twice, *once)
        # The mode of one name would decide if the other may be opened, but not in an overlay.
        return tuple(act for act in (*twice, *twice, *once) if act != self.change_mode)

    def _paths(self, kind: Callable[[int], bool]) -> list[str]:
        found = []
        for directory, directories, files in os.walk("."):
            for name in sorted(directories + files):
                path = os.path.join(directory, name)
                if kind(os.lstat(path).st_mode):
                    found.append(path)
            directories.sort()
        return found

    def _one(self, kind: Callable[[int], bool]) -> str:
        found = self._paths(kind)
        if not found:
            raise OSError(errno.ENOENT, "nothing of this kind")
        return self._chance.choice(found)

    def _file(self) -> str:
        path = self._one(stat.S_ISREG)
        self.log.append(f"  {path}")
        return path

    def _changeable(self) -> str:
        path = self._file()
        if os.getuid() and not self._has_twin and os.lstat(path).st_nlink > 1:
            # Without an index, an overlay shows changes by one name of a file not under the other.
            raise OSError(errno.EMLINK, "it has several names")
        return path

    def _directory(self) -> str:
        return self._one(stat.S_ISDIR) if self._chance.random() < 0.8 else "."

    def _inner(self) -> str:
        return self._one(stat.S_ISDIR)

    def _new(self) -> str:
        self._names += 1
        return os.path.join(self._directory(), f"n{self._names}")

    def _bytes(self) -> bytes:
        return self._chance.randbytes(self._chance.choice((1, 3, 500, 5000, 5000, 90_000)))

    def make_file(self) -> None:
        path, data = self._new(), self._bytes()
        Path(path).write_bytes(data)
        if self._chance.random() < 0.3:
            os.chmod(path, self._chance.choice((0o600, 0o755, 0, 0o444)))

    def append(self) -> None:
        with open(self._changeable(), "ab") as file:
            file.write(self._bytes())

    def overwrite(self) -> None:
        with open(self._changeable(), "wb") as file:
            file.write(self._bytes())

    def rewrite_same(self) -> None:
        path = Path(self._changeable())
        data = path.read_bytes()
        if data:  # file systems differ in the time of an empty file that is emptied
            path.write_bytes(data)

    def truncate(self) -> None:
        path, size = self._changeable(), self._chance.choice((0, 1, 100))
        if os.lstat(path).st_size != size:
            os.truncate(path, size)

    def replace(self) -> None:
        path = self._file()
        Path(path + "~").write_bytes(self._bytes())
        os.rename(path + "~", path)

    def remove(self) -> None:
        os.unlink(self._one(lambda mode: not stat.S_ISDIR(mode)))

    def remove_directory(self) -> None:
        remove_sorted(self._inner())

    def make_directory(self) -> None:
        os.mkdir(self._new(), self._chance.choice((0o755, 0o700, 0o500)))

    def make_in_new(self) -> None:
        path = self._new()
        os.makedirs(path + "/a/b")
        Path(path, "a", "file").write_bytes(self._bytes())
        os.symlink("file", path + "/a/soft")
        if self._chance.random() < 0.5:
            os.link(path + "/a/file", path + "/a/b/twin")
        if self._chance.random() < 0.3:
            os.chmod(path + "/a", 0o500)

    def change_mode(self) -> None:
        os.chmod(self._changeable(), self._chance.choice((0o600, 0o755, 0o444, 0)))

    def change_directory_mode(self) -> None:
        os.chmod(self._inner(), self._chance.choice((0o755, 0o700, 0o555, 0o1777, 0o711)))

    def soft_link(self) -> None:
        os.symlink(self._chance.choice(("f1", "nowhere", "/")), self._new())

    def rename(self) -> None:
        source = self._one(lambda mode: not stat.S_ISDIR(mode))
        target = self._new() if self._has_twin or self._chance.random() < 0.6 else self._file()
        os.rename(source, target)

    def rename_to_new(self) -> None:
        for _ in range(self._chance.randint(1, 4)):
            os.rename(self._file(), self._new())

    def exchange_names(self) -> None:
        one, other, between = self._file(), self._file(), self._new()
        os.rename(one, between)
        os.rename(other, one)
        os.rename(between, other)

    def pass_names_on(self) -> None:
        """Give each of some files the name of the one before it; the first gets a new one."""
        target = self._new()
        for _ in range(self._chance.randint(2, 4)):
            source = self._file()
            os.rename(source, target)
            target = source

    def rename_to_removed(self) -> None:
        target = self._file()
        os.unlink(target)
        os.rename(self._file(), target)

    def rename_back(self) -> None:
        source, between = self._file(), self._new()
        os.rename(source, between)
        os.rename(between, source)

    def rename_and_change(self) -> None:
        target = self._new()
        os.rename(self._changeable(), target)
        if self._chance.random() < 0.5:
            os.chmod(target, 0o640)
        else:
            with open(target, "ab") as file:
                file.write(b"more")

    def rename_directory(self) -> None:
        source, target = self._inner(), self._new()
        if (os.path.dirname(target) + "/").startswith(source + "/"):
            return
        # overlayfs does not rename a directory of the lower layer: `mv` copies and removes then, and so does a preview.
        # It does not see there which names of copied-up files belong together.
        copy_apart(source, target)
        remove_tree(source)

    def hard_link(self) -> None:
        os.link(self._file(), self._new())

    def link_over(self) -> None:
        source, target = self._file(), self._file()
        if os.lstat(target).st_nlink == 1 and source != target:
            os.link(source, target + "~")
            os.rename(target + "~", target)

    def link_in_new(self) -> None:
        path, source = self._new(), self._file()
        os.mkdir(path)
        os.link(source, path + "/linked")

    def set_time(self) -> None:
        when = self._chance.randrange(10**9, 2 * 10**9) * 10**9 + 7
        os.utime(self._changeable() if self._chance.random() < 0.7 else self._inner(), ns=(when, when))

    def set_attribute(self) -> None:
        os.setxattr(self._changeable(), "user.more", self._chance.randbytes(4))

    def make_fifo(self) -> None:
        os.mkfifo(self._new())

    def make_anew(self) -> None:
        path = self._inner()
        remove_sorted(path)
        os.mkdir(path)
        Path(path, "again").write_bytes(self._bytes())

    def file_to_directory(self) -> None:
        path = self._file()
        os.unlink(path)
        os.mkdir(path)
        Path(path, "inside").write_bytes(self._bytes())

    def directory_to_file(self) -> None:
        path = self._inner()
        remove_sorted(path)
        Path(path).write_bytes(self._bytes())
