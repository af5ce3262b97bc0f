"""Named selections of tools, which can build on each other."""

from collections.abc import Mapping
from dataclasses import dataclass

from whisper_tui.model.errors import InvalidRequest
from whisper_tui.tools.ai_tool import AITool
from whisper_tui.tools.failure import UnknownTool


@dataclass(frozen=True)
class ToolSet:
    """A selection: what the sets that it inherits hold, and its own, without what it leaves out."""

    name: str
    tools: tuple[str, ...] = ()
    """Names of tools."""
    tags: tuple[str, ...] = ()
    """Every tool with one of these tags belongs to it."""
    inherits: tuple[str, ...] = ()
    """Names of sets that are defined already."""
    without: tuple[str, ...] = ()
    """Names of tools that it does not hold, though it inherits or tags them."""


class ToolSets:
    """Sets by name. As a set can inherit only what is there already, none can inherit itself."""

    def __init__(self) -> None:
        self._sets: dict[str, ToolSet] = {}

    def define(self, tool_set: ToolSet) -> None:
        """Add a set. Raises `InvalidRequest` for a name that is taken, or a parent that is not defined."""
        if tool_set.name in self._sets:
            raise InvalidRequest(f"a tool set named {tool_set.name!r} is defined already", hint="Choose another name")
        for parent in tool_set.inherits:
            self._set(parent)
        self._sets[tool_set.name] = tool_set

    def names(self) -> tuple[str, ...]:
        """All sets, in the order of their definition."""
        return tuple(self._sets)

    def select(self, name: str, tools: Mapping[str, AITool]) -> list[AITool]:
        """The tools of a set, in the order of `tools`. Raises `InvalidRequest` or `UnknownTool`."""
        chosen = self._chosen(self._set(name), tools)
        return [tool for tool_name, tool in tools.items() if tool_name in chosen]

    def _set(self, name: str) -> ToolSet:
        if name not in self._sets:
            there = ", ".join(self._sets) or "none"
            raise InvalidRequest(f"there is no tool set {name!r}", hint=f"There are: {there}")
        return self._sets[name]

    def _chosen(self, tool_set: ToolSet, tools: Mapping[str, AITool]) -> set[str]:
        chosen: set[str] = set()
        for parent in tool_set.inherits:
            chosen |= self._chosen(self._sets[parent], tools)
        for name in tool_set.tools:
            if name not in tools:
                raise UnknownTool(f"the tool set {tool_set.name!r} names {name!r}, and there is no such tool")
        chosen.update(tool_set.tools)
        chosen.update(name for name, tool in tools.items() if set(tool_set.tags).intersection(tool.tags))
        return chosen.difference(tool_set.without)
