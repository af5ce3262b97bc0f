"""Usage: python -m tests.crash [--kills N] [--minutes N] [--seed N] [--write]

Kills supervisor, keepers, commands, clients of agents, relay, hook, exec and cockpit with signal 9 at random instants
while agents work and a human decides, and prints what was killed, how the calls ended, and every contradiction that was
found.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from tests.crash.cockpit import cockpit
from tests.crash.field import Field
from tests.crash.human import human
from tests.crash.killer import killer
from tests.crash.mcp_agent import over_mcp
from tests.crash.port_agent import PortAgent
from tests.crash.shell_agent import with_a_hook
from tests.crash.verdict import Verdict

SETTLES_S = 240.0
"""Seconds in which everything has to come to its end once nothing is killed any more."""
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
MARKS = ("<!-- crash test -->", "<!-- end of crash test -->")


@dataclass
class Result:
    """What one crash test gave."""

    kills: Counter[str]
    under_way: float
    """Calls that were open at a kill, on average."""
    endings: Counter[str]
    results: int
    by_keys: int
    """What a human at a cockpit has done by keys."""
    violations: list[str]
    seconds: float


async def crash(root: Path, kills: int, seed: int, minutes: float = inf) -> Result:
    """Run one crash test in a directory of its own."""
    began = time.monotonic()
    field, all_over = Field(root), asyncio.Event()
    deciding = asyncio.create_task(human(field, all_over))
    working: asyncio.Future[Any] = asyncio.gather(
        *(PortAgent(field, f"agent {number}").work() for number in range(3)),
        *(with_a_hook(field, f"crash {number}") for number in range(2)),
        *(over_mcp(field) for _ in range(2)),
        cockpit(field),
    )
    killing = asyncio.create_task(killer(field, kills, random.Random(seed), began + 60 * minutes))
    await asyncio.wait([killing, deciding, working], return_when=asyncio.FIRST_COMPLETED)
    killing.result()
    field.over.set()
    unsettled = await _settle(field, working)
    all_over.set()
    await deciding
    door = await field.door()
    verdict = Verdict(field, door)
    await verdict.find()
    await door.close()
    await field.end()
    under_way = sum(field.under_way) / max(1, len(field.under_way))
    seconds = time.monotonic() - began
    found = unsettled + verdict.violations
    return Result(field.killed, under_way, verdict.endings, field.told.results, field.by_keys, found, seconds)


async def _settle(field: Field, working: asyncio.Future[Any]) -> list[str]:
    """Wait until nothing can happen any more: what is held waits for an agent that asks again, and nobody does."""
    try:
        async with asyncio.timeout(SETTLES_S):
            await working
            while (field.open_calls() - len(field.board.held)) or field.board.unjudged:
                await asyncio.sleep(0.1)
    except TimeoutError:
        return [f"not everything has come to its end after {SETTLES_S:g} s"]
    return []


def table(result: Result) -> str:
    """The counts, as Markdown."""
    calls, kills = result.endings.total(), result.kills.total()
    rows = [
        ("seconds", f"{result.seconds:,.0f}"),
        ("kills", f"{kills:,}"),
        *((f"of those, {kind}", f"{number:,}") for kind, number in sorted(result.kills.items())),
        ("calls open at a kill, on average", f"{result.under_way:.1f}"),
        ("calls", f"{calls:,}"),
        *((f"of those, {kind.replace('_', ' ')}", f"{number:,}") for kind, number in sorted(result.endings.items())),
        ("calls per kill", f"{calls / max(1, kills):.1f}"),
        ("results that agents were given whole", f"{result.results:,}"),
        ("decisions and lines by keys in a cockpit", f"{result.by_keys:,}"),
        ("violations", f"{len(result.violations):,}"),
    ]
    return "\n".join(["| figure | number |", "|---|---:|", *(f"| {name} | {number} |" for name, number in rows)])


def write(page: Path, command: str, counts: str) -> None:
    """Put a table into the page, in place of the last one."""
    before, _, rest = page.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    told = f"`{command}`, {os.cpu_count()} processors with other work on them:"
    page.write_text(f"{before}{MARKS[0]}\n{told}\n\n{counts}\n{MARKS[1]}{after}")


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=inf, help="kill no longer than that")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    limit = "" if options.minutes == inf else f" --minutes {options.minutes:g}"
    command = f"python -m tests.crash --kills {options.kills}{limit} --seed {seed}"
    print(command, flush=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        result = asyncio.run(crash(Path(directory) / "crash", options.kills, seed, options.minutes))
        # Before the directory is removed: a process that is left over and still writes there makes that fail.
        print(table(result), flush=True)
        for violation in result.violations:
            print(violation, file=sys.stderr)
    if options.write:
        write(PAGE, command, table(result))
    return 1 if result.violations else 0
