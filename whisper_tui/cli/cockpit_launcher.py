"""The cockpit over a running supervisor, in a terminal or for one page of a browser."""

import asyncio
import os
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from whisper_tui.agents.known_clients import INSTALLABLE, profile_of
from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.commands.list_calls import answers_again
from whisper_tui.cli.subcommand import complain
from whisper_tui.config import load
from whisper_tui.config.configuration import Configuration
from whisper_tui.model.errors import OtherVersion, WhisperError
from whisper_tui.supervisor.runs.output_files import LocalOutput
from whisper_tui.system.state_directory import Directories
from whisper_tui.tui.app import CockpitApp, asks_for_theme, theme_of
from whisper_tui.tui.cockpit.call_panel import Guidance
from whisper_tui.tui.cockpit.status_bars import FirstHints
from whisper_tui.tui.commands.all_commands import keymap
from whisper_tui.tui.commands.undo_approval import UndoSettings
from whisper_tui.tui.terminal_driver import TerminalQuestion
from whisper_tui.tui.theme import has_indexed_colours
from whisper_tui.wire.client import SupervisorClient, ensure_supervisor
from whisper_tui.wire.rendezvous import release, replace, stopped_on_purpose


def open_cockpit(home: Directories) -> int:
    """Show the cockpit until the human leaves it. Returns the exit code. Raises `WhisperError`."""
    return asyncio.run(_open(home, load(home)))


async def _open(home: Directories, wanted: Configuration) -> int:
    release(home)  # Whoever opens the cockpit is a human who wants a supervisor.
    await ensure_supervisor(home)
    connections = [await _first(home)]

    async def reconnect() -> SupervisorClient:
        """Connect again, and start a supervisor that crashed, but not one that was stopped."""
        if not stopped_on_purpose(home):
            await ensure_supervisor(home)
        connections.append(await SupervisorClient.connect(home, start=False, local_output=LocalOutput(home.state)))
        return connections[-1]

    clients = tuple((name, profile_of(name).title) for name in INSTALLABLE if shutil.which(name))
    try:
        with TerminalQuestion(asks=asks_for_theme(wanted.cockpit.theme)) as question:
            app = CockpitApp(
                connections[0],
                user=decider()["who"],
                theme=theme_of(wanted.cockpit.theme, question),
                keys=keymap(wanted.cockpit.keymap, wanted.keys),
                notifications=wanted.calling,
                undo=UndoSettings(wanted.cockpit.undo, wanted.cockpit.undo_s),
                themes_folder=Path(home.config) / "themes",
                indexed=has_indexed_colours(),
                reconnect=reconnect,
                take_over=partial(asyncio.to_thread, replace, home),
                guidance=Guidance(clients=clients, hints=remembered_hints(Path(home.state) / HINTS_FILE)),
            )
            app.question, app.answer_of = question, answers_again(wanted.tools)
            await app.run_async()
        return app.return_code or 0
    finally:
        for connection in connections:
            await connection.close()


async def _first(home: Directories) -> SupervisorClient:
    """Connect. For a supervisor of another version, return a client that connects once this version has taken over."""
    try:
        return await SupervisorClient.connect(home, start=False, local_output=LocalOutput(home.state))
    except OtherVersion:
        return SupervisorClient.unconnected(home, start=False, local_output=LocalOutput(home.state))


HINTS_FILE = "hints"
"""The file of the state directory with the names of the hints that were shown."""


def remembered_hints(path: Path) -> FirstHints:
    """Return the hints, those that a file names as shown before."""

    def remember(hint: str) -> None:
        # A hint that is shown twice harms nobody, so a disk that is full is no reason to complain.
        with suppress(OSError), path.open("a", encoding="utf-8") as file:
            file.write(f"{hint}\n")

    try:
        return FirstHints(path.read_text(encoding="utf-8").split(), remember)
    except FileNotFoundError:
        return FirstHints((), remember)
    except (OSError, UnicodeDecodeError):
        return FirstHints()


LOOK_S = 1.0
"""Seconds between two checks that `serve` still runs."""


def _end_with(parent: int) -> None:
    """End this process once its parent is gone."""
    # Nobody can close the page of a `serve` that was killed.
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    """Open the cockpit of the directories that the arguments name."""
    config, state, runtime = map(Path, sys.argv[1:])
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    try:
        return open_cockpit(Directories(config=config, state=state, runtime=runtime))
    except WhisperError as error:
        complain(error.sentence())
        return 1


if __name__ == "__main__":
    sys.exit(main())
