"""A file of the workspace, and one that is not there."""

import asyncio
import json
from pathlib import Path

from whisper_tui import Deny, in_process


async def main() -> None:
    """Nobody has to be asked: both are inside the workspace."""
    Path("notes.txt").write_text("remember the milk\n", encoding="utf-8")
    async with in_process("my agent", decide=lambda _call: Deny()) as agent:
        print(json.dumps(await agent.call("read_file", {"path": "notes.txt"})))
        print(json.dumps(await agent.call("read_file", {"path": "recipe.txt"})))


asyncio.run(main())
