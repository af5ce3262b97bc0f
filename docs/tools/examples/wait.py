"""Going on to wait."""

import asyncio
import json

from whisper_tui import Approve, in_process

COMMAND = {"cmd": "sleep 1; echo done", "yield_time_ms": 0}


async def main() -> None:
    """Start a task, then wait for its result; this program agrees to everything."""
    async with in_process("my agent", decide=lambda _call: Approve()) as agent:
        started = await agent.call("ExecCommand", COMMAND)
        ticket = started["result"]["task_handle"]["task_id"]
        print(json.dumps(await agent.call("wait", {"ticket": ticket}), indent=2))


asyncio.run(main())
