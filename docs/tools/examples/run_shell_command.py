"""A line of bash that leaves a process in the background."""

import asyncio
import json

from whisper_tui import Approve, in_process

REQUEST = {"command": "sleep 60 & echo started", "description": "Starts a helper"}


async def main() -> None:
    """Ask for it once; this program agrees to everything."""
    async with in_process("my agent", decide=lambda _call: Approve()) as agent:
        print(json.dumps(await agent.call("run_shell_command", REQUEST), indent=2))


asyncio.run(main())
