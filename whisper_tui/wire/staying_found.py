"""That a supervisor can be found: its socket is where clients look for it, and the state directory is its own."""

import asyncio
import logging
from collections.abc import Callable

from whisper_tui.model.errors import WhisperError
from whisper_tui.supervisor.state_directory import Occupation
from whisper_tui.wire.server import Server

LOOK_EVERY_S = 5.0
"""Seconds between two looks."""

_log = logging.getLogger(__name__)


async def stay_found(server: Server, occupation: Occupation, nobody_can: Callable[[], None]) -> None:
    """Listen again whenever the socket was removed; endless.

    `nobody_can`: called, at the end, once the state directory was removed or replaced. Whoever looks there then starts
    another supervisor, and this one would be left over for ever.
    """
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if not occupation.holds:
            _log.critical("the state directory was removed or replaced: nobody finds this supervisor, and it stops")
            nobody_can()
            return
        if not server.is_found:
            _log.warning("the socket was removed, and is made again")
            try:
                await server.listen()
            except (WhisperError, OSError) as error:
                _log.warning("that cannot be done now: %s", error)
