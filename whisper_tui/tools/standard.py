"""The tools that every session is offered."""

from whisper_tui.tools.context import ToolContext
from whisper_tui.tools.execute_command import LONGEST_TIMEOUT_S, ExecuteCommandTool
from whisper_tui.tools.registry import ToolRegistry
from whisper_tui.tools.run_shell_command import RunShellCommandTool


def standard_registry(context: ToolContext, *, longest_timeout_s: int = LONGEST_TIMEOUT_S) -> ToolRegistry:
    """The tools of one session."""
    return ToolRegistry(
        (ExecuteCommandTool(context, longest_timeout_s=longest_timeout_s), RunShellCommandTool(context)),
    )
