"""Pydantic AI: supervised tools for its agents, and its own toolsets behind the queue."""

from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset
from pydantic_core import ValidationError, to_jsonable_python

from whisper_tui.library import Agent, noted
from whisper_tui.tools import AITool, ToolFailure


def tools(agent: Agent) -> list[Tool[Any]]:
    """Return the supervised tools, such as `execute_command`. The model is told why one did not run."""
    return [_tool(agent, tool) for tool in agent.tools.get_all_tools()]


def _tool(agent: Agent, tool: AITool) -> Tool[Any]:
    async def call(**arguments: Any) -> str:
        return await agent.tell(tool.name, arguments)

    return Tool.from_schema(call, tool.name, tool.description, tool.parameters_schema)


@dataclass
class ApprovedToolset(WrapperToolset[Any]):
    """A toolset whose calls wait in the queue before the tools of the wrapped one are called."""

    agent: Agent

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Ask about a call, then carry it out. Changed arguments are validated once more."""
        shown = to_jsonable_python(tool_args)
        try:
            async with self.agent.approved(name, shown, tool.tool_def.description or "") as approved:
                if approved != shown:
                    tool_args = _validated(tool, approved, ctx)
                return noted(await super().call_tool(name, tool_args, ctx, tool), approved.told)
        except ToolFailure as failure:
            return failure.sentence()


def _validated(tool: ToolsetTool[Any], changed: dict[str, Any], ctx: RunContext[Any]) -> dict[str, Any]:
    """Return arguments that a human has changed in the form that the tool takes. Raises `ToolFailure`."""
    try:
        arguments: dict[str, Any] = tool.args_validator.validate_python(dict(changed), context=ctx.validation_context)
    except ValidationError as error:
        raise ToolFailure(f"The arguments do not fit the tool any more. Nothing ran. {error}") from error
    return arguments
