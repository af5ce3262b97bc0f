"""An executor with real keepers, and short words for what tests do with it."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from whisper_tui.model.call import Argv, CommandSpec, Shell
from whisper_tui.model.ending import Ending
from whisper_tui.model.errors import NotRunning
from whisper_tui.supervisor.keeper.base_cgroup import Cgroups
from whisper_tui.supervisor.runs.executor import (
    HasBackground,
    HasEnded,
    HasSettled,
    HasSpawned,
    NeverRan,
    Report,
    RunKey,
    StartOrder,
)
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.system.processes import children_of, find_process, is_stopped, kernel_file

PATIENCE_S = 45.0
"""How long a condition may take on a busy machine before a test fails."""
T = TypeVar("T", bound=Report)


def kill_for_good(keeper: int) -> None:
    """Kill a keeper and its parent, which would start a successor that goes on with its runs."""
    found = find_process(keeper)
    if found is not None and sys.platform.startswith("linux"):
        os.kill(found.ppid, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)


def handles(pid: int, number: signal.Signals) -> bool:
    """True once a process handles a signal, or is gone."""
    found = [line for line in kernel_file(f"/proc/{pid}/status").splitlines() if line.startswith(b"SigCgt:")]
    return not found or bool(int(found[0].split()[1], 16) >> (number - 1) & 1)


class Engine:
    """An executor, and all that it has reported so far."""

    def __init__(self, directory: Path, groups: Cgroups | None = None) -> None:
        self.groups = groups
        self.runs = directory / "runs"
        self.workspace = directory / "workspace"
        self.workspace.mkdir()
        self.told: list[Report] = []
        self.executor: LocalExecutor
        self._changed = asyncio.Condition()
        self._listener: asyncio.Task[None] | None = None
        self._next = 0

    async def open(self) -> None:
        self.executor = LocalExecutor(self.runs, self.groups)
        await self.executor.open()
        self._listener = asyncio.create_task(self._listen())

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            await self.executor.close()
            self._listener = None

    async def reopen(self) -> None:
        """As a restarted supervisor would: nothing is remembered."""
        await self.close()
        self.told = []
        await self.open()

    async def _listen(self) -> None:
        async for reports in self.executor.reports():
            async with self._changed:
                self.told += reports
                self._changed.notify_all()

    def order(self, command: str | Argv, **settings: Any) -> StartOrder:
        """An order for a line of shell or an argv; what belongs to the order itself is passed on to it."""
        own = {"program", "environment", "max_output_bytes", "min_free_bytes", "limits", "key", "sandbox"}
        mine = {name: settings.pop(name) for name in list(settings) if name in own}
        settings.setdefault("cwd", str(self.workspace))
        spec = CommandSpec(command=Shell(text=command) if isinstance(command, str) else command, **settings)
        self._next += 1
        mine.setdefault("key", RunKey(str(self._next), 1))
        mine.setdefault("environment", dict(os.environ))
        mine.setdefault("program", shutil.which(spec.command.words()[0]))
        return StartOrder(spec=spec, **mine)

    async def start(self, command: str | Argv, **settings: Any) -> RunKey:
        order = self.order(command, **settings)
        await self.executor.start(order)
        return order.key

    async def run(self, command: str | Argv, **settings: Any) -> RunKey:
        """Start it and wait until all is over."""
        key = await self.start(command, **settings)
        await self.settled(key)
        return key

    def of(self, key: RunKey) -> list[Report]:
        return [report for report in self.told if report.key == key]

    async def seen(self, key: RunKey, kind: type[T], holds: Callable[[T], bool] = lambda _: True) -> T:
        """The first report of a kind about a run for which a condition holds."""

        def found() -> T | None:
            return next((told for told in self.of(key) if isinstance(told, kind) and holds(told)), None)

        async with self._changed, asyncio.timeout(PATIENCE_S):
            await self._changed.wait_for(lambda: found() is not None)
        result = found()
        assert result is not None
        return result

    async def spawned(self, key: RunKey) -> HasSpawned:
        return await self.seen(key, HasSpawned)

    async def ended(self, key: RunKey) -> Ending:
        return (await self.seen(key, HasEnded)).ending

    async def settled(self, key: RunKey) -> None:
        async with self._changed, asyncio.timeout(PATIENCE_S):
            await self._changed.wait_for(lambda: any(isinstance(told, HasSettled | NeverRan) for told in self.of(key)))

    async def background(self, key: RunKey, holds: Callable[[HasBackground], bool]) -> HasBackground:
        return await self.seen(key, HasBackground, holds)

    def out(self, key: RunKey) -> bytes:
        return self.text(key, "out")

    def err(self, key: RunKey) -> bytes:
        return self.text(key, "err")

    def text(self, key: RunKey, stream: Any) -> bytes:
        """All of a stream that is kept, read the way a client reads it."""
        pieces, offset = [], 0
        while (chunk := self.executor.read_output(key, stream, offset, 1 << 20)).data:
            pieces.append(chunk.data)
            offset = chunk.next_offset
        return b"".join(pieces)


async def until(holds: Callable[[], Any]) -> None:
    """Wait for a condition that nobody announces, bounded."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process exists and is more than its remains."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if not sys.platform.startswith("linux"):
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@asynccontextmanager
async def working(engine: Engine) -> AsyncIterator[Engine]:
    """An engine while it is open; nothing of what it has started is left afterwards."""
    await engine.open()
    try:
        yield engine
    finally:
        await end_everything(engine)
        await engine.close()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with working(Engine(tmp_path)) as engine:
        yield engine


async def end_everything(engine: Engine) -> None:
    """Whatever is not over is taken back, if a test has let go of it, and killed."""
    for directory in engine.runs.iterdir():
        call, _, attempt = directory.name.rpartition(".")
        if not attempt.isdecimal() or (directory / "done").exists():
            continue
        key = RunKey(call, int(attempt))
        with suppress(NotRunning, TimeoutError):
            async with asyncio.timeout(60):
                await engine.executor.attach(key)
                await engine.executor.signal(key, signal.SIGKILL, "tree")
                while not (directory / "done").exists():
                    await asyncio.sleep(0.01)


async def stop_with_children(parent: int) -> list[int]:
    """Stop a process and all that it has started, and return their pids, its own first."""
    # The parent first: it must not fork another one meanwhile.
    os.kill(parent, signal.SIGSTOP)
    await until(lambda: is_stopped(parent))
    children = children_of(parent)
    for pid in children:
        os.kill(pid, signal.SIGSTOP)
    # One of them may just have ended, which its stopped parent does not notice.
    await until(lambda: all(is_stopped(pid) or not alive(pid) for pid in children))
    return [parent, *children]
