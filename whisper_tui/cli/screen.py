"""The cockpit over a running supervisor."""

import asyncio

from whisper_tui.config import load
from whisper_tui.model.home import Home
from whisper_tui.tui.app import CockpitApp
from whisper_tui.wire.client import RemoteSupervision


def open_cockpit(home: Home) -> int:
    """Show the cockpit until the human leaves it. Returns the exit code. Raises `WhisperError`."""
    theme = load(home).cockpit.theme
    return asyncio.run(_open(home, theme))


async def _open(home: Home, theme: str | None) -> int:
    supervision = await RemoteSupervision.connect(home)
    try:
        app = CockpitApp(supervision, theme=theme)
        await app.run_async()
        return app.return_code or 0
    finally:
        await supervision.close()
