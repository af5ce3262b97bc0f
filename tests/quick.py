"""`python -m tests.quick`: runs the tests of what differs from the main branch, for a minute.

The table in CONTRIBUTING.md says which tests belong to which path. Test files that import a changed module come first.
Where a minute is not enough for the rest, it is skipped and counted.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
SECONDS = 60.0
_UNTIL = "TESTS_QUICK_UNTIL"
"""Set for the processes of the tests: the time at which they start no other test."""


def main(words: list[str]) -> int:
    """Run the tests of what changed; the words are for pytest. Returns its exit code."""
    changed = changed_paths()
    chosen = files_for(changed)
    if not chosen:
        sys.stderr.write("Nothing differs from the main branch for which CONTRIBUTING.md names tests.\n")
        return 0
    print(f"{len(changed)} changed files, {len(chosen)} files of tests", flush=True)
    argv = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "tests.quick", "-m", "not slow", *words, *chosen]
    environment = {**os.environ, _UNTIL: str(time.time() + SECONDS)}
    return subprocess.run(argv, check=False, cwd=ROOT, env=environment).returncode


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skip what the minute does not suffice for."""
    if time.time() > float(os.environ.get(_UNTIL, "inf")):
        pytest.skip("the minute is over; make test runs these")


def changed_paths() -> list[str]:
    """Return what differs from the commit at which this branch left the one that it follows, and what is new."""
    base = _git("merge-base", "HEAD", "@{upstream}") or ["HEAD"]
    return sorted({*_git("diff", "--name-only", base[0]), *_git("ls-files", "--others", "--exclude-standard")})


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], check=False, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()


def table(page: str | None = None) -> dict[str, list[str]]:
    """Return the tests that CONTRIBUTING.md names for each path."""
    rows: dict[str, list[str]] = {}
    for row in re.findall(r"^\| `.*\|$", PAGE.read_text(encoding="utf-8") if page is None else page, re.MULTILINE):
        paths, tests = (re.findall(r"`([^`]+)`", cell) for cell in row.strip("|").split("|")[:2])
        rows |= dict.fromkeys(paths, tests)
    return rows


def files_for(changed: Iterable[str]) -> list[str]:
    """Return the files of tests to run after a change of these paths, the nearest ones first."""
    rows = table()
    sources: dict[str, str] = {}
    near: dict[str, None] = {}
    far: dict[str, None] = {}
    for path in changed:
        if not (ROOT / path).exists():
            continue
        if re.fullmatch(r"tests/(.*/)?test_[^/]*\.py", path):
            near[path] = None
            continue
        row = max((key for key in rows if path.startswith(key)), key=len, default="")
        beside = [str(Path(path).parent)] if path.startswith("tests/") and path.count("/") > 1 else []
        for file in _files(rows[row] if row else beside):
            text = sources.setdefault(file, (ROOT / file).read_text(encoding="utf-8"))
            (near if _imports(text, path) else far)[file] = None
    return [*near, *(file for file in far if file not in near)]


def _files(places: Iterable[str]) -> list[str]:
    found: list[str] = []
    for place in places:
        here = ROOT / place
        found += [str(here)] if here.is_file() else sorted(map(str, here.rglob("test_*.py")))
    return [os.path.relpath(file, ROOT) for file in found]


def _imports(text: str, path: str) -> bool:
    package, _, name = path.removesuffix(".py").replace("/", ".").rpartition(".")
    package, dotted = (package.rpartition(".")[0], package) if name == "__init__" else (package, f"{package}.{name}")
    module, above, last = re.escape(dotted), re.escape(package), dotted.rpartition(".")[2]
    direct = rf"^(from {module} import|import {module}\b|from {above} import .*\b{last}\b)"
    return re.search(direct, text, re.MULTILINE) is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
