"""The demo put together: a workspace and a supervisor of its own, and either a cockpit or a printed script."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from whisper_tui.cli.deciding import decider
from whisper_tui.cli.exit_codes import DONE, REFUSED
from whisper_tui.cli.rule_book import InstanceRules
from whisper_tui.config import load
from whisper_tui.config.file import FILE_NAME
from whisper_tui.config.private_write import write_private
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.demo.agent import play_agent
from whisper_tui.demo.script import run_without_terminal
from whisper_tui.demo.workspace import Workspace, temporary_workspace
from whisper_tui.model.home import Home
from whisper_tui.supervisor.core import Supervisor
from whisper_tui.supervisor.local import LocalExecutor
from whisper_tui.supervisor.state_directory import prepare

STEP_S, HASTY_STEP_S = 0.2, 0.01
"""Seconds between two lines of the demo's scripts, for somebody who looks on and for a log."""
FAREWELL = "The demo is over, and all that it ran with it. Run whisper-tui for work of your own."
CONFIGURATION = "[rules]\nread_only = false\n"
"""Every command of the story is asked, also those that only look."""
ENDED = 128
"""Added to the number of the signal that ended the demo, as shells do."""


def run_demo() -> int:
    """Play the demo on the terminal, or print it where there is none. Returns the exit code.

    Nothing of it stays, neither a process nor a file, also when a signal ends it.
    """
    watched = sys.stdin.isatty() and sys.stdout.isatty()
    ended_by: list[int] = []
    with temporary_workspace(step_s=STEP_S if watched else HASTY_STEP_S) as workspace:
        try:
            return asyncio.run(_play(workspace, ended_by, watched=watched))
        except asyncio.CancelledError:
            return ENDED + ended_by[0]


async def _play(workspace: Workspace, ended_by: list[int], *, watched: bool) -> int:
    playing = asyncio.current_task()

    def end(number: int) -> None:
        ended_by.append(number)
        if playing is not None and len(ended_by) == 1:
            playing.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    async with _supervisor(workspace) as supervisor:
        code = await (_watch if watched else _print)(supervisor, workspace)
    return ENDED + ended_by[0] if ended_by else code


async def _print(supervisor: Supervisor, workspace: Workspace) -> int:
    good = await run_without_terminal(supervisor, workspace, _say)
    return DONE if good else REFUSED


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _watch(supervisor: Supervisor, workspace: Workspace) -> int:
    from whisper_tui.tui.app import CockpitApp

    agents = asyncio.create_task(play_agent(supervisor, workspace), name="the demo's agents")
    app = CockpitApp(
        supervisor, user=decider()["who"], farewell=FAREWELL, rule_book=InstanceRules(_home(workspace.instance))
    )
    try:
        await app.run_async()
    finally:
        agents.cancel()
        await asyncio.wait([agents])
    if not agents.cancelled() and (problem := agents.exception()) is not None:
        raise problem
    return app.return_code or DONE


def _home(folder: Path) -> Home:
    """The places of the demo's own instance, so that rules saved in it end with it."""
    return Home(config=folder / "config", state=folder / "state", runtime=folder / "run")


@asynccontextmanager
async def _supervisor(workspace: Workspace) -> AsyncIterator[Supervisor]:
    """A supervisor of the demo alone; all that it ran ends with it."""
    home = _home(workspace.instance)
    prepare(home)
    write_private(Path(home.config) / FILE_NAME, CONFIGURATION)
    rules = RuleFiles(home, load(home).rules)
    runs = LocalExecutor(Path(home.state) / "runs")
    supervisor = Supervisor(home, runs, rules=rules.current, keep_rule=rules.keep)
    await supervisor.open()
    try:
        yield supervisor
    finally:
        await supervisor.shutdown(end_runs=True)
        await supervisor.close()
