"""How many commands a second, when so many are always asked for at once."""

import time

from benchmarks.measure import median
from benchmarks.peers.field import TRUE, Field, alone, everybody, together, within
from benchmarks.peers.ours import FromShell
from benchmarks.peers.report import Column, Row, section, table
from benchmarks.peers.way import Failed, Way

AT_ONCE = (1, 8, 64)
_LIMIT_S = 30.0


async def rate(field: Field) -> str:
    """Every way in turns, opened afresh each time, with so many workers as are asked for at once."""
    ways = [way for way in field.present(everybody()) if not isinstance(way, FromShell)]
    found: dict[str, dict[int, list[float]]] = {way.name: {} for way in ways}
    said: dict[str, str] = {}
    for _ in range(field.sizes.rate_rounds):
        for at_once in AT_ONCE:
            for way in ways:
                try:
                    found[way.name].setdefault(at_once, []).append(await _rate(way, at_once, field.sizes.rate_s))
                except Failed as error:
                    said.setdefault(way.name, f"{at_once} at once: {error}")
    rows = [
        Row(name, [median(rates[n]) if rates.get(n) else None for n in AT_ONCE], said.get(name, ""))
        for name, rates in found.items()
    ]
    return section(
        "Commands a second",
        f"`{' '.join(TRUE)}`, counted for {field.sizes.rate_s:g} s with 1, 8 and 64 of them in flight all the time, "
        "and as many workers.",
        table([Column(f"{n} at once", 0, ratio=True) for n in AT_ONCE], rows + field.absent()),
    )


async def _rate(way: Way, at_once: int, seconds: float) -> float:
    async with alone(way, at_once, [TRUE]):
        await within(_LIMIT_S, way, TRUE)
        done = 0
        begin = time.perf_counter()

        async def ask() -> None:
            nonlocal done
            while time.perf_counter() - begin < seconds:
                await within(_LIMIT_S, way, TRUE)
                done += 1

        await together(ask() for _ in range(at_once))
        return done / (time.perf_counter() - begin)
