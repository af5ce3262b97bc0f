"""Whether a connection comes from the agent that it names: who is taken for an agent decides nothing any more."""

import asyncio
import os
from pathlib import Path
from typing import Any

from whisper_tui.model.errors import NotAllowed
from whisper_tui.wire.peers import descends
from whisper_tui.wire.rendezvous import peer_process


async def check_origin(connection: Any, hello: dict[str, Any]) -> None:
    """Forget the agent's pid where pids mean something else. Raises `NotAllowed` for one that is no ancestor's."""
    pid = hello.get("pid")
    if not isinstance(pid, int):
        return
    if await asyncio.to_thread(_counts_pids_otherwise, connection):
        hello["pid"] = None
    elif not await asyncio.to_thread(descends, connection, pid):
        raise NotAllowed(
            f"this connection says that process {pid} is its agent, and does not come from there",
            hint="Let the agent itself start whisper-tui mcp, or its hook",
        )


def _counts_pids_otherwise(connection: Any) -> bool:
    """Whether the process at the other end lives in another pid namespace, as in a container."""
    peer, _ = peer_process(connection)
    try:
        return Path(f"/proc/{peer}/ns/pid").readlink() != Path(f"/proc/{os.getpid()}/ns/pid").readlink()
    except OSError:
        return False
