"""A whole line for sh."""

import asyncio
import json

from whisper_tui import Approve, in_process

REQUEST = {"command": "echo hello | tr a-z A-Z"}


async def main() -> None:
    """Ask for it once; this program agrees to everything."""
    async with in_process("my agent", decide=lambda _call: Approve()) as agent:
        print(json.dumps(await agent.call("execute_command_line", REQUEST), indent=2))


asyncio.run(main())
