"""The tools that agents see, with exact schemas and results."""

from whisper_tui.tools.agent_text import DuplicateTool, ToolFailure, UnknownTool, agent_note
from whisper_tui.tools.ai_tool import AITool, ArgumentError
from whisper_tui.tools.command_tools import ExecuteCommandLineTool, ExecuteCommandTool, RunShellCommandTool
from whisper_tui.tools.exec_tool import ExecCommandTool
from whisper_tui.tools.read_file import ReadFileTool
from whisper_tui.tools.registry import ToolRegistry, ToolSet, standard_registry
from whisper_tui.tools.supervised_tool import Answer, AskedTool, CommandTool, SupervisedTool, ToolContext
from whisper_tui.tools.task_tools import TaskInputTool, TaskListTool, TaskOutputTool, TaskStatusTool, TaskStopTool

__all__ = [
    "AITool",
    "Answer",
    "ArgumentError",
    "AskedTool",
    "CommandTool",
    "DuplicateTool",
    "ExecCommandTool",
    "ExecuteCommandLineTool",
    "ExecuteCommandTool",
    "ReadFileTool",
    "RunShellCommandTool",
    "SupervisedTool",
    "TaskInputTool",
    "TaskListTool",
    "TaskOutputTool",
    "TaskStatusTool",
    "TaskStopTool",
    "ToolContext",
    "ToolFailure",
    "ToolRegistry",
    "ToolSet",
    "UnknownTool",
    "agent_note",
    "standard_registry",
]
