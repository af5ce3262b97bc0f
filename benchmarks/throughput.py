"""How fast output is saved: one command that prints a gigabyte, against `cmd > file` and `cmd | cat > file`.

Usage: python benchmarks/throughput.py [MEBIBYTES] [ROUNDS]
"""

import asyncio
import os
import subprocess
import sys
import time

import psutil
from measure import Runner, least_seconds, median, runner, table

MIB = 1 << 20


def plain(command: str) -> float:
    """Seconds that a shell needs for it."""
    begin = time.perf_counter()
    subprocess.run(["bash", "-c", command], check=True)
    return time.perf_counter() - begin


async def kept(bench: Runner, command: str, expected: int) -> tuple[float, float]:
    """Seconds under a keeper, and how many of them the executor's process computed. The output must be whole."""
    before = sum(os.times()[:2])
    seconds = await bench.seconds(("bash", "-c", command))
    computed = sum(os.times()[:2]) - before
    if bench.output_size() != expected:
        raise SystemExit(f"{expected - bench.output_size()} bytes are missing")
    bench.forget()
    return seconds, computed


async def main(mebibytes: int, rounds: int) -> None:
    """Interleave the ways and print medians."""
    command = f"head -c {mebibytes * MIB} /dev/zero"
    times: dict[str, list[float]] = {
        "`cmd > file`": [],
        "`cmd | cat > file`": [],
        "least, in Python": [],
        "under a keeper": [],
    }
    cpu = 0.0
    me = psutil.Process()
    async with runner() as bench:
        file = bench.directory / "plain"
        await kept(bench, "head -c 65536 /dev/zero", 65536)
        before = me.memory_info().rss
        for _ in range(rounds):
            times["`cmd > file`"].append(plain(f"{command} > {file}"))
            file.unlink()
            times["`cmd | cat > file`"].append(plain(f"{command} | cat > {file}"))
            file.unlink()
            times["least, in Python"].append(least_seconds(command, [file]))
            file.unlink()
            seconds, computed = await kept(bench, command, mebibytes * MIB)
            times["under a keeper"].append(seconds)
            cpu += computed
        grown = me.memory_info().rss - before
    base = median(times["`cmd > file`"])
    rows = []
    for name, found in times.items():
        middle = median(found)
        rows.append(
            [name.replace("|", "\\|"), f"{middle:.2f}", f"{mebibytes / middle:.0f}", f"{middle / base:.2f} times"]
        )
    table(f"{mebibytes} MiB from one command, {rounds} interleaved rounds", ("way", "s", "MiB/s", "time"), rows)
    used = f"grew by {grown / MIB:.1f} MiB, and it used {cpu / rounds:.3f} s of processor time per run"
    print(f"\nMeanwhile the memory of the executor's process {used}.")


if __name__ == "__main__":
    asyncio.run(main(int((sys.argv[1:] or ["1024"])[0]), int((sys.argv[2:] or ["5"])[0])))
