"""How many decisions a second survive a power cut, when 16 people decide at the same time, against raw flushes.

Usage: python benchmarks/decisions.py [SECONDS] [ROUNDS]
"""

import asyncio
import json
import os
import sqlite3
import sys
import tempfile
import threading
import time
from pathlib import Path

from measure import directories, median, table

from whisper_tui.model.call import Argv, CallRequest, CommandSpec, SessionHello
from whisper_tui.model.decision import Decider, Deny
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.supervisor import Supervisor

WRITERS = 16
WAITING = 800
"""Calls that wait before each round; a round ends early if all of them are decided."""
FACT = json.dumps({"kind": "decided", "call_id": "1", "decision": {"kind": "deny", "reason": "no"}, "pad": "x" * 300})


def flushed_lines(place: Path, seconds: float, *, files: int) -> float:
    """Lines a second of as many threads, which share so many files and flush each line."""
    counts = [0] * WRITERS
    until = time.perf_counter() + seconds

    def write(number: int) -> None:
        with (place / f"lines.{number % files}").open("ab", buffering=0) as file:
            while time.perf_counter() < until:
                file.write(FACT.encode() + b"\n")
                os.fdatasync(file.fileno())
                counts[number] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def least(place: Path, seconds: float) -> float:
    """Rows a second of a loop that only does what cannot be left out: one row each, and one flush for all writers."""
    db = sqlite3.connect(place / "least.sqlite", isolation_level=None)
    db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE IF NOT EXISTS e (b TEXT)")
    log = os.open(place / "least.sqlite-wal", os.O_RDWR)
    count, until = 0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO e VALUES (?)", [(FACT,)] * WRITERS)
        db.execute("COMMIT")
        os.fdatasync(log)
        count += WRITERS
    os.close(log)
    db.close()
    return count / seconds


async def decided(supervisor: Supervisor, session: str, place: Path, seconds: float) -> float:
    """Decisions a second of as many people, each of whom waits for the answer before the next decision."""
    spec, waiting = CommandSpec(command=Argv(program="touch", args=("file",)), cwd=str(place)), []
    for _ in range(WAITING):
        request = CallRequest(session_id=session, tool="execute_command", arguments={}, spec=spec)
        call_id = await supervisor.submit(request)
        waiting.append((call_id, (await supervisor.record(call_id)).seen_digest()))
    by, count, begin = Decider(surface="library"), 0, time.perf_counter()

    async def decide() -> None:
        nonlocal count
        while waiting and time.perf_counter() - begin < seconds:
            call_id, seen = waiting.pop()
            await supervisor.decide(call_id, Deny(reason="no"), by, seen)
            count += 1

    await asyncio.gather(*(decide() for _ in range(WRITERS)))
    return count / (time.perf_counter() - begin)


async def main(seconds: float, rounds: int) -> None:
    """Interleave the ways and print medians."""
    found: dict[str, list[float]] = {"lines of one file, each flushed": [], "lines of 16 files, each flushed": []}
    found |= {"decisions": [], "least": []}
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as directory:
        place = Path(directory)
        home = directories(place)
        supervisor = Supervisor(home, LocalExecutor(place / "state" / "runs"))
        await supervisor.open()
        session = (await supervisor.open_session(SessionHello(name="benchmark", root=directory))).id
        for _ in range(rounds):
            for name, files in zip(found, (1, WRITERS), strict=False):
                found[name].append(await asyncio.to_thread(flushed_lines, place, seconds, files=files))
            found["decisions"].append(await decided(supervisor, session, place, seconds))
            found["least"].append(await asyncio.to_thread(least, place, seconds))
        await supervisor.close()
    base = median(found["lines of one file, each flushed"])
    rows = [[name, f"{median(each):,.0f}", f"{median(each) / base:.2f} times"] for name, each in found.items()]
    table(f"{WRITERS} writers, durable, {rounds} interleaved rounds", ("way", "a second", "ratio"), rows)


if __name__ == "__main__":
    asyncio.run(main(float((sys.argv[1:] or ["1.0"])[0]), int((sys.argv[2:] or ["5"])[0])))
