"""The demo: a temporary workspace and supervisor, and either a cockpit or a printed script."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.commands.list_calls import answers_again
from whisper_tui.cli.standard_streams import let_go_of_a_still_terminal
from whisper_tui.cli.subcommand import DONE, REFUSED
from whisper_tui.config import load
from whisper_tui.config.configuration import CONFIGURATION_FILE, ToolSettings
from whisper_tui.config.private_files import write_private
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.demo.scripted_agents import Workspace, captions, play_agent, temporary_workspace
from whisper_tui.demo.scripted_human import run_without_terminal
from whisper_tui.demo.story import FAREWELL, StoryScene
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories, prepare

STEP_S, HASTY_STEP_S = 0.2, 0.01
"""Seconds between two lines of the demo's scripts: in the cockpit, and printed."""
CONFIGURATION = "[rules]\nread_only = false\n"
"""Read-only commands are asked too, because each command belongs to the story."""
ENDED = 128
"""Added to the number of the signal that ended the demo, as shells do."""


def run_demo() -> int:
    """Play the demo on the terminal, or print it where there is none. Returns the exit code.

    Nothing of it stays, neither a process nor a file, also when a signal ends it.
    """
    watched = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}
    told = _DemoPrinter()
    with temporary_workspace(step_s=STEP_S if watched else HASTY_STEP_S) as workspace:
        try:
            code = asyncio.run(_play(workspace, told, watched=watched))
        except asyncio.CancelledError:
            code = DONE
    return code if told.number is None else ENDED + told.number


class _DemoPrinter:
    """Cancel the demo at the first signal; later ones do nothing while it cleans up."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The signal that came first."""
        self.end: Callable[[], object] = _nothing

    def arrived(self, number: int) -> None:
        """Take note of a signal; the first one ends the demo."""
        if self.number is None:
            self.number = number
            self.end()


def _nothing() -> None:
    """There is nothing to end."""


async def _play(workspace: Workspace, told: _DemoPrinter, *, watched: bool) -> int:
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


async def _print(supervisor: Supervisor, workspace: Workspace, _: _DemoPrinter) -> int:
    good = await run_without_terminal(supervisor, workspace, _say)
    return DONE if good else REFUSED


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _watch(supervisor: Supervisor, workspace: Workspace, told: _DemoPrinter) -> int:
    from whisper_tui.tui.app import CockpitApp
    from whisper_tui.tui.cockpit.call_panel import Guidance
    from whisper_tui.tui.commands.undo_approval import UndoSettings
    from whisper_tui.tui.terminal_driver import TerminalQuestion, theme_of
    from whisper_tui.tui.theme import has_indexed_colours

    scenes: dict[str, StoryScene] = {}

    agents = asyncio.create_task(play_agent(supervisor, workspace, scenes), name="the demo's agents")
    try:
        with TerminalQuestion() as question:
            app = CockpitApp(
                supervisor,
                user=decider()["who"],
                theme=theme_of(None, question),
                farewell=FAREWELL,
                undo=UndoSettings(),
                indexed=has_indexed_colours(),
                guidance=Guidance(caption=captions(agents, scenes)),
            )
            app.question, app.answer_of = question, answers_again(ToolSettings())
            told.end = app.exit
            await app.run_async()
        let_go_of_a_still_terminal()
    finally:
        told.end = _nothing
        agents.cancel()
        await asyncio.wait([agents])
    if not agents.cancelled() and (problem := agents.exception()) is not None:
        raise problem
    return app.return_code or DONE


def _home(folder: Path) -> Directories:
    """Return the directories of the demo's instance, so that rules saved in it are removed with it."""
    return Directories(config=folder / "config", state=folder / "state", runtime=folder / "run")


@asynccontextmanager
async def _supervisor(workspace: Workspace) -> AsyncIterator[Supervisor]:
    """A supervisor of the demo alone; all that it ran ends with it."""
    home = _home(workspace.instance)
    prepare(home)
    write_private(Path(home.config) / CONFIGURATION_FILE, CONFIGURATION)
    rules = RuleFiles(home, load(home).rules)
    runs = LocalExecutor(Path(home.state) / "runs")
    supervisor = Supervisor(home, runs, rule_book=rules)
    await supervisor.open()
    try:
        yield supervisor
    finally:
        await supervisor.shutdown(end_runs=True)
        await supervisor.close()
