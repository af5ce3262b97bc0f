"""smolagents: supervised tools for its agents, and its own tools behind the queue.

Its agents run in a thread, beside the event loop that holds the session: `await asyncio.to_thread(assistant.run, …)`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from smolagents import Tool

from whisper_tui.library import Agent, noted
from whisper_tui.tools import AITool, ToolFailure


def tools(agent: Agent) -> list[Tool]:
    """Return the supervised tools, such as `execute_command`. The model is told why one did not run."""
    return [_tool(agent, tool) for tool in agent.tools.get_all_tools()]


class _QueuedTool(Tool):
    """A tool whose body is a coroutine of the event loop in which this was made."""

    skip_forward_signature_validation = True

    def __init__(
        self,
        tool: Tool | AITool,
        inputs: dict[str, Any],
        output_type: str,
        call: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> None:
        self.name, self.description, self.inputs, self.output_type = tool.name, tool.description, inputs, output_type
        self._call, self._loop = call, asyncio.get_running_loop()
        super().__init__()

    def forward(self, *ordered: Any, **named: Any) -> Any:
        """Call the tool and wait for it. Raises `RuntimeError` in the thread of the event loop, which it would stop."""

        async def called() -> Any:
            return await self._call({**dict(zip(self.inputs, ordered, strict=False)), **named})

        if asyncio._get_running_loop() is self._loop:
            raise RuntimeError("run the agent in a thread of its own: await asyncio.to_thread(assistant.run, ...)")
        return asyncio.run_coroutine_threadsafe(called(), self._loop).result()


def _tool(agent: Agent, tool: AITool) -> Tool:
    async def call(arguments: dict[str, Any]) -> str:
        # An optional argument that is left out in code is None.
        return await agent.tell(tool.name, {name: value for name, value in arguments.items() if value is not None})

    return _QueuedTool(tool, _inputs(tool.parameters_schema), "string", call)


def approved_tool(agent: Agent, tool: Tool) -> Tool:
    """Return a tool whose calls wait in the queue before the given one is called."""

    async def call(arguments: dict[str, Any]) -> Any:
        try:
            async with agent.approved(tool.name, arguments, tool.description) as approved:
                return noted(await asyncio.to_thread(tool, **approved), approved.told)
        except ToolFailure as failure:
            return failure.sentence()

    # The answer may also be the reason why nothing ran.
    return _QueuedTool(tool, tool.inputs, "any", call)


def _inputs(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema of an object in the form that smolagents has for arguments."""
    needed = schema.get("required", ())
    return {
        name: {"type": "any", "description": name, **about, **({} if name in needed else {"nullable": True})}
        for name, about in schema["properties"].items()
    }
