"""`ExecCommand` and the tools about its tasks."""

from whisper_tui.tools.exec_command.rendering import render_for_model
from whisper_tui.tools.exec_command.task import task_state
from whisper_tui.tools.exec_command.task_control import TaskInputTool, TaskStopTool
from whisper_tui.tools.exec_command.task_tools import TaskListTool, TaskOutputTool, TaskStatusTool
from whisper_tui.tools.exec_command.tool import ExecCommandTool

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
