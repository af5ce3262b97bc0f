"""The demo's own supervisor, as the command line puts it together, for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from whisper_tui.demo.scripted_agents import Workspace
from whisper_tui.policy.rules.rule import NO_RULES, Rules
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories


@asynccontextmanager
async def a_supervisor(workspace: Workspace, *, rules: Rules = NO_RULES) -> AsyncIterator[Supervisor]:
    """A supervisor in the demo's place; whatever runs at the end of the block is ended."""
    place = workspace.instance
    home = Directories(config=place / "config", state=place / "state", runtime=place / "run")
    supervisor = Supervisor(home, LocalExecutor(place / "state" / "runs"), rules=rules)
    await supervisor.open()
    try:
        yield supervisor
    finally:
        await supervisor.shutdown(end_runs=True)
        await supervisor.close()
