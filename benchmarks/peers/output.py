"""A command that prints a gigabyte: whether all of it is kept, how fast, and at what cost of processor and memory."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import median
from benchmarks.peers.field import Field, alone, contestants, directory, within
from benchmarks.peers.plain import Subprocess
from benchmarks.peers.processes import MIB, memory, peak_memory, processor_s
from benchmarks.peers.report import Column, Row, section, table
from benchmarks.peers.way import Argv, Failed, Way

_BLOCK_MIB = 64
"""The size of the file that is printed again and again; a command that names it too often is too long to be allowed."""
_LIMIT_S, _SLOWEST_MIB_S = 60.0, 20
"""Seconds that a result may take, and as many more as the output needs at this speed."""
_LINE = b"a line of what a command prints, as long as they are\n"
_COMMANDS = ("cat", "bash", "sh")


class Passed(NamedTuple):
    """What one way needed."""

    mib_s: float
    processor_s_gib: float
    grown_mib: float


async def output(field: Field) -> str:
    """All sizes, one table for each."""
    with directory() as name:
        block = Path(name) / "block"
        block.write_bytes((_LINE * (_BLOCK_MIB * MIB // len(_LINE) + 1))[: _BLOCK_MIB * MIB])
        tables = [await _of_size(field, block, gib) for gib in field.sizes.output_gib]
    told = (
        "One `cat` of a cached file, from the request to its result. *Kept* output can be read afterwards, to the last "
        "byte. Processor time is the sum of all processes, including the command; memory is the largest growth of the "
        "private memory of all processes except the command."
    )
    return section("Output", told, *tables)


async def _of_size(field: Field, block: Path, gib: float) -> str:
    floor = (Subprocess("`cmd | cat > file`", through="cat"), Subprocess("`cmd > file`"))
    ways = [*floor, *field.present(contestants())]
    steps = sorted({1, _BLOCK_MIB, int(gib * 1024)})
    found: dict[str, list[Passed]] = {way.name: [] for way in ways}
    failed: dict[str, str] = {}
    for _ in range(field.sizes.output_rounds):
        for way in [way for way in ways if way.name not in failed]:
            try:
                found[way.name].append(await _largest(way, block, steps))
            except Failed as error:
                failed[way.name] = str(error)
            await _quiet(block)
    columns = (
        Column("MiB/s kept", 0, ratio=True),
        Column("processor s per GiB", 2, ratio=True),
        Column("memory grew by MiB", 1),
    )
    rows = [
        Row(name, tuple(map(median, zip(*passes, strict=True))), failed.get(name, "")) for name, passes in found.items()
    ]
    return f"{gib:g} GiB:\n\n" + table(columns, rows + field.absent())


async def _largest(way: Way, block: Path, steps: Sequence[int]) -> Passed:
    """What is small comes first: a way that loses some of that is not asked for more. Raises `Failed`."""
    commands = {mib: _printing(block, mib) for mib in steps}
    async with alone(way, 1, list(commands.values())):
        passed = [await _pass(way, command, mib) for mib, command in commands.items()]
    return passed[-1]


async def _pass(way: Way, command: Argv, mib: int) -> Passed:
    size = mib * MIB
    resting, computed, begin = memory(_COMMANDS).private, processor_s(), time.perf_counter()
    try:
        async with peak_memory(_COMMANDS) as peak:
            await within(_LIMIT_S + mib / _SLOWEST_MIB_S, way, command)
            elapsed = time.perf_counter() - begin
    except Failed as error:
        raise Failed(f"at {_named(mib)}: {error}") from None
    computed = processor_s() - computed
    if way.kept() < size:
        raise Failed(f"of {_named(mib)}, {way.kept() / MIB:,.2f} MiB are left")
    return Passed(mib / elapsed, computed * 1024 / mib, max(0, peak.bytes - resting) / MIB)


def _printing(block: Path, mib: int) -> Argv:
    """A command that prints so much; less than a block is taken from its beginning."""
    if mib < _BLOCK_MIB:
        short = block.with_name(f"block-{mib}")
        short.write_bytes(block.read_bytes()[: mib * MIB])
        return ("cat", str(short))
    return ("cat", *[str(block)] * (mib // _BLOCK_MIB))


def _named(mib: int) -> str:
    return f"{mib / 1024:g} GiB" if mib >= 1024 else f"{mib} MiB"


async def _quiet(block: Path) -> None:
    """What one way has written is on the disk before the next one begins; the input is in memory again."""
    process = await asyncio.create_subprocess_exec("sync")
    await process.wait()
    await asyncio.to_thread(block.read_bytes)
