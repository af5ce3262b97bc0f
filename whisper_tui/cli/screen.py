"""The cockpit over a running supervisor."""

import asyncio
from functools import partial
from pathlib import Path

from whisper_tui.cli.deciding import decider
from whisper_tui.cli.rule_book import InstanceRules
from whisper_tui.config import load
from whisper_tui.config.file import Configuration
from whisper_tui.model.errors import OtherVersion
from whisper_tui.model.home import Home
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.grace import Grace
from whisper_tui.tui.keymap import keymap
from whisper_tui.wire.autostart import ensure_supervisor
from whisper_tui.wire.client import RemoteSupervision
from whisper_tui.wire.rendezvous import release, replace, was_stopped


def open_cockpit(home: Home) -> int:
    """Show the cockpit until the human leaves it. Returns the exit code. Raises `WhisperError`."""
    return asyncio.run(_open(home, load(home)))


async def _open(home: Home, wanted: Configuration) -> int:
    release(home)  # Whoever opens the cockpit is a human who wants a supervisor.
    await ensure_supervisor(home)
    connections = [await _first(home)]

    async def reconnect() -> RemoteSupervision:
        """A supervisor that crashed is brought back; one that was stopped stays so."""
        if not was_stopped(home):
            await ensure_supervisor(home)
        connections.append(await RemoteSupervision.connect(home, start=False))
        return connections[-1]

    try:
        app = CockpitApp(
            connections[0],
            user=decider()["who"],
            theme=wanted.cockpit.theme,
            keys=keymap(wanted.cockpit.keymap, wanted.keys),
            calling=wanted.calling,
            grace=Grace(wanted.cockpit.undo, wanted.cockpit.undo_s),
            themes_folder=Path(home.config) / "themes",
            reconnect=reconnect,
            take_over=partial(asyncio.to_thread, replace, home),
            rule_book=InstanceRules(home),
        )
        await app.run_async()
        return app.return_code or 0
    finally:
        for connection in connections:
            await connection.close()


async def _first(home: Home) -> RemoteSupervision:
    """A connection, or what will be one once a supervisor of this version has taken over: the cockpit offers that."""
    try:
        return await RemoteSupervision.connect(home, start=False)
    except OtherVersion:
        return RemoteSupervision(home, start=False)
