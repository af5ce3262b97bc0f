"""Orders about a run: to its keeper, or to what its control group still holds when that is gone."""

import json
from collections.abc import Callable
from typing import Any

from whisper_tui.model.errors import NotRunning, Unavailable
from whisper_tui.supervisor.fifo import write_fifo
from whisper_tui.supervisor.follow import Follower
from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.processes import is_stopped


async def give(follower: Follower, order: dict[str, Any], look: Callable[[], None]) -> None:
    """Give an order; `look`: what finds out whether the keeper is gone. Raises `NotRunning` and `Unavailable`."""
    attempt = follower.attempt
    nobody = f"nothing of call {attempt.key.call_id} is alive"
    try:
        await write_fifo(attempt.path(layout.CONTROL), json.dumps(order).encode() + b"\n", nobody)
    except NotRunning:
        look()
        if follower.remains is None or follower.over:
            raise
        follower.remains.obey(order)
        return
    process = follower.process
    if process is not None and is_stopped(process.keeper_pid):
        message = f"the keeper of call {attempt.key.call_id} was stopped by a signal, and obeys once it goes on"
        raise Unavailable(message, hint=f"Let it go on: kill -CONT {process.keeper_pid}")
