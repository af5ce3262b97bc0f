"""The cockpit over a running supervisor, in a terminal or for one page of a browser."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from whisper_tui.agents.known_clients import INSTALLABLE, profile_of
from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.commands.list_calls import answers_again
from whisper_tui.cli.decision_signer import signer_of
from whisper_tui.cli.standard_streams import let_go_of_a_still_terminal
from whisper_tui.cli.subcommand import HERE, complain
from whisper_tui.config import load
from whisper_tui.config.configuration import Configuration
from whisper_tui.model.api import Supervision
from whisper_tui.model.errors import OtherVersion, WhisperError
from whisper_tui.system.own_program import installed_program
from whisper_tui.system.state_directory import Directories
from whisper_tui.tui.terminal_driver import TerminalQuestion, asks_for_theme, theme_of
from whisper_tui.wire.client import SupervisorClient, ensure_supervisor
from whisper_tui.wire.rendezvous import release, replace, stopped_on_purpose

if TYPE_CHECKING:
    from whisper_tui.model.run import OutputChunk, OutputSpan, Stream, TerminalSize
    from whisper_tui.supervisor.runs.output_files import LocalOutput
    from whisper_tui.tui.cockpit.follower import Reconnect, TakeOver
    from whisper_tui.tui.cockpit.notices import FirstHints
    from whisper_tui.wire.federation import Transport


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
        connections.append(await SupervisorClient.connect(home, start=False, local_output=OutputWhenShown(home)))
        return connections[-1]

    try:
        take_over = partial(asyncio.to_thread, replace, home)
        return await _show(home, wanted, connections[0], reconnect, user=decider()["who"], take_over=take_over)
    finally:
        for connection in connections:
            await connection.close()


async def _show(
    home: Directories,
    wanted: Configuration,
    supervision: Supervision,
    reconnect: "Reconnect",
    *,
    user: str,
    take_over: "TakeOver | None" = None,
) -> int:
    """Run the cockpit with the user's settings until the human leaves it."""
    with TerminalQuestion(asks=asks_for_theme(wanted.cockpit.theme)) as question:
        # Loaded while the terminal answers.
        from whisper_tui.tui.app import CockpitApp
        from whisper_tui.tui.cockpit.call_panel import Guidance
        from whisper_tui.tui.commands.all_commands import keymap
        from whisper_tui.tui.commands.undo_approval import UndoSettings
        from whisper_tui.tui.theme import has_indexed_colours

        app = CockpitApp(
            supervision,
            user=user,
            theme=theme_of(wanted.cockpit.theme, question),
            keys=keymap(wanted.cockpit.keymap, wanted.keys),
            notifications=wanted.calling,
            undo=UndoSettings(wanted.cockpit.undo, wanted.cockpit.undo_s),
            themes_folder=Path(home.config) / "themes",
            indexed=has_indexed_colours(),
            reconnect=reconnect,
            take_over=take_over,
            signer=signer.sign if (signer := signer_of(wanted.evidence.sign)) is not None else None,
            guidance=Guidance(clients=_ways_to_clients, hints=remembered_hints(Path(home.state) / HINTS_FILE)),
        )
        app.question, app.answer_of = question, answers_again(wanted.tools)
        await app.run_async()
    let_go_of_a_still_terminal()
    return app.return_code or 0


def open_attached(home: Directories, names: Sequence[str]) -> int:
    """Show one cockpit over several machines until the human leaves it. Returns the exit code."""
    wanted = load(home)
    ways = [_transport(home, wanted, name) for name in dict.fromkeys(names or (HERE, *wanted.hosts))]
    return asyncio.run(_attached(home, wanted, ways))


async def _attached(home: Directories, wanted: Configuration, ways: "Sequence[Transport]") -> int:
    # Whoever reads the journal of a machine sees at which desk a decision was made.
    from whisper_tui.wire.federation import Federation

    user = f"{decider()['who']}@{socket.gethostname()}"
    federation = Federation.of(ways)

    async def reconnect() -> Federation:
        return Federation.of(ways)

    try:
        return await _show(home, wanted, federation, reconnect, user=user)
    finally:
        federation.close()


def _transport(home: Directories, wanted: Configuration, name: str) -> "Transport":
    """Return the way to a machine of the configuration, to this machine, or to one that ssh alone knows."""
    if name == HERE:
        return ThisMachine(home)
    from whisper_tui.cli.other_machines import ssh_host

    return ssh_host(wanted, name)


class ThisMachine:
    """The way to the supervisor of this machine."""

    name = HERE

    def __init__(self, home: Directories) -> None:
        self._home = home

    def client(self) -> SupervisorClient:
        """Return a client, which starts a supervisor if none runs and none was stopped."""
        start = not stopped_on_purpose(self._home)
        return SupervisorClient.unconnected(self._home, start=start, local_output=OutputWhenShown(self._home))

    def explain(self, error: WhisperError) -> WhisperError:
        """Return the error: there is no more to know."""
        return error

    def close(self) -> None:
        """Do nothing: a client ends its own connection."""


class OutputWhenShown:
    """The output of the runs of this machine. What reads it is loaded with the first output that is shown."""

    def __init__(self, home: Directories) -> None:
        self._state = home.state

    @cached_property
    def _files(self) -> "LocalOutput":
        from whisper_tui.supervisor.runs.output_files import LocalOutput

        return LocalOutput(self._state)

    def read_output(self, call_id: str, attempt: int, stream: "Stream", offset: int, limit: int) -> "OutputChunk":
        """Return at most `limit` bytes of a stream from `offset`. A negative offset counts from the end."""
        return self._files.read_output(call_id, attempt, stream, offset, limit)

    def read_timeline(self, call_id: str, attempt: int, after: int, limit: int) -> "tuple[OutputSpan, ...]":
        """Return at most `limit` rows of the time index, from row `after`."""
        return self._files.read_timeline(call_id, attempt, after, limit)

    def terminal_sizes(self, call_id: str, attempt: int) -> "tuple[TerminalSize, ...]":
        """Return all sizes of the terminal of a run."""
        return self._files.terminal_sizes(call_id, attempt)


async def _first(home: Directories) -> SupervisorClient:
    """Connect. For a supervisor of another version, return a client that connects once this version has taken over."""
    try:
        return await SupervisorClient.connect(home, start=False, local_output=OutputWhenShown(home))
    except OtherVersion:
        return SupervisorClient.unconnected(home, start=False, local_output=OutputWhenShown(home))


@cache
def _ways_to_clients() -> tuple[tuple[str, str], ...]:
    """Return a command line for each agent client of this machine: it starts those that are connected."""
    # Only a cockpit without calls asks, and what the clients' files need takes a while to load.
    from whisper_tui.agents.client_files import Launch
    from whisper_tui.agents.findings import DoctorContext

    scene = DoctorContext(Launch(tuple(installed_program())), os.environ, Path.cwd())
    found: list[tuple[str, str]] = []
    for name in filter(shutil.which, INSTALLABLE):
        client = profile_of(name)
        files = client.find(scene, None) if client.find is not None else None
        if files is not None and (files.hooks or files.servers or files.environments):
            found.append((name, f"start {client.title}: its commands come here"))
        else:
            found.append((f"whisper-tui install {name}", f"connect {client.title}"))
    return tuple(found)


HINTS_FILE = "hints"
"""The file of the state directory with the names of the hints that were shown."""


def remembered_hints(path: Path) -> "FirstHints":
    """Return the hints, those that a file names as shown before."""
    from whisper_tui.tui.cockpit.notices import FirstHints

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
