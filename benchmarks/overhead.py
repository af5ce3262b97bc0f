"""What a keeper costs per command: from the request to the report of the exit, against `subprocess.run`.

Usage: python benchmarks/overhead.py [ROUNDS]
"""

import asyncio
import subprocess
import sys
import time

from measure import Runner, median, quantile, runner, table

COMMANDS = (("true",), ("bash", "-c", "true"), (sys.executable, "-I", "-S", "-c", "pass"))
PAUSE_S = 0.03
"""Between two commands, so that neither side pays for what the other one left to do, a new waiting keeper among it."""


async def compare(bench: Runner, argv: tuple[str, ...], rounds: int) -> list[str]:
    """One row: medians, 95th percentiles in milliseconds, and the ratio of the medians."""
    kept, plain = [], []
    for _ in range(rounds):
        kept.append(await bench.seconds(argv) * 1000)
        await asyncio.sleep(PAUSE_S)
        begin = time.perf_counter()
        subprocess.run(argv, capture_output=True, check=True)
        plain.append((time.perf_counter() - begin) * 1000)
        await asyncio.sleep(PAUSE_S)
    figures = (median(plain), quantile(plain, 0.95), median(kept), quantile(kept, 0.95))
    name = " ".join("python" if word == sys.executable else word for word in argv)
    return [f"`{name}`", *(f"{figure:.2f}" for figure in figures), f"{figures[2] / figures[0]:.1f} times"]


async def main(rounds: int) -> None:
    """Measure all commands, twice interleaved, after a warm-up."""
    async with runner() as bench:
        for argv in COMMANDS:
            await compare(bench, argv, 5)
        rows = [await compare(bench, argv, rounds) for argv in COMMANDS]
    head = ("command", "subprocess.run ms", "p95", "under a keeper ms", "p95", "ratio of medians")
    table(f"Overhead per command, {rounds} interleaved rounds", head, rows)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 150))
