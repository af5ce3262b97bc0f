"""Where a task stands."""

import asyncio
import json

from whisper_tui import Approve, in_process

COMMAND = {"cmd": "exec sleep 60", "yield_time_ms": 0}


async def main() -> None:
    """Start a task, then ask about it; this program agrees to everything."""
    async with in_process("my agent", decide=lambda _call: Approve()) as agent:
        started = await agent.call("ExecCommand", COMMAND)
        task_id = started["result"]["task_handle"]["task_id"]
        print(json.dumps(await agent.call("TaskStatus", {"task_id": task_id}), indent=2))


asyncio.run(main())
