"""whisper_tui beside its peers: installs them, measures all in one run, and writes the tables into README.md.

Usage: python -m benchmarks.peers [--size short|usual|full] [--print] [PART …]
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

from benchmarks.peers.crowd import crowd
from benchmarks.peers.field import SIZES, Field
from benchmarks.peers.history import history
from benchmarks.peers.install import install_all
from benchmarks.peers.output import output
from benchmarks.peers.overhead import overhead
from benchmarks.peers.processes import adopt_orphans
from benchmarks.peers.rate import rate
from benchmarks.peers.viewer import viewer
from benchmarks.peers.waiting import waiting
from benchmarks.run_all import README, machine, written

PARTS: dict[str, Callable[[Field], Coroutine[Any, Any, str]]] = {
    "overhead": overhead,
    "rate": rate,
    "output": output,
    "crowd": crowd,
    "waiting": waiting,
    "history": history,
    "viewer": viewer,
}


def main() -> int:
    """Measure the parts that are named, or all. Returns 1 if one failed; what the others found is kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--size", choices=SIZES, default="usual")
    parser.add_argument("--print", action="store_true", help="print the tables only; leave the page as it is")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    adopt_orphans()
    field = Field(SIZES[options.size], install_all())
    failed = False
    for name in options.parts or PARTS:
        begin = time.monotonic()
        try:
            tables = asyncio.run(PARTS[name](field))
        except Exception as error:  # noqa: BLE001  what the other parts find is worth having
            print(f"{name} failed: {error!r}", file=sys.stderr, flush=True)
            failed = True
            continue
        print(f"{tables}\n\n{name}: {time.monotonic() - begin:.0f} s\n", flush=True)
        if not options.print:
            text = written(README.read_text(encoding="utf-8"), f"peers {name}", tables)
            README.write_text(written(text, "peers machine", f"Measured on {machine()}."), encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
