"""How fast the output of 16 commands at once is saved, against 16 times `cmd | cat > file`.

Usage: python benchmarks/floods.py [MEBIBYTES] [ROUNDS]
"""

import asyncio
import subprocess
import sys
import time

import psutil
from measure import Runner, least_seconds, median, runner, table

from whisper_tui.supervisor.runs.executor import HasEnded

AT_ONCE = 16
MIB = 1 << 20


def plain(bench: Runner, command: str) -> float:
    """Seconds until all shells have saved the output of their commands."""
    files = [bench.directory / f"plain.{number}" for number in range(AT_ONCE)]
    begin = time.perf_counter()
    shells = [subprocess.Popen(["bash", "-c", f"{command} | cat > {file}"]) for file in files]
    for shell in shells:
        shell.wait()
    elapsed = time.perf_counter() - begin
    for file in files:
        file.unlink()
    return elapsed


def least(bench: Runner, command: str) -> float:
    """The same by a program that does nothing else, in Python."""
    files = [bench.directory / f"least.{number}" for number in range(AT_ONCE)]
    elapsed = least_seconds(command, files)
    for file in files:
        file.unlink()
    return elapsed


async def kept(bench: Runner, command: str, expected: int) -> float:
    """The same under keepers. The output must be whole."""
    begin = time.perf_counter()
    directories = []
    for _ in range(AT_ONCE):
        await bench.start(("bash", "-c", command))
        directories.append(bench.attempt)
    ended = 0
    async for reports in bench.executor.reports():
        ended += sum(isinstance(report, HasEnded) for report in reports)
        if ended == AT_ONCE:
            break
    elapsed = time.perf_counter() - begin
    await asyncio.sleep(0.5)  # the last files of the runs
    for directory in directories:
        if (size := (directory / "out").stat().st_size) != expected:
            raise SystemExit(f"{expected - size} bytes are missing")
        (directory / "out").unlink()
    return elapsed


async def main(mebibytes: int, rounds: int) -> None:
    """Interleave the ways and print medians, with the processor time of all processes of the machine."""
    command, size = f"head -c {mebibytes * MIB} /dev/zero", mebibytes * MIB
    took: dict[str, list[float]] = {"`cmd \\| cat > file`": [], "least, in Python": [], "under keepers": []}
    async with runner() as bench:
        for _ in range(rounds):
            took["`cmd \\| cat > file`"].append(await asyncio.to_thread(plain, bench, command))
            took["least, in Python"].append(await asyncio.to_thread(least, bench, command))
            took["under keepers"].append(await kept(bench, command, size))
    base, rows = median(took["`cmd \\| cat > file`"]), []
    for name, found in took.items():
        middle = median(found)
        rows.append([name, f"{middle:.2f}", f"{AT_ONCE * mebibytes / middle:,.0f}", f"{base / middle:.2f} times"])
    title = f"{AT_ONCE} commands at once print {mebibytes} MiB each, {rounds} interleaved rounds, "
    title += f"{psutil.cpu_count()} processors"
    table(title, ("way", "s", "MiB/s", "speed"), rows)


if __name__ == "__main__":
    asyncio.run(main(int((sys.argv[1:] or ["128"])[0]), int((sys.argv[2:] or ["5"])[0])))
