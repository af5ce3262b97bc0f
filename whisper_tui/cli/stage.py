"""The demo put together: a workspace and a supervisor of its own, and either a cockpit or a printed script."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.demo.agent import play_agent
from whisper_tui.demo.script import run_without_terminal
from whisper_tui.demo.workspace import Workspace, temporary_workspace
from whisper_tui.model.home import Home
from whisper_tui.supervisor.core import Supervisor
from whisper_tui.supervisor.local import LocalExecutor
from whisper_tui.supervisor.state_directory import Occupation, prepare

STEP_S, HASTY_STEP_S = 0.4, 0.05
"""Seconds between two lines of the demo's scripts, for somebody who looks on and for a log."""


def run_demo() -> int:
    """Play the demo on the terminal, or print it where there is none. Returns the exit code."""
    watched = sys.stdin.isatty() and sys.stdout.isatty()
    with temporary_workspace(step_s=STEP_S if watched else HASTY_STEP_S) as workspace:
        return asyncio.run(_watch(workspace) if watched else _print(workspace))


async def _print(workspace: Workspace) -> int:
    async with _supervisor(workspace) as supervisor:
        good = await run_without_terminal(supervisor, workspace, _say)
    return DONE if good else REFUSED


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _watch(workspace: Workspace) -> int:
    from whisper_tui.tui.app import CockpitApp

    async with _supervisor(workspace) as supervisor:
        agent = asyncio.create_task(play_agent(supervisor, workspace))
        app = CockpitApp(supervisor)
        try:
            await app.run_async()
        finally:
            agent.cancel()
            await asyncio.wait([agent])
        return app.return_code or DONE


@asynccontextmanager
async def _supervisor(workspace: Workspace) -> AsyncIterator[Supervisor]:
    """A supervisor of the demo alone; all that it ran ends with it."""
    root = workspace.instance
    home = Home(config=root / "config", state=root / "state", runtime=root / "run")
    prepare(home)
    with Occupation(home.state):
        supervisor = Supervisor(home, LocalExecutor(root / "state" / "runs"))
        await supervisor.open()
        try:
            yield supervisor
        finally:
            await supervisor.shutdown(end_runs=True)
            await supervisor.close()
