"""`python -m tests.mutations`: takes away one defence after the other in a copy, and sees that its tests then fail."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, Self

import psutil

from tests.mutations.mutation import Mutation
from tests.mutations.source import Place
from tests.mutations.table import MUTATIONS

ROOT = Path(__file__).parent.parent.parent
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "node_modules", "screenshots", "benchmarks")
LONGEST_S = 600.0
"""Seconds in which the tests of one defence have to end."""
_OUTCOME = re.compile(r"^(FAILED|ERROR|PASSED) (.+?)(?: - .*)?$", re.MULTILINE)


class Outcomes(NamedTuple):
    """Names of tests by how they ended. Those that were skipped are in none."""

    failed: set[str]
    passed: set[str]

    @classmethod
    def of(cls, root: Path, tests: Sequence[str], longest_s: float) -> Self:
        """Run tests. Raises `SystemExit` if pytest could not run them, and `TimeoutExpired`."""
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-rfEp", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=longest_s, check=False
        )
        if done.returncode not in {0, 1}:
            raise SystemExit(f"pytest cannot run these tests:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        found = _OUTCOME.findall(done.stdout)
        return cls(
            failed={name for outcome, name in found if outcome != "PASSED"},
            passed={name for outcome, name in found if outcome == "PASSED"},
        )

    def problem(self, tests: Iterable[str]) -> str:
        """The tests of a defence that say nothing about it. Empty: all of them failed, as they must without it."""
        silent = [test for test in tests if not _is_among(test, self.failed)]
        still = [test for test in silent if _is_among(test, self.passed)]
        skipped = [test for test in silent if test not in still]
        said = {"still passes": still, "skipped here, which shows nothing": skipped}
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in said.items() if names)


def _is_among(test: str, names: set[str]) -> bool:
    """True if a test is among these, with any parameters if it is named without."""
    return any(f"{name}[".startswith(f"{test}[") for name in names)


class Copy:
    """A copy of the project in which something may be broken."""

    def __init__(self, above: Path, number: int) -> None:
        self.root = above / f"copy{number}"
        shutil.copytree(ROOT, self.root, symlinks=True, ignore=LEFT_OUT)

    def without(self, mutation: Mutation) -> str:
        """What is wrong with the tests of a defence, which run while it is not there. Empty: all of them failed."""
        place = Place(self.root, mutation.place)
        whole = place.path.read_bytes()
        place.path.write_text(place.replaced(mutation.text, mutation.instead), encoding="utf-8")
        try:
            return Outcomes.of(self.root, mutation.tests, LONGEST_S).problem(mutation.tests)
        except subprocess.TimeoutExpired:
            return f"has not ended after {LONGEST_S:g} s, which shows nothing"
        finally:
            place.path.write_bytes(whole)
            self._end_what_is_left()

    def _end_what_is_left(self) -> None:
        """A test that fails in the middle, as it must here, leaves programs of this copy behind."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("PYTHONPATH") == str(self.root):
                    process.kill()


def main() -> int:
    """Show every defence, or those whose names hold a word."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WORDS",
        help="only mutations whose names or places hold this; may be given several times",
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many at once (default: 2)")
    options = parser.parse_args()
    wanted = options.only or [""]
    chosen = [one for one in MUTATIONS if any(words in one.name or words in one.place for words in wanted)]
    with tempfile.TemporaryDirectory(prefix="mutations-") as above:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(Copy(Path(above), number))
        whole = copies.get()
        tests = sorted({test for one in chosen for test in one.tests})
        wrong = Outcomes.of(whole.root, tests, LONGEST_S * len(chosen)).failed
        copies.put(whole)
        if wrong:
            sys.stdout.write(f"With every defence in place, these fail: {', '.join(sorted(wrong))}\n")
            return 1
        return report(chosen, copies, options.jobs)


def report(chosen: Iterable[Mutation], copies: "SimpleQueue[Copy]", jobs: int) -> int:
    """Take each away, print a line about it, and count."""

    def take_away(mutation: Mutation) -> str:
        copy = copies.get()
        try:
            return copy.without(mutation)
        finally:
            copies.put(copy)

    shown = unproven = 0
    with ThreadPoolExecutor(jobs) as pool:
        for mutation, problem in zip(chosen, pool.map(take_away, chosen), strict=True):
            shown, unproven = shown + (not problem), unproven + bool(problem)
            sys.stdout.write(
                f"{'NOT PROVEN' if problem else 'proven':<12}{mutation.name} ({mutation.place}) {problem}\n"
            )
            sys.stdout.flush()
    sys.stdout.write(f"{shown} defences proven, {unproven} not proven\n")
    return 1 if unproven else 0


if __name__ == "__main__":
    sys.exit(main())
