"""Commands at a place behind ssh on the loopback, against those of this machine and against `ssh host cat`.

Usage: python benchmarks/places.py [MEBIBYTES]
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from measure import median, table

from tests.ssh_server import loopback_server
from tests.supervisor.engine.conftest import Engine
from tests.supervisor.places.conftest import PlaceEngine

ROUNDS, SINGLE, AT_ONCE = 5, 40, 40


async def single(engine: Engine) -> float:
    """Milliseconds from an order to the report of the exit."""
    begin = time.perf_counter()
    key = await engine.start("true")
    await engine.ended(key)
    elapsed = time.perf_counter() - begin
    await engine.settled(key)
    return elapsed * 1000


async def at_once(engine: Engine) -> float:
    """Seconds until so many commands that were ordered together are over."""
    begin = time.perf_counter()
    keys = [await engine.start(f"echo {number}") for number in range(AT_ONCE)]
    for key in keys:
        await engine.settled(key)
    return time.perf_counter() - begin


async def output(engine: PlaceEngine, source: Path) -> float:
    """Seconds until a file that a command prints there is whole here."""
    begin = time.perf_counter()
    key = await engine.start(f"exec cat {source}")
    while not (engine.runs / f"{key.call_id}.1" / "done").exists():
        await asyncio.sleep(0.005)
    elapsed = time.perf_counter() - begin
    copy = engine.runs / f"{key.call_id}.1" / "out"
    if subprocess.run(["cmp", source, copy], check=False).returncode:
        raise SystemExit("the output is not what was printed")
    copy.unlink()
    return elapsed


async def plainly(command: list[str], target: Path) -> float:
    """Seconds that ssh alone takes to bring the file."""
    with target.open("wb") as file:
        begin = time.perf_counter()
        await asyncio.to_thread(subprocess.run, command, stdout=file, check=True)
        return time.perf_counter() - begin


async def measure(top: Path, mebibytes: int) -> None:
    """Measure both in turn, and print the tables."""
    for name in ("here", "there"):
        (top / name).mkdir()
    with loopback_server(top / "sshd") as server:
        here, there = Engine(top / "here"), PlaceEngine(top / "there", server)
        await here.open()
        await there.open()
        try:
            await asyncio.sleep(0.5)  # the keepers get ready
            singles = [(await single(here), await single(there)) for _ in range(SINGLE * ROUNDS)]
            together = [(await at_once(here), await at_once(there)) for _ in range(ROUNDS)]
            source = top / "source"
            with source.open("wb") as file:
                for _ in range(mebibytes):
                    file.write(os.urandom(1 << 20))
            plain: list[float] = []
            mirrored: list[float] = []
            filed: list[float] = []
            for _ in range(3):
                plain.append(await plainly(server.command("cat", str(source)), Path(os.devnull)))
                filed.append(await plainly(server.command("cat", str(source)), top / "copy"))
                mirrored.append(await output(there, source))
        finally:
            await here.close()
            await there.close()
            for pid in there.host_pids():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    ours, theirs = (median(times) for times in zip(*singles, strict=True))
    rows = [
        ["one command, ms", f"{ours:.1f}", f"{theirs:.1f}", f"{theirs - ours:+.1f} ms"],
        ["least", *(f"{min(times):.1f}" for times in zip(*singles, strict=True)), ""],
    ]
    ours, theirs = (median(times) for times in zip(*together, strict=True))
    rows += [[f"{AT_ONCE} commands at once, s", f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.1f} times"]]
    table("Commands over a warm connection", ("", "this machine", "behind ssh", "difference"), rows)
    seconds = [median(times) for times in (plain, filed, mirrored)]
    speed = [[f"{mebibytes} MiB of output, s", *(f"{each:.2f}" for each in seconds)]]
    speed += [["speed", *(f"{seconds[0] / each:.2f}" for each in seconds)]]
    table("Output", ("", "`ssh host cat > /dev/null`", "`ssh host cat > file`", "at the place, and kept here"), speed)


if __name__ == "__main__":
    directory = Path(tempfile.mkdtemp(dir=os.environ.get("BENCH_DIRECTORY")))
    try:
        asyncio.run(measure(directory, int(sys.argv[1]) if len(sys.argv) > 1 else 1024))
    finally:
        shutil.rmtree(directory)
