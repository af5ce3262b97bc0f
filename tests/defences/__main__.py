"""`python -m tests.defences`: takes away one defence after the other in a copy, and sees that its tests then fail."""

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

import psutil

from tests.defences.defence import Defence
from tests.defences.table import DEFENCES

ROOT = Path(__file__).parent.parent.parent
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "node_modules", "screenshots", "benchmarks")
LONGEST_S = 600.0
"""Seconds in which the tests of one defence have to end."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class Copy:
    """A copy of the project in which something may be broken."""

    def __init__(self, above: Path, number: int) -> None:
        self.root = above / f"copy{number}"
        shutil.copytree(ROOT, self.root, symlinks=True, ignore=LEFT_OUT)

    def without(self, defence: Defence) -> str:
        """What the tests of a defence say while it is not there. Empty: all of them failed, as they must."""
        path = self.root / defence.file
        whole = path.read_text(encoding="utf-8")
        path.write_text(whole.replace(defence.text, defence.instead), encoding="utf-8")
        try:
            failed = self.failures(defence.tests)
        except subprocess.TimeoutExpired:
            return f"has not ended after {LONGEST_S:g} s, which shows nothing"
        finally:
            path.write_text(whole, encoding="utf-8")
            self._end_what_is_left()
        still = [test for test in defence.tests if not any(f"{found}[".startswith(f"{test}[") for found in failed)]
        return f"still passes: {', '.join(still)}" if still else ""

    def failures(self, tests: Sequence[str], longest_s: float = LONGEST_S) -> set[str]:
        """Those of these tests that fail. Raises `SystemExit` if pytest could not run them, and `TimeoutExpired`."""
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-rfE", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=longest_s, check=False
        )
        if done.returncode not in {0, 1}:
            raise SystemExit(f"pytest cannot run these tests:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return set(_FAILED.findall(done.stdout))

    def _end_what_is_left(self) -> None:
        """A test that fails in the middle, as it must here, leaves programs of this copy behind."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("PYTHONPATH") == str(self.root):
                    process.kill()


def main() -> int:
    """Show every defence, or those whose names hold a word."""
    parser = argparse.ArgumentParser(prog="python -m tests.defences", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORDS", help="only defences whose names or files hold this")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many at once (default: 2)")
    options = parser.parse_args()
    chosen = [one for one in DEFENCES if options.only in one.name or options.only in one.file]
    with tempfile.TemporaryDirectory(prefix="defences-") as above:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(Copy(Path(above), number))
        whole = copies.get()
        tests = sorted({test for one in chosen for test in one.tests})
        wrong = whole.failures(tests, LONGEST_S * len(chosen))
        copies.put(whole)
        if wrong:
            sys.stdout.write(f"With every defence in place, these fail: {', '.join(sorted(wrong))}\n")
            return 1
        return report(chosen, copies, options.jobs)


def report(chosen: Iterable[Defence], copies: "SimpleQueue[Copy]", jobs: int) -> int:
    """Take each away, print a line about it, and count."""

    def take_away(defence: Defence) -> str:
        copy = copies.get()
        try:
            return copy.without(defence)
        finally:
            copies.put(copy)

    shown = unproven = 0
    with ThreadPoolExecutor(jobs) as pool:
        for defence, problem in zip(chosen, pool.map(take_away, chosen), strict=True):
            shown, unproven = shown + (not problem), unproven + bool(problem)
            sys.stdout.write(f"{'NOT PROVEN' if problem else 'proven':<12}{defence.name} ({defence.file}) {problem}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{shown} defences proven, {unproven} not proven\n")
    return 1 if unproven else 0


if __name__ == "__main__":
    sys.exit(main())
