"""The tools of a session as the user has set them."""

from whisper_tui.config.file import ToolSettings
from whisper_tui.tools import ToolContext, ToolRegistry, standard_registry


def offered(settings: ToolSettings, context: ToolContext) -> ToolRegistry:
    """The standard tools and those of installed packages, with the user's choices."""
    return standard_registry(context, longest_timeout_s=settings.longest_timeout_s, whole_line=settings.whole_line)
