"""Runs every benchmark and writes its table into README.md, between the marks that carry its name."""

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
    """Every benchmark beside this file: each is a program; what they share is none."""
    programs = (path for path in HERE.glob("*.py") if PROGRAM in path.read_text(encoding="utf-8"))
    return sorted(path for path in programs if path.name != Path(__file__).name)


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


def main() -> int:
    """Run the benchmarks that are named, or all. Returns 1 if one failed; what the others found is kept."""
    chosen = set(sys.argv[1:])
    unknown = chosen - {script.stem for script in scripts()}
    if unknown:
        print(f"there is no benchmark {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    failed = False
    for script in scripts():
        if chosen and script.stem not in chosen:
            continue
        table = run(script)
        if table is None:
            failed = True
            continue
        text = written(README.read_text(encoding="utf-8"), script.stem, table)
        README.write_text(written(text, "machine", f"Measured on {machine()}."), encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
