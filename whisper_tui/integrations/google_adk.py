"""Google's Agent Development Kit: supervised tools for its agents, and its own tools behind the queue."""

from collections.abc import Awaitable, Callable
from typing import Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai.types import FunctionDeclaration

from whisper_tui.library import Agent, noted
from whisper_tui.tools import AITool, ToolFailure


def tools(agent: Agent) -> list[BaseTool]:
    """Return the supervised tools, such as `execute_command`. The model is told why one did not run."""
    return [_tool(agent, tool) for tool in agent.tools.get_all_tools()]


class _DeclaredTool(BaseTool):
    """A tool with this declaration, whose body is a coroutine."""

    def __init__(
        self,
        declaration: FunctionDeclaration | None,
        tool: BaseTool | AITool,
        call: Callable[[dict[str, Any], ToolContext], Awaitable[Any]],
    ) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._declaration = declaration
        self._call = call

    def _get_declaration(self) -> FunctionDeclaration | None:
        return self._declaration

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Call the tool."""
        return await self._call(args, tool_context)


def _tool(agent: Agent, tool: AITool) -> BaseTool:
    async def call(arguments: dict[str, Any], _context: ToolContext) -> str:
        return await agent.tell(tool.name, arguments)

    schema = tool.parameters_schema
    declaration = FunctionDeclaration(name=tool.name, description=tool.description, parameters_json_schema=schema)
    return _DeclaredTool(declaration, tool, call)


def approved_tool(agent: Agent, tool: BaseTool) -> BaseTool:
    """Return a tool whose calls wait in the queue before the given one is called."""

    async def call(arguments: dict[str, Any], context: ToolContext) -> Any:
        try:
            async with agent.approved(tool.name, arguments, tool.description) as approved:
                return noted(await tool.run_async(args=dict(approved), tool_context=context), approved.told)
        except ToolFailure as failure:
            return failure.sentence()

    return _DeclaredTool(tool._get_declaration(), tool, call)
