"""A thousand commands at once: how soon all of them run, what each of them costs, and whether all are answered."""

import asyncio
import os
import shlex
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.peers.field import TRUE, Field, alone, contestants, directory, together, within
from benchmarks.peers.plain import Subprocess
from benchmarks.peers.processes import MIB, memory, until
from benchmarks.peers.report import Column, Row, section, table
from benchmarks.peers.way import Argv, Failed, Way

_START_S = 60.0
_ANSWER_S = 30.0
_COMMANDS = ("bash", "sh", "benchmark-shell")


async def crowd(field: Field) -> str:
    """Each way alone."""
    count = field.sizes.together
    rows = [await _row(way, count) for way in (Subprocess("subprocess"), *field.present(contestants()))]
    columns = (
        Column("all run after s", 2, ratio=True),
        Column("private MiB each", 2),
        Column("with its share MiB each", 2),
        Column("all answered after s", 2, ratio=True),
    )
    told = (
        f"{count:,} commands are requested at once and block until all of them run; then all are released. Memory is "
        "the growth of all processes except the commands themselves, divided by the number of commands."
    )
    return section("Many commands at once", told, table(columns, rows + field.absent()))


async def _row(way: Way, count: int) -> Row:
    with directory() as name:
        gate = Gate(Path(name))
        try:
            async with alone(way, count, [gate.command, TRUE]):
                return await _measured(way, gate, count)
        except Failed as error:
            return Row(way.name, (), str(error))
        finally:
            gate.close()


async def _measured(way: Way, gate: "Gate", count: int) -> Row:
    await within(_START_S, way, TRUE)
    resting = memory(_COMMANDS)
    begin = time.perf_counter()
    asked = (within(_START_S + 2 * _ANSWER_S, way, gate.command) for _ in range(count))
    answers = asyncio.create_task(together(asked))
    try:
        await until(lambda: answers.done() or gate.arrived() >= count, _START_S)
        if gate.arrived() < count:
            if answers.done():
                answers.result()
            raise Failed(f"{gate.arrived():,} of {count:,} run after {_START_S:.0f} s")
        started = time.perf_counter() - begin
        held = memory(_COMMANDS)
        each = [(held[n] - resting[n]) / MIB / count for n in range(2)]
        begin = time.perf_counter()
        gate.open()
        done, _ = await asyncio.wait([answers], timeout=_ANSWER_S)
        if not done:
            return Row(way.name, (started, *each), f"not all are answered {_ANSWER_S:.0f} s after they may end")
        answers.result()
        return Row(way.name, (started, *each, time.perf_counter() - begin))
    finally:
        answers.cancel()
        await asyncio.gather(answers, return_exceptions=True)


class Gate:
    """Commands that say that they run and wait, all for the same gate: pipes with names, and a script of builtins."""

    def __init__(self, place: Path) -> None:
        ready, self._gate, script = place / "ready", place / "gate", place / "wait"
        os.mkfifo(ready)
        os.mkfifo(self._gate)
        script.write_text(f"echo > {shlex.quote(str(ready))}\nread -r line < {shlex.quote(str(self._gate))}\nexit 0\n")
        self.command: Argv = ("bash", str(script))
        self._ready = os.open(ready, os.O_RDWR | os.O_NONBLOCK)
        self._count = 0

    def arrived(self) -> int:
        """How many have come so far."""
        with suppress(BlockingIOError):
            while said := os.read(self._ready, 65536):
                self._count += len(said)
        return self._count

    def open(self) -> None:
        """Let all of them go. Raises `Failed`."""
        try:
            os.close(os.open(self._gate, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            raise Failed("the commands have ended before they were let go") from None

    def close(self) -> None:
        """Let go of the pipe."""
        os.close(self._ready)
