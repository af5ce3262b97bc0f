"""Running a tool, whether or not its author made it asynchronous."""

import asyncio
import inspect
from typing import Any

from whisper_tui.tools.ai_tool import AITool


async def run_tool(tool: AITool, arguments: dict[str, Any]) -> Any:
    """Execute a tool with checked arguments; a synchronous `execute` runs in a thread of its own."""
    if inspect.iscoroutinefunction(tool.execute):
        return await tool.execute(**arguments)
    result = await asyncio.to_thread(tool.execute, **arguments)
    return await result if inspect.isawaitable(result) else result
