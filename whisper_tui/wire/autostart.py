"""Making sure that a supervisor runs, from inside an event loop."""

import asyncio

from whisper_tui.model.home import Home
from whisper_tui.wire.rendezvous import reach


async def ensure_supervisor(home: Home) -> None:
    """Return once a supervisor listens for these directories; start one if none does. Raises `WhisperError`."""
    connection = await asyncio.to_thread(reach, home)
    connection.close()
