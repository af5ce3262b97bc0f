"""A hundred thousand calls that wait: how fast they are taken, what each of them costs, and how long a look takes."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.measure import median
from benchmarks.peers.field import Field, alone, directory, queues, together
from benchmarks.peers.ours import SCRIPT, home_in, request, stop
from benchmarks.peers.processes import end_all, memory
from benchmarks.peers.programs import said
from benchmarks.peers.queue_peers import Nq, TaskSpooler
from benchmarks.peers.report import Column, Row, section, table
from benchmarks.peers.way import Argv, Failed, environment
from whisper_tui.model.call import SessionHello
from whisper_tui.model.errors import WhisperError
from whisper_tui.wire.client import SupervisorClient

SESSIONS = 10
"""The calls come from so many agents."""
PEERS_AT_MOST = 1_000
"""More tells nothing new: a waiting command of nq is a process, and task-spooler hangs before."""
_AT_ONCE = 32
_SUBMIT_S = 5.0
_LOOKS, _LOOKS_S = 7, 10.0
"""So many, and no more once they have taken so long."""
_COMMANDS = ("sleep",)
_LONG: Argv = ("sleep", "86400")


async def waiting(field: Field) -> str:
    """We with few and with many, and the peers with as many as they take."""
    few, many = min(PEERS_AT_MOST, field.sizes.waiting), field.sizes.waiting
    bare = await _look(lambda: said((sys.executable, "-c", "pass"), environment(Path.home())))
    rows = [Row("`python -c pass`", (None, None, None, bare))]
    rows += [await _ours(number) for number in (few, many)]
    rows += [await _peer(way, few) for way in queues() if way.name not in field.missing]
    columns = (
        Column("waiting calls", 0),
        Column("accepted a second", 0),
        Column("private KiB each", 1),
        Column("list ms", 1, ratio=True),
    )
    told = (
        f"The calls of whisper_tui are submitted over the socket by {SESSIONS} sessions, {_AT_ONCE} at a time, and are "
        "journaled; those of the other programs are submitted by their command-line programs, one after the other. The "
        "list is printed by a program that is started for this purpose."
    )
    absent = field.absent("task-spooler", "nq", "pueue")
    return section("Waiting calls", told, table(columns, rows + absent))


async def _ours(number: int) -> Row:
    figures: list[float] = []
    try:
        with directory() as name:
            place = Path(name)
            door = await SupervisorClient.connect(home_in(place))
            resting, begin = memory().private, time.perf_counter()
            await _submit(door, place, number)
            elapsed = time.perf_counter() - begin
            grown = memory().private - resting
            figures += [number, number / elapsed, grown / 1024 / number]
            figures.append(await _look(lambda: said((SCRIPT, "list", "--home", name), environment(place))))
            await door.close()
            await stop(place)
            return Row("whisper-tui", figures)
    except (Failed, WhisperError) as error:
        return Row("whisper-tui", figures, str(error))
    finally:
        await asyncio.to_thread(end_all)


async def _submit(door: SupervisorClient, place: Path, number: int) -> None:
    hellos = (SessionHello(name=f"benchmark {n}", root=str(place)) for n in range(SESSIONS))
    sessions = [(await door.open_session(hello)).id for hello in hellos]
    numbers = iter(range(number))

    async def submit() -> None:
        for n in numbers:
            await door.submit(request(sessions[n % SESSIONS], place, ("make", f"target-{n}")))

    await together(submit() for _ in range(_AT_ONCE))


async def _peer(way: TaskSpooler | Nq, number: int) -> Row:
    try:
        async with alone(way, 1, [_LONG]):
            await way.submit(_LONG)
            resting, begin = memory(_COMMANDS).private, time.perf_counter()
            taken, problem = await _submit_all(way, number)
            elapsed = time.perf_counter() - begin
            grown = memory(_COMMANDS).private - resting
            look = None if problem or isinstance(way, Nq) else await _look(way.listed)
            return Row(way.name, (taken, taken / elapsed, grown / 1024 / taken, look), problem)
    except Failed as error:
        return Row(way.name, (), str(error))


async def _submit_all(way: TaskSpooler | Nq, number: int) -> tuple[int, str]:
    """How many it has taken, and why not all."""
    for n in range(number):
        try:
            await way.submit(_LONG, _SUBMIT_S)
        except Failed as error:
            return max(1, n), f"of {number:,}, at {n + 1:,}: {error}"
    return number, ""


async def _look(look: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds, the median of some."""
    took: list[float] = []
    while len(took) < _LOOKS and sum(took) < _LOOKS_S * 1000:
        begin = time.perf_counter()
        await look()
        took.append((time.perf_counter() - begin) * 1000)
    return median(took)
