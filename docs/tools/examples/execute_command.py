"""A program with its arguments; no shell reads them."""

import asyncio
import json

from whisper_tui import Approve, in_process

REQUEST = {"command": "printf", "args": ["%s\\n", "two words", "*.txt"], "timeout": 10}


async def main() -> None:
    """Ask for it once; this program agrees to everything."""
    async with in_process("my agent", decide=lambda _call: Approve()) as agent:
        print(json.dumps(await agent.call("execute_command", REQUEST), indent=2))


asyncio.run(main())
