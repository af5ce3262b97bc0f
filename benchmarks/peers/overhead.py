"""What one command costs, from asking for it to knowing its result, through everybody in turns."""

import asyncio
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack

from benchmarks.measure import median, quantile
from benchmarks.peers.field import TRUE, Field, everybody, opened, within
from benchmarks.peers.processes import end_all
from benchmarks.peers.report import Column, Row, section, table
from benchmarks.peers.way import Failed, Way

_PAUSE_S = 0.03
"""Between two commands, so that none pays for what the one before it left to do."""
_LIMIT_S = 30.0
_WARM_UP = 8


async def overhead(field: Field) -> str:
    """All ways are open together; each round asks each of them once."""
    took: dict[str, list[float]] = {}
    failed: dict[str, str] = {}
    try:
        async with AsyncExitStack() as stack:
            ways = await _open(field.present(everybody()), stack, failed)
            for number in range(_WARM_UP + field.sizes.rounds):
                for way in ways:
                    found = await _milliseconds(way, failed)
                    if found is not None and number >= _WARM_UP:
                        took.setdefault(way.name, []).append(found)
    finally:
        await asyncio.to_thread(end_all)
    rows = [Row(name, (median(found), quantile(found, 0.95)), failed.get(name, "")) for name, found in took.items()]
    rows += [Row(name, (), why) for name, why in failed.items() if name not in took]
    return section(
        "One command",
        f"`{' '.join(TRUE)}`, from the request to its result; {field.sizes.rounds} rounds, in each of which all "
        "programs take turns.",
        table((Column("median ms", 2, ratio=True), Column("p95 ms", 2, ratio=True)), rows + field.absent()),
    )


async def _open(ways: Iterable[Way], stack: AsyncExitStack, failed: dict[str, str]) -> list[Way]:
    ready = []
    for way in ways:
        try:
            await stack.enter_async_context(opened(way, 1, [TRUE]))
            ready.append(way)
        except Failed as error:
            failed[way.name] = str(error)
    return ready


async def _milliseconds(way: Way, failed: dict[str, str]) -> float | None:
    """None: it has failed, now or before."""
    if way.name in failed:
        return None
    begin = time.perf_counter()
    try:
        await within(_LIMIT_S, way, TRUE)
    except Failed as error:
        failed[way.name] = str(error)
        return None
    elapsed = (time.perf_counter() - begin) * 1000
    await asyncio.sleep(_PAUSE_S)
    return elapsed
