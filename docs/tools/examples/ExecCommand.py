"""A shell command that ends within its foreground window."""

import asyncio
import json

from whisper_tui import Approve, in_process

REQUEST = {"cmd": "echo to stdout; echo to stderr >&2; exit 3", "login": False}


async def main() -> None:
    """Ask for it once; this program agrees to everything."""
    async with in_process("my agent", decide=lambda _call: Approve()) as agent:
        print(json.dumps(await agent.call("ExecCommand", REQUEST), indent=2))


asyncio.run(main())
