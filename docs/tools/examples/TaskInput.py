"""Answering a task that waits for input."""

import asyncio
import json

from whisper_tui import Approve, in_process

COMMAND = {"cmd": "read answer; echo got $answer; sleep 60", "accepts_input": True, "yield_time_ms": 0}


async def main() -> None:
    """Start a task, then ask about it; this program agrees to everything."""
    async with in_process("my agent", decide=lambda _call: Approve()) as agent:
        started = await agent.call("ExecCommand", COMMAND)
        task_id = started["result"]["task_handle"]["task_id"]
        print(json.dumps(await agent.call("TaskInput", {"task_id": task_id, "text": "yes\n"}), indent=2))


asyncio.run(main())
