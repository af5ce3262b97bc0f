"""Having the supervisor that runs step down, whatever its version: commands go on under their keepers."""

import os
import signal
import time

from whisper_tui.model.errors import Unavailable
from whisper_tui.model.home import Home
from whisper_tui.supervisor.state_directory import is_occupied
from whisper_tui.wire.asking import Asking
from whisper_tui.wire.rendezvous import connect, peer_process

STOP_S = 60.0
"""Seconds that a supervisor has to stop."""

_POLL_S = 0.02


def step_down(home: Home, *, end_runs: bool = False) -> int | None:
    """Ask for it, and wait until its hold on the state directory has ended. Returns its pid; None: none ran.

    One that does not understand, or is stuck, is told by a signal. Raises `WhisperError`.
    """
    connection = connect(home)
    if connection is None:
        _wait_until_gone(home)
        return None
    pid, _ = peer_process(connection)
    try:
        with Asking(connection) as supervisor:
            supervisor.ask("shutdown", end_runs=end_runs)
            supervisor.until_closed()
    except Unavailable:
        if end_runs or not pid:
            raise
        os.kill(pid, signal.SIGTERM)
    _wait_until_gone(home)
    return pid


def _wait_until_gone(home: Home) -> None:
    """Its hold ends with its process."""
    deadline = time.monotonic() + STOP_S
    while is_occupied(home.state):
        if time.monotonic() > deadline:
            raise Unavailable(f"the supervisor did not stop within {STOP_S:g} s", hint="Its log may say why")
        time.sleep(_POLL_S)
