"""Usage: python -m tests.crash [--kills N] [--seed N]

Kills supervisor, keepers, relay, hook, exec and cockpit with signal 9 at random instants while agents work, and prints
what was killed, how the calls ended, and every contradiction that was found.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.crash.agents import over_mcp, over_the_port, with_a_hook
from tests.crash.field import Field
from tests.crash.others import cockpit, human, killer
from tests.crash.verdict import violations
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import HistoryQuery
from whisper_tui.model.state import Held

SETTLES_S = 180.0
"""Seconds in which everything has to come to its end once nothing is killed any more."""


@dataclass
class Result:
    """What one crash test gave."""

    kills: Counter[str]
    endings: Counter[str]
    told: int
    violations: list[str]
    seconds: float


async def crash(root: Path, kills: int, seed: int) -> Result:
    """Run one crash test in a directory of its own."""
    began = time.monotonic()
    field, all_over = Field(root), asyncio.Event()
    deciding = asyncio.create_task(human(field, all_over))
    agents = [
        *(asyncio.create_task(over_the_port(field, f"agent {number}")) for number in range(3)),
        *(asyncio.create_task(with_a_hook(field)) for _ in range(2)),
        asyncio.create_task(over_mcp(field)),
        asyncio.create_task(cockpit(field)),
    ]
    await killer(field, kills, random.Random(seed))
    field.over.set()
    async with asyncio.timeout(SETTLES_S):
        await asyncio.gather(*agents)
        await _settled(field)
    all_over.set()
    await deciding
    door = await field.door()
    found, endings = await violations(field, door)
    await door.shutdown(end_runs=True)
    await door.close()
    return Result(field.killed, endings, len(field.told), found, time.monotonic() - began)


async def _settled(field: Field) -> None:
    """Wait until nothing can happen any more."""
    door = await field.door()
    while True:
        try:
            open_calls = await door.history(HistoryQuery(open_only=True, limit=500))
        except WhisperError:
            pass
        else:
            # What is approved and held waits for an agent that asks again, which nobody does any more.
            if all(isinstance(record.state, Held) for record in open_calls):
                break
        await asyncio.sleep(0.2)
    await door.close()


def table(result: Result) -> str:
    """The counts, as Markdown."""
    rows = [
        ("seconds", f"{result.seconds:.0f}"),
        ("kills", f"{sum(result.kills.values()):,}"),
        *((f"of those, {kind}", f"{number:,}") for kind, number in sorted(result.kills.items())),
        ("calls", f"{sum(result.endings.values()):,}"),
        *((f"of those, {kind.replace('_', ' ')}", f"{number:,}") for kind, number in sorted(result.endings.items())),
        ("results that agents were given whole", f"{result.told:,}"),
        ("violations", f"{len(result.violations):,}"),
    ]
    return "\n".join(["| counted | number |", "|---|---:|", *(f"| {name} | {number} |" for name, number in rows)])


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        result = asyncio.run(crash(Path(directory) / "crash", options.kills, seed))
    print(table(result))
    for violation in result.violations:
        print(violation)
    return 1 if result.violations else 0
