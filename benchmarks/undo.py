"""Apply and undo a preview: many changed files, and the same bytes copied by `cp -a` in the same run; prints Markdown.

Needs Linux with user namespaces, or root. The upper directories come from real overlays. `flush` is the part in which
the changes are written to the disk, so that they survive a power cut: it also writes what other programs have changed.
`least` is a loop in Python with only the system calls that no way to apply can leave out.
"""

import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from measure import table

from tests.changes.overlay import previewed
from whisper_tui.changes import transition
from whisper_tui.changes.file_trees import remove_tree
from whisper_tui.changes.overlay_diff import read_changes

ROUNDS = int(os.environ.get("ROUNDS", "5"))
NUMBERS = [int(number) for number in os.environ.get("NUMBERS", "500 10000").split()]
IN_DIRECTORY = 100


def directory_of(number: int) -> str:
    return f"d{number // IN_DIRECTORY}"


def fill(top: Path, number: int) -> None:
    """Make files in directories of a hundred each, 1 to 4 kB as in a source tree."""
    chance = random.Random(number)
    for each in range(number):
        directory = top / directory_of(each)
        directory.mkdir(exist_ok=True)
        (directory / f"f{each}").write_bytes(b"x" * chance.randint(1000, 4000))


def replace_all(number: int) -> None:
    """Replace each file, as editors and `sed -i` do."""
    for each in range(number):
        path = Path(directory_of(each), f"f{each}")
        Path("new").write_bytes(path.read_bytes() + b"y")
        os.rename("new", path)


def write_all(number: int) -> None:
    """Append to each file."""
    for each in range(number):
        with open(Path(directory_of(each), f"f{each}"), "ab") as file:
            file.write(b"y")


def add_all(number: int) -> None:
    """Add a file beside each."""
    for each in range(number):
        Path(directory_of(each), f"new{each}").write_bytes(b"x" * 2000)


def add_tree(number: int) -> None:
    """Add a tree with as many files."""
    os.mkdir("tree")
    fill(Path("tree").resolve(), number)


def rename_all(number: int) -> None:
    """Give each file another name."""
    for each in range(number):
        os.rename(Path(directory_of(each), f"f{each}"), Path(directory_of(each), f"g{each}"))


def remove_all(number: int) -> None:
    """Remove each file, and leave the directories."""
    for each in range(number):
        os.unlink(Path(directory_of(each), f"f{each}"))


def milliseconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1000


def processor() -> float:
    """Return the milliseconds of processor time that this process has used."""
    return time.process_time() * 1000


def least(top: Path, number: int, change: Callable[[int], None]) -> None:
    """Make only the system calls that no way to apply the change can leave out, in a tree of the same size.

    Each file is looked at before its step, in it, since anybody may have changed it meanwhile, and after it, for undo.
    """
    paths = [os.path.join(top, directory_of(each), f"f{each}") for each in range(number)]
    if change is add_tree:
        os.rename(top, f"{top}~")
        for path in paths:
            os.lstat(f"{top}~{path[len(str(top)) :]}")
        return
    with open(f"{top}/kept", "ab") as kept:
        for path in paths:
            os.lstat(path)
            if change is write_all:
                write_again(path, kept)
                continue
            os.lstat(path)
            os.rename(path, path + "~")
            os.lstat(path + "~")


def write_again(path: str, kept: BinaryIO) -> None:
    """Keep the content of a file; read the new one, check the file, write it, give it its time, and look at it.

    All old contents are on the disk before the first file is written, so each file is opened twice.
    """
    with open(path, "rb", 0) as file:
        kept.write(file.read(8192))
    with open(path, "rb", 0) as new:
        content = new.read(8192)
    file_descriptor = os.open(path, os.O_WRONLY)
    found = os.fstat(file_descriptor)
    os.write(file_descriptor, content)
    os.utime(file_descriptor, ns=(found.st_atime_ns, found.st_mtime_ns))
    os.fstat(file_descriptor)
    os.close(file_descriptor)


class Flushes:
    """Measures how long the changes are written to the disk."""

    def __init__(self) -> None:
        self._flush = transition.flush_file_system
        self.taken = 0.0

    def __call__(self, path: str) -> None:
        self.taken += milliseconds(lambda: self._flush(path))

    def without(self, work: Callable[[], object]) -> tuple[float, float]:
        """Return how long some work takes without writing to the disk, and that."""
        self.taken = 0.0
        whole = milliseconds(work)
        return whole - self.taken, self.taken


def measure(number: int, change: Callable[[int], None], flushes: Flushes) -> list[float]:
    """Preview, apply and undo once, and copy the tree. Returns milliseconds."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as place:
        top, store, copy = Path(place, "top").resolve(), Path(place, "store"), Path(place, "copy")
        top.mkdir()
        fill(top, number)
        previewed(store, top, lambda: change(number))
        os.sync()
        copied = milliseconds(lambda: subprocess.run(["cp", "-a", str(top), str(copy)], check=True))
        read = milliseconds(lambda: read_changes(str(store)))
        begin = processor()
        applied, first = flushes.without(lambda: transition.apply(str(store)))
        middle = processor()
        undone, second = flushes.without(lambda: transition.undo(str(store)))
        used = [middle - begin, processor() - middle]
        begin = processor()
        shortest = milliseconds(lambda: least(top, number, change))
        used.append(processor() - begin)
        remove_tree(str(store))
        return [read, applied, undone, copied, first, second, *used, shortest]


def main() -> None:
    """Print one table."""
    flushes = Flushes()
    transition.flush_file_system = flushes
    rows = []
    for number in NUMBERS:
        for change in (replace_all, write_all, add_all, add_tree, rename_all, remove_all):
            found = [measure(number, change, flushes) for _ in range(ROUNDS)]
            read, applied, undone, copied, first, second, apply_cpu, undo_cpu, least_cpu, shortest = (
                statistics.median(column) for column in zip(*found, strict=True)
            )
            rows.append(
                [
                    f"{change.__name__.replace('_', ' ')}: {number:,} files",
                    f"{read:.0f}",
                    f"{applied:.0f} ({apply_cpu:.0f})",
                    f"{undone:.0f} ({undo_cpu:.0f})",
                    f"{shortest:.0f} ({least_cpu:.0f})",
                    f"{apply_cpu / least_cpu:.1f}, {undo_cpu / least_cpu:.1f}",
                    f"{copied:.0f}",
                    f"{applied / copied:.2f}, {undone / copied:.2f}",
                    f"{first:.0f}, {second:.0f}",
                ]
            )
    head = [
        "change",
        "read, ms",
        "apply, ms (of a processor)",
        "undo, ms (of a processor)",
        "least, ms (of a processor)",
        "apply, undo / least, of a processor",
        "`cp -a`, ms",
        "apply, undo / `cp -a`",
        "flush, ms",
    ]
    table(f"Apply and undo a preview; load {os.getloadavg()[0]:.1f} at the end", head, rows)


if __name__ == "__main__":
    main()
