"""A supervisor at its socket that records who was refused, and a human who approves."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import whisper_tui
from tests.wire.conftest import waiting_call
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.event import AttemptRefused
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.server import Server, serve

ROOT = Path(whisper_tui.__file__).parent.parent
HUMAN = Decider(surface="library", who="tester")
EVERYTHING_WAITS = Rules(read_only=False)


class Field:
    """Where an attack takes place."""

    def __init__(self, supervisor: Supervisor, server: Server, home: Directories, root: Path) -> None:
        self.supervisor = supervisor
        self.server = server
        self.home = home
        self.root = root
        self.environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}

    @property
    def board_refused(self) -> list[AttemptRefused]:
        """What the journal has taken down about refused attempts."""
        return list(self.supervisor._store.board.refused)

    async def ask(self, *words: str, cwd: Path | None = None) -> str:
        """A call that waits for a human."""
        return await waiting_call(self.supervisor, cwd or self.root, *words)

    async def approve(self, call_id: str) -> None:
        """What a human does, without a wish to undo it: an attack may be of a kind of which nothing can be kept."""
        seen = (await self.supervisor.record(call_id)).seen_digest()
        await self.supervisor.decide(call_id, Approve(undoable=False), HUMAN, seen)

    async def runs(self, *words: str) -> str:
        """A call that was approved, and has a process."""
        call_id = await self.ask(*words)
        await self.approve(call_id)
        await asyncio.wait_for(self.supervisor.started(call_id), 60)
        return call_id

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for a condition, bounded."""
        async with asyncio.timeout(60):
            while not true():
                await asyncio.sleep(0.02)

    async def line_of(self, path: Path) -> str:
        """The content of a file, once it holds a whole line."""
        await self.until(lambda: path.exists() and "\n" in path.read_text())
        return path.read_text()


@asynccontextmanager
async def a_field(
    root: Path,
    settings: SupervisorSettings | None = None,
    *,
    ends_runs: bool = True,
    rules: Rules = EVERYTHING_WAITS,
) -> AsyncIterator[Field]:
    """One field, with everything ended afterwards; or with what runs left to the next one in the same place."""
    home = Directories(config=root / "config", state=root / "state", runtime=root / "run")
    files = RuleFiles(home, rules)
    supervisor = Supervisor(home, LocalExecutor(Path(home.state) / "runs"), rule_book=files, settings=settings)
    files.follow(supervisor.rule_trust)
    await supervisor.open()
    server = await serve(supervisor, home, {}, refused=supervisor.attempt_refused)
    try:
        yield Field(supervisor, server, home, root)
    finally:
        await server.close()
        await supervisor.shutdown(end_runs=ends_runs)
        await supervisor.close()


@pytest.fixture
async def field(tmp_path: Path) -> AsyncIterator[Field]:
    async with a_field(tmp_path) as made:
        yield made
