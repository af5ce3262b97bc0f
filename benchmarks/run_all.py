"""Runs every benchmark and writes its table into README.md, between the marks that carry its name.

Usage: python benchmarks/run_all.py [--runs N] [NAME …]
"""

import argparse
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
README = HERE / "README.md"
PROGRAM = 'if __name__ == "__main__":'
SLOWEST_S = 1800
"""Seconds that one benchmark may take."""


def scripts() -> list[Path]:
    """Every benchmark beside this file: each is a program; what they share, and what they start, is none."""
    programs = (path for path in HERE.glob("*.py") if PROGRAM in path.read_text(encoding="utf-8"))
    return sorted(path for path in programs if path.name != Path(__file__).name and not path.name.startswith("_"))


def machine() -> str:
    """Where the figures come from, in one line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} processors, "
        f"{memory:.0f} GiB, Python {platform.python_version()}"
    )


def written(text: str, name: str, content: str) -> str:
    """The page with the content of one mark replaced; a mark that is not there is added at the end."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    block = f"{begin}\n{content.strip()}\n{end}"
    if begin not in text:
        return f"{text.rstrip()}\n\n{block}\n"
    return re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: block, text, flags=re.DOTALL)


def run(script: Path) -> str | None:
    """What a benchmark prints, as Markdown. None: it failed, and has said why on standard error."""
    print(f"{script.stem} …", file=sys.stderr, flush=True)
    os.sync()  # What the one before has left to the disk is not for this one to wait for.
    try:
        done = subprocess.run(
            [sys.executable, script], stdout=subprocess.PIPE, text=True, timeout=SLOWEST_S, check=True
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"{script.stem} failed: {error}", file=sys.stderr)
        return None
    print(done.stdout, flush=True)
    return done.stdout


FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")


def medians(pages: list[str]) -> str:
    """The page of several runs, with the median of each figure. Raises `ValueError` if they say different things."""
    if len({FIGURE.sub("0", page) for page in pages}) != 1:
        raise ValueError("the runs say different things")
    if len(pages) == 1:
        return pages[0]
    found = iter(zip(*(FIGURE.findall(page) for page in pages), strict=True))
    # The lower one of two in the middle, so that each figure was measured.
    middle = FIGURE.sub(lambda _: _middle(next(found)), pages[0])
    return f"{middle.strip()}\n\nMedians of {len(pages)} runs."


def _middle(figures: tuple[str, ...]) -> str:
    ordered = sorted(figures, key=lambda figure: float(figure.replace(",", "")))
    return ordered[(len(ordered) - 1) // 2]


def main() -> int:
    """Run the benchmarks that are named, or all. Returns 1 if one failed; what the others found is kept."""
    parser = argparse.ArgumentParser(description="run benchmarks, and write their tables into README.md")
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as overhead; none: all of them")
    parser.add_argument("--runs", type=int, default=1, help="how often; the tables have the medians")
    given = parser.parse_args()
    if unknown := set(given.names) - {script.stem for script in scripts()}:
        print(f"there is no benchmark {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [script for script in scripts() if not given.names or script.stem in given.names]
    pages: dict[Path, list[str | None]] = {script: [] for script in chosen}
    # One after the other, and then again, because a machine is slower for minutes at a time.
    for _ in range(given.runs):
        for script in chosen:
            pages[script].append(run(script))
    kept = [_keep(script.stem, found) for script, found in pages.items()]
    return int(not all(kept))


def _keep(name: str, pages: list[str | None]) -> bool:
    """Write the table of a benchmark. Returns False, and says why, if there is none."""
    whole = [page for page in pages if page is not None]
    try:
        table = medians(whole)
    except ValueError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    text = written(README.read_text(encoding="utf-8"), name, table)
    README.write_text(written(text, "machine", f"Measured on {machine()}."), encoding="utf-8")
    return len(whole) == len(pages)


if __name__ == "__main__":
    sys.exit(main())
