"""`ExecCommand` and the tools about its tasks."""

from whisper_tui.tools.exec_command.envelope import render_for_model
from whisper_tui.tools.exec_command.exec_tool import ExecCommandTool
from whisper_tui.tools.exec_command.task import task_state
from whisper_tui.tools.exec_command.task_tools import (
    TaskInputTool,
    TaskListTool,
    TaskOutputTool,
    TaskStatusTool,
    TaskStopTool,
)

__all__ = [
    "ExecCommandTool",
    "TaskInputTool",
    "TaskListTool",
    "TaskOutputTool",
    "TaskStatusTool",
    "TaskStopTool",
    "render_for_model",
    "task_state",
]
