"""Waiting for a task and reading its output."""

import asyncio
import json

from whisper_tui import Approve, in_process

COMMAND = {"cmd": "echo one; sleep 0.2; echo two", "yield_time_ms": 0}


async def main() -> None:
    """Start a task, then ask about it; this program agrees to everything."""
    async with in_process("my agent", decide=lambda _call: Approve()) as agent:
        started = await agent.call("ExecCommand", COMMAND)
        task_id = started["result"]["task_handle"]["task_id"]
        print(json.dumps(await agent.call("TaskOutput", {"task_id": task_id, "timeout_ms": 20_000}), indent=2))


asyncio.run(main())
