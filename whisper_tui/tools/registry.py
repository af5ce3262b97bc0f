"""The registry of a session's tools, built in or from installed packages, by name and in named sets."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from whisper_tui.model.errors import InvalidRequest, WhisperError
from whisper_tui.tools.agent_text import DuplicateTool, UnknownTool
from whisper_tui.tools.ai_tool import AITool, ArgumentError, check_arguments, run_tool
from whisper_tui.tools.command_tools import (
    LONGEST_TIMEOUT_S,
    ExecuteCommandLineTool,
    ExecuteCommandTool,
    RunShellCommandTool,
)
from whisper_tui.tools.exec_tool import ExecCommandTool
from whisper_tui.tools.read_file import ReadFileTool
from whisper_tui.tools.supervised_tool import Answer, AskedTool, SupervisedTool, ToolContext
from whisper_tui.tools.task_tools import TaskInputTool, TaskListTool, TaskOutputTool, TaskStatusTool, TaskStopTool
from whisper_tui.tools.wait import WaitTool

GROUP = "whisper_tui.tools"
"""The entry point group of packages that provide tools."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ToolSet:
    """A selection of tools: inherited and own ones, except those in `without`."""

    name: str
    tools: tuple[str, ...] = ()
    """Names of tools."""
    tags: tuple[str, ...] = ()
    """Every tool with one of these tags is in the set."""
    inherits: tuple[str, ...] = ()
    """Names of sets that are already defined."""
    without: tuple[str, ...] = ()
    """Names of tools that are excluded, even if they are inherited or tagged."""


class ToolSets:
    """Sets by name. A set can only inherit sets that are already defined, so it cannot inherit itself."""

    def __init__(self) -> None:
        self._sets: dict[str, ToolSet] = {}

    def define(self, tool_set: ToolSet) -> None:
        """Add a set. Raises `InvalidRequest` if the name is taken or a parent is undefined."""
        if tool_set.name in self._sets:
            raise InvalidRequest(f"a tool set named {tool_set.name!r} is already defined", hint="Choose another name")
        for parent in tool_set.inherits:
            self._set(parent)
        self._sets[tool_set.name] = tool_set

    def names(self) -> tuple[str, ...]:
        """All sets, in the order of their definition."""
        return tuple(self._sets)

    def select(self, name: str, tools: Mapping[str, AITool]) -> list[AITool]:
        """Return the tools of a set, in the order of `tools`. Raises `InvalidRequest` or `UnknownTool`."""
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
                raise UnknownTool(f"the tool set {tool_set.name!r} names {name!r}, but there is no such tool")
        chosen.update(tool_set.tools)
        chosen.update(name for name, tool in tools.items() if set(tool_set.tags).intersection(tool.tags))
        return chosen.difference(tool_set.without)


class ToolRegistry:
    """Tools in the order of their registration. Each has a unique name."""

    def __init__(self, tools: Iterable[AITool] = (), *, context: ToolContext | None = None) -> None:
        """`context`: the session whose approval queue all tools use."""
        self._context = context
        self._tools: dict[str, AITool] = {}
        self._sets = ToolSets()
        for tool in tools:
            self.register_tool(tool)

    def register_tool(self, tool: AITool) -> None:
        """Add a tool. Raises `DuplicateTool` if its name is taken."""
        if tool.name in self._tools:
            raise DuplicateTool(
                f"a tool named {tool.name!r} is already registered", hint="Unregister it first, or choose another name"
            )
        # Tools of installed packages do not know the queue, but none may bypass it.
        if self._context is not None and not isinstance(tool, SupervisedTool):
            tool = AskedTool(self._context, tool)
        self._tools[tool.name] = tool

    def unregister_tool(self, name: str) -> None:
        """Remove a tool. Raises `UnknownTool`."""
        del self._tools[self.get_tool_by_name(name).name]

    def get_tool_by_name(self, name: str) -> AITool:
        """Return the tool with that name. Raises `UnknownTool`."""
        try:
            return self._tools[name]
        except KeyError:
            raise UnknownTool(
                f"there is no tool {name!r}", hint=f"There are: {', '.join(self._tools) or 'none'}"
            ) from None

    def get_all_tools(self) -> list[AITool]:
        """Return all tools in the order of their registration."""
        return list(self._tools.values())

    def get_all_tool_definitions(self) -> list[dict[str, Any]]:
        """Return the declarations of all tools for chat completion APIs."""
        return [tool.get_openrouter_tool_definition() for tool in self._tools.values()]

    def get_all_ai_prompt_instructions(self) -> str:
        """Return the prompt texts of all tools, separated by blank lines."""
        return "\n\n".join(tool.get_ai_prompt_instructions() for tool in self._tools.values())

    def get_filtered_tools(
        self,
        *,
        tags: Iterable[str] = (),
        match: Literal["all", "any"] = "all",
        category: str | None = None,
        name_pattern: str | None = None,
    ) -> list[AITool]:
        """Return the tools with all (or any) of the tags, the category, and a name that matches the expression."""
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
        """Return the tools of a named selection. Raises `InvalidRequest` or `UnknownTool`."""
        return self._sets.select(name, self._tools)

    def get_tool_set_names(self) -> list[str]:
        """Return the names of all selections."""
        return list(self._sets.names())

    async def call(self, name: str, arguments: object) -> Any:
        """Run a tool. Raises `UnknownTool`, `ArgumentError` before anything is started, and the tool's errors.

        A tool with its own error format returns errors in the arguments in that format.
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
        """Run a tool and return its result, the result as text, and the note for the model.

        Raises the errors of `call`, unless the tool has its own error format: then the error is the result.
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


@dataclass(frozen=True)
class Discovered:
    """The tools of installed packages, and the problems with those that could not be loaded."""

    # Not an exception, because one broken package must not deprive the session of other tools.

    tools: tuple[AITool, ...]
    problems: tuple[str, ...]
    """One sentence for each entry point without a tool."""


def discover_tools(context: ToolContext, offered: Iterable[EntryPoint] | None = None) -> Discovered:
    """Load the tools of the given entry points. None: those of all installed packages.

    An entry point names a tool, a tool class, or a function that creates a tool from a `ToolContext`.
    """
    tools: list[AITool] = []
    problems: list[str] = []
    for entry in entry_points(group=GROUP) if offered is None else offered:
        found = _load(entry, context)
        if isinstance(found, AITool):
            tools.append(found)
        else:
            problems.append(found)
    return Discovered(tuple(tools), tuple(problems))


def _load(entry: EntryPoint, context: ToolContext) -> AITool | str:
    try:
        made = _made(entry.load(), context)
    except Exception as error:  # noqa: BLE001  the code of another package may raise anything
        return f"the tool {entry.name!r} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}"
    if not isinstance(made, AITool):
        return f"the entry point {entry.name!r} ({entry.value}) is not a tool but a {type(made).__name__}"
    return made


def _made(offered: Any, context: ToolContext) -> Any:
    if not callable(offered) or isinstance(offered, AITool):
        return offered
    if isinstance(offered, type) and issubclass(offered, AITool) and not issubclass(offered, SupervisedTool):
        return offered()
    return offered(context)


TASKS = ("ExecCommand", "TaskList", "TaskStatus", "TaskOutput", "TaskInput", "TaskStop")

AS_OWN_TOOLS = frozenset({"execute_command", "execute_command_line", "run_shell_command", *TASKS, "read_file"})
"""The tools that do the same as those which an agent with a shell has itself."""

SETS = (
    ToolSet("argv", tools=("execute_command",)),
    ToolSet("line", tools=("execute_command_line",)),
    ToolSet("shell", tools=("run_shell_command",)),
    ToolSet("tasks", tools=TASKS),
    ToolSet("files", tools=("read_file",)),
    ToolSet("commands", inherits=("argv", "shell", "tasks")),
)
"""Selections of the built-in tools."""


def standard_registry(
    context: ToolContext,
    *,
    longest_timeout_s: int = LONGEST_TIMEOUT_S,
    whole_line: bool = False,
    places: Sequence[str] = (),
) -> ToolRegistry:
    """Return the registry of one session: the tools of whisper_tui and of installed packages.

    `whole_line`: True if the name `execute_command` belongs to the older tool that takes a command line. `places`: the
    names of the places where commands can run besides this machine.
    """
    if context.session.relayed:
        return _registry_there(context)
    by_argv = ExecuteCommandTool(context, longest_timeout_s=longest_timeout_s)
    by_line = ExecuteCommandLineTool(context)
    registry = ToolRegistry(
        (
            *((ExecuteCommandLineTool(context, name="execute_command"),) if whole_line else (by_argv, by_line)),
            RunShellCommandTool(context, places=places),
            ExecCommandTool(context),
            TaskListTool(context),
            TaskStatusTool(context),
            TaskOutputTool(context),
            TaskInputTool(context),
            TaskStopTool(context),
            ReadFileTool(context),
        ),
        context=context,
    )
    # Tools are looked up on each call, because a package's tool may be registered later.
    registry.register_tool(WaitTool(context, registry.get_tool_by_name))
    for tool_set in SETS:
        if not (whole_line and tool_set.name == "line"):
            registry.define_tool_set(tool_set)
    _add_discovered(registry, context)
    return registry


def _registry_there(context: ToolContext) -> ToolRegistry:
    """Return the tools of an agent at a place: the others read files, and resolve directories, of this machine."""
    registry = ToolRegistry((RunShellCommandTool(context),), context=context)
    registry.register_tool(WaitTool(context, registry.get_tool_by_name))
    return registry


def _add_discovered(registry: ToolRegistry, context: ToolContext) -> None:
    discovered = discover_tools(context)
    for problem in discovered.problems:
        _log.warning("%s", problem)
    for tool in discovered.tools:
        try:
            registry.register_tool(tool)
        except DuplicateTool as error:
            _log.warning("a tool of an installed package was not loaded: %s", error.message)
