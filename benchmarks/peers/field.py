"""Who takes part, and how one of them is measured: in a place of its own, with nothing left behind."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import processes
from benchmarks.peers.install import NOT_TO_BE_HAD, PEERS
from benchmarks.peers.mcp_peers import DesktopCommander, ServerCommands, ShellServer
from benchmarks.peers.ours import FromPython, FromShell, OverMcp
from benchmarks.peers.plain import Shell, Subprocess
from benchmarks.peers.queue_peers import Nq, TaskSpooler
from benchmarks.peers.report import Row
from benchmarks.peers.way import Argv, Failed, Way
from whisper_tui.model.errors import WhisperError

TRUE: Argv = ("bash", "-c", "true")
_OPEN_S, _CLOSE_S = 120.0, 90.0


@dataclass(frozen=True)
class Sizes:
    """How much of everything is measured."""

    rounds: int
    """Single commands of each way."""
    rate_s: float
    """Seconds for which commands are counted."""
    rate_rounds: int
    output_gib: Sequence[float]
    output_rounds: int
    together: int
    """Commands that run at once."""
    waiting: int
    """Calls that wait."""
    history: int
    """Calls in the journal."""
    keys: int
    """Keys pressed at a viewer."""


SIZES = {
    "short": Sizes(15, 1.0, 1, (0.125,), 1, 100, 5_000, 50_000, 20),
    "usual": Sizes(60, 1.5, 2, (1,), 3, 1_000, 100_000, 1_000_000, 60),
    "full": Sizes(300, 5.0, 3, (1, 10), 3, 1_000, 100_000, 1_000_000, 200),
}


@dataclass(frozen=True)
class Field:
    """What all parts of the comparison have in common."""

    sizes: Sizes
    missing: Mapping[str, str]
    """Peers that could not be had, and why."""

    def present(self, ways: Iterable[Way]) -> list[Way]:
        """Those of them that can be had."""
        return [way for way in ways if way.name not in self.missing]

    def absent(self, *names: str) -> list[Row]:
        """A row for each of these that could not be had; no names: of all."""
        asked = names or (*(peer.name for peer in PEERS), *NOT_TO_BE_HAD)
        return [Row(name, (), self.missing[name]) for name in asked if name in self.missing]


def servers() -> tuple[Way, ...]:
    """The servers of MCP, ours first."""
    return (OverMcp(), ServerCommands(), ShellServer(), DesktopCommander())


def queues() -> tuple[TaskSpooler, Nq]:
    """The queues of the command line."""
    return (TaskSpooler(), Nq())


def contestants() -> tuple[Way, ...]:
    """Whoever is compared in everything: the servers and the queues."""
    return (*servers(), *queues())


def everybody() -> tuple[Way, ...]:
    """Every way to run a command, the baseline first."""
    return (Subprocess("subprocess"), Shell(), *servers(), FromPython(), FromShell(), *queues())


def directory() -> tempfile.TemporaryDirectory[str]:
    """An empty directory on the disk that is measured."""
    return tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY"), ignore_cleanup_errors=True)


@asynccontextmanager
async def opened(way: Way, at_once: int, commands: Sequence[Argv]) -> AsyncIterator[Path]:
    """A way, ready, in a place of its own. Raises `Failed`."""
    with directory() as name:
        await _bounded(_OPEN_S, way.open(Path(name), at_once, commands), "does not start")
        try:
            yield Path(name)
        finally:
            await _bounded(_CLOSE_S, way.close(), "does not end")


@asynccontextmanager
async def alone(way: Way, at_once: int, commands: Sequence[Argv]) -> AsyncIterator[Path]:
    """The only way that is open; afterwards no process of it is left. Raises `Failed`."""
    if way.most_at_once is not None and at_once > way.most_at_once:
        raise Failed("runs one after the other only")
    try:
        async with opened(way, at_once, commands) as place:
            yield place
    finally:
        await asyncio.to_thread(processes.end_all)


async def within(limit_s: float, way: Way, argv: Argv) -> None:
    """One command, bounded. Raises `Failed`."""
    await _bounded(limit_s, way.run(argv), "no result")


async def together(waits: Iterable[Coroutine[Any, Any, object]]) -> None:
    """All of them at once; the first that fails ends the others. Raises its error."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _bounded(limit_s: float, wait: Coroutine[Any, Any, None], otherwise: str) -> None:
    try:
        await asyncio.wait_for(wait, limit_s)
    except TimeoutError:
        raise Failed(f"{otherwise} within {limit_s:.0f} s") from None
    except WhisperError as error:
        raise Failed(error.message) from None
