"""The tools that an agent is offered, by name."""

import re
from collections.abc import Iterable
from typing import Any, Literal

from whisper_tui.model.errors import InvalidRequest, WhisperError
from whisper_tui.tools.ai_tool import AITool
from whisper_tui.tools.answer import Answer
from whisper_tui.tools.arguments import ArgumentError, check_arguments
from whisper_tui.tools.asked_tool import AskedTool
from whisper_tui.tools.context import ToolContext
from whisper_tui.tools.failure import DuplicateTool, UnknownTool
from whisper_tui.tools.running import run_tool
from whisper_tui.tools.supervised_tool import SupervisedTool
from whisper_tui.tools.tool_set import ToolSet, ToolSets


class ToolRegistry:
    """Tools in the order of their registration; a name belongs to one tool."""

    def __init__(self, tools: Iterable[AITool] = (), *, context: ToolContext | None = None) -> None:
        """`context`: of the session whose approval queue every tool goes through that does not ask by itself."""
        self._context = context
        self._tools: dict[str, AITool] = {}
        self._sets = ToolSets()
        for tool in tools:
            self.register_tool(tool)

    def register_tool(self, tool: AITool) -> None:
        """Add a tool. Raises `DuplicateTool` if its name is taken."""
        if tool.name in self._tools:
            raise DuplicateTool(
                f"a tool named {tool.name!r} is registered already", hint="Unregister it first, or choose another name"
            )
        if self._context is not None and not isinstance(tool, SupervisedTool):
            tool = AskedTool(self._context, tool)
        self._tools[tool.name] = tool

    def unregister_tool(self, name: str) -> None:
        """Take a tool away. Raises `UnknownTool`."""
        del self._tools[self.get_tool_by_name(name).name]

    def get_tool_by_name(self, name: str) -> AITool:
        """The tool of that name. Raises `UnknownTool`."""
        try:
            return self._tools[name]
        except KeyError:
            raise UnknownTool(
                f"there is no tool {name!r}", hint=f"There are: {', '.join(self._tools) or 'none'}"
            ) from None

    def get_all_tools(self) -> list[AITool]:
        """All tools, in the order of their registration."""
        return list(self._tools.values())

    def get_all_tool_definitions(self) -> list[dict[str, Any]]:
        """All tools as chat completion APIs want them declared."""
        return [tool.get_openrouter_tool_definition() for tool in self._tools.values()]

    def get_all_ai_prompt_instructions(self) -> str:
        """The prompt texts of all tools, with a blank line between them."""
        return "\n\n".join(tool.get_ai_prompt_instructions() for tool in self._tools.values())

    def get_filtered_tools(
        self,
        *,
        tags: Iterable[str] = (),
        match: Literal["all", "any"] = "all",
        category: str | None = None,
        name_pattern: str | None = None,
    ) -> list[AITool]:
        """The tools that have all (or any) of the tags, the category, and a name that the regular expression finds."""
        wanted = frozenset(tags)
        if match not in {"all", "any"}:
            raise InvalidRequest(f"tools match all or any of the tags, not {match!r}")
        try:
            pattern = re.compile(name_pattern or "")
        except re.error as error:
            raise InvalidRequest(f"{name_pattern!r} is not a regular expression: {error}") from error
        return [
            tool
            for tool in self._tools.values()
            if _has_tags(tool, wanted, match)
            and (category is None or tool.category == category)
            and pattern.search(tool.name)
        ]

    def define_tool_set(self, tool_set: ToolSet) -> None:
        """Name a selection of tools. Raises `InvalidRequest` for a taken name or an unknown parent."""
        self._sets.define(tool_set)

    def get_tool_set(self, name: str) -> list[AITool]:
        """The tools of a named selection. Raises `InvalidRequest` or `UnknownTool`."""
        return self._sets.select(name, self._tools)

    def get_tool_set_names(self) -> list[str]:
        """The names of all selections."""
        return list(self._sets.names())

    async def call(self, name: str, arguments: object) -> Any:
        """Run a tool. Raises `UnknownTool`, `ArgumentError` before anything is started, and what the tool raises.

        A tool with a shape of its own for failures returns wrong arguments in that shape.
        """
        tool = self.get_tool_by_name(name)
        try:
            checked = check_arguments(tool.name, tool.parameters_schema, arguments)
        except ArgumentError as error:
            shaped = tool.error_result(error)
            if shaped is None:
                raise
            return shaped
        return await run_tool(tool, checked)

    async def answer(self, name: str, arguments: object) -> Answer:
        """Run a tool and say everything about it: its result, as text too, and what a model must know beside it.

        Raises what `call` raises, except where the tool has a shape of its own for failures: then that is the result.
        """
        tool = self.get_tool_by_name(name)
        try:
            if isinstance(tool, SupervisedTool) and await tool.is_asked(arguments):
                return await tool.call(arguments)
            result = await self.call(name, arguments)
        except WhisperError as error:
            shaped = tool.error_result(error)
            if shaped is None:
                raise
            return Answer(shaped, tool.text(shaped), None, failed=True)
        return Answer(result, tool.text(result), None, failed=tool.is_error(result))


def _has_tags(tool: AITool, wanted: frozenset[str], match: Literal["all", "any"]) -> bool:
    if not wanted:
        return True
    found = wanted.intersection(tool.tags)
    return found == wanted if match == "all" else bool(found)
