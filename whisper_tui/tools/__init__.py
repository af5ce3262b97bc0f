"""What agents see: tools with exact schemas and results."""

from whisper_tui.tools.ai_tool import AITool
from whisper_tui.tools.answer import Answer
from whisper_tui.tools.arguments import ArgumentError
from whisper_tui.tools.asked_tool import AskedTool
from whisper_tui.tools.command_tool import CommandTool
from whisper_tui.tools.context import ToolContext
from whisper_tui.tools.exec_command import (
    ExecCommandTool,
    TaskInputTool,
    TaskListTool,
    TaskOutputTool,
    TaskStatusTool,
    TaskStopTool,
)
from whisper_tui.tools.execute_command import ExecuteCommandTool
from whisper_tui.tools.execute_command_line import ExecuteCommandLineTool
from whisper_tui.tools.failure import DuplicateTool, ToolFailure, UnknownTool
from whisper_tui.tools.read_file import ReadFileTool
from whisper_tui.tools.registry import ToolRegistry
from whisper_tui.tools.run_shell_command import RunShellCommandTool
from whisper_tui.tools.standard import standard_registry
from whisper_tui.tools.supervised_tool import SupervisedTool
from whisper_tui.tools.told import told
from whisper_tui.tools.tool_set import ToolSet

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
    "standard_registry",
    "told",
]
