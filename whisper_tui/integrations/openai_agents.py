"""The OpenAI Agents SDK: supervised tools for its agents, and its own function tools behind the queue."""

import json
from dataclasses import replace
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from whisper_tui.library import Agent, noted
from whisper_tui.tools import AITool, ToolFailure


def tools(agent: Agent) -> list[FunctionTool]:
    """Return the supervised tools, such as `execute_command`. The model is told why one did not run."""
    return [_tool(agent, tool) for tool in agent.tools.get_all_tools()]


def _tool(agent: Agent, tool: AITool) -> FunctionTool:
    async def invoke(_context: ToolContext[Any], arguments: str) -> str:
        try:
            return await agent.tell(tool.name, _object(arguments))
        except ToolFailure as failure:
            return failure.sentence()

    # Strict schemas have no optional arguments, and these tools do.
    return FunctionTool(tool.name, tool.description, tool.parameters_schema, invoke, strict_json_schema=False)


def approved_tool(agent: Agent, tool: FunctionTool) -> FunctionTool:
    """Return a function tool whose calls wait in the queue before the tool is called.

    Its time limit is dropped, because it would count the time that a human needs.
    """

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        try:
            async with agent.approved(tool.name, _object(arguments), tool.description) as approved:
                return noted(await tool.on_invoke_tool(context, json.dumps(approved)), approved.told)
        except ToolFailure as failure:
            return failure.sentence()

    return replace(tool, on_invoke_tool=invoke, timeout_seconds=None)


def _object(arguments: str) -> dict[str, Any]:
    """Return the arguments that a model has written, which need not be valid. Raises `ToolFailure`."""
    try:
        read = json.loads(arguments or "{}")
    except ValueError as error:
        raise ToolFailure(f"The arguments are no JSON: {error}. Nothing ran.") from error
    if not isinstance(read, dict):
        raise ToolFailure("The arguments must be a JSON object. Nothing ran.")
    return read
