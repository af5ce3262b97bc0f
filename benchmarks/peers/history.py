"""A million calls in the journal: how soon a supervisor is there, also after a crash, and how fast calls are found."""

import asyncio
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import median
from benchmarks.peers.field import Field, directory
from benchmarks.peers.long_journal import COMMON, RARE, RARE_EVERY, write
from benchmarks.peers.ours import home_in, request, stop
from benchmarks.peers.processes import MIB, end_all, kill, memory, until
from benchmarks.peers.report import Column, Row, section, table
from benchmarks.peers.way import Argv, Failed
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.call import SessionHello
from whisper_tui.supervisor.journal.journal_search import EVERY, attach
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient

_ROUNDS = 5
_SEARCHES = 15
_RUNNING = 8
_READY_S = 120.0
_INDEX_S = 300.0
_COMMAND: Argv = ("sleep", "86400")
_FEW = 1_000


class Found(NamedTuple):
    """What was found with so many calls."""

    gigabytes: float
    ready_ms: float
    recovered_ms: float
    memory_mib: float
    newest_ms: float
    common_ms: float
    rare_ms: float
    absent_ms: float


_SAID = {
    "gigabytes": "journal, GB",
    "ready_ms": "from the start of a supervisor to its first answer, ms",
    "recovered_ms": f"the same after `kill -9`, until {_RUNNING} running commands are recovered, ms",
    "memory_mib": "private memory of the supervisor then, MiB",
    "newest_ms": "the newest 50, ms",
    "common_ms": "the newest 50 with a word that is in every call, ms",
    "rare_ms": f"the newest 50 with a word that is in one call of {RARE_EVERY:,}, ms",
    "absent_ms": "a word that is in no call, ms",
}


async def history(field: Field) -> str:
    """A short journal is the baseline: no peer keeps one."""
    few, many = await _found(_FEW), await _found(field.sizes.history)
    rows = []
    for name, words in _SAID.items():
        short, long = getattr(few, name), getattr(many, name)
        rows.append(Row(words, (short, long, long / short if short else None)))
    columns = (Column(f"{_FEW:,} calls", 2), Column(f"{field.sizes.history:,} calls", 2), Column("ratio", 1))
    told = (
        "Each call has six events. No other program keeps a history across restarts, so the baseline is a short "
        "history of whisper_tui."
    )
    return section("A long history", told, table(columns, rows, first="whisper-tui"))


async def _found(calls: int) -> Found:
    with directory() as name:
        place = Path(name)
        home = home_in(place, commands=[_COMMAND])
        Path(home.state).mkdir(mode=0o700)
        journal = Path(home.state) / "journal.sqlite"
        await asyncio.to_thread(write, journal, calls)
        try:
            ready = [await _start(home, place) for _ in range(_ROUNDS)]
            recovered = await _recovered(home, place)
            used = memory(("sleep",)).private / MIB
            searches = await _searches(home, calls)
        finally:
            await asyncio.to_thread(end_all)
        return Found(journal.stat().st_size / 1e9, median(ready), median(recovered), used, *searches)


async def _start(home: Directories, place: Path) -> float:
    begin = time.perf_counter()
    door = await SupervisorClient.connect(home)
    await door.status()
    took = time.perf_counter() - begin
    await door.close()
    await stop(place)
    return took * 1000


async def _recovered(home: Directories, place: Path) -> list[float]:
    """The commands go on all the while; the last supervisor is left running."""
    door = await SupervisorClient.connect(home)
    session = await door.open_session(SessionHello(name="recovery", root=str(place)))
    for _ in range(_RUNNING):
        await door.started(await door.submit(request(session.id, place, _COMMAND)))
    took = []
    for _ in range(_ROUNDS):
        pid = (await door.status()).pid
        await door.close()
        await asyncio.to_thread(kill, pid)
        begin = time.perf_counter()
        door = await SupervisorClient.connect(home)
        while (await door.status()).running < _RUNNING:
            if time.perf_counter() - begin > _READY_S:
                raise Failed("the commands were not taken back")
            await asyncio.sleep(0.005)
        took.append((time.perf_counter() - begin) * 1000)
    await door.close()
    return took


async def _searches(home: Directories, calls: int) -> list[float]:
    if not await until(lambda: _index_is_made(home, calls), _INDEX_S):
        raise Failed("the index of words was not made")
    door = await SupervisorClient.connect(home)
    expected = {"": 50, COMMON: 50, RARE: min(50, calls // RARE_EVERY), "absent": 0}
    found = []
    for text, count in expected.items():
        took = []
        for _ in range(_SEARCHES):
            begin = time.perf_counter()
            records = await door.history(HistoryQuery(text=text))
            took.append((time.perf_counter() - begin) * 1000)
            if len(records) != count:
                raise Failed(f"{len(records)} calls instead of {count} were found for {text!r}")
        found.append(median(took))
    await door.close()
    return found


def _index_is_made(home: Directories, calls: int) -> bool:
    """Whether the supervisor has made it meanwhile, of a journal that is long enough."""
    journal = Path(home.state) / "journal.sqlite"
    with suppress(sqlite3.Error), closing(sqlite3.connect(journal)) as db:
        return calls - attach(db, journal) < EVERY
    return False
