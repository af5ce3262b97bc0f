"""Compare random work that was previewed, applied, undone and applied again with the same work done for real.

`python -m tests.changes.random_runs --runs 1000 [--seed N]` runs other sequences each time. It prints the
seed of a sequence that fails, and the number of those in which a change was flagged.
"""

import argparse
import os
import random
import sys
import time
import traceback
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from unittest import mock

from tests.changes.overlay import Described, previewed, seen_by_owner
from tests.changes.random_work import RandomWork, make_tree
from tests.changes.trees import as_nobody, public_directory
from whisper_tui.changes import transition
from whisper_tui.changes.change_records import Plan
from whisper_tui.changes.file_trees import copy_tree
from whisper_tui.changes.overlay_diff import read_changes

PLACES = (None, "/dev/shm")
STEPS = 10
MTIME = 3


def without_new_times(found: Described, began: int) -> Described:
    """Leave out times of the work itself, which differ between two runs."""
    return {
        name: tuple(min(field, began) if index == MTIME else field for index, field in enumerate(row))  # type: ignore[type-var]
        for name, row in found.items()
    }


def groups(found: Described) -> dict[str, frozenset[str]]:
    """Return the names of the same file, for each name."""
    members: dict[object, set[str]] = {}
    for name, row in found.items():
        members.setdefault(row[6] or name, set()).add(name)
    return {name: frozenset(members[row[6] or name]) for name, row in found.items()}


def linked_names(found: Described) -> set[str]:
    return {name for name, names in groups(found).items() if len(names) > 1}


def but(found: Described, left_out: set[str]) -> Described:
    """Leave out some names, and name groups of hard links by their members."""
    members = groups(found)
    return {name: (*row[:6], *sorted(members[name] - left_out)) for name, row in found.items() if name not in left_out}


def without_links(found: Described, left_out: Container[str] = ()) -> Described:
    """Leave out hard links: overlays without an index number the names of a file that was copied up differently."""
    return {name: row[:6] for name, row in found.items() if name not in left_out}


def differences(one: Described, other: Described) -> list[str]:
    return [
        f"{name}: {one.get(name)} != {other.get(name)}"
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]


def check(one: Described, other: Described, what: str) -> None:
    found = differences(one, other)
    assert not found, what + "\n" + "\n".join(line[:600] for line in found[:10])


class RandomRun:
    """One sequence: as previewed and applied, and as run for real."""

    def __init__(self, seed: int, real: Path, store: Path) -> None:
        self.seed, self.place, self.store = seed, real, store
        self.top, self.copy = real / "real", real / "copy"
        make_tree(seed, self.top)
        copy_tree(str(self.top), str(self.copy))
        self.before = seen_by_owner(self.top, inodes=True)
        self.began = time.time_ns()

    def work(self) -> RandomWork:
        return RandomWork(self.seed, STEPS)

    def preview(self) -> tuple[Plan, Described]:
        seen = previewed(self.store / "store", self.top, self.work())
        plan = read_changes(str(self.store / "store"))
        check(seen_by_owner(self.top, inodes=True), self.before, "the preview changed real files")
        return plan, seen

    def for_real(self) -> Described:
        here = os.getcwd()
        os.chdir(self.copy)
        try:
            self.work()()
        finally:
            os.chdir(here)
        return seen_by_owner(self.copy)

    def undo_some(self, plan: Plan) -> None:
        """Undo changes one after the other, at random; what cannot be undone alone is refused."""
        chance = random.Random(self.seed)
        paths = sorted({change.path for change in plan.changes})
        for path in chance.sample(paths, chance.randint(0, len(paths))):
            if transition.load_plan(str(self.store / "store")).state == "applied":
                with suppress(transition.TransitionFailed):
                    transition.undo_only(str(self.store / "store"), [path])

    def check_undone(self, same_disk: bool, what: str) -> None:
        """Check that the tree is as before: the same inodes, or copies of those from another file system."""
        found = seen_by_owner(self.top, inodes=same_disk)
        if same_disk:
            check(found, self.before, what)
            return
        # A copy is no further name of a file that kept one of its names: the plan flags that.
        check(without_links(found), without_links(self.before), what)

    def go(self) -> bool:
        """Check everything. True if a change was flagged."""
        plan, seen = self.preview()
        store = str(self.store / "store")
        same_disk = self.place.stat().st_dev == self.store.stat().st_dev
        assert transition.apply(store).state == "applied"
        applied = seen_by_owner(self.top)
        # Hard links that existed before are separated by overlayfs: the plan flags these.
        special = linked_names(self.before)
        # Without an index, an overlay also shows old attributes under one name of a file and new ones under another.
        stale = special | linked_names(applied)
        check(without_links(applied, stale), without_links(seen, stale), "applied is not what was previewed")
        several = {
            path.lstat().st_ino for path in self.copy.rglob("*") if not path.is_dir() and path.lstat().st_nlink > 1
        }
        expected = self.for_real()
        for path in self.copy.rglob("*"):
            if path.lstat().st_ino in several:
                special.add(str(path.relative_to(self.copy)))
        check(
            but(without_new_times(applied, self.began), special),
            but(without_new_times(expected, self.began), special),
            "applied is not what a real run does",
        )
        transition.undo(store)
        self.check_undone(same_disk, "undo is not exact")
        transition.apply(store)
        check(seen_by_owner(self.top), applied, "applying again differs")
        transition.undo(store)
        self.check_undone(same_disk, "the second undo is not exact")
        transition.apply(store)
        self.undo_some(plan)
        transition.apply(store)
        check(seen_by_owner(self.top), applied, "to apply again what was undone in parts differs")
        self.undo_some(plan)
        transition.undo(store)
        self.check_undone(same_disk, "undo in parts is not exact")
        return any(change.links for change in plan.changes)


def run(seed: int) -> bool:
    """Run one sequence in the places that the seed chooses."""
    chance = random.Random(seed)
    with public_directory(chance.choice(PLACES)) as real, public_directory(chance.choice(PLACES)) as store:
        return RandomRun(seed, real, store).go()


def failures(runs: int, first: int | None = None) -> list[int]:
    """Run sequences that were never run before, or a certain one. Return the seeds of those that fail."""
    seeds = [first] if first is not None else random.SystemRandom().sample(range(10**9), runs)
    failed, flagged = [], 0
    for seed in seeds:
        try:
            flagged += run(seed)
        except Exception:  # noqa: BLE001 - whatever it is, the seed has to be named
            failed.append(seed)
            print(f"seed {seed}:")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(seeds)} sequences, {flagged} flagged, {len(failed)} failed: {failed}", flush=True)
    return failed


def main() -> None:
    """Run sequences as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--user", choices=("root", "nobody"), default="root" if os.getuid() == 0 else "nobody")
    options = parser.parse_args()
    with mock.patch.object(transition, "flush_file_system"):
        if options.user == "root" or os.getuid():
            sys.exit(bool(failures(options.runs, options.seed)))
        os.chdir("/")
        with as_nobody() as status:
            if status.child:
                assert not failures(options.runs, options.seed)
        sys.exit(status.code)


if __name__ == "__main__":
    main()
