"""The tasks that are active."""

import asyncio
import json

from whisper_tui import Approve, in_process


async def main() -> None:
    """Start a task, then list what is active; this program agrees to everything."""
    async with in_process("my agent", decide=lambda _call: Approve()) as agent:
        await agent.call("ExecCommand", {"cmd": "exec sleep 60", "yield_time_ms": 0})
        print(json.dumps(await agent.call("TaskList", {}), indent=2))


asyncio.run(main())
