"""The demo put together: a workspace and a supervisor of its own, and either a cockpit or a printed script."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
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
    watched = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}
    told = _Told()
    with temporary_workspace(step_s=STEP_S if watched else HASTY_STEP_S) as workspace:
        try:
            code = asyncio.run(_play(workspace, told, watched=watched))
        except asyncio.CancelledError:
            code = DONE
    return code if told.number is None else ENDED + told.number


class _Told:
    """What a signal ends: once, and nothing while the demo already clears up behind itself."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The signal that came first."""
        self.end: Callable[[], object] = _nothing

    def arrived(self, number: int) -> None:
        """A signal that wants an end."""
        if self.number is None:
            self.number = number
            self.end()


def _nothing() -> None:
    """There is nothing to end."""


async def _play(workspace: Workspace, told: _Told, *, watched: bool) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup's wish
            asyncio.get_running_loop().add_signal_handler(number, told.arrived, number)
    async with _supervisor(workspace) as supervisor:
        playing = asyncio.create_task((_watch if watched else _print)(supervisor, workspace, told))
        told.end = playing.cancel
        if told.number is not None:
            playing.cancel()
        try:
            return await playing
        finally:
            told.end = _nothing
            if not playing.done():  # Ctrl+C cancels the task that waits for it.
                playing.cancel()
                await asyncio.wait([playing])


async def _print(supervisor: Supervisor, workspace: Workspace, _: _Told) -> int:
    good = await run_without_terminal(supervisor, workspace, _say)
    return DONE if good else REFUSED


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _watch(supervisor: Supervisor, workspace: Workspace, told: _Told) -> int:
    from whisper_tui.tui.app import CockpitApp
    from whisper_tui.tui.grace import Grace

    agents = asyncio.create_task(play_agent(supervisor, workspace), name="the demo's agents")
    app = CockpitApp(
        supervisor,
        user=decider()["who"],
        farewell=FAREWELL,
        rule_book=InstanceRules(_home(workspace.instance)),
        grace=Grace(),
    )
    told.end = app.exit
    try:
        await app.run_async()
    finally:
        told.end = _nothing
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
