"""LangChain and LangGraph: supervised tools for their agents, and their own tools behind the queue."""

from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from whisper_tui.library import Agent, noted
from whisper_tui.tools import AITool, ToolFailure


def tools(agent: Agent) -> list[StructuredTool]:
    """Return the supervised tools, such as `execute_command`. The model is told why one did not run."""
    return [_tool(agent, tool) for tool in agent.tools.get_all_tools()]


def _tool(agent: Agent, tool: AITool) -> StructuredTool:
    async def call(**arguments: Any) -> str:
        return await agent.tell(tool.name, arguments)

    return _structured(call, tool.name, tool.description, tool.parameters_schema)


def approved_tool(agent: Agent, tool: BaseTool) -> StructuredTool:
    """Return a tool whose calls wait in the queue before the given one is called. It can only be awaited."""

    async def call(**arguments: Any) -> Any:
        try:
            async with agent.approved(tool.name, arguments, tool.description) as approved:
                return noted(await tool.ainvoke(dict(approved)), approved.told)
        except ToolFailure as failure:
            raise ToolException(failure.sentence()) from failure

    return _structured(call, tool.name, tool.description, tool.get_input_jsonschema())


def _structured(call: Any, name: str, description: str, schema: dict[str, Any]) -> StructuredTool:
    # With a JSON Schema the arguments stay as the model has sent them, so that a human sees these.
    return StructuredTool(
        name=name, description=description, args_schema=schema, coroutine=call, handle_tool_error=True
    )
