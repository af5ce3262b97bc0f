"""`python -m tests.structure`: the figures of the package, their goals, and what may not be exceeded today."""

import argparse
import sys
from collections.abc import Iterable, Iterator

from tests.structure.bounds import BOUNDS
from tests.structure.measure import DECISIONS, PACKAGE, Figure, Package, figures
from tests.structure.passed import figures_of_call, figures_of_key


def main() -> int:
    """Print the table, or what one figure has counted."""
    parser = argparse.ArgumentParser(prog="python -m tests.structure", description=__doc__)
    parser.add_argument("--still", action="store_true", help="without the figures for which the program has to run")
    parser.add_argument("--which", metavar="WORDS", help="also list what figures with these words have counted")
    options = parser.parse_args()
    found = figures(Package(PACKAGE), DECISIONS)
    if not options.still:
        found += [*figures_of_call(), *figures_of_key()]
    sys.stdout.writelines(f"{line}\n" for line in table(found))
    for figure in found:
        if options.which and options.which in figure.name:
            sys.stdout.write(f"\n{figure.name}:\n")
            sys.stdout.writelines(f"  {each}\n" for each in figure.which)
    return 0


def table(found: Iterable[Figure]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{'figure':<58}{'today':>8}{'goal':>9}{'bound':>9}"
    for figure in found:
        goal = "" if figure.goal is None else f"≤ {figure.goal:,}"
        bound = f"≤ {BOUNDS[figure.name]:g}" if figure.name in BOUNDS else ""
        mark = "" if figure.goal is None else "  reached" if figure.is_within(figure.goal) else "  not yet"
        yield f"{figure.name:<58}{figure.value:>8,}{goal:>9}{bound:>9}{mark}"


if __name__ == "__main__":
    sys.exit(main())
