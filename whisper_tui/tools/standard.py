"""The tools that every session is offered."""

import logging

from whisper_tui.tools.context import ToolContext
from whisper_tui.tools.discovery import discover_tools
from whisper_tui.tools.exec_command import (
    ExecCommandTool,
    TaskInputTool,
    TaskListTool,
    TaskOutputTool,
    TaskStatusTool,
    TaskStopTool,
)
from whisper_tui.tools.execute_command import LONGEST_TIMEOUT_S, ExecuteCommandTool
from whisper_tui.tools.execute_command_line import ExecuteCommandLineTool
from whisper_tui.tools.failure import DuplicateTool
from whisper_tui.tools.read_file import ReadFileTool
from whisper_tui.tools.registry import ToolRegistry
from whisper_tui.tools.run_shell_command import RunShellCommandTool
from whisper_tui.tools.tool_set import ToolSet
from whisper_tui.tools.wait import WaitTool

_log = logging.getLogger(__name__)

TASKS = ("ExecCommand", "TaskList", "TaskStatus", "TaskOutput", "TaskInput", "TaskStop")

SETS = (
    ToolSet("argv", tools=("execute_command",)),
    ToolSet("line", tools=("execute_command_line",)),
    ToolSet("shell", tools=("run_shell_command",)),
    ToolSet("tasks", tools=TASKS),
    ToolSet("files", tools=("read_file",)),
    ToolSet("commands", inherits=("argv", "shell", "tasks")),
)
"""Selections of the tools that are always there."""


def standard_registry(
    context: ToolContext, *, longest_timeout_s: int = LONGEST_TIMEOUT_S, whole_line: bool = False
) -> ToolRegistry:
    """The tools of one session: those of whisper_tui, and those of installed packages.

    `whole_line`: whether the name `execute_command` belongs to the older tool that takes a whole line.
    """
    by_argv = ExecuteCommandTool(context, longest_timeout_s=longest_timeout_s)
    by_line = ExecuteCommandLineTool(context)
    registry = ToolRegistry(
        (
            *((ExecuteCommandLineTool(context, name="execute_command"),) if whole_line else (by_argv, by_line)),
            RunShellCommandTool(context),
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
    registry.register_tool(WaitTool(context, registry.get_tool_by_name))
    for tool_set in SETS:
        if not (whole_line and tool_set.name == "line"):
            registry.define_tool_set(tool_set)
    _add_discovered(registry, context)
    return registry


def _add_discovered(registry: ToolRegistry, context: ToolContext) -> None:
    discovered = discover_tools(context)
    for problem in discovered.problems:
        _log.warning("%s", problem)
    for tool in discovered.tools:
        try:
            registry.register_tool(tool)
        except DuplicateTool as error:
            _log.warning("a tool of an installed package is left out: %s", error.message)
